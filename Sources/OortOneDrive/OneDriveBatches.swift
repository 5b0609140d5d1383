public import OortModel
import OortTransport

/// Graph's `$batch`: it saves round trips, not quota; each part succeeds or fails alone.
enum OneDriveBatch {
    /// More are refused.
    static let size = 20
}

extension OneDriveProvider {
    public func createFolders(_ folders: [NewFolder]) async -> [Result<Item, ProviderError>] {
        await batch(folders) { (folder) throws(ProviderError) in
            let parent = try OneDriveItemID(folder.parent.id)
            return .init(
                id: "",
                method: "POST",
                url: "\(parent.target.path)/children",
                headers: ["Content-Type": "application/json"],
                body: .change(try change(creating: folder))
            )
        } read: { (folder, answer) async throws(ProviderError) in
            let parent = try OneDriveItemID(folder.parent.id)
            let body = try Self.success(answer, about: .parent)
            return try known(
                try OneDriveAPI.decode(DriveItemWire.self, from: body),
                drive: parent.target.drive
            )
        } alone: { (folder) async throws(ProviderError) in
            try await createFolder(folder)
        }
    }

    public func move(_ moves: [Move]) async -> [Result<Item, ProviderError>] {
        await batch(moves) { (move) throws(ProviderError) in
            let change = try change(for: move)
            // Its time must be asked for first: one by one then.
            guard change.fileSystemInfo != nil else { return nil }
            let id = try OneDriveItemID(move.item.id)
            return .init(
                id: "",
                method: "PATCH",
                url: id.entry.path,
                headers: ["Content-Type": "application/json"],
                body: .change(change)
            )
        } read: { (move, answer) async throws(ProviderError) in
            // Refused, or answered without a body: the single call knows what to make of it.
            guard answer.status == 200, !answer.body.isEmpty else {
                if answer.status == 429 || answer.status >= 500 {
                    _ = try Self.success(answer, about: .item)
                }
                return try await self.move(move)
            }
            let id = try OneDriveItemID(move.item.id)
            return try known(
                try OneDriveAPI.decode(DriveItemWire.self, from: answer.body),
                drive: id.entry.drive
            )
        } alone: { (move) async throws(ProviderError) in
            try await self.move(move)
        }
    }

    public func delete(_ deletions: [Deletion]) async -> [Result<Void, ProviderError>] {
        await batch(deletions) { (deletion) throws(ProviderError) in
            let id = try OneDriveItemID(deletion.item.id)
            // Whether something lies in it must be asked for first: one by one.
            guard !deletion.expectsNothing || id.isShortcut else { return nil }
            var headers: [String: String]?
            if let revision = deletion.revision {
                // A revision without a tag of its own needs the tag of the moment: one by one.
                guard
                    let tag = OneDriveItems.contentTag(revision, isShortcut: id.isShortcut)
                else { return nil }
                headers = ["If-Match": tag]
            }
            return .init(id: "", method: "DELETE", url: id.entry.path, headers: headers)
        } read: { (deletion, answer) async throws(ProviderError) in
            if answer.status == 404 { return }
            if answer.status == 409 || answer.status == 412 {
                return try await delete(deletion)
            }
            _ = try Self.success(answer, about: .item)
        } alone: { (deletion) async throws(ProviderError) in
            try await delete(deletion)
        }
    }

    /// Opens the sessions of many contents in one call; the bytes travel one by one.
    public func upload(_ uploads: [Upload]) async -> [Result<Item, ProviderError>] {
        await batch(uploads) { (upload) throws(ProviderError) in
            // Empty files have no session, and one upload alone needs no batch.
            guard uploads.count > 1, upload.size > 0, upload.session == nil else { return nil }
            let destination = try destination(of: upload)
            var headers = ["Content-Type": "application/json"]
            if destination.revision != nil {
                guard let tag = destination.tag else { return nil }
                headers["If-Match"] = tag
            }
            return .init(
                id: "",
                method: "POST",
                url: "\(destination.path)/createUploadSession",
                headers: headers,
                body: .session(session(for: upload, to: destination))
            )
        } read: { (upload, answer) async throws(ProviderError) in
            guard (200..<300).contains(answer.status) else {
                if answer.status == 429 || answer.status >= 500 {
                    _ = try Self.success(answer, about: .item)
                }
                // Refused: the single call knows what to make of it.
                return try await self.upload(upload, observer: SilentUploadObserver())
            }
            let destination = try destination(of: upload)
            let session = try session(
                try OneDriveAPI.decode(UploadSessionWire.self, from: answer.body),
                of: upload
            )
            do throws(ProviderError) {
                let observer = SilentUploadObserver()
                let wire = try await send(
                    upload,
                    to: destination,
                    by: session,
                    from: 0,
                    observer: observer
                )
                return try known(wire, drive: destination.drive)
            } catch  where error.kind == .preconditionFailed {
                return try await self.upload(upload, observer: SilentUploadObserver())
            }
        } alone: { (upload) async throws(ProviderError) in
            try await self.upload(upload, observer: SilentUploadObserver())
        }
    }

    private static func success(
        _ answer: BatchAnswerWire.Answer,
        about subject: OneDriveErrors.Subject
    ) throws(ProviderError) -> [UInt8] {
        if (200..<300).contains(answer.status) { return answer.body }
        let head = HTTPResponseHead(
            status: answer.status,
            headers: (answer.headers ?? [:]).map { ($0.key, $0.value) },
            httpVersion: ""
        )
        throw OneDriveErrors.error(
            HTTPResponse(head: head, body: answer.body),
            about: subject
        )
    }

    /// Sends what `request` makes a part of, in as few batches as the service allows, and does the
    /// others `alone`; the results are in the entries' order.
    ///
    /// What follows on a batch's answers, and what is done alone, is under way all at once: the
    /// transport says how much of it.
    private func batch<Entry: Sendable, Value: Sendable>(
        _ entries: [Entry],
        request: (Entry) throws(ProviderError) -> BatchRequestWire.Request?,
        read:
            @escaping @Sendable (Entry, BatchAnswerWire.Answer) async throws(ProviderError) ->
            Value,
        alone: @escaping @Sendable (Entry) async throws(ProviderError) -> Value
    ) async -> [Result<Value, ProviderError>] {
        typealias Outcome = (index: Int, result: Result<Value, ProviderError>)
        return await withTaskGroup(of: [Outcome].self) { tasks in
            var results: [Int: Result<Value, ProviderError>] = [:]
            var parts: [(index: Int, request: BatchRequestWire.Request)] = []
            for (index, entry) in entries.enumerated() {
                do throws(ProviderError) {
                    if var part = try request(entry) {
                        part.id = String(index)
                        parts.append((index, part))
                    } else {
                        tasks.addTask {
                            let result = await Self.outcome { () throws(ProviderError) in
                                try await alone(entry)
                            }
                            return [(index, result)]
                        }
                    }
                } catch {
                    results[index] = .failure(error)
                }
            }
            while !parts.isEmpty {
                let some = Array(parts.prefix(OneDriveBatch.size))
                parts.removeFirst(some.count)
                tasks.addTask {
                    let answers: [String: BatchAnswerWire.Answer]
                    do throws(ProviderError) {
                        answers = try await self.exchange(some.map(\.request))
                    } catch { return some.map { ($0.index, .failure(error)) } }
                    return await withTaskGroup(of: Outcome.self) { reads in
                        for (index, part) in some {
                            reads.addTask {
                                let result = await Self.outcome { () throws(ProviderError) in
                                    guard let answer = answers[part.id] else {
                                        throw ProviderError(
                                            .malformedAnswer,
                                            detail: "a batch without answer \(part.id)"
                                        )
                                    }
                                    return try await read(entries[index], answer)
                                }
                                return (index, result)
                            }
                        }
                        return await reads.reduce(into: []) { $0.append($1) }
                    }
                }
            }
            for await outcomes in tasks {
                for (index, result) in outcomes { results[index] = result }
            }
            return entries.indices.map { index in
                results[index]
                    ?? .failure(
                        ProviderError(.malformedAnswer, detail: "a batch without an answer")
                    )
            }
        }
    }

    private static func outcome<Value>(
        _ body: () async throws(ProviderError) -> Value
    ) async -> Result<Value, ProviderError> {
        do throws(ProviderError) { return .success(try await body()) } catch {
            return .failure(error)
        }
    }

    private func exchange(
        _ parts: [BatchRequestWire.Request]
    ) async throws(ProviderError) -> [String: BatchAnswerWire.Answer] {
        let answer = try await api.send(
            try api.request("POST", "/$batch", json: BatchRequestWire(requests: parts)),
            for: BatchAnswerWire.self,
            about: .item
        )
        return Dictionary(
            answer.responses.map { ($0.id, $0) },
            uniquingKeysWith: { first, _ in first }
        )
    }
}
