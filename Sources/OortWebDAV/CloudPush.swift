public import Logging
import OortModel
public import OortTransport
import Synchronization

/// What a Nextcloud with the app notify_push says of changes, over a connection that stays open.
///
/// It speaks of files that changed, soon but not always: news are read once after each connect, and now and
/// then without a word (`longestSilence`). Facts: the app's README and DEVELOPING.md.
///
/// Isolation: any task. The connection has a thread, from the first `wait` until `close`.
public final class CloudPush: Sendable {
    /// How long news may come without a word, while the server is there.
    static let longestSilence = Duration.seconds(300)
    /// After this long without a word the server is asked whether it is there.
    private static let askAfter = Duration.seconds(30)
    /// The longest pause before the server is asked again.
    private static let longestPause = Duration.seconds(300)
    /// So many refused logins, and there are no more.
    private static let mostRefusals = 3

    private struct State {
        var isListening = false
        var hasNews = false
        /// When news were read last, as far as is known here.
        var lastRead: ContinuousClock.Instant?
        var isClosed = false
        var task: Task<Void, Never>?
        var socket: WebSocket?
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let url: String
    private let user: String
    private let secret: any AccessTokens
    private let settings: CurlClient.Settings
    private let firstPause: Duration
    private let logger: Logger
    private let worker: BlockingWorker
    private let state: Mutex<State>

    /// A listener at the address that the server's capabilities name.
    ///
    /// Nil where the person's password would go there without encryption, while the account's own requests
    /// have it.
    ///
    /// - Parameters:
    ///   - url: `wss:`, or `ws:` for an account at a server without encryption.
    ///   - isEncrypted: whether the account's server is asked with encryption.
    ///   - firstPause: before the server is asked again; it doubles up to five minutes.
    public init?(
        _ url: String,
        isEncrypted: Bool,
        user: String,
        secret: any AccessTokens,
        settings: CurlClient.Settings,
        firstPause: Duration = .seconds(2),
        logger: Logger
    ) {
        guard url.begins(with: "wss://") || !isEncrypted && url.begins(with: "ws://") else {
            return nil
        }
        self.url = url
        self.user = user
        self.secret = secret
        self.settings = settings
        self.firstPause = firstPause
        self.logger = logger
        state = Mutex(State())
        worker = BlockingWorker(
            name: "oort-push",
            idleLimit: .seconds(3600),
            interrupt: {},
            idle: {}
        )
    }

    /// Ends it for good.
    public func close() {
        let (task, socket) = state.withLock { state in
            state.isClosed = true
            return (state.task, state.socket)
        }
        task?.cancel()
        socket?.interrupt()
        worker.stop()
        wake()
    }

    // MARK: Waiting

    /// Returns when the server said that something changed, or `limit` has passed.
    ///
    /// - Returns: nil where the server says nothing: news are to be read by the clock.
    /// - Throws: `.cancelled`.
    func wait(atMost limit: Duration) async throws(ProviderError) -> FeedNews? {
        begin()
        let end = ContinuousClock.now + limit
        while true {
            let (isListening, isSilent) = state.withLock { state in
                if state.hasNews { return (true, true) }
                let silence = state.lastRead.map { ContinuousClock.now - $0 } ?? .zero
                return (state.isListening, silence >= Self.longestSilence)
            }
            if isListening, isSilent {
                state.withLock { state in
                    state.hasNews = false
                    state.lastRead = .now
                }
                return .changed
            }
            guard ContinuousClock.now < end else {
                guard isListening else {
                    state.withLock { $0.lastRead = .now }
                    return nil
                }
                return .quiet(backoff: nil)
            }
            await sleep(until: end)
            guard !Task.isCancelled, !state.withLock(\.isClosed) else {
                throw ProviderError(.cancelled, detail: "waiting for news was cancelled")
            }
        }
    }

    /// Suspends until there is something to look at, or the time has come.
    private func sleep(until end: ContinuousClock.Instant) async {
        let alarm = Task {
            try? await Task.sleep(until: end)
            wake()
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let old = state.withLock { state -> CheckedContinuation<Void, Never>? in
                    let isOver =
                        state.hasNews || state.isClosed || Task.isCancelled
                        || ContinuousClock.now >= end
                    guard !isOver else { return continuation }
                    // One feed waits at a time.
                    defer { state.waiter = continuation }
                    return state.waiter
                }
                old?.resume()
            }
        } onCancel: {
            wake()
        }
        alarm.cancel()
    }

    private func wake() {
        let waiter = state.withLock { $0.waiter.take() }
        waiter?.resume()
    }

    // MARK: Listening

    /// Begins to listen, where nobody does yet.
    private func begin() {
        state.withLock { state in
            guard state.task == nil, !state.isClosed else { return }
            // Owned by this object, which it keeps until `close`.
            state.task = Task { await listen() }
        }
    }

    /// Connects again and again.
    private func listen() async {
        var pause = firstPause
        var refusals = 0
        while !Task.isCancelled {
            switch await connection() {
            case .ended: pause = firstPause
            case .failed: break
            case .refused:
                refusals += 1
                guard refusals < Self.mostRefusals else {
                    logger.notice("the server's notices of changes do not take the password")
                    return
                }
            }
            // Not all of a server's guests at once, when it comes back.
            let share = Double.random(in: 0.75...1.25)
            guard (try? await Task.sleep(for: pause * share)) != nil else { return }
            pause = min(pause * 2, Self.longestPause)
        }
    }

    private enum End {
        /// It was there for a while.
        case ended
        case refused
        case failed
    }

    /// Listens on one connection until it ends.
    private func connection() async -> End {
        let password: String
        do throws(TransportError) { password = try await secret.token() } catch { return .failed }
        let socket = WebSocket(url: url, settings: settings)
        let isClosed = state.withLock { state in
            state.socket = socket
            return state.isClosed
        }
        guard !isClosed else { return .failed }
        let end = await worker.run { [self] in listen(on: socket, password) }
        state.withLock { state in
            state.isListening = false
            state.socket = nil
        }
        return end ?? .failed
    }

    /// Blocks the worker's thread.
    private func listen(on socket: WebSocket, _ password: String) -> End {
        defer { socket.close() }
        var hasSignedIn = false
        do throws(TransportError) {
            try socket.open()
            try socket.send(user)
            try socket.send(password)
            var isAsked = false
            while true {
                let message = try socket.receive(within: Self.askAfter)
                if message == nil {
                    guard !isAsked else { return hasSignedIn ? .ended : .failed }
                    try socket.ping()
                }
                isAsked = message == nil
                guard case .text(let text)? = message else { continue }
                if !hasSignedIn {
                    guard text.isSameText(as: "authenticated") else {
                        return text.begins(with: "err:") ? .refused : .failed
                    }
                    hasSignedIn = true
                    logger.debug("the server gives notice of changes")
                    // What changed before is nobody's word.
                    heard(isListening: true)
                } else if text.begins(with: "notify_file") {
                    heard(isListening: true)
                }
            }
        } catch {
            logger.debug("no notices of changes", metadata: ["error": "\(error)"])
            return hasSignedIn ? .ended : .failed
        }
    }

    private func heard(isListening: Bool) {
        state.withLock { state in
            state.isListening = isListening
            state.hasNews = true
        }
        wake()
    }
}
