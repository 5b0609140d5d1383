/// What an address of the page names below the mount point: names as bytes, none of which leads
/// upwards.
struct SitePath: Hashable, Sendable {
    /// The names from the mount point down; none for the mount point itself.
    let names: [[UInt8]]

    /// The mount point itself.
    static let root = SitePath(names: [])

    private init(names: [[UInt8]]) { self.names = names }

    /// The path that a percent-encoded text stands for: names between slashes, each decoded by itself.
    ///
    /// Nil for what no name may be: empty, `.`, `..`, with a slash or a NUL, longer than 255 bytes.
    init?(encoded text: some StringProtocol) {
        var names: [[UInt8]] = []
        let parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() {
            // A slash at the beginning or the end.
            if part.isEmpty, index == 0 || index == parts.count - 1 { continue }
            guard let name = PercentCoding.decoded(part), Self.isName(name) else { return nil }
            names.append(name)
        }
        self.names = names
    }

    /// A path of this machine as one below `mountPoint`; nil where it lies elsewhere.
    init?(_ path: String, below mountPoint: String) {
        var names: [[UInt8]] = []
        guard path != mountPoint else {
            self = .root
            return
        }
        let top = Array(mountPoint.utf8) + [UInt8(ascii: "/")]
        guard path.utf8.starts(with: top) else { return nil }
        for part in path.utf8.dropFirst(top.count).split(separator: UInt8(ascii: "/")) {
            let name = Array(part)
            guard Self.isName(name) else { return nil }
            names.append(name)
        }
        self.names = names
    }

    /// Where a symbolic link in `folder` leads by its text alone; nil where that is not below
    /// `mountPoint`.
    init?(link target: [UInt8], in folder: SitePath, mountPoint: String) {
        var names = folder.names
        var rest = target[...]
        if target.first == UInt8(ascii: "/") {
            let top = Array(mountPoint.utf8)
            guard target.starts(with: top) else { return nil }
            rest = target.dropFirst(top.count)
            guard rest.isEmpty || rest.first == UInt8(ascii: "/") else { return nil }
            names = []
        }
        for part in rest.split(separator: UInt8(ascii: "/")) {
            if part.elementsEqual(".".utf8) { continue }
            if part.elementsEqual("..".utf8) {
                guard !names.isEmpty else { return nil }
                names.removeLast()
                continue
            }
            let name = Array(part)
            guard Self.isName(name) else { return nil }
            names.append(name)
        }
        self.names = names
    }

    private static func isName(_ name: [UInt8]) -> Bool {
        !name.isEmpty && name.count <= 255 && !name.contains(0)
            && !name.contains(UInt8(ascii: "/")) && !name.elementsEqual(".".utf8)
            && !name.elementsEqual("..".utf8)
    }

    /// As it stands in an address, without a slash at its ends.
    var encoded: String {
        names.map { PercentCoding.encoded($0) }.joined(separator: "/")
    }

    /// The folder that it lies in; of the mount point itself that.
    var folder: SitePath { SitePath(names: names.dropLast()) }

    /// Something in this folder.
    func appending(_ name: [UInt8]) -> SitePath { SitePath(names: names + [name]) }

    /// Each folder on the way to it, itself last, without the mount point.
    var steps: [SitePath] {
        names.indices.map { SitePath(names: Array(names[...$0])) }
    }

    /// The last name as text; bytes that are no UTF-8 are replaced.
    var name: String { names.last.map { String(decoding: $0, as: UTF8.self) } ?? "" }

    /// The path on this machine.
    ///
    /// - Throws: `Failure` where a name is no UTF-8, which the control socket cannot say.
    func absolute(below mountPoint: String) throws(Failure) -> String {
        var path = mountPoint
        for name in names {
            guard let text = String(validating: name, as: UTF8.self) else {
                throw Failure("The name \(self.name) is not in UTF-8: use a program for this.")
            }
            path += "/" + text
        }
        return path
    }

    /// The names with slashes, as a person reads it; bytes that are no UTF-8 are replaced.
    var shown: String {
        names.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/")
    }
}
