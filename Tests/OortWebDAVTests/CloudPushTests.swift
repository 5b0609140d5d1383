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
        _ body: (CloudPush, Simulator) async throws -> Void
    ) async throws {
        let service = NextcloudSimulator()
        service.habits.hasPush = true
        let simulator = try await Simulator.start(service)
        let url = simulator.url(host: NextcloudSimulator.host) + "/push/ws"
        let push = CloudPush(
            url.replacing("http:", with: "ws:"),
            isEncrypted: false,
            user: NextcloudSimulator.loginName,
            secret: FixedToken(password ?? service.account.tokens.issue().access),
            settings: .init(),
            firstPause: .milliseconds(10),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        do { try await body(try #require(push), simulator) } catch {
            push?.close()
            await simulator.stop()
            throw error
        }
        push?.close()
        await simulator.stop()
    }

    private func write(_ name: String, _ simulator: Simulator) {
        let content = SimulatedContent(Array("x".utf8))
        let edit = SimulatorEdit.write(path: [name], content, modifiedTime: nil)
        #expect(edit.apply(to: simulator.service) != nil)
    }

    @Test("the first word comes with the connection, the next ones with changes")
    func news() async throws {
        try await with { (push, simulator) async throws in
            #expect(try await push.wait(atMost: Self.hour) == .changed)
            #expect(try await push.wait(atMost: .milliseconds(20)) == .quiet(backoff: nil))
            async let news = push.wait(atMost: Self.hour)
            write("one", simulator)
            #expect(try await news == .changed)
            // What came while nobody waited is not lost, and is told once.
            write("two", simulator)
            #expect(try await push.wait(atMost: Self.hour) == .changed)
            #expect(try await push.wait(atMost: .milliseconds(20)) == .quiet(backoff: nil))
        }
    }

    @Test("a server that is gone leaves it to the clock")
    func gone() async throws {
        try await with { (push, simulator) async throws in
            #expect(try await push.wait(atMost: Self.hour) == .changed)
            await simulator.stop()
            var news = try await push.wait(atMost: .milliseconds(20))
            while news != nil { news = try await push.wait(atMost: .milliseconds(20)) }
        }
    }

    @Test("a password that is refused is tried three times, and no more")
    func refused() async throws {
        try await with(password: "wrong") { (push, simulator) async throws in
            while simulator.counts["webSocket"]?.calls ?? 0 < 3 {
                #expect(try await push.wait(atMost: .milliseconds(20)) == nil)
            }
            // A fourth try would have come by now: the pauses are 10, 20 and 40 ms.
            #expect(try await push.wait(atMost: .milliseconds(500)) == nil)
            #expect(simulator.counts["webSocket"]?.calls == 3)
        }
    }

    @Test("waiting ends with the account, and when it is cancelled")
    func ends() async throws {
        try await with { (push, _) async throws in
            #expect(try await push.wait(atMost: Self.hour) == .changed)
            let cancelled = Task { try await push.wait(atMost: Self.hour) }
            cancelled.cancel()
            await #expect(throws: ProviderError.self) { try await cancelled.value }
            let closed = Task { try await push.wait(atMost: Self.hour) }
            push.close()
            await #expect(throws: ProviderError.self) { try await closed.value }
        }
    }

    @Test("a password goes nowhere without encryption that goes encrypted elsewhere")
    func encryption() {
        func push(_ url: String, isEncrypted: Bool) -> CloudPush? {
            CloudPush(
                url,
                isEncrypted: isEncrypted,
                user: "ada",
                secret: FixedToken("secret"),
                settings: .init(),
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            )
        }
        #expect(push("ws://cloud.example.org/push/ws", isEncrypted: true) == nil)
        #expect(push("http://cloud.example.org/push/ws", isEncrypted: false) == nil)
        #expect(push("ws://cloud.example.org/push/ws", isEncrypted: false) != nil)
        #expect(push("wss://cloud.example.org/push/ws", isEncrypted: true) != nil)
    }
}
