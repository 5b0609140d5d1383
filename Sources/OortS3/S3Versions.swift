import Foundation
import OortModel
import OortTransport

/// One entry of a list of versions: a content that a key had, or the mark of its deletion.
struct S3Version: Sendable {
    var key: String
    var id: String
    var isLatest: Bool
    var isDeletion: Bool
    /// The ETag of a content.
    var tag: String?
    var size: Int64?
    var time: Timestamp?
}

/// One page of a list of versions.
struct S3VersionPage: Sendable {
    var versions: [S3Version]
    /// Where to go on; nil on the last page.
    var next: Marker?

    /// Where a page begins.
    struct Marker: Codable, Hashable, Sendable {
        var key: String
        var id: String?
    }

    /// - Throws: `.malformedAnswer` for whatever is not plain.
    init(_ root: S3Element) throws(ProviderError) {
        let isEncoded = root.text(of: "EncodingType") == "url"
        func decoded(_ text: String?) throws(ProviderError) -> String {
            guard let text, let result = isEncoded ? S3Text.formDecoded(text) : text,
                !result.isEmpty
            else { throw Self.failure("a key") }
            return result
        }
        versions = []
        for child in root.children where child.name == "Version" || child.name == "DeleteMarker" {
            guard let id = child.text(of: "VersionId"), !id.isEmpty else {
                throw Self.failure("a version without an id")
            }
            versions.append(
                S3Version(
                    key: try decoded(child.text(of: "Key")),
                    id: id,
                    isLatest: child.text(of: "IsLatest") == "true",
                    isDeletion: child.name == "DeleteMarker",
                    tag: child.text(of: "ETag").map(S3Head.bare),
                    size: child.text(of: "Size").flatMap { ReportedSize(digits: $0)?.bytes },
                    time: child.text(of: "LastModified").flatMap { Timestamp(rfc3339: $0) }
                )
            )
        }
        switch root.text(of: "IsTruncated") {
        case "false", nil: next = nil
        default:
            let key = try decoded(root.text(of: "NextKeyMarker"))
            next = Marker(key: key, id: root.text(of: "NextVersionIdMarker"))
        }
    }

    private static func failure(_ words: String) -> ProviderError {
        ProviderError(.malformedAnswer, detail: "a list of versions cannot be read: \(words)")
    }
}

extension S3Client {
    func versions(
        of prefix: String,
        after marker: S3VersionPage.Marker?
    ) async throws(ProviderError) -> S3VersionPage {
        var request = S3Request("GET")
        request.query = [
            ("versions", ""), ("encoding-type", "url"), ("prefix", prefix),
            ("max-keys", "\(settings.pageSize)"),
        ]
        if let marker {
            request.query.append(("key-marker", marker.key))
            if let id = marker.id { request.query.append(("version-id-marker", id)) }
        }
        return try S3VersionPage(try await api.element(request, about: .bucket))
    }

    /// All contents that a key has and had, without the marks of deletions.
    func contents(of key: String) async throws(ProviderError) -> [S3Version] {
        var found: [S3Version] = []
        var marker: S3VersionPage.Marker?
        var walk = PageWalk()
        repeat {
            if let marker { try walk.goOn(to: "\(marker.key)\n\(marker.id ?? "")") }
            let page = try await versions(of: key, after: marker)
            found += page.versions.filter { !$0.isDeletion && $0.key.isSameText(as: key) }
            // Other keys may begin with this one.
            let isPast = page.versions.last.map { !$0.key.isSameText(as: key) } ?? false
            marker = isPast && !found.isEmpty ? nil : page.next
        } while marker != nil
        return found
    }

    /// Makes an earlier content the newest one of a key; what its writer said of it comes along.
    func copy(
        version id: String,
        of source: String,
        size: Int64?,
        to target: String,
        isNew: Bool
    ) async throws(ProviderError) {
        guard size ?? 0 <= settings.largestSimpleCopy else {
            throw ProviderError(.tooLarge, detail: "versions above 5 GiB cannot be copied")
        }
        var request = S3Request("PUT", target)
        request.isLong = true
        let place = S3Text.percentEncoded("\(api.place.bucket)/\(source)", keepsSlash: true)
        let version = S3Text.percentEncoded(id, keepsSlash: false)
        request.headers = [("x-amz-copy-source", "\(place)?versionId=\(version)")]
        if isNew, abilities.refusesTakenCopies { request.headers.append(("If-None-Match", "*")) }
        _ = try await api.element(request, about: isNew ? .creation : .object)
    }
}

/// The versions of a file in a bucket that keeps them.
struct S3History: VersionHistory {
    let client: S3Client

    func versions(
        of item: ItemReference,
        page: PageToken?
    ) async throws(ProviderError) -> VersionPage {
        let key = try client.space.key(of: item.path)
        let versions = try await client.contents(of: key).map { version in
            ItemVersion(
                id: version.id,
                size: version.size,
                modifiedTime: version.time,
                isCurrent: version.isLatest
            )
        }
        return VersionPage(versions: versions, next: nil)
    }

    func read(
        _ version: ItemVersion,
        of item: ItemReference
    ) async throws(ProviderError) -> ByteStream {
        var request = S3Request("GET", try client.space.key(of: item.path))
        request.query = [("versionId", version.id)]
        request.weight = .bulk
        switch try await client.api.stream(request) {
        case .success(let response): return response.body
        case .failure(let refusal): throw S3Errors.error(refusal.answer, about: .object)
        }
    }

    func restore(
        _ version: ItemVersion,
        of item: ItemReference,
        current: Revision?
    ) async throws(ProviderError) {
        let entry = try await client.entry(at: item.path)
        guard current == nil || entry.revision == current else {
            throw ProviderError(.preconditionFailed, detail: "another content is current")
        }
        let key = try client.space.key(of: item.path)
        try await client.copy(
            version: version.id,
            of: key,
            size: version.size,
            to: key,
            isNew: false
        )
    }
}

/// What was deleted in a bucket that keeps versions: keys whose newest entry is the mark of a deletion.
///
/// Each file is an entry of its own, since a bucket has no folders. An entry's id is `VERSION/KEY`, its mark
/// `ETAG KEY`: what comes back is the content that was deleted, whatever lay there since.
struct S3Trash: Trash {
    let client: S3Client

    /// Where a list goes on, and the deletion at the end of the page before, whose content may follow.
    private struct Place: Codable {
        var marker: S3VersionPage.Marker
        var open: Open?

        struct Open: Codable {
            var key: String
            var seconds: Int64?
        }
    }

    func entries(
        below folder: ItemReference,
        page: PageToken?
    ) async throws(ProviderError) -> TrashPage {
        var place: Place?
        if let page {
            place = try? JSONDecoder().decode(Place.self, from: Data(page.rawValue.utf8))
            guard place != nil else {
                throw ProviderError(.badRequest, detail: "a page of another form")
            }
        }
        let list = try await client.versions(
            of: try client.space.prefix(of: folder.path),
            after: place?.marker
        )
        // Names that look alike are two keys all the same.
        var deletions: [ExactText: Timestamp?] = [:]
        if let open = place?.open {
            deletions[ExactText(open.key)] = open.seconds.map { Timestamp(seconds: $0) }
        }
        for version in list.versions where version.isDeletion && version.isLatest {
            deletions[ExactText(version.key)] = version.time
        }
        var newest: [ExactText: S3Version] = [:]
        for version in list.versions where !version.isDeletion {
            let key = ExactText(version.key)
            guard deletions[key] != nil else { continue }
            let known = newest[key]?.time
            if newest[key] == nil || (known ?? .earliestSent) < (version.time ?? .earliestSent) {
                newest[key] = version
            }
        }
        let entries = newest.compactMap { key, version in
            entry(version, deleted: deletions[key] ?? nil)
        }
        guard let next = list.next else { return TrashPage(entries: entries, next: nil) }
        var open: Place.Open?
        if let last = list.versions.last.map({ ExactText($0.key) }), let time = deletions[last],
            newest[last] == nil
        {
            open = Place.Open(key: last.text, seconds: time?.seconds)
        }
        // Texts and numbers: nothing that could fail to encode.
        let token =
            (try? JSONEncoder().encode(Place(marker: next, open: open)))
            .map { String(decoding: $0, as: UTF8.self) } ?? ""
        return TrashPage(entries: entries, next: PageToken(token))
    }

    private func entry(_ version: S3Version, deleted: Timestamp?) -> TrashEntry? {
        guard let rest = version.key.dropping(beginning: client.space.prefix), !rest.isEmpty,
            !rest.ends(with: "/")
        else { return nil }
        let parts = rest.parts(between: "/").map { S3Names.name(of: $0) }
        // What a sign-in tried is of no worth to a person.
        guard let name = parts.last, !rest.ends(with: "/\(S3Names.keeper)"),
            !parts[0].begins(with: ".oort-probe")
        else { return nil }
        var entry = TrashEntry(
            id: "\(version.id)/\(version.key)",
            name: name,
            path: RemotePath(parts)
        )
        entry.kind = .file
        entry.size = version.size
        entry.deletedTime = deleted
        entry.mark = version.tag.map { S3Trash.mark(Revision($0), version.key) }
        return entry
    }

    static func mark(_ revision: Revision, _ key: String) -> String {
        // No ETag has a space (RFC 9110, 8.8.3).
        "\(revision.rawValue) \(key)"
    }

    func entry(marked mark: String) async throws(ProviderError) -> TrashEntry? {
        guard let (tag, key) = mark.cut(atFirst: " ") else { return nil }
        // Also below a newer content or a newer deletion. The newest comes first.
        let version = try await client.contents(of: String(key)).first {
            $0.tag.map { $0.isSameText(as: String(tag)) } ?? false
        }
        return version.flatMap { entry($0, deleted: nil) }
    }

    func restore(_ entry: TrashEntry, to place: Placement) async throws(ProviderError) {
        guard let (version, key) = entry.id.cut(atFirst: "/") else {
            throw ProviderError(.notFound, detail: "no entry of the trash")
        }
        let path = place.folder.path.appending(place.name)
        if !client.abilities.refusesTakenCopies {
            do throws(ProviderError) {
                _ = try await client.entry(at: path)
                throw ProviderError(.nameTaken, detail: "an object has this key")
            } catch {
                guard error.kind == .notFound else { throw error }
            }
        }
        try await client.copy(
            version: String(version),
            of: String(key),
            size: entry.size,
            to: try client.space.key(of: path),
            isNew: true
        )
    }
}
