import Foundation
import OortModel

/// What a request to Graph is about: a resource, and what is to be done with it.
struct GraphTarget {
    /// The resource.
    enum Resource: Equatable {
        case me
        case drives
        case batch
        case drive(String)
        /// An item of a drive: from `start` (nil for the root) down `path`.
        case item(drive: String, start: String?, path: [String])
    }

    var resource: Resource
    /// What follows the address: `children`, `versions/1.0/content`; functions without their
    /// arguments.
    var action: [String]
    /// The argument of a function, `search(q='…')` or `delta(token='…')`.
    var argument: String?

    /// The operation without ids.
    var routeName: String {
        switch resource {
        case .me: "me"
        case .drives: "drives"
        case .batch: "batch"
        case .drive: action.first ?? "drive"
        case .item: action.first ?? "item"
        }
    }

    /// Reads the path of a request; nil when it names no resource.
    ///
    /// Some clients encode the colons and slashes of a path address. No name has them, so that they
    /// can be decoded before anything else.
    init?(_ request: SimulatorRequest) {
        let plain = request.rawPath
            .replacing("%3A", with: ":").replacing("%3a", with: ":")
            .replacing("%2F", with: "/").replacing("%2f", with: "/")
            .replacing("%24", with: "$")
        guard plain.hasPrefix("/v1.0/") else { return nil }
        var rest = plain.dropFirst("/v1.0/".count)
        // Microsoft's SDK writes "/v1.0//me".
        if rest.hasPrefix("/") { rest = rest.dropFirst() }
        if rest.hasSuffix("/") { rest = rest.dropLast() }
        action = []
        if rest == "me" {
            resource = .me
        } else if rest == "$batch" {
            resource = .batch
        } else if rest == "me/drives" {
            resource = .drives
        } else {
            let drive: String
            if rest == "me/drive" || rest.hasPrefix("me/drive/") || rest.hasPrefix("me/drive:") {
                drive = OneDriveSimulator.driveID
                rest = rest.dropFirst("me/drive".count)
            } else if rest.hasPrefix("drives/") {
                rest = rest.dropFirst("drives/".count)
                let end = rest.firstIndex(of: "/") ?? rest.endIndex
                drive = rest[..<end].removingPercentEncoding ?? ""
                rest = rest[end...]
            } else {
                return nil
            }
            guard let address = Self.address(rest, in: drive) else { return nil }
            resource = address.resource
            action = address.action
        }
        takeArgument()
    }

    private static func address(
        _ text: Substring,
        in drive: String
    ) -> (resource: Resource, action: [String])? {
        var rest = text
        if rest.isEmpty { return (.drive(drive), []) }
        var start: String?
        if rest.hasPrefix("/root") {
            rest = rest.dropFirst("/root".count)
        } else if rest.hasPrefix("/items/") {
            rest = rest.dropFirst("/items/".count)
            let end = rest.firstIndex { $0 == "/" || $0 == ":" } ?? rest.endIndex
            let id = rest[..<end].removingPercentEncoding ?? ""
            start = id == "root" ? nil : id
            rest = rest[end...]
        } else if rest.hasPrefix("/search") {
            return (.drive(drive), segments(rest))
        } else {
            return nil
        }
        guard rest.hasPrefix(":") else {
            guard rest.isEmpty || rest.hasPrefix("/") else { return nil }
            return (.item(drive: drive, start: start, path: []), segments(rest))
        }
        rest = rest.dropFirst()
        let end = rest.firstIndex(of: ":") ?? rest.endIndex
        let path = segments(rest[..<end])
        let action = end == rest.endIndex ? [] : segments(rest[rest.index(after: end)...])
        return (.item(drive: drive, start: start, path: path), action)
    }

    private static func segments(_ text: Substring) -> [String] {
        text.split(separator: "/").map { $0.removingPercentEncoding ?? String($0) }
    }

    /// Splits `search(q='a''b')` into the function's name and its argument, and takes the
    /// namespace away that some clients write before actions.
    private mutating func takeArgument() {
        // A slash in the argument was taken for one of the path.
        guard var first = action.first else { return }
        if first.contains("("), !first.hasSuffix(")") { first = action.joined(separator: "/") }
        if first.hasPrefix("microsoft.graph.") { first.removeFirst("microsoft.graph.".count) }
        if let open = first.firstIndex(of: "("), first.hasSuffix(")") {
            let inside = first[first.index(after: open)...].dropLast()
            if let quote = inside.firstIndex(of: "'"), inside.hasSuffix("'") {
                argument = String(inside[inside.index(after: quote)...].dropLast())
                    .replacing("''", with: "'")
            }
            first = String(first[..<open])
            action = [first]
        } else {
            action[0] = first
        }
    }
}

extension OneDriveSimulator {
    /// One spelling of an id: the account number without case and leading zeros.
    static func plainID(_ id: String) -> String {
        guard let bang = id.firstIndex(of: "!") else { return id }
        let number = id[..<bang].drop { $0 == "0" }.uppercased()
        return number + id[bang...]
    }

    /// The root of a drive; nil for an unknown one.
    static func root(ofDrive drive: String) -> String? {
        let number = drive.drop { $0 == "0" }.uppercased()
        return switch number {
        case accountNumber: rootID
        case otherAccountNumber: otherRootID
        // Another person's own drive (`ownDriveID`).
        case _ where number.dropLast() == accountNumber.dropLast(): rootID
        default: nil
        }
    }

    /// The drive of an item, by its id.
    static func drive(ofItem id: String) -> String {
        id.hasPrefix(otherAccountNumber + "!") ? otherDriveID : driveID
    }

    /// The item that a request is about, if it is there; trashed items are not.
    func find(_ target: GraphTarget, in tree: SimulatedTree) -> SimulatedItem? {
        guard case .item(let drive, let start, let path) = target.resource,
            let root = Self.root(ofDrive: drive)
        else { return nil }
        let first = start.map(Self.plainID) ?? root
        guard Self.root(ofDrive: Self.drive(ofItem: first)) == root, let top = tree.item(first),
            !tree.isTrashed(first)
        else { return nil }
        return path.isEmpty ? top : tree.item(at: path, from: first)
    }

    /// Where something new is to go: the folder, and the name at the end of the path.
    ///
    /// `makingFolders` makes the folders of the path that are missing, as a PUT of content does.
    func findPlace(
        _ target: GraphTarget,
        in tree: inout SimulatedTree,
        makingFolders: Bool = false
    ) -> (parent: String, name: String)? {
        guard case .item(let drive, let start, let path) = target.resource, let name = path.last
        else { return nil }
        var above = target
        above.resource = .item(drive: drive, start: start, path: [])
        guard var folder = find(above, in: tree) else { return nil }
        for part in path.dropLast() {
            if let next = tree.items(named: part, in: folder.id).first {
                folder = next
            } else if makingFolders {
                folder = tree.create(
                    part,
                    in: folder.id,
                    kind: .folder,
                    id: newID(in: folder.id, &tree)
                )
            } else {
                return nil
            }
        }
        guard folder.isFolder else { return nil }
        return (folder.id, name)
    }

    /// An id for something new in a folder: of the folder's drive.
    func newID(in folder: String, _ tree: inout SimulatedTree) -> String {
        let number =
            Self.drive(ofItem: folder) == Self.driveID
            ? Self.accountNumber : Self.otherAccountNumber
        return "\(number)!s\(tree.random.hex(32))"
    }
}
