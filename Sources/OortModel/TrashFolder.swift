import Foundation

/// The folder of a deletion in Oort's own trash on a server that has none: `SECONDS-NUMBER-MARK@FOLDER`.
///
/// Its name says when the deletion was, of which item (`TrashEntry.mark`; older ones do not), and in which
/// folder the thing lay, `/` written `%2F` and `%` written `%25`. Where that is too long for one name, the
/// name ends in a `%`, and holds nothing but a folder `@REST`, whose name goes on with it, and may end in a
/// `%` itself. Older ones leave such a path out.
public enum TrashFolder {
    /// Bytes of the longest name that servers take.
    private static let longestName = 255
    /// Seconds for which a deletion stays in the trash.
    private static let length: Int64 = 30 * 86_400
    /// The most names of one deletion's folders: more than any path needs.
    public static let mostNames = 64

    /// The names of a deletion's folder and of the folders in it, each in the one before; the last one is
    /// to hold the thing.
    public static func names(
        seconds: Int64,
        number: UInt32,
        mark: String?,
        of path: RemotePath
    ) -> [String] {
        var name = "\(seconds)-\(String(number, radix: 16))"
        if let mark { name += "-\(mark)" }
        guard let folder = path.parent else { return [name] }
        let origin = folder.parts.map { $0.replacing("%", with: "%25") }.joined(separator: "%2F")
        var rest = ByteNames.bytes(origin)[...]
        var names: [String] = []
        name += "@"
        while name.utf8.count + rest.count > longestName {
            let part = start(of: rest, atMost: longestName - 1 - name.utf8.count)
            names.append(name + ByteNames.text(Array(part)) + "%")
            rest = rest.dropFirst(part.count)
            name = "@"
        }
        return names + [name + ByteNames.text(Array(rest))]
    }

    /// The first bytes of a text, no letter cut in two.
    private static func start(of bytes: ArraySlice<UInt8>, atMost limit: Int) -> ArraySlice<UInt8> {
        for count in (max(1, limit - 3)...max(1, limit)).reversed() {
            let next = bytes.dropFirst(count).first
            if next.map({ $0 & 0xC0 != 0x80 }) ?? true { return bytes.prefix(count) }
        }
        return bytes.prefix(max(1, limit))
    }

    /// What the names of a deletion's folders say.
    public struct Deletion: Sendable {
        /// When the deletion was.
        public var time: Timestamp
        /// The mark of what was deleted.
        public var mark: String?
        /// In which folder it lay; nil where that is not known.
        public var folder: RemotePath?
        /// Whether the name goes on with that of a folder in it (`goesOn`).
        public var goesOn: Bool
    }

    /// What the name of a deletion's folder says, with those of the folders in it that it goes on with; nil
    /// for what is no deletion's folder.
    public static func deletion(_ name: String, _ more: [String] = []) -> Deletion? {
        let parts = name.cut(atFirst: "@")
        guard let head = (parts.map { String($0.before) } ?? name).cut(atFirst: "-"),
            let seconds = Int64(head.before)
        else { return nil }
        var deletion = Deletion(
            time: Timestamp(seconds: seconds),
            goesOn: parts != nil && (more.last ?? name).ends(with: "%")
        )
        deletion.mark = head.after.cut(atFirst: "-").map { String($0.after) }
        guard let parts, !deletion.goesOn else { return deletion }
        var bytes: [UInt8] = []
        for part in [parts.after] + more.map({ $0.dropFirst() }) {
            let part = part.dropping(ending: "%") ?? part
            bytes += ByteNames.bytes(String(part))
        }
        let origin = ByteNames.text(bytes)
        let names =
            origin.isEmpty
            ? []
            : origin.components(separatedBy: "%2F").map { $0.replacing("%25", with: "%") }
        if names.allSatisfy({ !$0.isEmpty && $0 != "." && $0 != ".." && !$0.has("/") }) {
            deletion.folder = RemotePath(names)
        }
        return deletion
    }

    /// Whether a folder in a deletion's may be the one with which its name goes on.
    public static func isMore(_ name: String) -> Bool {
        name.begins(with: "@") && !name.has("/")
    }

    /// The names of an entry's id: those of its deletion's folders, and its own; nil for what is no
    /// entry's.
    public static func names(ofEntry id: String) -> [String]? {
        let names = id.parts(between: "/").map(String.init)
        guard names.count >= 2, names.count <= mostNames + 1, deletion(names[0]) != nil,
            names[1..<(names.count - 1)].allSatisfy(isMore),
            let own = names.last, !own.isEmpty, own != ".", own != ".."
        else { return nil }
        return names
    }

    /// The folders of deletions that may be removed for good, in the trash's order: those that were in the
    /// trash for 30 days when `deletion` was made.
    ///
    /// `folders` are the entries of the trash with the server's times; entries that are no deletion's
    /// folder are skipped. A folder is old only if both its name, which the deleting machine wrote, and the
    /// server's time say so, each compared with those of `deletion`, which are both recent: any one clock
    /// may be wrong, this machine's too. If `deletion` is not among them, nothing is old.
    public static func outlived(
        among folders: [(name: String, modified: Timestamp)],
        at deletion: String
    ) -> [String] {
        let times = folders.compactMap { folder in
            self.deletion(folder.name).map {
                (name: folder.name, named: $0.time.seconds, told: folder.modified.seconds)
            }
        }
        guard let now = times.first(where: { $0.name == deletion }) else { return [] }
        func isOld(_ then: Int64, _ now: Int64) -> Bool {
            let (age, overflows) = now.subtractingReportingOverflow(then)
            return !overflows && age > length
        }
        return times.filter { isOld($0.named, now.named) && isOld($0.told, now.told) }.map(\.name)
    }
}
