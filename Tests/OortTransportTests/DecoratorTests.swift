import Logging
import OortModel
import OortTesting
import Synchronization
import Testing

@testable import OortTransport

/// A client whose answers a closure makes.
struct ScriptedClient: HTTPClient {
    let answer: @Sendable (HTTPRequest) async throws(TransportError) -> HTTPStreamedResponse

    func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPStreamedResponse {
        try await answer(request)
    }
}

func answer(
    _ status: Int,
    _ headers: [(String, String)] = [],
    _ body: String = ""
) -> HTTPStreamedResponse {
    HTTPStreamedResponse(
        HTTPResponse(
            head: HTTPResponseHead(
                status: status,
                headers: headers.map { (name: $0.0, value: $0.1) },
                httpVersion: "2"
            ),
            body: Array(body.utf8)
        )
    )
}

@Suite("retries")
struct RetryingClientTests {
    @Test(
        "what may be sent again is, and nothing else",
        arguments: [
            (429, HTTPRequest.Repetition.onlyIfNotDone, true),
            (429, .harmless, true),
            (500, .harmless, true),
            (500, .onlyIfNotDone, false),
            (404, .harmless, false),
            // A new token was tried before.
            (401, .onlyIfNotDone, true),
        ]
    )
    func repetition(status: Int, repetition: HTTPRequest.Repetition, isRepeated: Bool) async throws
    {
        let calls = Atomic(0)
        let client = RetryingClient(
            ScriptedClient { _ in
                calls.add(1, ordering: .relaxed).newValue == 1 ? answer(status) : answer(200)
            },
            time: Timekeeper(SleptTime())
        )
        let got = try await client.send(
            HTTPRequest(method: "POST", url: "http://x/", repetition: repetition)
        )
        #expect(got.head.status == (isRepeated ? 200 : status))
        #expect(calls.load(ordering: .relaxed) == (isRepeated ? 2 : 1))
    }

    @Test("a 401 to a request that carries no token is an answer")
    func unauthorized() async throws {
        let client = RetryingClient(
            ScriptedClient { _ in answer(401) },
            time: Timekeeper(SleptTime())
        )
        let request = HTTPRequest(method: "GET", url: "http://x/", isAuthorized: false)
        #expect(try await client.send(request).head.status == 401)
    }

    @Test("a broken connection is retried only where repeating is harmless")
    func broken() async throws {
        for (repetition, error, expected) in [
            (HTTPRequest.Repetition.harmless, TransportError.broken("x"), 2),
            (.onlyIfNotDone, .broken("x"), 1),
            (.onlyIfNotDone, .unreachable("x"), 2),
            (.harmless, .untrusted("x"), 1),
        ] {
            let calls = Atomic(0)
            let client = RetryingClient(
                ScriptedClient { _ throws(TransportError) in
                    guard calls.add(1, ordering: .relaxed).newValue > 1 else { throw error }
                    return answer(200)
                },
                time: Timekeeper(SleptTime())
            )
            let request = HTTPRequest(method: "GET", url: "http://x/", repetition: repetition)
            if expected == 2 {
                #expect(try await client.send(request).head.status == 200)
            } else {
                await #expect(throws: error) { try await client.send(request) }
            }
            #expect(calls.load(ordering: .relaxed) == expected)
        }
    }

    @Test("waits grow with full jitter, and never undercut Retry-After")
    func backOff() async throws {
        let clock = SleptTime()
        let calls = Atomic(0)
        var policy = RetryPolicy()
        policy.firstDelay = .seconds(1)
        policy.longestDelay = .seconds(4)
        policy.jitter = { 0.5 }
        let client = RetryingClient(
            ScriptedClient { _ in
                switch calls.add(1, ordering: .relaxed).newValue {
                case 1...4: answer(429)
                case 5: answer(429, [("Retry-After", "7")])
                default: answer(200)
                }
            },
            policy: policy,
            time: Timekeeper(clock)
        )
        let got = try await client.send(HTTPRequest(method: "GET", url: "http://x/"))
        #expect(got.head.status == 200)
        #expect(
            clock.sleeps == [
                .seconds(0.5), .seconds(1), .seconds(2), .seconds(2), .seconds(7),
            ]
        )
    }

    @Test("after its patience the last answer is handed up, later in the background")
    func patience() async throws {
        for (priority, total) in [(RequestPriority.interactive, 30), (.background, 300)] {
            let clock = SleptTime()
            var policy = RetryPolicy()
            policy.jitter = { 0 }
            let client = RetryingClient(
                ScriptedClient { _ in answer(503, [("Retry-After", "10")], "busy") },
                policy: policy,
                time: Timekeeper(clock)
            )
            let got = try await RequestPriority.$current.withValue(priority) {
                try await client.send(HTTPRequest(method: "GET", url: "http://x/"))
            }
            #expect(got.head.status == 503)
            #expect(got.body == Array("busy".utf8))
            #expect(clock.sleeps.count == total / 10)
            // What rests on news is tried for as long as they are fresh.
            for (longest, sleeps) in [(Duration.seconds(2), 0), (.seconds(20), 2)] {
                let before = clock.sleeps.count
                let early = try await RequestPatience.$longest.withValue(longest) {
                    try await client.send(HTTPRequest(method: "DELETE", url: "http://x/"))
                }
                #expect(early.head.status == 503)
                #expect(clock.sleeps.count == before + sleeps)
            }
        }
    }

    @Test("without a network the engine hears of it soon, however long it was patient before")
    func unreachable() async throws {
        for isBusyFirst in [false, true] {
            let clock = SleptTime()
            let calls = Atomic(0)
            let client = RetryingClient(
                ScriptedClient { _ throws(TransportError) in
                    let call = calls.add(1, ordering: .relaxed).newValue
                    guard isBusyFirst, call == 1 else { throw .unreachable("x") }
                    return answer(503, [("Retry-After", "100")])
                },
                time: Timekeeper(clock)
            )
            await #expect(throws: TransportError.unreachable("x")) {
                try await RequestPriority.$current.withValue(.background) {
                    try await client.send(HTTPRequest(method: "GET", url: "http://x/"))
                }
            }
            let waited = clock.sleeps.reduce(.zero, +) - (isBusyFirst ? .seconds(100) : .zero)
            #expect(waited <= RetryPolicy().unreachablePatience)
            #expect(calls.load(ordering: .relaxed) > 2)
        }
    }

    @Test(
        "a try that may have been done is not forgotten for one that certainly was not",
        arguments: [nil, 429]
    )
    func lostTry(status: Int?) async throws {
        let calls = Atomic(0)
        let client = RetryingClient(
            ScriptedClient { _ throws(TransportError) in
                guard calls.add(1, ordering: .relaxed).newValue > 1 else { throw .broken("lost") }
                guard let status else { throw .unreachable("x") }
                return answer(status)
            },
            time: Timekeeper(SleptTime())
        )
        let request = HTTPRequest(method: "POST", url: "http://x/", repetition: .harmless)
        await #expect(throws: TransportError.broken("no answer to an earlier try")) {
            try await client.send(request)
        }
    }

    @Test("a service's own rules decide by the body, which the caller still gets")
    func ownRules() async throws {
        let rules = AnswerRules { answer in
            String(decoding: answer.body, as: UTF8.self).contains("rateLimitExceeded")
                ? .notDone(retryAfter: nil) : AnswerRules.standard.meaning(answer)
        }
        let calls = Atomic(0)
        let client = RetryingClient(
            ScriptedClient { _ in
                calls.add(1, ordering: .relaxed).newValue == 1
                    ? answer(403, [], "rateLimitExceeded") : answer(403, [], "forbidden")
            },
            rules: rules,
            time: Timekeeper(SleptTime())
        )
        let got = try await client.send(HTTPRequest(method: "GET", url: "http://x/"))
        #expect(got.body == Array("forbidden".utf8))
        #expect(calls.load(ordering: .relaxed) == 2)
    }
}

@Suite("authorization")
struct AuthorizingClientTests {
    private final class CountingTokens: AccessTokens {
        let refreshes = Atomic(0)
        func token() async throws(TransportError) -> String {
            "token\(refreshes.load(ordering: .relaxed))"
        }
        func refresh(afterRejectionOf rejected: String) async throws(TransportError) -> String {
            "token\(refreshes.add(1, ordering: .relaxed).newValue)"
        }
    }

    @Test("a rejected token is replaced once, and the second answer counts")
    func rejection() async throws {
        let tokens = CountingTokens()
        let client = AuthorizingClient(
            ScriptedClient { request in
                let field = request.headers.first { $0.name == "Authorization" }?.value
                return answer(field == "Bearer token1" ? 200 : 401)
            },
            tokens: tokens
        )
        #expect(try await client.send(HTTPRequest(method: "GET", url: "x")).head.status == 200)
        let never = AuthorizingClient(ScriptedClient { _ in answer(401) }, tokens: tokens)
        #expect(try await never.send(HTTPRequest(method: "GET", url: "x")).head.status == 401)
        #expect(tokens.refreshes.load(ordering: .relaxed) == 2)
    }

    @Test("a pre-signed request gets no token")
    func preSigned() async throws {
        let client = AuthorizingClient(
            ScriptedClient { request in
                answer(request.headers.contains { $0.name == "Authorization" } ? 500 : 200)
            },
            tokens: FixedToken("hush")
        )
        let request = HTTPRequest(method: "GET", url: "x", isAuthorized: false)
        #expect(try await client.send(request).head.status == 200)
    }

    @Test("a name and a password go as RFC 7617 says, in UTF-8")
    func basic() async throws {
        let client = AuthorizingClient(
            ScriptedClient { request in
                let field = request.headers.first { $0.name == "Authorization" }?.value
                // The example of section 2.1 of the RFC, whose password ends in a pound sign.
                return answer(field == "Basic dGVzdDoxMjPCow==" ? 200 : 401)
            },
            tokens: FixedToken("123£"),
            signer: BasicSigner(user: "test")
        )
        #expect(try await client.send(HTTPRequest(method: "GET", url: "x")).head.status == 200)
    }

    @Test("a fixed token that is refused means signed out")
    func fixed() async throws {
        let client = AuthorizingClient(
            ScriptedClient { _ in answer(401) },
            tokens: FixedToken("hush")
        )
        await #expect {
            try await client.send(HTTPRequest(method: "GET", url: "x"))
        } throws: { error in
            guard case TransportError.signedOut(let text)? = error as? TransportError else {
                return false
            }
            return !text.contains("hush")
        }
    }
}

@Suite("limits")
struct RequestQueueTests {
    private func enqueue(
        _ queue: inout RequestQueue,
        _ priority: RequestPriority,
        _ count: Int
    ) -> [RequestQueue.ID] {
        (0..<count).map { _ in
            let id = queue.newID()
            queue.enqueue(id, priority)
            return id
        }
    }

    @Test("interactive requests go first, and background ones leave them a place")
    func priorities() {
        var queue = RequestQueue(limit: .upTo(3))
        let background = enqueue(&queue, .background, 4)
        #expect(queue.startable(at: .zero) == Array(background[..<2]))
        let interactive = enqueue(&queue, .interactive, 2)
        #expect(queue.startable(at: .zero) == [interactive[0]])
        queue.finish(background[0])
        #expect(queue.startable(at: .zero) == [interactive[1]])
        queue.finish(interactive[0])
        #expect(queue.startable(at: .zero) == [])
        queue.finish(interactive[1])
        #expect(queue.startable(at: .zero) == [background[2]])
    }

    @Test("what an answer in flight waits for never waits for that one's place")
    func attendants() {
        var queue = RequestQueue(limit: .upTo(1))
        let first = enqueue(&queue, .interactive, 2)
        #expect(queue.startable(at: .zero) == [first[0]])
        let attendant = enqueue(&queue, .attendant, 1)
        #expect(queue.startable(at: .zero) == attendant)
        queue.finish(attendant[0])
        #expect(queue.startable(at: .zero) == [])
        queue.finish(first[0])
        #expect(queue.startable(at: .zero) == [first[1]])
        // Retry-After holds it back, too: that passes by itself.
        queue.judge(first[1], .notDone(retryAfter: .seconds(1)), at: .zero)
        let later = enqueue(&queue, .attendant, 1)
        #expect(queue.startable(at: .zero) == [])
        #expect(queue.startable(at: .seconds(1)) == later)
    }

    @Test(
        "what no program waits for leaves a quarter of the places free",
        arguments: [RequestPriority.ahead, .background]
    )
    func quarter(priority: RequestPriority) {
        var queue = RequestQueue(limit: .upTo(8))
        let others = enqueue(&queue, priority, 8)
        #expect(queue.startable(at: .zero) == Array(others[..<6]))
        let interactive = enqueue(&queue, .interactive, 3)
        #expect(queue.startable(at: .zero) == Array(interactive[..<2]))
    }

    @Test("reading ahead and background work share their places, and have all of them where alone")
    func shares() {
        var queue = RequestQueue(limit: .upTo(8))
        let background = enqueue(&queue, .background, 20)
        #expect(queue.startable(at: .zero) == Array(background[..<6]))
        var ahead = enqueue(&queue, .ahead, 20)
        var started: [RequestQueue.ID] = []
        for id in background[..<6] {
            queue.finish(id)
            started += queue.startable(at: .zero)
        }
        #expect(started.count == 6)
        #expect(Set(started).intersection(ahead).count == 3, "\(started)")
        while let id = ahead.popLast() {
            queue.finish(id)
            _ = queue.withdraw(id)
        }
        for id in started where background.contains(id) { queue.finish(id) }
        #expect(queue.startable(at: .zero).count == 6)
    }

    @Test("a limit of one still lets background requests through")
    func one() {
        var queue = RequestQueue(limit: .upTo(1))
        let ids = enqueue(&queue, .background, 2)
        #expect(queue.startable(at: .zero) == [ids[0]])
    }

    @Test("one complaint for all that were in flight halves the limit once; it grows back")
    func halving() {
        var queue = RequestQueue(limit: .upTo(8))
        let ids = enqueue(&queue, .interactive, 8)
        #expect(queue.startable(at: .zero) == ids)
        for id in ids {
            queue.judge(id, .notDone(retryAfter: nil), at: .zero)
            queue.finish(id)
        }
        #expect(queue.currentLimit == 4)
        var rounds = 0
        while queue.currentLimit < 8 {
            for id in enqueue(&queue, .interactive, queue.currentLimit) {
                _ = queue.startable(at: .zero)
                queue.judge(id, .final, at: .zero)
                queue.finish(id)
            }
            rounds += 1
        }
        #expect((4...6).contains(rounds))
        for id in enqueue(&queue, .interactive, 100) {
            _ = queue.startable(at: .zero)
            queue.judge(id, .notDone(retryAfter: nil), at: .zero)
            queue.finish(id)
        }
        #expect(queue.currentLimit == 1)
    }

    @Test("Retry-After holds back the whole account until it has passed")
    func retryAfter() {
        var queue = RequestQueue(limit: .upTo(4))
        let ids = enqueue(&queue, .interactive, 3)
        #expect(queue.startable(at: .zero).count == 3)
        queue.judge(ids[0], .notDone(retryAfter: .seconds(9)), at: .seconds(1))
        queue.finish(ids[0])
        let later = enqueue(&queue, .interactive, 1)
        #expect(queue.startable(at: .seconds(9)) == [])
        #expect(queue.blockedUntil == .seconds(10))
        queue.finish(ids[1])
        queue.finish(ids[2])
        #expect(queue.startable(at: .seconds(10)) == later)
    }
}

@Suite("the whole stack")
struct AccountClientTests {
    @Test("what is read ahead goes before other work once a program waits for it")
    func raised() async throws {
        let order = Mutex<[String]>([])
        let gates = Mutex<[CheckedContinuation<Void, Never>]>([])
        let client = LimitingClient(
            ScriptedClient { request in
                order.withLock { $0.append(request.url) }
                if request.url.hasSuffix("/held") {
                    await withCheckedContinuation { gate in gates.withLock { $0.append(gate) } }
                }
                return answer(200)
            },
            limit: .upTo(1)
        )
        let send = { (path: String, priority: RequestPriority) in
            Task {
                await RequestPriority.$current.withValue(priority) {
                    _ = try? await client.stream(
                        HTTPRequest(method: "GET", url: "https://example.com/" + path)
                    )
                }
            }
        }
        let held = send("held", .interactive)
        while gates.withLock({ $0.isEmpty }) { await Task.yield() }
        let work = send("work", .background)
        let urgency = RequestUrgency()
        let ahead = RequestUrgency.$current.withValue(urgency) { send("ahead", .ahead) }
        while client.waitingCount < 2 { await Task.yield() }
        urgency.raise()
        gates.withLock { for gate in $0 { gate.resume() } }
        for task in [held, work, ahead] { await task.value }
        #expect(
            order.withLock { $0 }.map { $0.split(separator: "/").last } == [
                "held", "ahead", "work",
            ]
        )
    }

    @Test("no more than the limit is in flight, and a place lasts as long as the body")
    func concurrency() async throws {
        let inFlight = Atomic(0)
        let most = Mutex(0)
        let client = LimitingClient(
            ScriptedClient { _ in
                let now = inFlight.add(1, ordering: .sequentiallyConsistent).newValue
                most.withLock { $0 = max($0, now) }
                return HTTPStreamedResponse(
                    head: HTTPResponseHead(status: 200, headers: [], httpVersion: "2"),
                    body: ByteStream { () async throws(ProviderError) in
                        await Task.yield()
                        inFlight.subtract(1, ordering: .sequentiallyConsistent)
                        return nil
                    }
                )
            },
            limit: .upTo(5)
        )
        try await withThrowingTaskGroup { group in
            for _ in 0..<200 {
                group.addTask {
                    _ = try await client.send(HTTPRequest(method: "GET", url: "x"))
                }
            }
            try await group.waitForAll()
        }
        #expect(most.withLock { $0 } <= 5)
        #expect(client.currentLimit == 5)
    }

    @Test(
        "a request that sends for long keeps nobody from a place, one that has just begun does",
        arguments: [LimitingClient.longSending - 1, LimitingClient.longSending]
    )
    func longUpload(_ sent: Int64) async throws {
        let order = Mutex<[String]>([])
        let gate = Mutex<CheckedContinuation<Void, Never>?>(nil)
        let client = LimitingClient(
            ScriptedClient { request in
                order.withLock { $0.append(request.method) }
                if request.method == "PUT" {
                    request.onSent?(sent)
                    await withCheckedContinuation { held in gate.withLock { $0 = held } }
                    order.withLock { $0.append("done") }
                }
                return answer(200)
            },
            limit: .upTo(1)
        )
        let heard = Atomic<Int64>(0)
        let upload = Task {
            var request = HTTPRequest(method: "PUT", url: "x", weight: .bulk)
            request.onSent = { heard.store($0, ordering: .relaxed) }
            _ = try? await client.send(request)
        }
        while gate.withLock({ $0 == nil }) { await Task.yield() }
        #expect(heard.load(ordering: .relaxed) == sent)
        let other = Task {
            await RequestPriority.$current.withValue(.background) {
                _ = try? await client.send(HTTPRequest(method: "GET", url: "x"))
            }
        }
        let isLong = sent >= LimitingClient.longSending
        while isLong ? order.withLock({ $0.count }) < 2 : client.waitingCount < 1 {
            await Task.yield()
        }
        gate.withLock { $0?.resume() }
        for task in [upload, other] { await task.value }
        #expect(
            order.withLock { $0 } == (isLong ? ["PUT", "GET", "done"] : ["PUT", "done", "GET"])
        )
    }

    @Test("a cancelled request gives up its turn, and a stream that is let go its place")
    func givingUp() async throws {
        let client = LimitingClient(ScriptedClient { _ in answer(200, [], "x") }, limit: .upTo(1))
        var held: HTTPStreamedResponse? = try await client.stream(
            HTTPRequest(method: "GET", url: "x")
        )
        let waiting = Task { try await client.send(HTTPRequest(method: "GET", url: "x")) }
        waiting.cancel()
        await #expect(throws: TransportError.cancelled) { try await waiting.value }
        #expect(held?.head.status == 200)
        held = nil
        #expect(try await client.send(HTTPRequest(method: "GET", url: "x")).head.status == 200)
    }

    @Test("logs tell the request and no secret")
    func logs() async throws {
        let lines = Mutex<[String]>([])
        var logger = Logger(label: "test") { _ in
            CapturedLog { line in lines.withLock { $0.append(line) } }
        }
        logger.logLevel = .trace
        let client = AccountClient.make(
            wire: ScriptedClient { _ in answer(200, [("Set-Cookie", "hush")], "body") },
            tokens: FixedToken("hush"),
            requests: .upTo(4),
            logger: logger
        )
        _ = try await client.send(
            HTTPRequest(method: "GET", url: "https://host/a/b?upload_id=hush")
        )
        _ = try await client.send(
            HTTPRequest(
                method: "PUT",
                url: "https://me:hush@signed:1/up/hush?sig=hush",
                isAuthorized: false
            )
        )
        let text = lines.withLock { $0.joined(separator: "\n") }
        #expect(text.contains("GET host/a/b: 200 HTTP/2, 4 bytes"))
        #expect(text.contains("PUT signed:1/…: 200"))
        #expect(!text.contains("hush"))
    }
}

@Suite("the meter")
struct MeteringClientTests {
    @Test("each try is counted, with the bytes of both bodies")
    func counts() async throws {
        let meter = TrafficMeter()
        let tries = Atomic(0)
        let wire = ScriptedClient { (request) async throws(TransportError) in
            guard tries.add(1, ordering: .relaxed).newValue > 1 else {
                throw TransportError.unreachable("no route")
            }
            for bytes in [Int64(3), 3, 10] { request.onSent?(bytes) }
            return answer(200, [], "seven!!")
        }
        let client = RetryingClient(
            MeteringClient(wire, meter: meter),
            time: Timekeeper(SleptTime())
        )
        let seen = Mutex<[Int64]>([])
        var request = HTTPRequest(
            method: "PUT",
            url: "http://x/",
            body: .bytes(Array(repeating: 0, count: 10)),
            weight: .bulk
        )
        request.onSent = { bytes in seen.withLock { $0.append(bytes) } }
        _ = try await client.send(request)
        _ = try await client.send(HTTPRequest(method: "GET", url: "http://x/"))
        #expect(meter.calls == ["unreachable": 1, "2xx": 2])
        #expect(meter.sent.total == 20 && meter.sentContent.total == 10)
        #expect(meter.received.total == 14 && meter.receivedContent.total == 7)
        #expect(seen.withLock { $0 } == [3, 3, 10])
    }
}
