public import OortModel
import OortTransport

extension BoxProvider {
    /// So long after it was read the stream is read again, whatever the server says at which we wait.
    private static let longestWait = Duration.seconds(300)
    /// Events come late when there are many: so long after some, the stream is read once more.
    private static let secondLook = Duration.seconds(7)

    public func waitForChanges(
        since cursor: Cursor,
        atMost limit: Duration
    ) async throws(ProviderError) -> FeedNews {
        let place = try BoxCursor(cursor)
        try place.check(now: Timestamp.now.seconds)
        guard place.listings.isEmpty, !place.isEnumeration else { return .changed }
        let left = max(Self.longestWait - (elapsed() - memory.streamRead), .zero)
        var rest = min(limit, left)
        var end = left > limit ? FeedNews.quiet(backoff: nil) : .changed
        if memory.mayHaveMore, rest > Self.secondLook {
            rest = Self.secondLook
            end = .changed
            memory.mayHaveMore = false
        }
        let server = try await pollServer()
        guard api.endpoints.isSafe(server.url) else {
            // The account is read by the clock rather than without encryption.
            try await api.pause(rest)
            return .changed
        }
        let outcome = await withTaskGroup(of: Result<FeedNews, ProviderError>.self) {
            [clock, rest, end] group in
            group.addTask {
                do throws(ProviderError) {
                    return .success(try await self.poll(server, from: place.position))
                } catch { return .failure(error) }
            }
            group.addTask {
                try? await clock.sleep(for: rest)
                return .success(end)
            }
            let first = await group.next() ?? .success(end)
            group.cancelAll()
            return first
        }
        guard !Task.isCancelled else { throw ProviderError(.cancelled, detail: "cancelled") }
        return try outcome.get()
    }

    /// Asks the server that gives notice of news, until there is some.
    ///
    /// Its address is the permission; it gets no token.
    private func poll(
        _ server: BoxWire.Servers.Server,
        from position: String
    ) async throws(ProviderError) -> FeedNews {
        let separator = server.url.has("?") ? "&" : "?"
        var request = HTTPRequest(
            method: "GET",
            url: server.url + separator + "stream_position=" + BoxAPI.encoded(position),
            isAuthorized: false,
            answerTimeout: .seconds(620)
        )
        request.isLongPoll = true
        let began = elapsed()
        let response: HTTPResponse
        do throws(ProviderError) { response = try await api.exchange(request) } catch {
            memory.forgetPollServer()
            throw error
        }
        guard response.head.status == 200,
            let news: BoxWire.News = try? BoxAPI.decode(response.body)
        else {
            memory.forgetPollServer()
            throw ProviderError(
                .outcomeUnknown(retryAfter: response.head.retryAfter),
                detail: "the server of news answered \(response.head.status)"
            )
        }
        // A server that has news of nothing, or does not wait, is asked more and more seldom.
        let pause = memory.pause(afterPollOf: elapsed() - began)
        if news.message == "new_change" {
            if let pause { try await api.pause(pause) }
            return .changed
        }
        // "reconnect": another server is to be asked for.
        memory.forgetPollServer()
        return .quiet(backoff: pause)
    }

    private func pollServer() async throws(ProviderError) -> BoxWire.Servers.Server {
        if let known = memory.pollServer() { return known }
        let servers: BoxWire.Servers = try await api.send(
            HTTPRequest(method: "OPTIONS", url: api.url("events"), repetition: .harmless)
        )
        guard let server = servers.entries.first(where: { $0.type == "realtime_server" }) else {
            throw ProviderError(.malformedAnswer, detail: "no server to wait at")
        }
        memory.learn(server)
        return memory.pollServer() ?? server
    }
}
