import OortModel
import OortTransport

/// Links at Drive: an item's own address, opened to anyone who has it by one permission of the item.
///
/// Such a permission has neither an end nor a password.
struct GoogleDriveLinks: LinkSharing {
    let provider: GoogleDriveProvider

    /// The id that Drive gives to the permission of everybody who has the link.
    private static let anyone = "anyoneWithLink"

    private struct Permission: Codable, Sendable {
        var id: String?
        var type: String?
        var role: String?
        var allowFileDiscovery: Bool?
    }

    private struct PermissionList: Decodable, Sendable {
        var permissions: [Permission]?
        var nextPageToken: String?
    }

    private struct Linked: Decodable, Sendable {
        var id: String
        var webViewLink: String?
    }

    private struct LinkedList: Decodable, Sendable {
        var files: [Linked]?
        var nextPageToken: String?
    }

    var abilities: LinkAbilities {
        var abilities = LinkAbilities()
        abilities.edits = true
        abilities.onePerItem = true
        return abilities
    }

    func share(_ wish: LinkWish) async throws(ProviderError) -> SharedLink {
        try provider.refuseSynthetic(wish.item)
        let _: Permission = try await provider.api.send(
            try provider.api.request(
                "POST",
                provider.api.file(wish.item.id, "/permissions"),
                [("supportsAllDrives", "true"), ("fields", "id,type,role")],
                Permission(
                    type: "anyone",
                    role: wish.mayEdit ? "writer" : "reader",
                    allowFileDiscovery: false
                ),
                repetition: .harmless
            )
        )
        let linked: Linked = try await provider.api.get(
            provider.api.file(wish.item.id),
            [("supportsAllDrives", "true"), ("fields", "id,webViewLink")]
        )
        return try link(linked, role: wish.mayEdit ? "writer" : "reader")
    }

    func links(
        of item: ItemReference?,
        page: PageToken?
    ) async throws(ProviderError) -> LinkPage {
        if let item {
            guard SyntheticFolder(item.id) == nil else { return LinkPage(links: [], next: nil) }
            let linked = try await linked(item.id)
            return LinkPage(links: [linked].compactMap(\.self), next: nil)
        }
        var query = [
            ("q", "visibility='\(Self.anyone)' and 'me' in owners and trashed=false"),
            ("pageSize", "100"), ("spaces", "drive"),
            ("fields", "nextPageToken,files(id,webViewLink)"),
        ]
        if let page { query.append(("pageToken", page.rawValue)) }
        let answer: LinkedList = try await provider.api.get("/drive/v3/files", query)
        var links: [SharedLink] = []
        for file in answer.files ?? [] {
            if let linked = try await linked(ItemID(file.id)) { links.append(linked) }
        }
        return LinkPage(links: links, next: answer.nextPageToken.map { PageToken($0) })
    }

    func withdraw(_ link: SharedLink) async throws(ProviderError) {
        let request = HTTPRequest(
            method: "DELETE",
            url: provider.api.url(
                provider.api.file(ItemID(link.id), "/permissions/\(Self.anyone)"),
                [("supportsAllDrives", "true")]
            ),
            repetition: .harmless
        )
        switch try await provider.api.perform(request) {
        case .success: return
        case .refused(let failure):
            if failure.status != 404 { throw failure.error }
        }
    }

    /// The link of an item; nil where it has none.
    private func linked(_ id: ItemID) async throws(ProviderError) -> SharedLink? {
        var token: String?
        var walk = PageWalk()
        repeat {
            if let token { try walk.goOn(to: token) }
            var query = [
                ("supportsAllDrives", "true"), ("pageSize", "100"),
                ("fields", "nextPageToken,permissions(id,type,role)"),
            ]
            if let token { query.append(("pageToken", token)) }
            let answer: PermissionList = try await provider.api.get(
                provider.api.file(id, "/permissions"),
                query
            )
            if let permission = answer.permissions?.first(where: { $0.id == Self.anyone }) {
                let linked: Linked = try await provider.api.get(
                    provider.api.file(id),
                    [("supportsAllDrives", "true"), ("fields", "id,webViewLink")]
                )
                return try link(linked, role: permission.role)
            }
            token = answer.nextPageToken
        } while token != nil
        return nil
    }

    private func link(_ linked: Linked, role: String?) throws(ProviderError) -> SharedLink {
        guard let url = linked.webViewLink else {
            throw ProviderError(.malformedAnswer, detail: "an item without an address")
        }
        var link = SharedLink(id: linked.id, url: url, item: ItemID(linked.id))
        link.access =
            switch role {
            case "reader": .read
            case "commenter": .comment
            case "writer": .edit
            default: .other
            }
        return link
    }
}
