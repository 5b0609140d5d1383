import OortModel
import OortTransport

/// The versions that a Nextcloud keeps of a file: named by the second in which each content was modified.
struct NextcloudVersions: VersionHistory {
    let client: WebDAVClient

    private func url(_ names: [String]) -> String {
        let person = client.address.userID ?? client.address.user ?? ""
        return client.address.program(["remote.php", "dav", "versions", person] + names)
    }

    /// The number by which the server keeps a file's versions, and what the file has now.
    private func file(
        _ item: ItemReference
    ) async throws(ProviderError) -> (number: String, current: ItemVersion) {
        let (own, _, _) = try await client.ownEntry(of: item.path, depth: 0, isFolder: false)
        let entry = try await client.entry(at: item.path)
        guard entry.kind == .file, let number = CloudItem(own).number, Int64(number) != nil else {
            throw ProviderError(.notAFile, detail: "a folder has no versions")
        }
        return (
            number,
            ItemVersion(
                id: String(entry.modifiedTime?.seconds ?? 0),
                size: entry.size,
                modifiedTime: entry.modifiedTime,
                isCurrent: true
            )
        )
    }

    func versions(
        of item: ItemReference,
        page: PageToken?
    ) async throws(ProviderError) -> VersionPage {
        let (number, current) = try await file(item)
        let responses: [DAVResponse]
        do throws(ProviderError) {
            (responses, _) = try await client.api.look(
                at: url(["versions", number]) + "/",
                depth: 1,
                properties: [.dav("getcontentlength"), .dav("getlastmodified")]
            )
        } catch {
            guard error.kind == .notFound else { throw error }
            throw ProviderError(.unsupported, detail: "the server's versions are switched off")
        }
        var older: [ItemVersion] = []
        for response in responses {
            // The newest may be the present content, which is not kept as a version.
            guard let names = PercentEncoding.names(ofReference: response.href),
                names.dropLast().last == number, let name = names.last,
                let seconds = Int64(name), !name.isSameText(as: current.id),
                let size = response.text(.dav("getcontentlength")).flatMap({ Int64($0) })
            else { continue }
            older.append(
                ItemVersion(
                    id: name,
                    size: size,
                    modifiedTime: Timestamp(seconds: seconds),
                    isCurrent: false
                )
            )
        }
        older.sort { ($0.modifiedTime?.seconds ?? 0) > ($1.modifiedTime?.seconds ?? 0) }
        return VersionPage(versions: [current] + older, next: nil)
    }

    func read(
        _ version: ItemVersion,
        of item: ItemReference
    ) async throws(ProviderError) -> ByteStream {
        guard !version.isCurrent else {
            return try await client.read(item.path, revision: nil, range: 0..<Int64.max)
        }
        let (number, _) = try await file(item)
        var request = HTTPRequest(
            method: "GET",
            url: url(["versions", number, version.id]),
            headers: [("Accept-Encoding", "identity")],
            repetition: .harmless
        )
        request.weight = .bulk
        let response = try await client.api.stream(request)
        guard response.head.status == 200 else {
            let body = (try? await response.body.collect(atMost: 1 << 20)) ?? []
            throw WebDAVErrors.error(
                HTTPResponse(head: response.head, body: body),
                about: .item
            )
        }
        return response.body
    }

    func restore(
        _ version: ItemVersion,
        of item: ItemReference,
        current: Revision?
    ) async throws(ProviderError) {
        let (number, _) = try await file(item)
        let now = try await client.entry(at: item.path)
        guard current == nil || now.revision == current else { throw WebDAVClient.stale }
        let request = HTTPRequest(
            method: "MOVE",
            url: url(["versions", number, version.id]),
            headers: [("Destination", url(["restore", "target"]))],
            repetition: .onlyIfNotDone
        )
        _ = try await client.api.send(request, about: .item)
    }
}
