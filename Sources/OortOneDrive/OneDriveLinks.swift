import OortModel
import OortTransport

/// Links at OneDrive: permissions of an item, one for reading and one for writing, each the same however
/// often it is asked for.
///
/// An end and a password are for paid personal plans and for business; others answer 403. Graph lists the
/// links of one item only.
struct OneDriveLinks: LinkSharing {
    let provider: OneDriveProvider

    private struct Wish: Encodable, Sendable {
        var type: String
        var scope = "anonymous"
        var password: String?
        var expirationDateTime: String?
    }

    private struct Permission: Decodable, Sendable {
        struct Link: Decodable, Sendable {
            var type: String?
            /// Whom it opens for; a link of people who were invited, or of an organization, is no link
            /// that opens for all who have it.
            var scope: String?
            var webUrl: String?
        }
        var id: String
        var link: Link?
        var hasPassword: Bool?
        var expirationDateTime: String?
        /// Present where the permission is that of a folder above.
        var inheritedFrom: Inherited?

        struct Inherited: Decodable, Sendable {}

        /// Whether it is a link of the item's own that opens for everybody who has it.
        var isOpenLink: Bool {
            guard let link, link.webUrl != nil, inheritedFrom == nil else { return false }
            return link.scope == nil || link.scope == "anonymous"
        }
    }

    private struct PermissionList: Decodable, Sendable {
        var value: [Permission]
        var nextLink: String?

        enum CodingKeys: String, CodingKey {
            case value
            case nextLink = "@odata.nextLink"
        }
    }

    var abilities: LinkAbilities {
        var abilities = LinkAbilities()
        abilities.edits = true
        abilities.expires = true
        abilities.takesPasswords = true
        abilities.listsAll = false
        return abilities
    }

    func share(_ wish: LinkWish) async throws(ProviderError) -> SharedLink {
        let id = try OneDriveItemID(wish.item.id)
        do throws(ProviderError) {
            let made = try await provider.api.send(
                try provider.api.request(
                    "POST",
                    "\(id.target.path)/createLink",
                    json: Wish(
                        type: wish.mayEdit ? "edit" : "view",
                        password: wish.password,
                        expirationDateTime: wish.expires?.rfc3339(.seconds)
                    ),
                    repetition: .harmless
                ),
                for: Permission.self,
                about: .item
            )
            return try link(made, of: wish.item)
        } catch {
            guard error.kind == .noPermission, wish.password != nil || wish.expires != nil else {
                throw error
            }
            throw ProviderError(
                .unsupported,
                detail: "this plan has no links with an end or a password: \(error.detail)"
            )
        }
    }

    func links(
        of item: ItemReference?,
        page: PageToken?
    ) async throws(ProviderError) -> LinkPage {
        guard let item else {
            throw ProviderError(.unsupported, detail: "Graph lists the links of one item only")
        }
        let id = try OneDriveItemID(item.id)
        let request =
            if let page {
                try provider.api.request(following: page.rawValue)
            } else {
                provider.api.request("GET", "\(id.target.path)/permissions")
            }
        let answer = try await provider.api.send(request, for: PermissionList.self, about: .item)
        var links: [SharedLink] = []
        for permission in answer.value where permission.isOpenLink {
            links.append(try link(permission, of: item))
        }
        return LinkPage(links: links, next: answer.nextLink.map { PageToken($0) })
    }

    func withdraw(_ link: SharedLink) async throws(ProviderError) {
        guard let item = link.item else {
            throw ProviderError(.badRequest, detail: "a link of no item")
        }
        let id = try OneDriveItemID(item)
        do throws(ProviderError) {
            _ = try await provider.api.send(
                provider.api.request(
                    "DELETE",
                    "\(id.target.path)/permissions/\(PercentEncoding.segment(link.id))"
                ),
                about: .item
            )
        } catch {
            guard error.kind == .notFound else { throw error }
        }
    }

    private func link(
        _ permission: Permission,
        of item: ItemReference
    ) throws(ProviderError) -> SharedLink {
        guard let url = permission.link?.webUrl else {
            throw ProviderError(.malformedAnswer, detail: "a link without an address")
        }
        var link = SharedLink(id: permission.id, url: url, item: item.id)
        link.access =
            switch permission.link?.type {
            case "view": .read
            case "review": .comment
            case "edit": .edit
            default: .other
            }
        link.hasPassword = permission.hasPassword == true
        link.expires = permission.expirationDateTime.flatMap { Timestamp(rfc3339: $0) }
        return link
    }
}
