public import OortModel
import OortTransport
import Synchronization

/// Deleting: a folder goes by the keys that were known in it, page by page.
extension S3Client {
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
            try await deleteAll(below: prefix, known: try await keys(below: prefix))
        }
    }

    public func deleteFolder(
        at path: RemotePath,
        holding contents: PlaceContents,
        mark: String?
    ) async throws(ProviderError) {
        guard !path.parts.isEmpty else {
            throw ProviderError(.noPermission, detail: "the account's root stays")
        }
        var known = KnownKeys()
        for (file, revision) in contents.files {
            known.tags[ExactText(try space.key(of: file))] = revision.rawValue
        }
        for folder in contents.folders {
            known.folders.insert(ExactText(try space.prefix(of: folder)))
        }
        try await keep(folderOf: path)
        try await deleteAll(below: try space.prefix(of: path), known: known)
    }

    /// Removes the marker that keeps an empty folder; what has a longer key stays.
    public func removeEmptyFolder(at path: RemotePath) async throws(ProviderError) {
        try await keep(folderOf: path)
        let prefix = try space.prefix(of: path)
        try await delete(key: marker(of: prefix), revision: nil)
        memory.withLock { $0.marked[ExactText(prefix)] = nil }
    }

    func delete(key: String, revision: Revision?) async throws(ProviderError) {
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

    /// The keys that may be deleted with a folder.
    private struct KnownKeys {
        /// The ETags of files by their keys.
        var tags: [ExactText: String] = [:]
        /// What the keys in each folder begin with.
        var folders: Set<ExactText> = []

        func holds(_ object: S3Object) -> Bool {
            if let folder = S3Client.folderKept(by: object) {
                return folders.contains(ExactText(String(folder)))
            }
            return tags[ExactText(object.key)]?.isSameText(as: object.tag) ?? false
        }
    }

    /// What the keys begin with in the folder that an object only keeps; nil for a file.
    private static func folderKept(by object: S3Object) -> Substring? {
        guard object.size == 0 else { return nil }
        if object.key.ends(with: "/") { return object.key[...] }
        return object.key.dropping(ending: S3Names.keeper).flatMap { folder in
            folder.isEmpty || folder.ends(with: "/") ? folder : nil
        }
    }

    /// All keys that begin with a prefix at this moment.
    private func keys(below prefix: String) async throws(ProviderError) -> KnownKeys {
        var known = KnownKeys()
        var walk = PageWalk()
        var token: String?
        repeat {
            if let token { try walk.goOn(to: token) }
            let page = try await page(of: prefix, delimiter: nil, after: token)
            for object in page.objects {
                if Self.folderKept(by: object) == nil {
                    known.tags[ExactText(object.key)] = object.tag
                }
                // Where folders are real, each is listed when it is empty.
                var folder = ""
                for part in object.key.parts(between: "/").dropLast() {
                    folder += part + "/"
                    known.folders.insert(ExactText(folder))
                }
            }
            token = page.next
        } while token != nil
        return known
    }

    /// Deletes the known keys that begin with a prefix; the folder's own marker goes last, so that a folder
    /// whose deletion was interrupted still shows.
    ///
    /// - Throws: `.preconditionFailed` as soon as the bucket lists anything else: another client saved it.
    private func deleteAll(below prefix: String, known: KnownKeys) async throws(ProviderError) {
        let marker = marker(of: prefix)
        var last: Set<ExactText>?
        var isDeletingFolders = false
        while true {
            // From the beginning each time: deleted keys are no longer listed.
            let objects = try await firstObjects(below: prefix, but: marker)
            guard !objects.isEmpty else { break }
            if let other = objects.first(where: { !known.holds($0) }) {
                throw ProviderError(
                    .preconditionFailed,
                    detail: "\(other.key) was written while its folder was being deleted"
                )
            }
            let these = Set(objects.map { ExactText($0.key) })
            guard these != last else {
                // Where folders are real, each can be deleted once it is empty.
                let folders = objects.map(\.key).filter { $0.ends(with: "/") }
                guard folders.count == objects.count, !isDeletingFolders else {
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
            try await delete(objects)
        }
        try await deleteRealFolders(below: prefix, depth: 0)
        try await delete(key: marker, revision: nil)
        memory.withLock { memory in
            memory.marked = memory.marked.filter { !$0.key.text.begins(with: prefix) }
        }
    }

    /// The first page of the keys that begin with a prefix that has any but the marker.
    private func firstObjects(
        below prefix: String,
        but marker: String
    ) async throws(ProviderError) -> [S3Object] {
        var token: String?
        for _ in 0..<Self.mostEmptyPages {
            let page = try await page(of: prefix, delimiter: nil, after: token)
            let objects = page.objects.filter { object in
                object.key.begins(with: prefix)
                    && !(object.size == 0 && object.key.isSameText(as: marker))
            }
            guard objects.isEmpty, let next = page.next else { return objects }
            token = next
        }
        throw ProviderError(.malformedAnswer, detail: "empty pages without end")
    }

    /// Deletes folders without any key, which stores leave that keep keys in a tree of folders.
    private func deleteRealFolders(
        below prefix: String,
        depth: Int
    ) async throws(ProviderError) {
        guard depth < S3Names.longestKey else { return }
        var token: String?
        var folders: [String] = []
        var walk = PageWalk()
        repeat {
            if let token { try walk.goOn(to: token) }
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

    /// Deletes up to a page of objects, each as it was listed.
    private func delete(_ objects: [S3Object]) async throws(ProviderError) {
        // XML can carry no control characters but tab and line ends.
        func isPlain(_ object: S3Object) -> Bool {
            object.key.unicodeScalars.allSatisfy {
                $0.value >= 0x20 || [9, 10, 13].contains($0.value)
            }
        }
        let many = abilities.deletesMany && objects.count > 1 ? objects.filter(isPlain) : []
        for start in stride(from: 0, to: many.count, by: 1000) {
            try await deleteTogether(many[start..<min(start + 1000, many.count)])
        }
        for object in objects where many.isEmpty || !isPlain(object) {
            try await deleteListed(object)
        }
    }

    /// Deletes one object as it was listed.
    private func deleteListed(_ object: S3Object) async throws(ProviderError) {
        let isFile = Self.folderKept(by: object) == nil
        try await delete(key: object.key, revision: isFile ? Revision(object.tag) : nil)
    }

    /// Deletes up to 1,000 objects by one request; those that changed meanwhile stay, and are listed again.
    private func deleteTogether(_ objects: ArraySlice<S3Object>) async throws(ProviderError) {
        var xml = "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Quiet>true</Quiet>"
        for object in objects {
            xml += "<Object><Key>\(S3API.escaped(object.key))</Key>"
            if abilities.refusesStaleDeletions, Self.folderKept(by: object) == nil {
                xml += "<ETag>&quot;\(S3API.escaped(object.tag))&quot;</ETag>"
            }
            xml += "</Object>"
        }
        xml += "</Delete>"
        var request = S3Request("POST")
        request.query = [("delete", "")]
        request.isLong = true
        // Without conditions, a repetition could delete what another client wrote after the first try.
        if !abilities.refusesStaleDeletions { request.repetition = .onlyIfNotDone }
        let root: S3Element
        do throws(ProviderError) {
            root = try await api.element(
                api.xml(xml, in: request),
                named: "DeleteResult",
                about: .bucket
            )
        } catch  where error.kind == .unsupported || error.kind == .badRequest {
            for object in objects { try await deleteListed(object) }
            return
        }
        for failure in root.all("Error") {
            let code = failure.text(of: "Code") ?? ""
            guard code != "NoSuchKey", code != "PreconditionFailed" else { continue }
            throw S3Errors.error(
                status: code == "InternalError" ? 500 : 400,
                head: HTTPResponseHead(status: 400, headers: [], httpVersion: "1.1"),
                words: S3Errors.Words(code: code, message: failure.text(of: "Message") ?? ""),
                about: .object
            )
        }
    }
}
