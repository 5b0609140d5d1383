public import Logging
import OortModel
public import OortTransport
import Synchronization

/// The notices of changes from a Nextcloud with the app notify_push, over a connection that stays open.
///
/// It reports that files changed, soon but not always: news are read once after each connect, and now and
/// then without a notice (`longestSilence`). Facts: the app's README, DEVELOPING.md and src/connection.rs.
///
/// Isolation: any task. The connection has a thread, from the first `wait` until `close`.
public final class CloudPush: Sendable {
    /// How long news may be without a notice, while the server is connected.
    private static let longestSilence = Duration.seconds(300)
    /// After so long without a notice the connection is tested.
    private static let askAfter = Duration.seconds(30)
    /// The longest pause before the server is asked again.
    private static let longestPause = Duration.seconds(300)
    /// A connection that lasted so long was a good one.
    private static let goodAge = Duration.seconds(60)
    /// After so many refused logins in a row there are no more.
    private static let mostRefusals = 3

    /// Asks where the server gives notice; nil where it does not.
    typealias Find = @Sendable () async throws(ProviderError) -> String?

    /// What the thread, the tasks and the waiting callers share.
    private final class Shared: Sendable {
        /// What waiting callers decide by.
        struct Sight: Equatable {
            var isListening: Bool
            var hasNews: Bool
        }
        struct State {
            var sight: Sight { Sight(isListening: isListening, hasNews: hasNews) }
            var isListening = false
            var hasNews = false
            /// When news were read last, as far as is known here.
            var lastRead: ContinuousClock.Instant?
            var isClosed = false
            var task: Task<Void, Never>?
            var socket: WebSocket?
            var waiter: CheckedContinuation<Void, Never>?
        }
        let state = Mutex(State())

        /// Ends the connection that there is.
        func interrupt() { state.withLock(\.socket)?.interrupt() }

        func wake() {
            let waiter = state.withLock { $0.waiter.take() }
            waiter?.resume()
        }
    }

    private let user: String
    private let secret: any AccessTokens
    private let isEncrypted: Bool
    private let settings: CurlClient.Settings
    private let firstPause: Duration
    private let leastPause: Duration
    private let logger: Logger
    private let shared: Shared
    private let worker: BlockingWorker

    /// A listener for one account, which begins with the first `wait`.
    ///
    /// - Parameters:
    ///   - isEncrypted: whether the account's server is reached with encryption: then this connection must
    ///     be, too.
    ///   - user: the name to log in with.
    ///   - secret: where the app password comes from.
    ///   - settings: certificates, proxy and time limits.
    ///   - firstPause: before the server is asked again; it doubles up to five minutes.
    ///   - leastPause: between two looks, however often the server says that something changed.
    ///   - logger: the log; nothing secret goes there.
    public init(
        isEncrypted: Bool,
        user: String,
        secret: any AccessTokens,
        settings: CurlClient.Settings,
        firstPause: Duration = .seconds(2),
        leastPause: Duration = .seconds(3),
        logger: Logger
    ) {
        self.isEncrypted = isEncrypted
        self.user = user
        self.secret = secret
        self.settings = settings
        self.firstPause = firstPause
        self.leastPause = leastPause
        self.logger = logger
        let shared = Shared()
        self.shared = shared
        worker = BlockingWorker(
            name: "oort-push",
            idleLimit: .seconds(3600),
            interrupt: { shared.interrupt() },
            idle: {}
        )
    }

    /// Ends it for good.
    public func close() {
        let task = shared.state.withLock { state in
            state.isClosed = true
            return state.task
        }
        task?.cancel()
        worker.stop()
        shared.wake()
    }

    // MARK: Waiting

    /// Returns when news should be read: the server gave notice, or there is no connection and `limit` has
    /// passed, or there was no notice for long.
    ///
    /// - Parameters:
    ///   - limit: the longest wait while there is no connection.
    ///   - find: asks for the address, once.
    /// - Throws: `.cancelled`.
    func wait(atMost limit: Duration, _ find: @escaping Find) async throws(ProviderError) {
        begin(find)
        let began = ContinuousClock.now
        while true {
            let (due, seen) = shared.state.withLock { state in
                let last = state.lastRead ?? began
                let due =
                    if state.hasNews {
                        state.lastRead == nil ? began : last + leastPause
                    } else {
                        state.isListening ? last + Self.longestSilence : began + limit
                    }
                return (due, state.sight)
            }
            if ContinuousClock.now >= due {
                shared.state.withLock { state in
                    state.hasNews = false
                    state.lastRead = .now
                }
                return
            }
            await sleep(until: due, while: seen)
            guard !Task.isCancelled, !shared.state.withLock(\.isClosed) else {
                throw ProviderError(.cancelled, detail: "waiting for news was cancelled")
            }
        }
    }

    /// Suspends until something differs from what was seen, or the time has come.
    private func sleep(until end: ContinuousClock.Instant, while seen: Shared.Sight) async {
        let shared = shared
        let alarm = Task {
            guard (try? await Task.sleep(until: end)) != nil else { return }
            shared.wake()
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let other = shared.state.withLock { state -> CheckedContinuation<Void, Never>? in
                    let isOver =
                        state.sight != seen || state.isClosed || Task.isCancelled
                        || ContinuousClock.now >= end
                    guard !isOver else { return continuation }
                    // One feed waits at a time.
                    defer { state.waiter = continuation }
                    return state.waiter
                }
                other?.resume()
            }
        } onCancel: {
            shared.wake()
        }
        alarm.cancel()
    }

    // MARK: Listening

    /// Begins to listen, unless it has begun.
    private func begin(_ find: @escaping Find) {
        shared.state.withLock { state in
            guard state.task == nil, !state.isClosed else { return }
            // Owned by this object, which it keeps until `close`.
            state.task = Task { await listen(find) }
        }
    }

    /// Connects again and again.
    private func listen(_ find: Find) async {
        var pause = firstPause
        var refusals = 0
        var url: String?
        while !Task.isCancelled {
            if let known = url {
                switch await connection(to: known) {
                case .ended(let age):
                    refusals = 0
                    if age >= Self.goodAge { pause = firstPause }
                case .failed: break
                case .refused:
                    refusals += 1
                    guard refusals < Self.mostRefusals else {
                        logger.notice("the server's notices of changes do not take the password")
                        return
                    }
                }
            } else {
                do throws(ProviderError) {
                    guard let found = try await find() else { return }
                    guard isSafe(found) else {
                        logger.notice("the server's notices of changes are not encrypted")
                        return
                    }
                    url = found
                    continue
                } catch {
                    logger.debug("no notices of changes", metadata: ["error": "\(error)"])
                }
            }
            // Not all clients at once, when the server comes back.
            let share = Double.random(in: 0.75...1.25)
            guard (try? await Task.sleep(for: pause * share)) != nil else { return }
            pause = min(pause * 2, Self.longestPause)
        }
    }

    /// Whether the person's password may go to an address.
    private func isSafe(_ url: String) -> Bool {
        url.begins(with: "wss://") || !isEncrypted && url.begins(with: "ws://")
    }

    private enum End {
        /// The connection lasted so long.
        case ended(Duration)
        case refused
        case failed
    }

    /// Listens on one connection until it ends.
    private func connection(to url: String) async -> End {
        let password: String
        do throws(TransportError) { password = try await secret.token() } catch { return .failed }
        let socket = WebSocket(url: url, settings: settings)
        let isClosed = shared.state.withLock { state in
            state.socket = socket
            return state.isClosed
        }
        guard !isClosed else { return .failed }
        let end = await worker.run { [self] in listen(on: socket, password) }
        shared.state.withLock { state in
            state.isListening = false
            state.socket = nil
        }
        // Callers that waited for notices go by the clock from here on.
        shared.wake()
        return end ?? .failed
    }

    /// Blocks the worker's thread.
    private func listen(on socket: WebSocket, _ password: String) -> End {
        defer { socket.close() }
        var began: ContinuousClock.Instant?
        do throws(TransportError) {
            try socket.open()
            try socket.send(user)
            try socket.send(password)
            var isAsked = false
            while true {
                let message = try socket.receive(within: Self.askAfter)
                if message == nil {
                    guard !isAsked else { throw TransportError.broken("it does not answer") }
                    try socket.ping()
                }
                isAsked = message == nil
                guard case .text(let text)? = message else { continue }
                if began == nil {
                    guard text.isSameText(as: "authenticated") else {
                        // Other errors are the app's, which could not check the login.
                        return text.begins(with: "err: Invalid credentials") ? .refused : .failed
                    }
                    began = .now
                    logger.debug("the server gives notice of changes")
                    // No notice comes for what changed before.
                    heard()
                } else if text.begins(with: "notify_file") {
                    heard()
                }
            }
        } catch {
            logger.debug("no notices of changes", metadata: ["error": "\(error)"])
            return began.map { .ended(ContinuousClock.now - $0) } ?? .failed
        }
    }

    private func heard() {
        shared.state.withLock { state in
            state.isListening = true
            state.hasNews = true
        }
        shared.wake()
    }
}
