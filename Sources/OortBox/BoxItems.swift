import OortModel

/// An item's id at Box: files, folders and web links number separately.
struct BoxID: Hashable, Sendable {
    enum Kind: Character, Sendable {
        case file = "f"
        case folder = "d"
        case webLink = "w"
    }

    var kind: Kind
    var id: String

    /// The account's root, always.
    static let root = BoxID(kind: .folder, id: "0")

    init(kind: Kind, id: String) {
        self.kind = kind
        self.id = id
    }

    /// - Throws: `.badRequest` for what no answer of Box was made into.
    init(_ item: ItemID) throws(ProviderError) {
        guard let first = item.rawValue.first, let kind = Kind(rawValue: first),
            item.rawValue.utf8.count > 1
        else { throw ProviderError(.badRequest, detail: "not an id of this provider") }
        self.init(kind: kind, id: String(item.rawValue.dropFirst()))
    }

    /// The id of something that an answer names; nil for other things than items.
    init?(type: String?, id: BoxText?) {
        guard let id = id?.text, !id.isEmpty else { return nil }
        switch type {
        case "file": self.init(kind: .file, id: id)
        case "folder": self.init(kind: .folder, id: id)
        case "web_link": self.init(kind: .webLink, id: id)
        default: return nil
        }
    }

    var itemID: ItemID { ItemID(String(kind.rawValue) + id) }

    /// The resource's path without a slash at either end.
    var path: String {
        let encoded = BoxAPI.encoded(id)
        return switch kind {
        case .file: "files/\(encoded)"
        case .folder: "folders/\(encoded)"
        case .webLink: "web_links/\(encoded)"
        }
    }
}

extension BoxWire.Item {
    /// The id; nil for a thing that is none of the tree.
    var boxID: BoxID? { BoxID(type: type, id: id) }

    /// Whether it is in the trash, or gone for good.
    var isGone: Bool { item_status.map { $0 != "active" } ?? false }

    /// The item in canonical words; nil for what is none of the tree, or lacks what an item needs.
    ///
    /// `folder` is where it was listed: what is shared with us from a folder that we cannot see names
    /// no parent, and lies in our root.
    func item(me: String, listedIn folder: BoxID? = nil) -> Item? {
        guard let boxID, let name, !name.isEmpty else { return nil }
        var item = Item(id: boxID.itemID, kind: .file, fileName: name)
        if boxID != .root {
            let above = parent.map { BoxID(kind: .folder, id: $0.id.text) }
            item.parentID = (above ?? folder ?? .root).itemID
        }
        item.description = description.flatMap { $0.isEmpty ? nil : $0 }
        item.clientModifiedTime = Self.time(content_modified_at) ?? Self.time(modified_at)
        item.serverModifiedTime = Self.time(modified_at)
        item.createdTime = Self.time(content_created_at) ?? Self.time(created_at)
        item.tag = etag?.text
        item.version = sequence_id?.text
        item.permissions = granted
        item.isOwn = owned_by?.id?.text == me && modified_by?.id?.text == me
        func othersName(_ person: BoxWire.Person?) -> String? {
            person.flatMap { $0.id?.text == me ? nil : $0.name }
        }
        item.owner = othersName(owned_by)
        item.createdBy = othersName(created_by)
        item.modifiedBy = othersName(modified_by)
        item.isShared = shared_link != nil || owned_by.map { $0.id?.text != me } ?? false
        item.tags = tags.map { TextList($0) }
        item.isTrashed = isGone
        switch boxID.kind {
        case .folder: item.kind = .folder
        case .webLink:
            item.kind = .nativeDocument
            item.exports = [AddressFile.format]
        case .file:
            guard let file_version, let size else { return nil }
            item.rev = Revision(file_version.id.text)
            item.size = size.value
            item.contentHash = sha1.map {
                ContentHash(algorithm: .sha1, value: $0.lowercased())
            }
            // Box Notes are written in the browser only.
            if name.lowercased().ends(with: ".boxnote") { item.permissions.remove(.write) }
        }
        return item
    }

    private var granted: OortModel.Permissions {
        guard let permissions else { return .all }
        var granted: OortModel.Permissions = []
        // A folder that can be seen can be listed.
        if type == "folder" || permissions.can_download != false { granted.insert(.read) }
        if permissions.can_upload ?? permissions.can_rename != false { granted.insert(.write) }
        if permissions.can_delete != false { granted.insert(.delete) }
        if permissions.can_share != false { granted.insert(.share) }
        return granted
    }

    private static func time(_ text: String?) -> Timestamp? {
        text.flatMap { Timestamp(rfc3339: $0) }
    }
}
