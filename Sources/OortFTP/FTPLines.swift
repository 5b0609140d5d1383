import OortModel
import OortTransport

/// The connections of one account: one for small requests, which never wait behind content, and a few for
/// contents, each of which one transfer has for itself.
///
/// Downloads and uploads have connections of their own, so that neither ever waits for the other.
actor FTPLines {
    /// What a connection for contents is for.
    enum Use: Hashable, Sendable {
        case reading
        case sending
    }

    private let address: FTPAddress
    private let settings: FTPSettings
    private let secret: any AccessTokens
    /// For what is small.
    nonisolated let main: FTPLine

    private struct Pool {
        var idle: [FTPLine] = []
        /// How many there are, idle and in use.
        var count = 0
        /// How many there may be.
        var most = 2
        var waiters: [(number: UInt64, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private var pools: [Use: Pool] = [.reading: Pool(), .sending: Pool()]
    private var lastNumber: UInt64 = 0
    /// When a pool was made smaller for want of the server's connections.
    private var narrowed: ContinuousClock.Instant?
    /// A password that the server refused: it is not tried again, since some servers lock out who does.
    private var refused: (password: String, words: String)?
    private var isClosed = false

    /// After how long it is tried again whether the server takes more connections.
    private static let narrowTime = Duration.seconds(600)

    init(_ address: FTPAddress, settings: FTPSettings, secret: any AccessTokens) {
        self.address = address
        self.settings = settings
        self.secret = secret
        main = FTPLine(address, settings: settings, name: "oort-ftp-main")
    }

    // MARK: The password

    /// The password, which was not refused.
    func password() async throws(FTPFailure) -> String {
        do throws(TransportError) {
            guard let refused else { return try await secret.token() }
            let other: String
            do throws(TransportError) {
                other = try await secret.refresh(afterRejectionOf: refused.password)
            } catch {
                guard case .signedOut = error else { throw error }
                throw TransportError.signedOut(refused.words)
            }
            self.refused = nil
            return other
        } catch {
            let (kind, words) = (ProviderError(error).kind, "\(ProviderError(error).detail)")
            if kind == .signedOut { throw FTPFailure(.loginRefused, words) }
            throw FTPFailure(.localContent(ProviderError(error)), words)
        }
    }

    /// Notes what a failure says of the login.
    func note(_ failure: FTPFailure, of password: String) {
        guard failure.kind == .loginRefused else { return }
        refused = (password, failure.detail)
    }

    // MARK: Lines for contents

    /// A line that is not in use; nil where the server accepts no further connection at all.
    ///
    /// - Throws: what connecting throws.
    func take(_ use: Use) async throws(FTPFailure) -> FTPLine? {
        if let narrowed, .now - narrowed > Self.narrowTime {
            self.narrowed = nil
            for use in [Use.reading, .sending] { pools[use]?.most = 2 }
        }
        while true {
            guard !isClosed, !Task.isCancelled else { throw FTPFailure(.cancelled, "ended") }
            if let line = pools[use]?.idle.popLast() { return line }
            let (count, most) = (pools[use]?.count ?? 0, pools[use]?.most ?? 0)
            if count < most {
                if let line = try await open(use) { return line }
                continue
            }
            if most == 0 { return nil }
            await wait(use)
        }
    }

    /// As `take`, for who has another line: nil also where one would have to be waited for.
    func takeFree(_ use: Use) async throws(FTPFailure) -> FTPLine? {
        guard let pool = pools[use], !pool.idle.isEmpty || pool.count < pool.most else {
            return nil
        }
        return try await take(use)
    }

    /// A new line; nil where the server takes no more.
    private func open(_ use: Use) async throws(FTPFailure) -> FTPLine? {
        let password = try await password()
        pools[use]?.count += 1
        let name = use == .reading ? "oort-ftp-down" : "oort-ftp-up"
        let line = FTPLine(address, settings: settings, name: name)
        do throws(FTPFailure) {
            _ = try await line.ask([Array("NOOP".utf8)], password: password)
            return line
        } catch {
            line.stop()
            pools[use]?.count -= 1
            wakeOne(use)
            note(error, of: password)
            guard error.kind == .tooMany else { throw error }
            // Read first: a dictionary that is being changed cannot be read.
            let count = pools[use]?.count ?? 0
            pools[use]?.most = count
            narrowed = .now
            // Other callers must not wait for a line that will not come.
            while pools[use]?.waiters.isEmpty == false { wakeOne(use) }
            return nil
        }
    }

    /// Gives a line back.
    func giveBack(_ line: FTPLine, _ use: Use) {
        guard !isClosed else { return line.stop() }
        pools[use]?.idle.append(line)
        wakeOne(use)
    }

    private func wait(_ use: Use) async {
        lastNumber += 1
        let number = lastNumber
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                guard !Task.isCancelled, !isClosed else { return continuation.resume() }
                pools[use]?.waiters.append((number, continuation))
            }
        } onCancel: {
            Task { await self.wake(number, use) }
        }
    }

    private func wake(_ number: UInt64, _ use: Use) {
        guard let index = pools[use]?.waiters.firstIndex(where: { $0.number == number }) else {
            return
        }
        pools[use]?.waiters.remove(at: index).continuation.resume()
    }

    private func wakeOne(_ use: Use) {
        guard let first = pools[use]?.waiters.first else { return }
        wake(first.number, use)
    }

    /// Ends all connections, for good.
    func close() {
        isClosed = true
        main.stop()
        for use in [Use.reading, .sending] {
            for line in pools[use]?.idle ?? [] { line.stop() }
            pools[use]?.idle = []
            while pools[use]?.waiters.isEmpty == false { wakeOne(use) }
        }
    }
}
