import Foundation
public import OortModel
import OortTransport
import Synchronization

extension S3Client {
    // MARK: Folders

    /// The object that keeps a folder that nothing else lies in.
    private func marker(of prefix: String) -> String {
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
        request.headers = [("Content-Type", "application/x-directory")]
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
    private func keep(folderOf path: RemotePath) async throws(ProviderError) {
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
        repeat {
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

    // MARK: Deleting

    public func delete(
        _ kind: PlaceEntry.Kind,
        at path: RemotePath,
        revision: Revision?
    ) async throws(ProviderError) {
        guard !path.parts.isEmpty else {
            throw ProviderError(.noPermission, detail: "the account's root stays")
        }
        try await keep(folderOf: path)
        switch kind {
        case .file:
            try await delete(key: try space.key(of: path), revision: revision)
        case .folder:
            let prefix = try space.prefix(of: path)
            try await deleteAll(below: prefix)
            memory.withLock { memory in
                memory.marked = memory.marked.filter { !$0.key.text.begins(with: prefix) }
            }
        }
    }

    /// Removes the marker that keeps an empty folder; what has a longer key stays.
    public func removeEmptyFolder(at path: RemotePath) async throws(ProviderError) {
        try await keep(folderOf: path)
        let prefix = try space.prefix(of: path)
        try await delete(key: marker(of: prefix), revision: nil)
        memory.withLock { $0.marked[ExactText(prefix)] = nil }
    }

    private func delete(key: String, revision: Revision?) async throws(ProviderError) {
        for _ in 0..<3 {
            var request = S3Request("DELETE", key)
            if let revision {
                if abilities.refusesStaleDeletions {
                    request.headers.append(("If-Match", "\"\(revision.rawValue)\""))
                } else {
                    guard let head = try await head(key) else { return }
                    guard Revision(head.tag) == revision else {
                        throw ProviderError(
                            .preconditionFailed,
                            detail: "another revision is current"
                        )
                    }
                    // A repetition could delete what another client wrote after the first try.
                    request.repetition = .onlyIfNotDone
                }
            }
            do throws(ProviderError) {
                _ = try await api.send(request, about: .object)
                return
            } catch  where error.kind == .notFound {
                return
            } catch  where error.kind == .preconditionFailed {
                // Some stores answer this when there is nothing, perhaps because an earlier try deleted it.
                guard try await head(key) != nil else { return }
                throw error
            } catch {
                guard case .outcomeUnknown = error.kind, request.repetition == .onlyIfNotDone else {
                    throw error
                }
            }
        }
        throw ProviderError(.outcomeUnknown(retryAfter: nil), detail: "no answer to a deletion")
    }

    /// Deletes all keys that begin with a prefix; the folder's own marker goes last, so that a folder whose
    /// deletion was interrupted still shows.
    private func deleteAll(below prefix: String) async throws(ProviderError) {
        let marker = marker(of: prefix)
        var last: Set<ExactText>?
        var isDeletingFolders = false
        while true {
            // From the beginning each time: deleted keys are no longer listed.
            var keys: [String] = []
            var token: String?
            var pages = 0
            repeat {
                let page = try await page(of: prefix, delimiter: nil, after: token)
                keys = page.objects.map(\.key).filter { $0.begins(with: prefix) }
                keys.removeAll { $0.isSameText(as: marker) }
                token = page.next
                pages += 1
                guard pages < Self.mostEmptyPages else {
                    throw ProviderError(.malformedAnswer, detail: "empty pages without end")
                }
            } while keys.isEmpty && token != nil
            guard !keys.isEmpty else { break }
            let these = Set(keys.map { ExactText($0) })
            guard these != last else {
                // Where folders are real, each can be deleted once it is empty.
                let folders = keys.filter { $0.ends(with: "/") }
                guard folders.count == keys.count, !isDeletingFolders else {
                    throw ProviderError(
                        .outcomeUnknown(retryAfter: nil),
                        detail: "the store lists what it was asked to delete"
                    )
                }
                isDeletingFolders = true
                for key in folders.sorted(by: { $0.utf8.count > $1.utf8.count }) {
                    try await delete(key: key, revision: nil)
                }
                continue
            }
            isDeletingFolders = false
            last = these
            try await delete(keys: keys)
        }
        try await deleteRealFolders(below: prefix, depth: 0)
        try await delete(key: marker, revision: nil)
    }

    /// Deletes folders without any key, which stores leave that keep keys in a tree of folders.
    private func deleteRealFolders(
        below prefix: String,
        depth: Int
    ) async throws(ProviderError) {
        guard depth < S3Names.longestKey else { return }
        var token: String?
        var folders: [String] = []
        repeat {
            let page = try await page(of: prefix, delimiter: "/", after: token)
            folders += page.prefixes.filter {
                $0.begins(with: prefix) && !$0.isSameText(as: prefix)
            }
            token = page.next
        } while token != nil && folders.count < Self.mostEmptyPages
        for folder in folders {
            try await deleteRealFolders(below: folder, depth: depth + 1)
            try await delete(key: folder, revision: nil)
        }
    }

    /// Deletes up to a page of keys.
    private func delete(keys: [String]) async throws(ProviderError) {
        // XML can carry no control characters but tab and line ends.
        func isPlain(_ key: String) -> Bool {
            key.unicodeScalars.allSatisfy { $0.value >= 0x20 || [9, 10, 13].contains($0.value) }
        }
        let many = abilities.deletesMany && keys.count > 1 ? keys.filter(isPlain) : []
        for start in stride(from: 0, to: many.count, by: 1000) {
            try await deleteTogether(many[start..<min(start + 1000, many.count)])
        }
        for key in keys where many.isEmpty || !isPlain(key) {
            try await delete(key: key, revision: nil)
        }
    }

    private func deleteTogether(_ keys: ArraySlice<String>) async throws(ProviderError) {
        var xml = "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Quiet>true</Quiet>"
        for key in keys { xml += "<Object><Key>\(S3API.escaped(key))</Key></Object>" }
        xml += "</Delete>"
        var request = S3Request("POST")
        request.query = [("delete", "")]
        request.isLong = true
        let root: S3Element
        do throws(ProviderError) {
            root = try await api.element(
                api.xml(xml, in: request),
                named: "DeleteResult",
                about: .bucket
            )
        } catch  where error.kind == .unsupported || error.kind == .badRequest {
            for key in keys { try await delete(key: key, revision: nil) }
            return
        }
        for failure in root.all("Error") {
            let code = failure.text(of: "Code") ?? ""
            guard code != "NoSuchKey" else { continue }
            throw S3Errors.error(
                status: code == "InternalError" ? 500 : 400,
                head: HTTPResponseHead(status: 400, headers: [], httpVersion: "1.1"),
                words: S3Errors.Words(code: code, message: failure.text(of: "Message") ?? ""),
                about: .object
            )
        }
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
