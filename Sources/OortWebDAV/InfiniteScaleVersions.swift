import OortModel
import OortTransport

/// The versions that an Infinite Scale or OpenCloud keeps of a file, without the one that it has now
/// (reva, `versions.go`).
struct InfiniteScaleVersions: VersionHistory {
    let client: WebDAVClient

    private func url(_ id: String, _ names: [String] = []) -> String {
        client.address.program(["dav", "meta", id, "v"] + names)
    }

    private func file(
        _ item: ItemReference
    ) async throws(ProviderError) -> (id: String, entry: PlaceEntry) {
        let entry = try await client.entry(at: item.path)
        guard entry.kind == .file, let id = entry.key else {
            throw ProviderError(.notAFile, detail: "a folder has no versions")
        }
        return (id, entry)
    }

    private static let current = "current"

    func versions(
        of item: ItemReference,
        page: PageToken?
    ) async throws(ProviderError) -> VersionPage {
        let (id, entry) = try await file(item)
        let (responses, _) = try await client.api.look(
            at: url(id) + "/",
            depth: 1,
            properties: [.dav("getcontentlength"), .dav("getlastmodified")]
        )
        var older: [ItemVersion] = []
        for response in responses {
            guard let names = PercentEncoding.names(ofReference: response.href),
                names.dropLast().last == "v", let name = names.last,
                let size = response.text(.dav("getcontentlength")).flatMap({ Int64($0) })
            else { continue }
            older.append(
                ItemVersion(
                    id: name,
                    size: size,
                    modifiedTime: response.text(.dav("getlastmodified"))
                        .flatMap { HTTPDate.parse($0) },
                    isCurrent: false
                )
            )
        }
        older.sort { Self.order($0) > Self.order($1) }
        let current = ItemVersion(
            id: Self.current,
            size: entry.size,
            modifiedTime: entry.modifiedTime,
            isCurrent: true
        )
        return VersionPage(versions: [current] + older, next: nil)
    }

    /// Where a version stands among a file's.
    ///
    /// The server tells whole seconds, and the rest is in the key, `NODE.REV.2026-11-24T08:30:00.25Z`; of
    /// several of one moment the last has no number behind it (reva, `CreateRevision`).
    private static func order(_ version: ItemVersion) -> (Int64, String, Int) {
        let key = version.id.firstRange(of: ".REV.").map { version.id[$0.upperBound...] } ?? ""
        let (moment, rest) = String(key).cut(atFirst: "Z") ?? (key, "")
        let number = rest.isEmpty ? Int.max : Int(rest.dropFirst()) ?? 0
        return (version.modifiedTime?.seconds ?? 0, String(moment), number)
    }

    func read(
        _ version: ItemVersion,
        of item: ItemReference
    ) async throws(ProviderError) -> ByteStream {
        guard !version.isCurrent else {
            return try await client.read(item.path, revision: nil, range: 0..<Int64.max)
        }
        let (id, _) = try await file(item)
        var request = HTTPRequest(
            method: "GET",
            url: url(id, [version.id]),
            headers: [("Accept-Encoding", "identity")],
            repetition: .harmless
        )
        request.weight = .bulk
        let response = try await client.api.stream(request)
        guard response.head.status == 200 else {
            let body = (try? await response.body.collect(atMost: 1 << 20)) ?? []
            throw WebDAVErrors.error(HTTPResponse(head: response.head, body: body), about: .item)
        }
        return response.body
    }

    func restore(
        _ version: ItemVersion,
        of item: ItemReference,
        current: Revision?
    ) async throws(ProviderError) {
        let (id, entry) = try await file(item)
        guard current == nil || entry.revision == current else { throw WebDAVClient.stale }
        // The server puts it back to its own file, whatever the destination.
        let request = HTTPRequest(
            method: "COPY",
            url: url(id, [version.id]),
            headers: [client.api.destination(item.path, isFolder: false), ("Overwrite", "T")],
            repetition: .onlyIfNotDone
        )
        _ = try await client.api.send(request, about: .item)
    }
}
