public import OortModel
import OortTransport

/// Many small contents: sessions filled together, and one commit that takes the lock once.
extension DropboxProvider {
    /// Bytes of one `append_batch`, which lie in memory while they are sent.
    private static let largestAppend: Int64 = 32 << 20
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
            let failures = try await fill(entries)
            return try await commit(entries, failures)
        } catch {
            return Array(repeating: .failure(error), count: uploads.count)
        }
    }

    private struct Entry {
        var upload: Upload
        var session: String
    }

    /// Sends all contents, as many in one request as fit; the errors of those that failed.
    private func fill(_ entries: [Entry]) async throws(ProviderError) -> [Int: ProviderError] {
        var failures: [Int: ProviderError] = [:]
        var next = 0
        while next < entries.count {
            var group: [Int] = []
            var bytes: [UInt8] = []
            while next < entries.count {
                let upload = entries[next].upload
                guard group.count < Self.mostAppends,
                    group.isEmpty || Int64(bytes.count) + upload.size <= Self.largestAppend
                else { break }
                do throws(ProviderError) {
                    bytes += try await upload.content.read(at: 0, count: Int(upload.size))
                    group.append(next)
                } catch { failures[next] = error }
                next += 1
            }
            guard !group.isEmpty else { continue }
            let argument = DropboxWire.SessionAppendBatch(
                entries: group.map {
                    DropboxWire.SessionAppendBatch.Entry(
                        cursor: DropboxWire.SessionCursor(
                            session_id: entries[$0].session,
                            offset: 0
                        ),
                        length: entries[$0].upload.size
                    )
                },
                content_hash: DropboxContentHasher.hash(bytes).value
            )
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
