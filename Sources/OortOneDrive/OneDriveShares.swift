import OortModel

/// The permissions of an item at OneDrive, which neither listings nor the feed have.
struct OneDriveShares: ShareReporting {
    let provider: OneDriveProvider

    private struct PermissionList: Decodable, Sendable {
        var value: [Permission]
        var nextLink: String?

        enum CodingKeys: String, CodingKey {
            case value
            case nextLink = "@odata.nextLink"
        }
    }

    func sharedWith(_ item: ItemReference) async throws(ProviderError) -> TextList {
        let id = try OneDriveItemID(item.id)
        var names: [String] = []
        var next: String?
        var walk = PageWalk()
        repeat {
            if let next { try walk.goOn(to: next) }
            let request =
                if let next {
                    try provider.api.request(following: next)
                } else {
                    provider.api.request("GET", "\(id.target.path)/permissions")
                }
            let answer = try await provider.api.send(
                request,
                for: PermissionList.self,
                about: .item
            )
            names += answer.value.flatMap(\.names)
            next = answer.nextLink
        } while next != nil
        return TextList(names)
    }

    /// One permission of an item: for people and groups, or for a link.
    struct Permission: Decodable, Sendable {
        struct Link: Decodable, Sendable { var scope: String? }
        struct Invitation: Decodable, Sendable { var email: String? }

        struct Identity: Decodable, Sendable {
            var displayName: String?
            var email: String?

            var name: String? { [displayName, email].compactMap(\.self).first { !$0.isEmpty } }
        }

        /// Whom it is for; one of them is there.
        struct Identities: Decodable, Sendable {
            var user: Identity?
            var siteUser: Identity?
            var group: Identity?
            var siteGroup: Identity?

            var name: String? {
                (user ?? siteUser)?.name ?? (group ?? siteGroup)?.name.map(TextList.group)
            }
        }

        var roles: [String]?
        var link: Link?
        var invitation: Invitation?
        var grantedToV2: Identities?
        var grantedTo: Identities?
        var grantedToIdentitiesV2: [Identities]?
        var grantedToIdentities: [Identities]?

        /// Who it is for; empty for the owner, and where nobody is named.
        var names: [String] {
            if roles?.contains("owner") == true { return [] }
            switch link?.scope {
            case "anonymous": return [TextList.anyone]
            case "organization": return ["everyone in the organization with the link"]
            case nil where link != nil: return [TextList.anyone]
            default: break
            }
            if let people = grantedToIdentitiesV2 ?? grantedToIdentities, !people.isEmpty {
                return people.compactMap(\.name)
            }
            let name = (grantedToV2 ?? grantedTo)?.name ?? invitation?.email
            return name.map { [$0] } ?? []
        }
    }
}
