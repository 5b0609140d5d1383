import OortModel
import OortTransport

/// The versions of a file at OneDrive, the newest first.
struct OneDriveVersions: VersionHistory {
    let provider: OneDriveProvider

    private struct Version: Decodable, Sendable {
        struct Author: Decodable, Sendable {
            struct User: Decodable, Sendable { var displayName: String? }
            var user: User?
        }
        var id: String
        var size: ReportedSize?
        var lastModifiedDateTime: String?
        var lastModifiedBy: Author?
    }

    private struct VersionList: Decodable, Sendable {
        var value: [Version]
        var nextLink: String?

        enum CodingKeys: String, CodingKey {
            case value
            case nextLink = "@odata.nextLink"
        }
    }

    func versions(
        of item: ItemReference,
        page: PageToken?
    ) async throws(ProviderError) -> VersionPage {
        let id = try OneDriveItemID(item.id)
        let request =
            if let page {
                try provider.api.request(following: page.rawValue)
            } else {
                provider.api.request("GET", "\(id.target.path)/versions")
            }
        let answer = try await provider.api.send(request, for: VersionList.self, about: .item)
        let versions = answer.value.enumerated().map { index, version in
            ItemVersion(
                id: version.id,
                size: version.size?.bytes,
                modifiedTime: version.lastModifiedDateTime.flatMap { Timestamp(rfc3339: $0) },
                author: version.lastModifiedBy?.user?.displayName,
                isCurrent: page == nil && index == 0
            )
        }
        return VersionPage(versions: versions, next: answer.nextLink.map { PageToken($0) })
    }

    func read(
        _ version: ItemVersion,
        of item: ItemReference
    ) async throws(ProviderError) -> ByteStream {
        let id = try OneDriveItemID(item.id)
        // The content of the current one is asked of the item itself.
        guard !version.isCurrent else {
            return try await provider.read(item, revision: nil, range: 0..<Int64.max)
        }
        let answer = try await provider.api.exchange(
            provider.api.request("GET", "\(path(version, id))/content")
        )
        guard answer.head.status == 302, let place = answer.head.header("Location") else {
            throw answer.head.status < 400
                ? ProviderError(.malformedAnswer, detail: "a version without an address")
                : OneDriveErrors.error(answer, about: .item)
        }
        let request = HTTPRequest(
            method: "GET",
            url: try provider.api.presigned(place),
            repetition: .harmless,
            weight: .bulk,
            isAuthorized: false
        )
        let response: HTTPStreamedResponse
        do throws(TransportError) {
            response = try await provider.api.client.stream(request)
        } catch { throw ProviderError(error) }
        guard response.head.status == 200 else {
            throw ProviderError(
                .outcomeUnknown(retryAfter: response.head.retryAfter),
                detail: "a version was answered with status \(response.head.status)"
            )
        }
        return response.body
    }

    func restore(
        _ version: ItemVersion,
        of item: ItemReference,
        current: Revision?
    ) async throws(ProviderError) {
        let id = try OneDriveItemID(item.id)
        // The call knows no precondition; what is current stays as a version.
        let now = try await provider.item(item)
        guard current == nil || now.rev == current else {
            throw ProviderError(.preconditionFailed, detail: "another content is current")
        }
        _ = try await provider.api.send(
            provider.api.request(
                "POST",
                "\(path(version, id))/restoreVersion",
                repetition: .onlyIfNotDone
            ),
            about: .item
        )
    }

    private func path(_ version: ItemVersion, _ id: OneDriveItemID) -> String {
        "\(id.target.path)/versions/\(PercentEncoding.segment(version.id))"
    }
}
