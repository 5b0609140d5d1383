/// A person or a group with whom an item is shared.
public struct SimulatedSharee: Sendable, Hashable {
    /// The key at the service.
    public var id: String
    /// The name.
    public var name: String
    /// Whether it is a group.
    public var isGroup: Bool

    /// A person or a group.
    public init(id: String, name: String, isGroup: Bool = false) {
        self.id = id
        self.name = name
        self.isGroup = isGroup
    }

    /// `{"id", "name", "group"}`; nil without a name.
    init?(_ json: JSON) {
        guard let name = json["name"]?.text else { return nil }
        self.init(
            id: json["id"]?.text ?? name.lowercased(),
            name: name,
            isGroup: json["group"] == .bool(true)
        )
    }

    var json: JSON {
        ["id": .string(id), "name": .string(name), "group": .bool(isGroup)]
    }
}

extension SimulatedItem {
    /// With whom the account's person shares it, but for links.
    var sharees: [SimulatedSharee] {
        extra["sharees"]?.elements?.compactMap { SimulatedSharee($0) } ?? []
    }

    /// The tags that people gave it.
    var tags: [String] { extra["tags"]?.elements?.compactMap(\.text) ?? [] }
}
