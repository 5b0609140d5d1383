import OortModel
import OortTesting
import Testing

@testable import OortTransport

@Suite("limits")
struct ThrottlingTests {
    private let clock = SleptTime()
    private var time: Timekeeper { Timekeeper(clock) }

    @Test("what passes a bucket takes the time that its limit says, from the first byte on")
    func rate() async throws {
        let time = time
        let bucket = TokenBucket(time: time)
        for _ in 0..<100 { try await bucket.take(1 << 20) }
        #expect(time.now == .zero)
        bucket.bytesPerSecond = 1 << 20
        for _ in 0..<11 { try await bucket.take(1 << 20) }
        #expect(time.now == .seconds(10))
        // What only counts delays the next one.
        bucket.charge(5 << 20)
        #expect(time.now == .seconds(10))
        try await bucket.take(1)
        #expect(time.now == .seconds(16))
        // A quiet time is no credit.
        try await time.sleep(.seconds(100))
        for _ in 0..<3 { try await bucket.take(1 << 20) }
        #expect(time.now == .seconds(118))
    }

    @Test("who waits for a limit that is lifted waits no longer")
    func lifted() async throws {
        let time = time
        let bucket = TokenBucket(time: time)
        // So long that no number of sleeps, each of which is over at once, comes to its end.
        bucket.bytesPerSecond = 1
        try await bucket.take(1_000_000_000)
        let waiting = Task {
            try await bucket.take(1)
            return time.now
        }
        while clock.sleeps.isEmpty { await Task.yield() }
        bucket.bytesPerSecond = nil
        #expect(try await waiting.value < .seconds(1_000_000_000))
        // So long that no number of sleeps, each of which is over at once, comes to its end.
        bucket.bytesPerSecond = 1
        try await bucket.take(1_000_000_000)
        let cancelled = Task { try await bucket.take(1) }
        cancelled.cancel()
        await #expect(throws: TransportError.cancelled) { try await cancelled.value }
    }

    @Test("contents wait in both directions, small calls do not")
    func client() async throws {
        let time = time
        let bandwidth = Bandwidth(time: time)
        bandwidth.up.bytesPerSecond = 100
        bandwidth.down.bytesPerSecond = 10
        let wire = ScriptedClient { (request) async throws(TransportError) in
            if case .content(let source, let range) = request.body {
                do throws(ProviderError) {
                    for offset in stride(from: range.lowerBound, to: range.upperBound, by: 100) {
                        _ = try await source.read(at: offset, count: 100)
                    }
                } catch { throw .localContent(error.detail) }
            }
            return answer(200, [], String(repeating: "x", count: 50))
        }
        let client = ThrottlingClient(wire, bandwidth: bandwidth)
        _ = try await client.send(HTTPRequest(method: "GET", url: "http://x/"))
        #expect(time.now == .zero)
        // The fifty bytes of before are paid for, then its own pass.
        _ = try await client.send(HTTPRequest(method: "GET", url: "http://x/", weight: .bulk))
        #expect(time.now == .seconds(5))
        let source = BytesSource(Array(repeating: 0, count: 1000))
        _ = try await client.send(
            HTTPRequest(
                method: "PUT",
                url: "http://x/",
                body: .content(source, 0..<1000),
                weight: .small
            )
        )
        #expect(time.now == .seconds(14))
    }
}
