import Foundation
public import OortModel
import OortTransport
import Synchronization

extension S3Client {
    // MARK: Folders

    /// The object that keeps a folder that nothing else lies in.
    func marker(of prefix: String) -> String {
        abilities.listsMarkers ? prefix : prefix + S3Names.keeper
    }

    /// Creates a folder anywhere: in a bucket no folder needs another.
    public func createFolder(at path: RemotePath) async throws(ProviderError) -> PlaceEntry {
        guard let name = path.name else {
            throw ProviderError(.nameTaken, detail: "the account's root is there")
        }
        switch S3Names.refusal(of: name, prefix: "") {
        case .refused(let reason): throw ProviderError(.nameRefused, detail: reason)
        case .tooLong: throw ProviderError(.nameTooLong, detail: "longer than a key may be")
        case nil: break
        }
        let prefix = try space.prefix(of: path)
        if try await file(try space.key(of: path)) != nil {
            throw ProviderError(.nameTaken, detail: "a file has this name")
        }
        if try await isAnything(below: prefix) {
            throw ProviderError(.nameTaken, detail: "a folder has this name")
        }
        try await mark(prefix)
        return folder(name)
    }

    private func mark(_ prefix: String) async throws(ProviderError) {
        let marker = marker(of: prefix)
        var request = S3Request("PUT", marker)
        request.body = .bytes([])
        // A bucket with Object Lock refuses a PUT without a digest.
        request.headers = [
            ("Content-Type", "application/x-directory"), ("Content-MD5", S3API.digestOfNothing),
        ]
        if abilities.refusesTakenKeys { request.headers.append(("If-None-Match", "*")) }
        do throws(ProviderError) {
            _ = try await api.send(request, about: .creation)
        } catch  where error.kind == .nameTaken {
            // A store that has folders of its own says that the name of one is taken, marker or not.
            if try await first(below: marker)?.key.isSameText(as: marker) != true {
                request.headers.removeAll { $0.name == "If-None-Match" }
                _ = try await api.send(request, about: .creation)
            }
        }
        memory.withLock { $0.remember(marked: prefix) }
    }

    /// Keeps the folder that a key is about to leave, in case it becomes empty.
    ///
    /// In a bucket a folder exists as long as a key begins with its name: a client that lists it after the
    /// last key was deleted and before a marker arrives takes it for gone. A folder with more keys than
    /// this program deletes at once needs no marker.
    func keep(folderOf path: RemotePath) async throws(ProviderError) {
        guard let folder = path.parent, !folder.parts.isEmpty else { return }
        let prefix = try space.prefix(of: folder)
        guard !memory.withLock({ $0.isMarked(prefix) }) else { return }
        do throws(ProviderError) {
            if try await holdsFew(prefix) { try await mark(prefix) }
        } catch {
            // A login that may not list or write may still delete.
            guard error.isLastingRefusal || error.kind == .malformedAnswer else { throw error }
        }
    }

    /// Whether a folder without a marker holds something, but no more keys than may be deleted at once.
    private func holdsFew(_ prefix: String) async throws(ProviderError) -> Bool {
        let most = traits.provider.maximumWritesInFlight + 1
        let marker = marker(of: prefix)
        var (count, pages) = (0, 0)
        var token: String?
        var walk = PageWalk()
        repeat {
            if let token { try walk.goOn(to: token) }
            let page = try await page(of: prefix, delimiter: "/", after: token, atMost: most + 1)
            if let found = page.objects.first(where: { $0.key.isSameText(as: marker) }) {
                // With bytes it is a file of its own, which no marker may replace.
                if found.size == 0 { memory.withLock { $0.remember(marked: prefix) } }
                return false
            }
            count += page.objects.count { $0.key.begins(with: prefix) }
            count += page.prefixes.count { $0.begins(with: prefix) }
            token = page.next
            pages += 1
        } while count <= most && token != nil && pages < Self.mostEmptyPages
        return (1...most).contains(count)
    }

    // MARK: Moving and copying

    public func move(
        _ kind: PlaceEntry.Kind,
        from old: RemotePath,
        to new: RemotePath
    ) async throws(ProviderError) -> PlaceEntry {
        guard kind == .file else {
            throw ProviderError(.unsupported, detail: "a bucket's folders are moved file by file")
        }
        let (source, target) = (try space.key(of: old), try space.key(of: new))
        guard !source.isSameText(as: target) else {
            guard let head = try await file(source) else {
                throw ProviderError(.notFound, detail: "no object")
            }
            return entry(new.name ?? "", head)
        }
        if old.parent != new.parent { try await keep(folderOf: old) }
        let (entry, copied) = try await copy(source, to: target, path: new)
        // What another client wrote meanwhile stays where it is, and is news.
        do throws(ProviderError) {
            try await delete(key: source, revision: Revision(copied))
        } catch  where error.kind == .preconditionFailed {
        } catch {
            // The file is at both places, and the caller must look.
            throw error.asUnknownOutcome
        }
        return entry
    }

    public func copy(
        from path: RemotePath,
        to new: RemotePath
    ) async throws(ProviderError) -> PlaceEntry {
        try await copy(try space.key(of: path), to: try space.key(of: new), path: new).entry
    }

    /// Copies an object; the answer has the ETag that its source had.
    private func copy(
        _ source: String,
        to target: String,
        path: RemotePath
    ) async throws(ProviderError) -> (entry: PlaceEntry, sourceTag: String) {
        guard abilities.copies else {
            throw ProviderError(.unsupported, detail: "the store copies nothing by itself")
        }
        if let name = path.name, S3Names.refusal(of: name, prefix: "") != nil {
            throw ProviderError(.nameRefused, detail: "the store's names are of other forms")
        }
        var failure: ProviderError?
        // Tried again if another client writes the source while it is copied.
        for _ in 0..<4 {
            guard let head = try await file(source) else {
                throw failure?.isOutcomeUnknown == true
                    ? ProviderError(.outcomeUnknown(retryAfter: nil), detail: "the source is gone")
                    : ProviderError(.notFound, detail: "no object")
            }
            if !abilities.refusesTakenCopies, let taken = try await file(target) {
                guard Self.isCopy(taken, of: head) else {
                    throw ProviderError(.nameTaken, detail: "an object has this key")
                }
                return (entry(path.name ?? "", taken), head.tag)
            }
            let time = head.modified == nil ? head.stored : nil
            do throws(ProviderError) {
                let tag = try await copy(
                    source,
                    head,
                    to: target,
                    time: time,
                    isNew: true
                )
                var made = entry(path.name ?? "", head)
                made.revision = Revision(tag)
                made.storedTime = nil
                // The copy may be of what another client wrote since the look.
                if !abilities.refusesStaleCopies, tag != head.tag { made.hash = nil }
                return (made, head.tag)
            } catch {
                switch error.kind {
                case .preconditionFailed, .nameTaken, .outcomeUnknown, .malformedAnswer: break
                default: throw error
                }
                if let taken = try await file(target) {
                    if Self.isCopy(taken, of: head) {
                        return (entry(path.name ?? "", taken), head.tag)
                    }
                    throw error.asKind(.nameTaken)
                }
                if error.isOutcomeUnknown { throw error }
                failure = error
            }
        }
        // Some stores refuse an object whose key, with a slash, begins other keys.
        if let failure, try await isAnything(below: target + "/") {
            throw failure.asKind(.nameTaken)
        }
        throw failure?.asKind(.locked)
            ?? ProviderError(.locked, detail: "the object changes too fast to be copied")
    }

    /// Whether an object is what the copy of another would be: an earlier try may have made it.
    private static func isCopy(_ copy: S3Head, of source: S3Head) -> Bool {
        guard copy.size == source.size else { return false }
        let isSame =
            copy.tag.isSameText(as: source.tag)
            || copy.md5 != nil && (copy.md5 == source.md5 || copy.md5 == source.tag)
            || source.md5 != nil && copy.tag == source.md5
        // The copy has the time of its source, by whichever way.
        let (time, sourceTime) = (copy.modified ?? copy.stored, source.modified ?? source.stored)
        return isSame && time?.seconds == sourceTime?.seconds
    }

    public func setModifiedTime(
        _ time: Timestamp,
        of path: RemotePath,
        revision: Revision?
    ) async throws(ProviderError) -> PlaceEntry {
        guard abilities.rewritesMetadata else {
            throw ProviderError(.unsupported, detail: "the store keeps an object's metadata")
        }
        let key = try space.key(of: path)
        for _ in 0..<4 {
            guard let head = try await file(key) else {
                throw ProviderError(.notFound, detail: "no object")
            }
            if head.modified == time { return entry(path.name ?? "", head) }
            guard revision == nil || Revision(head.tag) == revision else {
                throw ProviderError(.preconditionFailed, detail: "another revision is current")
            }
            guard head.size <= settings.largestSimpleCopy else {
                throw ProviderError(.unsupported, detail: "the object is too large to be rewritten")
            }
            do throws(ProviderError) {
                let tag = try await copy(key, head, to: key, time: time, isNew: false)
                var made = entry(path.name ?? "", head)
                made.revision = Revision(tag)
                made.modifiedTime = time
                made.storedTime = nil
                return made
            } catch  where error.kind == .preconditionFailed {}
        }
        throw ProviderError(.locked, detail: "the object changes too fast")
    }

    /// Copies an object of which the head is known; a `time` takes the place of the one it has.
    ///
    /// - Returns: The copy's ETag.
    private func copy(
        _ source: String,
        _ head: S3Head,
        to target: String,
        time: Timestamp?,
        isNew: Bool
    ) async throws(ProviderError) -> String {
        let subject: S3Errors.Subject = isNew ? .creation : .object
        var fields: [(name: String, value: String)] = []
        if let storageClass = head.storageClass, storageClass != "STANDARD" {
            fields.append(("x-amz-storage-class", storageClass))
        }
        var metadata = head.carried
        if let time {
            metadata.removeAll { $0.name.lowercased() == "x-amz-meta-mtime" }
            metadata.append(("x-amz-meta-mtime", S3Head.metadata(time)))
        }
        let place = S3Text.percentEncoded("\(api.place.bucket)/\(source)", keepsSlash: true)
        var from = [("x-amz-copy-source", place)]
        if abilities.refusesStaleCopies {
            from.append(("x-amz-copy-source-if-match", "\"\(head.tag)\""))
        }
        let condition =
            isNew && abilities.refusesTakenCopies ? [("If-None-Match", "*")] : []
        guard head.size > settings.largestSimpleCopy else {
            var request = S3Request("PUT", target)
            request.isLong = true
            request.headers = from + fields + condition
            if time != nil {
                request.headers += metadata + [("x-amz-metadata-directive", "REPLACE")]
            }
            let root = try await api.element(request, named: "CopyObjectResult", about: subject)
            if let tag = try? Self.tag(root) { return tag }
            // Some stores do not describe the copy in their answer.
            guard let made = try await file(target), made.size == head.size else {
                throw ProviderError(.malformedAnswer, detail: "a copy that is not there")
            }
            return made.tag
        }
        // In parts; the store checks the condition on the target at the end.
        var request = S3Request("POST", target)
        request.query = [("uploads", "")]
        request.headers = fields + metadata
        let answer = try await api.element(
            request,
            about: subject
        )
        guard let id = answer.text(of: "UploadId"), !id.isEmpty else {
            throw ProviderError(.malformedAnswer, detail: "an upload without an id")
        }
        note(begun: id, at: target)
        do throws(ProviderError) {
            var xml = "<CompleteMultipartUpload>"
            var number = 1
            var start: Int64 = 0
            while start < head.size {
                let end = min(start + settings.copyPartSize, head.size)
                var request = S3Request("PUT", target)
                request.query = [("partNumber", "\(number)"), ("uploadId", id)]
                request.headers = from + [("x-amz-copy-source-range", "bytes=\(start)-\(end - 1)")]
                request.isLong = true
                let part = try await api.element(request, named: "CopyPartResult", about: .object)
                xml += "<Part><PartNumber>\(number)</PartNumber>"
                xml += "<ETag>&quot;\(S3API.escaped(try Self.tag(part)))&quot;</ETag></Part>"
                start = end
                number += 1
            }
            xml += "</CompleteMultipartUpload>"
            var request = S3Request("POST", target)
            request.query = [("uploadId", id)]
            request.headers = condition
            request.isLong = true
            let tag = try Self.tag(
                try await api.element(
                    api.xml(xml, in: request),
                    named: "CompleteMultipartUploadResult",
                    about: subject
                )
            )
            begun.forget(id)
            return tag
        } catch {
            // If the answer to the end is lost, there is nothing left to give up.
            await abort(id, at: target)
            throw error
        }
    }

    private static func tag(_ root: S3Element) throws(ProviderError) -> String {
        guard let tag = root.text(of: "ETag").map(S3Head.bare), !tag.isEmpty else {
            throw ProviderError(.malformedAnswer, detail: "a copy was answered without an ETag")
        }
        return tag
    }
}
