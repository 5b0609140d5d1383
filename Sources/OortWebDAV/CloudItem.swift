import OortModel

/// What Nextcloud and ownCloud say of an item beyond RFC 4918.
struct CloudItem {
    private let response: DAVResponse

    init(_ response: DAVResponse) { self.response = response }

    /// The id that stays with the item over renames and moves.
    var id: String? { response.text(.owncloud("id")) }

    /// The number by which previews are asked for.
    var number: String? { response.text(.owncloud("fileid")) }

    /// The item's letters; empty where there are none.
    private var letters: String { response.text(.owncloud("permissions")) ?? "" }

    private var mountType: String { response.text(.nextcloud("mount-type")) ?? "" }

    private var isMounted: Bool { !mountType.isEmpty || letters.has("S") || letters.has("M") }

    /// What identifies an item over moves.
    ///
    /// One id may be at several places of an account: a folder and something in it, both shared with the
    /// same person. So only items in the person's own storage are known by the id alone; the root of a
    /// mount has a form of its own, and items below one are known by place.
    var key: String? {
        guard let id else { return nil }
        guard isMounted else { return id }
        return isMountRoot ? "\(id)@mount" : nil
    }

    private var isMountRoot: Bool {
        isMounted && response.text(.nextcloud("is-mount-root")) == "true"
    }

    /// What begins there that the server may leave out while it cannot reach it.
    ///
    /// A share or a group's folder is also left out when it is withdrawn; that other kinds of mounts are
    /// removed is rare.
    var mount: PlaceEntry.Mount? {
        guard isMountRoot else { return nil }
        return ["", "shared", "group"].contains(mountType) ? .share : .storage
    }

    /// The number of the item with a key: the digits before the name of the server; nil of what is mounted.
    static func number(ofKey key: String) -> String? {
        guard !key.has("@") else { return nil }
        let digits = key.unicodeScalars.prefix { ("0"..."9").contains($0) }
        return Int64(String(digits)).map(String.init)
    }

    /// Whether a folder's tag changes with everything below it: not where files change behind the server's
    /// back (external storages, shares of another server).
    ///
    /// An ownCloud 10 has no name for the kind of a mount, and the letter `M` for an external storage, on all
    /// that is in it (owncloud/core, `FileInfo.php`).
    func stampHolds(_ dialect: WebDAVDialect) -> Bool {
        if dialect == .owncloud10, letters.has("M") { return false }
        return response.text(.nextcloud("is-federated")) != "1"
            && response.text(.nextcloud("is-federated")) != "true"
            && ["", "shared", "group"].contains(mountType)
    }

    /// Whether only the official programs can read the folder's contents.
    var isEncrypted: Bool {
        response.text(.nextcloud("is-encrypted")).map { $0 == "1" || $0 == "true" } ?? false
    }

    var isOwn: Bool { !isMounted }

    /// Whether another person shares it, or a folder above it, with the account's person.
    private var isTheirs: Bool { letters.has("S") }

    /// Whether the account's person shares it, with people, groups or by a link: the server gives a number
    /// for each kind, and none if it is not shared.
    private var isGiven: Bool {
        response.properties[.owncloud("share-types")]?.child(.owncloud("share-type")) != nil
    }

    /// Whether others can reach it, as far as the server reports for the item itself.
    var isShared: Bool { isTheirs || isGiven }

    /// With whom the account's person shares it.
    ///
    /// Nothing of what others share with the person: of such an item alone the server names the person, too,
    /// and in a listing it does not.
    var sharedWith: TextList {
        guard !isTheirs, let sharees = response.properties[.nextcloud("sharees")] else {
            return TextList()
        }
        return TextList(
            sharees.children.lazy.filter { $0.name == .nextcloud("sharee") }
                .compactMap(Self.name(ofSharee:))
        )
    }

    /// Who one share is for, by the server's numbers of kinds (nextcloud/server, `IShare.php`); nil where
    /// nobody is named.
    private static func name(ofSharee sharee: XMLElement) -> String? {
        let kind = sharee.child(.nextcloud("type"))?.trimmed
        // What a link has instead of a name may be a password's hash.
        if kind == "3" { return TextList.anyone }
        let names = ["display-name", "id"].map { sharee.child(.nextcloud($0))?.trimmed ?? "" }
        guard let name = names.first(where: { !$0.isEmpty }) else { return nil }
        return kind == "1" || kind == "9" ? TextList.group(name) : name
    }

    /// The tags that the person may see; nil where the server does not say.
    var tags: TextList? {
        response.properties[.nextcloud("system-tags")].map { tags in
            TextList(
                tags.children.lazy.filter { $0.name == .nextcloud("system-tag") }.map(\.text)
            )
        }
    }

    /// The owner's name, for items that another person shares; some servers keep names to themselves.
    var owner: String? {
        guard isTheirs, let name = response.text(.owncloud("owner-display-name")) else {
            return nil
        }
        return name.isEmpty ? nil : name
    }

    var hasPreview: Bool? {
        let text =
            response.text(.nextcloud("has-preview")) ?? response.text(.owncloud("has-preview"))
        return text.map { $0 == "true" || $0 == "1" }
    }

    var createdTime: Timestamp? {
        guard let seconds = response.text(.nextcloud("creation_time")).flatMap({ Int64($0) }),
            seconds > 0
        else { return nil }
        return Timestamp(seconds: seconds)
    }

    /// The SHA-1 among the checksums; only where the server computes or verifies them.
    var hash: ContentHash? {
        for checksum in response.properties[.owncloud("checksums")]?.children ?? [] {
            for part in checksum.trimmed.split(separator: " ") {
                guard let value = part.dropping(beginning: "SHA1:"), value.utf8.count == 40 else {
                    continue
                }
                return ContentHash(algorithm: .sha1, value: value.lowercased())
            }
        }
        return nil
    }

    /// What the account may do with it, by the server's letters.
    func permissions(_ kind: PlaceEntry.Kind, dialect: WebDAVDialect) -> Permissions {
        if isEncrypted { return [] }
        let letters = letters
        guard !letters.isEmpty else { return .all }
        var permissions: Permissions = []
        // Only Nextcloud has a letter for the right to read.
        if dialect != .nextcloud || letters.has("G") { permissions.insert(.read) }
        if letters.has("X"), kind == .file { permissions.remove(.read) }
        let writes = kind == .file ? letters.has("W") : letters.has("C") || letters.has("K")
        if writes { permissions.insert(.write) }
        if letters.has("D") { permissions.insert(.delete) }
        if letters.has("R") { permissions.insert(.share) }
        return permissions
    }
}
