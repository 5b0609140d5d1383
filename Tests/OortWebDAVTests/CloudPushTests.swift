import Logging
import OortModel
import OortSimulators
import OortTransport
import Synchronization
import Testing

@testable import OortWebDAV

@Suite("a Nextcloud's notices of changes", .timeLimit(.minutes(2)))
struct CloudPushTests {
    private static let hour = Duration.seconds(3600)

    private func with(
        password: String? = nil,
        isEncrypted: Bool = false,
        _ body: (Listener, Simulator) async throws -> Void
    ) async throws {
        let service = NextcloudSimulator()
        service.habits.hasPush = true
        let simulator = try await Simulator.start(service)
        let url = simulator.url(host: NextcloudSimulator.host) + "/push/ws"
        let push = CloudPush(
            isEncrypted: isEncrypted,
            user: NextcloudSimulator.loginName,
            secret: FixedToken(password ?? service.account.tokens.issue().access),
            settings: .init(),
            firstPause: .milliseconds(10),
            leastPause: .zero,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        let listener = Listener(push: push, url: url.replacing("http:", with: "ws:"))
        let result: Result<Void, any Error>
        do { result = .success(try await body(listener, simulator)) } catch {
            result = .failure(error)
        }
        push.close()
        await simulator.stop()
        try result.get()
    }

    /// Waits at a server's address.
    private struct Listener: Sendable {
        let push: CloudPush
        let url: String?

        /// Returns when news are to be read.
        func wait(_ limit: Duration) async throws(ProviderError) {
            try await push.wait(atMost: limit) { [url] () async throws(ProviderError) in url }
        }

        /// Whether nothing is to be read within a moment, while somebody listens.
        func isQuiet() async -> Bool {
            let waiting = Task { try? await wait(.milliseconds(1)) }
            let moment = Task {
                try? await Task.sleep(for: .milliseconds(200))
                waiting.cancel()
            }
            let news: Void? = await waiting.value
            moment.cancel()
            return news == nil
        }
    }

    private func write(_ name: String, _ simulator: Simulator) {
        let content = SimulatedContent(Array("x".utf8))
        let edit = SimulatorEdit.write(path: [name], content, modifiedTime: nil)
        #expect(edit.apply(to: simulator.service) != nil)
    }

    @Test("the first word comes with the connection, the next ones with changes")
    func news() async throws {
        try await with { (listener, simulator) async throws in
            try await listener.wait(Self.hour)
            #expect(await listener.isQuiet())
            let news = Task { try await listener.wait(Self.hour) }
            write("one", simulator)
            try await news.value
            // What changed while no caller waited is not lost, and brings one look.
            write("two", simulator)
            try await listener.wait(Self.hour)
            #expect(await listener.isQuiet())
        }
    }

    @Test("where nobody gives notice it goes by the clock, also when somebody did")
    func byTheClock() async throws {
        try await with { (listener, simulator) async throws in
            try await listener.wait(Self.hour)
            let news = Task { try await listener.wait(.milliseconds(1)) }
            await simulator.stop()
            try await news.value
            try await listener.wait(.milliseconds(1))
        }
        try await with { (listener, simulator) async throws in
            let none = Listener(push: listener.push, url: nil)
            for _ in 0..<3 { try await none.wait(.milliseconds(1)) }
            #expect(simulator.counts["webSocket"] == nil)
        }
    }

    @Test("a password that is refused is tried three times, and no more")
    func refused() async throws {
        try await with(password: "wrong") { (listener, simulator) async throws in
            while simulator.counts["webSocket"]?.calls ?? 0 < 3 {
                try await listener.wait(.milliseconds(20))
            }
            // A fourth try would come now: the pauses are 10, 20 and 40 ms.
            try await listener.wait(.milliseconds(500))
            #expect(simulator.counts["webSocket"]?.calls == 3)
        }
    }

    @Test("waiting ends with the account, and when it is cancelled")
    func ends() async throws {
        try await with { (listener, _) async throws in
            try await listener.wait(Self.hour)
            let cancelled = Task { try await listener.wait(Self.hour) }
            cancelled.cancel()
            await #expect(throws: ProviderError.self) { try await cancelled.value }
            let closed = Task { try await listener.wait(Self.hour) }
            listener.push.close()
            await #expect(throws: ProviderError.self) { try await closed.value }
        }
    }

    @Test("a password goes nowhere without encryption that goes encrypted elsewhere")
    func encryption() async throws {
        try await with(isEncrypted: true) { (listener, simulator) async throws in
            for _ in 0..<3 { try await listener.wait(.milliseconds(50)) }
            #expect(simulator.counts["webSocket"] == nil)
        }
    }
}
