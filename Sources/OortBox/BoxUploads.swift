import Foundation
public import OortModel
import OortTransport

/// Where an upload goes.
enum BoxDestination {
    /// A new file of this name in a folder.
    case folder(BoxID, ItemReference, name: String)
    /// A new version of a file, in place of this one; nil where any will do.
    case file(BoxID, revision: Revision?)
}

extension BoxProvider {
    public func upload(
        _ upload: Upload,
        observer: any UploadObserver
    ) async throws(ProviderError) -> Item {
        if upload.size > Self.surelyTaken, let largest = try await largestFile(),
            upload.size > largest
        {
            throw ProviderError(
                .tooLarge,
                detail: "the account's plan takes files of \(largest) bytes at most"
            )
        }
        let isSimple = upload.size <= traits.largestSimpleUpload && upload.session == nil
        let observer = BoxSessionKeeper(upload.session, observer)
        switch upload.target {
        case .create(let parent, let name, _):
            let folder = try folderID(parent)
            return try await creating { () async throws(ProviderError) in
                do throws(ProviderError) {
                    let destination = BoxDestination.folder(folder, parent, name: name)
                    let wire =
                        isSimple
                        ? try await simply(upload, to: destination, tag: nil, observer)
                        : try await inSession(upload, to: destination, tag: nil, observer)
                    let made = try await kept(try await item(wire), as: name)
                    return try verified(made, upload)
                } catch {
                    // Of an earlier try, whose answer was lost.
                    guard error.kind == .nameTaken,
                        let made = try await outcome(of: upload, named: name, in: parent)
                    else { throw error }
                    return made
                }
            } outcome: { () async throws(ProviderError) in
                if let made = try await outcome(of: upload, named: name, in: parent) {
                    return made
                }
                guard try await items(named: name, in: parent).isEmpty else {
                    throw ProviderError(.nameTaken, detail: "another file has the name")
                }
                return nil
            }
        case .replace(let item, let revision):
            let id = try fileID(item)
            return try await creating { () async throws(ProviderError) in
                try await replace(id, revision, by: upload, isSimple: isSimple, observer)
            } outcome: { () async throws(ProviderError) in
                nil
            }
        }
    }

    /// Box's free accounts take files of 250 MB.
    private static let surelyTaken: Int64 = 250_000_000

    /// The file at an upload's place that is what the upload made: equal bytes, equal times.
    func outcome(
        of upload: Upload,
        named name: String,
        in parent: ItemReference
    ) async throws(ProviderError) -> Item? {
        guard let modified = upload.modifiedTime else { return nil }
        let sent = max(modified, Timestamp(seconds: 0)).seconds
        return try await items(named: name, in: parent).first {
            $0.contentHash == upload.hash && $0.size == upload.size
                && $0.clientModifiedTime?.seconds == sent
        }
    }

    /// Box keeps the times that were sent with an upload wherever the file is moved.
    public func isOutcome(
        _ item: Item,
        of upload: LostUpload
    ) async throws(ProviderError) -> Bool {
        guard let created = upload.createdTime, let modified = upload.modifiedTime else {
            return false
        }
        return item.contentHash == upload.hash
            && item.createdTime?.seconds == created.seconds
            && item.clientModifiedTime?.seconds == modified.seconds
    }

    private func replace(
        _ id: BoxID,
        _ revision: Revision?,
        by upload: Upload,
        isSimple: Bool,
        _ observer: BoxSessionKeeper
    ) async throws(ProviderError) -> Item {
        // Equal bytes would be another version, and may be those of a try whose answer was lost.
        let current = try await item(ItemReference(id: id.itemID, path: .root))
        if current.contentHash == upload.hash, current.size == upload.size {
            await observer.drop()
            guard let time = upload.modifiedTime,
                current.clientModifiedTime?.seconds != time.seconds
            else { return current }
            return try await setAttributes(
                of: ItemReference(id: id.itemID, path: .root),
                to: AttributeChange(modifiedTime: time)
            )
        }
        let destination = BoxDestination.file(id, revision: revision)
        func send(_ tag: String?) async throws(ProviderError) -> Item {
            let wire =
                isSimple
                ? try await simply(upload, to: destination, tag: tag, observer)
                : try await inSession(upload, to: destination, tag: tag, observer)
            return try verified(try await item(wire), upload)
        }
        guard let revision else { return try await send(nil) }
        guard current.rev == revision else {
            await observer.drop()
            throw ProviderError(.preconditionFailed, detail: "another version is current")
        }
        if let tag = current.tag {
            do throws(ProviderError) { return try await send(tag) } catch {
                // What changed may be a name only.
                guard error.kind == .preconditionFailed else { throw error }
            }
        }
        do throws(ProviderError) {
            return try await guarded(id, revision) { (tag) async throws(ProviderError) in
                try await send(tag)
            }
        } catch {
            if error.kind == .preconditionFailed { await observer.drop() }
            throw error
        }
    }

    /// The item of an answer whose content is what was sent.
    private func verified(_ item: Item, _ upload: Upload) throws(ProviderError) -> Item {
        guard item.contentHash == upload.hash else {
            throw ProviderError(
                .contentDamaged,
                detail: "the service has another content hash",
                item: item
            )
        }
        return item
    }

    // MARK: One request

    /// What goes with the bytes; a name would rename a file that gets a new version.
    func attributes(of upload: Upload, to destination: BoxDestination) -> BoxWire.Change {
        var change = BoxWire.Change(content_modified_at: Self.spelled(upload.modifiedTime))
        if case .folder = destination {
            change.content_created_at = Self.spelled(upload.createdTime)
        }
        return change
    }

    private func simply(
        _ upload: Upload,
        to destination: BoxDestination,
        tag: String?,
        _ observer: any UploadObserver
    ) async throws(ProviderError) -> BoxWire.Item {
        var attributes = attributes(of: upload, to: destination)
        let path: String
        switch destination {
        case .folder(let folder, _, let name):
            attributes.name = name
            attributes.parent = .init(folder.id)
            path = "files/content"
        case .file(let id, _): path = id.path + "/content"
        }
        let body = BoxMultipart(attributes: try BoxAPI.json(attributes))
        var request = HTTPRequest(
            method: "POST",
            url: api.uploadURL(path, Self.itemQuery),
            headers: [
                ("Content-Type", "multipart/form-data; boundary=\(body.boundary)"),
                // It is SHA-1, whatever it is called.
                ("Content-MD5", upload.hash.value),
            ] + (tag.map { [("If-Match", $0)] } ?? []),
            body: upload.size == 0
                ? .bytes(body.prefix + body.suffix)
                : .framed(
                    prefix: body.prefix,
                    upload.content,
                    0..<upload.size,
                    suffix: body.suffix
                ),
            repetition: .onlyIfNotDone,
            weight: .bulk,
            answerTimeout: .seconds(120)
        )
        let before = Int64(body.prefix.count)
        let size = upload.size
        request.onSent = { observer.sent(min(max($0 - before, 0), size)) }
        try await uploadPace.take()
        let answer: BoxWire.Uploaded
        switch destination {
        case .folder: answer = try await sendCreation(request)
        case .file: answer = try await api.send(request)
        }
        guard let item = answer.entries.first else {
            throw ProviderError(.malformedAnswer, detail: "an upload that made nothing")
        }
        return item
    }
}

/// The two parts of an upload's body around its content, the attributes first as Box wants it.
struct BoxMultipart {
    let boundary = "oort-\(UUID().uuidString)"
    let prefix: [UInt8]
    let suffix: [UInt8]

    init(attributes: [UInt8]) {
        var prefix = Array("--\(boundary)\r\n".utf8)
        prefix += "Content-Disposition: form-data; name=\"attributes\"\r\n".utf8
        prefix += "Content-Type: application/json\r\n\r\n".utf8
        prefix += attributes
        prefix += "\r\n--\(boundary)\r\n".utf8
        prefix += "Content-Disposition: form-data; name=\"file\"; filename=\"content\"\r\n".utf8
        prefix += "Content-Type: application/octet-stream\r\n\r\n".utf8
        self.prefix = prefix
        suffix = Array("\r\n--\(boundary)--\r\n".utf8)
    }
}
