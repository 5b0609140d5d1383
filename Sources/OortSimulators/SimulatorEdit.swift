public import OortModel

/// A change by another client in the account, past the service's protocol.
public enum SimulatorEdit: Sendable {
    /// A new file, or a new revision of the one that is there; makes missing folders.
    case write(path: [String], SimulatedContent, modifiedTime: Timestamp?)
    /// A new file in the account that belongs to another person, who shared it.
    case share(path: [String], SimulatedContent)
    /// The tags that somebody gives an item, in place of those that it has.
    case tag(path: [String], [String])
    /// With whom the account's person shares an item, in place of those who had it.
    case lend(path: [String], to: [SimulatedSharee])
    /// A folder, with all that miss above it.
    case makeFolder(path: [String])
    /// A move, a rename or both.
    case move(from: [String], to: [String])
    /// Into the trash.
    case trash(path: [String])
    /// Gone for good.
    case remove(path: [String])

    /// Applies the edit; the id of the item that it touched, nil when the tree does not fit it.
    @discardableResult
    public func apply(to service: any SimulatedService) -> String? {
        service.account.withTree { apply(to: &$0) }
    }

    /// Applies the edit to a tree.
    public func apply(to tree: inout SimulatedTree) -> String? {
        switch self {
        case .write(let path, let content, let time):
            guard let name = path.last else { return nil }
            if let item = tree.item(at: path) {
                guard item.kind == .file else { return nil }
                return tree.write(content, to: item.id, modifiedTime: time)?.id
            }
            guard let parent = Self.folder(at: Array(path.dropLast()), in: &tree) else {
                return nil
            }
            return tree.create(name, in: parent, content: content, modifiedTime: time).id
        case .share(let path, let content):
            let edit = SimulatorEdit.write(path: path, content, modifiedTime: nil)
            guard let id = edit.apply(to: &tree) else { return nil }
            tree.update(id) { $0.isStrangers = true }
            return id
        case .tag(let path, let tags):
            guard let item = tree.item(at: path) else { return nil }
            return tree.update(item.id) { item in
                item.extra["tags"] = tags.isEmpty ? nil : .array(tags.map { .string($0) })
                item.extra["taggedVersion"] = .integer(item.version + 1)
            }?.id
        case .lend(let path, let people):
            guard let item = tree.item(at: path) else { return nil }
            return tree.update(item.id) { item in
                item.extra["sharees"] =
                    people.isEmpty ? nil : .array(people.map { $0.json })
            }?.id
        case .makeFolder(let path): return Self.folder(at: path, in: &tree)
        case .move(let from, let to):
            guard let item = tree.item(at: from), let name = to.last,
                let parent = Self.folder(at: Array(to.dropLast()), in: &tree),
                !tree.lies(parent, in: item.id)
            else { return nil }
            return tree.move(item.id, to: parent, name: name)?.id
        case .trash(let path):
            guard let item = tree.item(at: path), item.parentID != nil else { return nil }
            tree.trash(item.id)
            return item.id
        case .remove(let path):
            guard let item = tree.item(at: path), item.parentID != nil else { return nil }
            tree.remove(item.id)
            return item.id
        }
    }

    private static func folder(at path: [String], in tree: inout SimulatedTree) -> String? {
        var current = tree.rootID
        for part in path {
            if let item = tree.items(named: part, in: current).first {
                guard item.isFolder else { return nil }
                current = item.id
            } else {
                current = tree.create(part, in: current, kind: .folder).id
            }
        }
        return current
    }

    /// `{"op": "write" | "share" | "tag" | "lend" | "mkdir" | "move" | "trash" | "remove", "path": "/a" or
    /// ["a"], "to", "text" | "seed" and "size", "modified", "tags", "people"}`.
    init?(_ json: JSON) {
        guard let operation = json["op"]?.text, let path = Self.parts(json["path"]) else {
            return nil
        }
        switch operation {
        case "write":
            let content: SimulatedContent
            if let seed = json["seed"]?.integer, let size = json["size"]?.integer {
                content = SimulatedContent(seed: UInt64(bitPattern: seed), size: size)
            } else {
                content = SimulatedContent(json["text"]?.text ?? "")
            }
            self = .write(
                path: path,
                content,
                modifiedTime: json["modified"]?.text.flatMap { Timestamp(rfc3339: $0) }
            )
        case "share": self = .share(path: path, SimulatedContent(json["text"]?.text ?? ""))
        case "tag":
            self = .tag(path: path, json["tags"]?.elements?.compactMap(\.text) ?? [])
        case "lend":
            self = .lend(
                path: path,
                to: json["people"]?.elements?.compactMap { SimulatedSharee($0) } ?? []
            )
        case "mkdir": self = .makeFolder(path: path)
        case "move":
            guard let to = Self.parts(json["to"]) else { return nil }
            self = .move(from: path, to: to)
        case "trash": self = .trash(path: path)
        case "remove": self = .remove(path: path)
        default: return nil
        }
    }

    private static func parts(_ json: JSON?) -> [String]? {
        if let text = json?.text {
            return text.parts(between: "/").filter { !$0.isEmpty }.map(String.init)
        }
        return json?.elements?.compactMap(\.text)
    }
}
