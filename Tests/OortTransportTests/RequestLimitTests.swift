import OortModel
import OortTesting
import Synchronization
import Testing

@testable import OortTransport

extension RequestLimit {
    /// One that begins with so many places and never has more.
    static func upTo(_ most: Int) -> RequestLimit {
        RequestLimit(RequestBounds(first: most, most: most))
    }
}

@Suite("the limit of requests")
struct RequestLimitTests {
    /// Some requests at once, answered one after the other; the places there are afterwards.
    private func round(
        _ limit: inout RequestLimit,
        _ count: Int? = nil
    ) -> Int {
        for _ in 0..<(count ?? limit.places) { limit.answeredWell() }
        return limit.places
    }

    @Test("doubles with each round until the service complains, and then grows by one")
    func growth() {
        var limit = RequestLimit(RequestBounds(first: 4, most: 100))
        #expect(round(&limit) == 8)
        #expect(round(&limit) == 16)
        limit.complained()
        #expect(limit.places == 8)
        #expect((8...9).contains(round(&limit)))
        #expect((9...10).contains(round(&limit)))
        #expect((10...11).contains(round(&limit)))
    }

    @Test("stays within its bounds")
    func bounds() {
        var limit = RequestLimit(RequestBounds(first: 4, most: 10))
        #expect(round(&limit, 1000) == 10)
        for _ in 0..<1000 { limit.complained() }
        #expect(limit.places == 1)
        #expect(round(&limit, 1000) == 10)
        #expect(RequestLimit(RequestBounds(first: 40, most: 10)).places == 10)
        #expect(RequestLimit(RequestBounds(first: 0, most: -3)).places == 1)
    }

    @Test("begins where it was before a restart, and feels its way on from there")
    func restart() {
        let bounds = RequestBounds(first: 4, most: 20)
        var limit = RequestLimit(bounds, known: 12)
        #expect(limit.places == 12)
        #expect((12...13).contains(round(&limit)))
        // What was kept by another version, or is damaged.
        #expect(RequestLimit(bounds, known: 1000).places == 20)
        #expect(RequestLimit(bounds, known: -5).places == 1)
    }

    /// A service that bears so many requests at a time and refuses what comes beyond.
    private func places(
        bearing most: Int,
        _ limit: inout RequestLimit,
        rounds: Int
    ) -> [Int] {
        (0..<rounds).map { _ in
            let inFlight = limit.places
            for _ in 0..<min(inFlight, most) { limit.answeredWell() }
            if inFlight > most { limit.complained() }
            return limit.places
        }
    }

    @Test("finds what a service bears and stays near it", arguments: [1, 2, 3, 7, 12, 30])
    func finding(most: Int) {
        var limit = RequestLimit(RequestBounds(first: 16, most: 32))
        _ = places(bearing: most, &limit, rounds: 20)
        let later = places(bearing: most, &limit, rounds: 100)
        let mean = Double(later.reduce(0, +)) / 100
        #expect(mean > Double(most) * 0.6, "\(later)")
        #expect(later.allSatisfy { $0 <= most + 1 }, "\(later)")
    }

    private func enqueue(_ queue: inout RequestQueue, _ count: Int) -> [RequestQueue.ID] {
        (0..<count).map { _ in
            let id = queue.newID()
            queue.enqueue(id, .background)
            return id
        }
    }

    @Test("does not grow by answers to fewer requests than may be in flight")
    func unpressed() {
        var queue = RequestQueue(limit: RequestLimit(RequestBounds(first: 8, most: 32)))
        for _ in 0..<100 {
            for id in enqueue(&queue, 5) {
                _ = queue.startable(at: .zero)
                queue.judge(id, .final, at: .zero)
                queue.finish(id)
            }
        }
        #expect(queue.currentLimit == 8)
    }

    @Test("grows by answers to requests that had all places, also when those before them are done")
    func pressed() {
        var queue = RequestQueue(limit: RequestLimit(RequestBounds(first: 8, most: 32)))
        let ids = enqueue(&queue, 6)
        #expect(queue.startable(at: .zero) == ids)
        for id in ids {
            queue.judge(id, .final, at: .zero)
            queue.finish(id)
        }
        #expect(queue.currentLimit == 14)
    }

    @Test("the limit is handed to its keeper whenever it has moved by a quarter")
    func remembering() async throws {
        let kept = Mutex<[Int]>([])
        let isAngry = Atomic(false)
        let client = LimitingClient(
            ScriptedClient { _ in
                await Task.yield()
                return answer(isAngry.load(ordering: .relaxed) ? 429 : 200)
            },
            limit: RequestLimit(RequestBounds(first: 4, most: 16)),
            remember: { limit in kept.withLock { $0.append(limit) } }
        )
        func send(_ count: Int) async throws {
            try await withThrowingTaskGroup { group in
                for _ in 0..<count {
                    group.addTask {
                        _ = try await client.send(HTTPRequest(method: "GET", url: "x"))
                    }
                }
                try await group.waitForAll()
            }
        }
        try await send(200)
        #expect(client.currentLimit == 16)
        let growth = kept.withLock { $0 }
        #expect(growth.count < 10 && growth == growth.sorted(), "\(growth)")
        #expect(growth.last.map { $0 > 12 } == true, "\(growth)")
        isAngry.store(true, ordering: .relaxed)
        try await send(1)
        #expect(kept.withLock { $0.last } == 8)
    }
}
