import Foundation
import OortModel
import Synchronization
import Testing

@testable import OortTransport

@Suite("transfers on the wire")
struct WireTests {
    /// 64 MiB that are computed, not held; may fail from some place on.
    private struct Generated: ContentSource {
        var size: Int64 = 64 << 20
        var failsFrom = Int64.max
        func read(at offset: Int64, count: Int) async throws(ProviderError) -> [UInt8] {
            guard offset + Int64(count) <= failsFrom else {
                throw ProviderError(.localContent, detail: "disk")
            }
            await Task.yield()
            var bytes: [UInt8] = []
            while bytes.count < count {
                let place = offset + Int64(bytes.count)
                let left = (1 << 18) - Int(place % (1 << 18))
                bytes += [UInt8](
                    repeating: UInt8(truncatingIfNeeded: place >> 18),
                    count: min(left, count - bytes.count)
                )
            }
            return bytes
        }
    }

    private func request(
        _ port: String,
        _ path: String,
        body: OortTransport.HTTPRequest.Body = .none,
        weight: OortTransport.HTTPRequest.Weight = .bulk
    ) -> OortTransport.HTTPRequest {
        var request = OortTransport.HTTPRequest(
            method: "GET",
            url: "http://127.0.0.1:\(port)\(path)",
            body: body,
            weight: weight
        )
        if case .none = body {} else { request.method = "POST" }
        return request
    }

    private func text(
        _ client: CurlClient,
        _ request: OortTransport.HTTPRequest
    ) async throws -> String {
        String(decoding: try await client.send(request).body, as: UTF8.self)
    }

    @Test("64 MiB go up as they are, framed or not, and the progress tells it")
    func upload() async throws {
        try await withWire { port, client in
            let source = Generated()
            let sent = Mutex(Int64(0))
            var whole = request(port, "/hash", body: .content(source, 0..<source.size))
            whole.onSent = { bytes in sent.withLock { $0 = max($0, bytes) } }
            // The digest of the same 64 MiB, by Python's hashlib.
            let expected = try await reference(source)
            let plain = try await text(client, whole)
            #expect(plain == "\(source.size) \(expected)")
            #expect(sent.withLock { $0 } == source.size)
            // A frame around nothing but itself, and around a part that it restores.
            let head = try await source.read(at: 0, count: 1000)
            let tail = try await source.read(at: source.size - 10, count: 10)
            let framed = try await text(
                client,
                request(
                    port,
                    "/hash",
                    body: .framed(
                        prefix: head,
                        source,
                        1000..<source.size - 10,
                        suffix: tail
                    )
                )
            )
            #expect(framed == "\(source.size) \(expected)")
        }
    }

    private func reference(_ source: Generated) async throws -> String {
        let program =
            "import hashlib;h=hashlib.sha256();"
            + "[h.update(bytes([i & 255])*262144) for i in range(\(source.size >> 18))];"
            + "print(h.hexdigest())"
        let python = try SupportProcess("/usr/bin/env", ["python3", "-c", program])
        let digest = try await python.start()
        await python.stop()
        return digest
    }

    @Test("64 MiB come down as they are")
    func download() async throws {
        try await withWire { port, client in
            let answer = try await client.stream(request(port, "/bytes?\(64 << 20)"))
            #expect(answer.head.status == 200)
            var total = 0
            var isRight = true
            var first: [UInt8] = []
            while let part = try await answer.body.next() {
                if first.count < 32 { first += part.prefix(32 - first.count) }
                // The pattern repeats every 32 bytes.
                for index in stride(from: 0, to: part.count, by: 4093) {
                    let place = (total + index) % 32
                    if place < first.count { isRight = isRight && part[index] == first[place] }
                }
                total += part.count
            }
            #expect(total == 64 << 20)
            #expect(isRight)
        }
    }

    @Test("a reader that stops makes the server stop; reading on brings the rest")
    func backPressure() async throws {
        var settings = CurlClient.Settings()
        settings.receiveBuffer = 256 << 10
        try await withWire(settings: settings) { port, client in
            let total = 64 << 20
            let answer = try await client.stream(request(port, "/bytes?\(total)"))
            var read = try await answer.body.next()?.count ?? 0
            // The server's count no longer moves when all buffers between are full.
            var last = -1
            var sent = 0
            repeat {
                last = sent
                for _ in 0..<20 { sent = Int(try await text(client, request(port, "/sent"))) ?? 0 }
                try await Task.sleep(for: .milliseconds(100))
            } while sent != last
            #expect(sent < total / 2)
            while let part = try await answer.body.next() { read += part.count }
            #expect(read == total)
        }
    }

    @Test("a stream that is let go, or whose task is cancelled, ends at the server too")
    func cancellation() async throws {
        try await withWire { port, client in
            do {
                let answer = try await client.stream(request(port, "/bytes?\(1 << 30)"))
                _ = try await answer.body.next()
            }
            let waiting = Task {
                try await client.stream(request(port, "/silent"))
            }
            let reading = Task {
                let answer = try await client.stream(request(port, "/stall"))
                while try await answer.body.next() != nil {}
            }
            while try await text(client, request(port, "/count?/stall")) != "1" {}
            while try await text(client, request(port, "/count?/silent")) != "1" {}
            waiting.cancel()
            reading.cancel()
            await #expect(throws: TransportError.cancelled) { try await waiting.value }
            await #expect(throws: ProviderError.self) { try await reading.value }
            while try await text(client, request(port, "/gone")) != "2" {}
        }
    }

    @Test("a body cut short is an error after its bytes, never an end")
    func cutShort() async throws {
        try await withWire { port, client in
            let answer = try await client.stream(request(port, "/cut"))
            var bytes = 0
            await #expect {
                while let part = try await answer.body.next() { bytes += part.count }
            } throws: { error in
                (error as? ProviderError)?.kind == .outcomeUnknown(retryAfter: nil)
            }
            #expect(bytes == 500)
        }
    }

    @Test("what stalls is given up: a body, an answer that never comes, an upload nobody reads")
    func stalls() async throws {
        var settings = CurlClient.Settings()
        settings.stallTimeout = .milliseconds(300)
        try await withWire(settings: settings) { port, client in
            await #expect {
                try await client.send(request(port, "/stall"))
            } throws: { isBroken($0, saying: "stalled") }
            var silent = request(port, "/silent")
            silent.answerTimeout = .milliseconds(200)
            let asked = silent
            await #expect {
                try await client.send(asked)
            } throws: { isBroken($0, saying: "no answer") }
            let source = Generated()
            await #expect {
                try await client.send(
                    request(port, "/stop-reading", body: .content(source, 0..<source.size))
                )
            } throws: { isBroken($0, saying: "stalled") }
        }
    }

    private func isBroken(_ error: any Error, saying text: String) -> Bool {
        guard case TransportError.broken(let detail)? = error as? TransportError else {
            return false
        }
        return detail.contains(text)
    }

    @Test("not connected and broken after sending are told apart, and nothing is sent twice")
    func unreachableOrBroken() async throws {
        try await withWire { port, client in
            await #expect {
                try await client.send(
                    OortTransport.HTTPRequest(method: "GET", url: "http://127.0.0.1:1/")
                )
            } throws: { error in
                guard case TransportError.unreachable? = error as? TransportError else {
                    return false
                }
                return true
            }
            // Over a connection that was used before: libcurl would send it again by itself.
            _ = try await text(client, request(port, "/sent"))
            await #expect {
                try await client.send(request(port, "/drop", body: .bytes([1, 2, 3])))
            } throws: { isBroken($0, saying: "curl") }
            #expect(try await text(client, request(port, "/count?/drop")) == "1")
        }
    }

    @Test("an upload on a connection that dies goes out again from its start, if it may")
    func rewinding() async throws {
        try await withWire { port, client in
            let source = Generated(size: 16 << 20)
            let whole = try await text(
                client,
                request(port, "/hash", body: .content(source, 0..<source.size))
            )
            var again = request(port, "/hang-up-if-reused", body: .content(source, 0..<source.size))
            again.repetition = .harmless
            #expect(try await text(client, again) == whole)
            #expect(try await text(client, request(port, "/count?/hang-up-if-reused")) == "2")

            // What must not go out twice does not.
            again.repetition = .onlyIfNotDone
            let once = again
            await #expect {
                try await client.send(once)
            } throws: { isBroken($0, saying: "curl") }
            #expect(try await text(client, request(port, "/count?/hang-up-if-reused")) == "3")
        }
    }

    @Test("a compressed answer is read as it was, and a broken one is an error")
    func compression() async throws {
        try await withWire { port, client in
            let answer = try await client.send(request(port, "/compressed", weight: .small))
            #expect(answer.body == Array(String(repeating: "compressed ", count: 1000).utf8))
            for path in ["/compressed?cut", "/not-compressed"] {
                await #expect {
                    try await client.send(request(port, path, weight: .small))
                } throws: { isBroken($0, saying: "curl") }
            }
        }
    }

    @Test("a local disk that fails ends the upload with its own error")
    func localContent() async throws {
        try await withWire { port, client in
            let source = Generated(failsFrom: 10 << 20)
            await #expect(throws: TransportError.localContent("disk")) {
                try await client.send(
                    request(port, "/hash", body: .content(source, 0..<source.size))
                )
            }
        }
    }

    @Test("redirects are not followed, early hints are passed over, header fields are kept")
    func heads() async throws {
        try await withWire { port, client in
            let redirect = try await client.send(request(port, "/redirect"))
            #expect(redirect.head.status == 302)
            #expect(redirect.head.header("location") == "http://127.0.0.1:1/elsewhere")
            let hinted = try await client.send(request(port, "/continue"))
            #expect(hinted.head.status == 200)
            #expect(hinted.head.header("X-Early") == nil)
            #expect(hinted.head.header("x-empty") == "")
            #expect(hinted.head.headers.filter { $0.name == "X-Twice" }.map(\.value) == ["a", "b"])
        }
    }

    @Test("only what is meant to be sent is sent as header fields")
    func requestHeaders() async throws {
        try await withWire(settings: .init(userAgent: "oort/1 (gzip)")) { port, client in
            let source = Generated(size: 2 << 20)
            var upload = request(port, "/headers", body: .content(source, 0..<source.size))
            upload.headers = [("X-Arg", "a: b"), ("X-Evil", "a\r\nInjected: 1")]
            let bulk = try await text(client, upload)
            #expect(bulk.contains("user-agent: oort/1 (gzip)"))
            #expect(bulk.contains("x-arg: a: b"))
            for name in ["expect", "content-type", "accept-encoding", "injected:", "transfer-"] {
                #expect(!bulk.contains("\n\(name)"))
            }
            #expect(bulk.contains("content-length: \(2 << 20)"))
            let small = try await text(
                client,
                request(port, "/headers", body: .bytes([]), weight: .small)
            )
            #expect(small.contains("accept-encoding: gzip"))
            #expect(small.contains("content-length: 0"))
            #expect(!small.contains("content-type"))
        }
    }

    @Test("a client that was shut down, or is, cancels")
    func shutdown() async throws {
        try await withWire { port, client in
            let waiting = Task { try await client.send(request(port, "/silent")) }
            while try await text(client, request(port, "/count?/silent")) != "1" {}
            await client.shutdown()
            await #expect(throws: TransportError.cancelled) { try await waiting.value }
            await #expect(throws: TransportError.cancelled) {
                try await client.send(request(port, "/sent"))
            }
        }
    }
}
