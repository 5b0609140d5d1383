public import OortModel
import OortTransport

/// Many small contents: sessions filled together, and one commit that takes the lock once.
extension DropboxProvider {
    /// Bytes of one `append_batch`, which lie in memory while they are sent.
    private static let largestAppend: Int64 = 4 << 20
    /// How many of them one batch has under way at once.
    private static let appendsAtOnce = 4
    /// Entries of one `append_batch`: they travel in a header field, and servers and proxies on the
    /// way take few kilobytes of those.
    private static let mostAppends = 64
    /// How often entries that met a busy namespace are committed again.
    private static let mostCommits = 5

    public func upload(_ uploads: [Upload]) async -> [Result<Item, ProviderError>] {
        // Three calls for as many as there are.
        guard uploads.count > 2 else {
            return await one(uploads) { upload throws(ProviderError) in
                try await self.upload(upload, observer: SilentUploadObserver())
            }
        }
        do throws(ProviderError) {
            let started: DropboxWire.SessionIDs = try await api.call(
                "files/upload_session/start_batch",
                DropboxWire.SessionStartBatch(num_sessions: uploads.count)
            )
            guard started.session_ids.count == uploads.count else {
                throw ProviderError(.malformedAnswer, detail: "another number of sessions")
            }
            let entries = zip(uploads, started.session_ids).map { Entry(upload: $0, session: $1) }
            return try await commit(entries, await fill(entries))
        } catch {
            return Array(repeating: .failure(error), count: uploads.count)
        }
    }

    private struct Entry: Sendable {
        var upload: Upload
        var session: String
    }

    /// Sends all contents, as many in one request as fit and some requests side by side; the errors of
    /// those that failed.
    private func fill(_ entries: [Entry]) async -> [Int: ProviderError] {
        await withTaskGroup(of: [Int: ProviderError].self) { tasks in
            var failures: [Int: ProviderError] = [:]
            var underWay = 0
            for group in groups(of: entries) {
                if underWay == Self.appendsAtOnce, let failed = await tasks.next() {
                    failures.merge(failed) { first, _ in first }
                    underWay -= 1
                }
                underWay += 1
                tasks.addTask { await self.append(group, of: entries) }
            }
            for await failed in tasks { failures.merge(failed) { first, _ in first } }
            return failures
        }
    }

    /// The entries by index, in groups that one request takes.
    private func groups(of entries: [Entry]) -> [Range<Int>] {
        var groups: [Range<Int>] = []
        var start = 0
        var bytes: Int64 = 0
        for (index, entry) in entries.enumerated() {
            let isFull =
                index - start == Self.mostAppends
                || bytes + entry.upload.size > Self.largestAppend
            if isFull, index > start {
                groups.append(start..<index)
                (start, bytes) = (index, 0)
            }
            bytes += entry.upload.size
        }
        return groups + [start..<entries.count]
    }

    /// Sends some contents by one request; the errors of those that failed.
    private func append(
        _ indices: Range<Int>,
        of entries: [Entry]
    ) async -> [Int: ProviderError] {
        var failures: [Int: ProviderError] = [:]
        var group: [Int] = []
        var bytes: [UInt8] = []
        for index in indices {
            let upload = entries[index].upload
            do throws(ProviderError) {
                bytes += try await upload.content.read(at: 0, count: Int(upload.size))
                group.append(index)
            } catch { failures[index] = error }
        }
        guard !group.isEmpty else { return failures }
        let argument = DropboxWire.SessionAppendBatch(
            entries: group.map {
                DropboxWire.SessionAppendBatch.Entry(
                    cursor: DropboxWire.SessionCursor(session_id: entries[$0].session, offset: 0),
                    length: entries[$0].upload.size
                )
            },
            content_hash: DropboxContentHasher.hash(bytes).value
        )
        do throws(ProviderError) {
            let result: AppendResult = try await api.upload(
                "files/upload_session/append_batch",
                argument,
                body: .bytes(bytes)
            )
            for (index, outcome) in zip(group, result.entries) {
                // Closed already: a first try came through and its answer was lost.
                if let failure = outcome.failure, !failure.has("closed") {
                    failures[index] = DropboxErrors.error(failure)
                }
            }
        } catch {
            for index in group { failures[index] = error }
        }
        return failures
    }

    private struct AppendResult: Decodable, Sendable {
        struct Entry: Decodable, Sendable { var failure: DropboxErrors.Union? }
        var entries: [Entry]
    }

    private func commit(
        _ entries: [Entry],
        _ failures: [Int: ProviderError]
    ) async throws(ProviderError) -> [Result<Item, ProviderError>] {
        var results: [Int: Result<Item, ProviderError>] = failures.mapValues { .failure($0) }
        var waiting = entries.indices.filter { failures[$0] == nil }
        var commits = 0
        while !waiting.isEmpty {
            commits += 1
            let argument = DropboxWire.Entries(
                entries: waiting.map {
                    DropboxWire.SessionFinish(
                        cursor: DropboxWire.SessionCursor(
                            session_id: entries[$0].session,
                            offset: entries[$0].upload.size
                        ),
                        commit: commit(entries[$0].upload)
                    )
                }
            )
            let answer: DropboxWire.BatchResult
            do throws(ProviderError) {
                answer = try await api.call(
                    "files/upload_session/finish_batch_v2",
                    argument,
                    repetition: .onlyIfNotDone
                )
                guard answer.entries.count == waiting.count else {
                    throw ProviderError(.malformedAnswer, detail: "a batch of another length")
                }
            } catch {
                for index in waiting { results[index] = .failure(error) }
                break
            }
            var busy: [Int] = []
            for (index, entry) in zip(waiting, answer.entries) {
                let result = await outcome(entry, entries[index].upload)
                results[index] = result
                if case .failure(let error) = result, case .rateLimited = error.kind {
                    busy.append(index)
                }
            }
            guard commits < Self.mostCommits, !busy.isEmpty else { break }
            do {
                try await clock.sleep(for: .milliseconds(300 * commits))
            } catch { break }
            waiting = busy
        }
        return entries.indices.map {
            results[$0] ?? .failure(ProviderError(.malformedAnswer, detail: "no outcome"))
        }
    }

    private func outcome(
        _ entry: DropboxWire.BatchEntry,
        _ upload: Upload
    ) async -> Result<Item, ProviderError> {
        do throws(ProviderError) {
            return .success(try verified(try entry.outcome(), upload))
        } catch { return .failure(await explain(error, upload)) }
    }
}
