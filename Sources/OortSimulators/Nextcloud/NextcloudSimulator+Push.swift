/// The app notify_push: who signs in on its WebSocket hears when something changed, at once and not, as the
/// real one, after up to 15 seconds.
extension NextcloudSimulator {
    /// Where it is, below the server's address.
    private static let pushPath = "/push/ws"

    /// The part of the capabilities.
    func pushCapability(_ request: SimulatorRequest) -> JSON {
        let origin =
            request.origin.isEmpty
            ? "wss://\(Self.host)"
            : request.origin.replacing("http", with: "ws", maxReplacements: 1)
                + "/\(Self.host)"
        return [
            "type": .array([.string("files")]),
            "endpoints": [
                "websocket": .string(origin + Self.pushPath),
                "pre_auth": .string("\(request.origin)/apps/notify_push/pre_auth"),
            ],
        ]
    }

    public func webSocket(
        _ request: SimulatorRequest
    ) -> (@Sendable (AsyncStream<String>) -> AsyncStream<String>)? {
        guard habits.hasPush, request.rawPath == Self.pushPath else { return nil }
        return { [self] texts in
            AsyncStream { continuation in
                let task = Task {
                    await speak(texts) { continuation.yield($0) }
                    continuation.finish()
                }
                continuation.onTermination = { _ in task.cancel() }
            }
        }
    }

    public func set(habits json: JSON) -> Bool {
        guard let hasPush = json["push"]?.bool else { return false }
        habits.hasPush = hasPush
        return true
    }

    private func speak(
        _ texts: AsyncStream<String>,
        _ say: @Sendable (String) -> Void
    ) async {
        var texts = texts.makeAsyncIterator()
        guard let user = await texts.next(), let password = await texts.next() else { return }
        guard [Self.userID, Self.loginName].contains(user.lowercased()), isGood(password) else {
            return say("err: Invalid credentials")
        }
        var sequence = account.withTree { $0.sequence }
        say("authenticated")
        while !Task.isCancelled {
            if await account.waitForChange(after: sequence, atMost: .seconds(3600)) {
                sequence = account.withTree { $0.sequence }
                say("notify_file")
            }
        }
    }
}
