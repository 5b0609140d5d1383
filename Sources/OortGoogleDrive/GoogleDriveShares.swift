import OortModel

/// The permissions of an item at Drive, asked for one item at a time.
///
/// A listing could have all permissions of all items, but for those in shared drives; few are ever looked at.
struct GoogleDriveShares: ShareReporting {
    let provider: GoogleDriveProvider

    private struct PermissionList: Decodable, Sendable {
        var permissions: [Permission]?
        var nextPageToken: String?
    }

    func sharedWith(_ item: ItemReference) async throws(ProviderError) -> TextList {
        guard SyntheticFolder(item.id) == nil else { return TextList() }
        var names: [String] = []
        var token: String?
        var walk = PageWalk()
        repeat {
            if let token { try walk.goOn(to: token) }
            var query = [
                ("supportsAllDrives", "true"), ("pageSize", "100"),
                (
                    "fields",
                    "nextPageToken,permissions(type,role,displayName,emailAddress,domain,deleted)"
                ),
            ]
            if let token { query.append(("pageToken", token)) }
            let answer: PermissionList = try await provider.api.get(
                provider.api.file(item.id, "/permissions"),
                query
            )
            names += (answer.permissions ?? []).compactMap(\.name)
            token = answer.nextPageToken
        } while token != nil
        return TextList(names)
    }

    /// One who may do something with an item.
    struct Permission: Decodable, Sendable {
        var type: String?
        var role: String?
        var displayName: String?
        var emailAddress: String?
        var domain: String?
        /// Whether the person's account is gone.
        var deleted: Bool?

        /// Who it is; nil for the owner, and for nobody who could be named.
        var name: String? {
            guard role != "owner", deleted != true else { return nil }
            let named = [displayName, emailAddress].compactMap(\.self).first { !$0.isEmpty }
            switch type {
            case "anyone": return TextList.anyone
            case "domain": return (domain ?? named).map { "everyone at \($0)" }
            case "group": return named.map(TextList.group)
            default: return named
            }
        }
    }
}
