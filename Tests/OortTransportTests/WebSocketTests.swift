import Foundation
import MountTesting
import OortModel
import Testing

@testable import OortTransport

@Suite("WebSockets", .timeLimit(.minutes(2)))
struct WebSocketTests {
    /// Where PyPI's servers are.
    private static let tools =
        ProcessInfo.processInfo.environment["OORT_TEST_TOOLS"]
        ?? SupportProcess.folder + "/../../.build/server-venv/bin"

    /// A connection to the server of `Tests/Support/push.py`, used by a thread that may be blocked.
    private func with<Value: Sendable>(
        _ path: String,
        certificates: String? = nil,
        trusts: Bool = true,
        _ body: @escaping @Sendable (WebSocket) -> Value
    ) async throws -> Value {
        let files = certificates.map { ["\($0)/cert.pem", "\($0)/key.pem"] } ?? []
        let server = try SupportProcess(
            Self.tools + "/python3",
            [SupportProcess.folder + "/push.py"] + files
        )
        let port = try await server.start()
        var settings = CurlClient.Settings()
        if trusts, let certificates { settings.caFile = certificates + "/ca.pem" }
        let scheme = certificates == nil ? "ws" : "wss"
        let socket = WebSocket(url: "\(scheme)://127.0.0.1:\(port)\(path)", settings: settings)
        let value = await onThread {
            defer { socket.close() }
            return body(socket)
        }
        await server.stop()
        return value
    }

    /// What a text is answered with, or the error.
    private static func answer(
        _ text: String,
        _ socket: WebSocket
    ) -> Result<WebSocketMessage?, TransportError> {
        do throws(TransportError) {
            try socket.open()
            try socket.send(text)
            return .success(try socket.receive(within: .seconds(60)))
        } catch { return .failure(error) }
    }

    @Test(
        "texts of every length go and come, whole and in parts",
        arguments: [0, 1, 125, 126, 127, 65_535, 65_536, 200_000]
    )
    func lengths(length: Int) async throws {
        let text = String((0..<length).map { Character(["ä", "b", "\u{1F600}"][$0 % 3]) })
        for path in ["/echo", "/parts"] where path == "/echo" || 1..<1000 ~= length {
            let heard = try await with(path) { Self.answer(text, $0) }
            #expect(try heard.get() == .text(text))
        }
    }

    @Test("over TLS, and not without the authority's word")
    func encrypted() async throws {
        try await withCertificates { folder in
            let heard = try await with("/echo", certificates: folder) { Self.answer("x", $0) }
            #expect(try heard.get() == .text("x"))
            let stranger = try await with("/echo", certificates: folder, trusts: false) {
                Self.answer("x", $0)
            }
            guard case .failure(.untrusted) = stranger else {
                Issue.record("\(stranger)")
                return
            }
        }
    }

    @Test("a server that asks is answered, and one that is asked answers")
    func pings() async throws {
        let messages = try await with("/ping") { socket in
            Result { () throws(TransportError) in
                try socket.open()
                try socket.send("go")
                var heard: [WebSocketMessage?] = []
                heard.append(try socket.receive(within: .seconds(60)))
                heard.append(try socket.receive(within: .seconds(60)))
                try socket.ping()
                heard.append(try socket.receive(within: .seconds(60)))
                heard.append(try socket.receive(within: .milliseconds(50)))
                return heard
            }
        }
        #expect(
            try messages.get() == [.ping(Array("are you there?".utf8)), .text("there"), .pong, nil]
        )
    }

    @Test(
        "what is no such talk is an error in words",
        arguments: [
            ("/refuse", "403"), ("/end", "4001"), ("/long", "a frame of 3145728 bytes"),
        ]
    )
    func ends(path: String, words: String) async throws {
        let heard = try await with(path) { Self.answer("x", $0) }
        guard case .failure(.broken(let detail)) = heard else {
            Issue.record("\(heard)")
            return
        }
        #expect(detail.contains(words), "\(detail)")
    }

    @Test("who answers HTTP is no WebSocket, and where nobody answers nothing is")
    func strangers() async throws {
        try await withWire { port, _ in
            for address in [
                "ws://127.0.0.1:\(port)/nothing", "ws://127.0.0.1:1/", "http://x/", "ws:",
            ] {
                let heard = await onThread {
                    Self.answer("x", WebSocket(url: address, settings: .init()))
                }
                #expect(throws: TransportError.self) { try heard.get() }
            }
        }
    }

    @Test("waiting ends when it is interrupted")
    func interrupted() async throws {
        let heard = try await with("/echo") { socket in
            Result { () throws(TransportError) -> WebSocketMessage? in
                try socket.open()
                Thread.detachNewThread { socket.interrupt() }
                return try socket.receive(within: .seconds(100))
            }
        }
        guard case .failure(.cancelled) = heard else {
            Issue.record("\(heard)")
            return
        }
    }

    @Test(
        "frames that no server sends are refused",
        arguments: [
            [0x81, 0x81, 1, 2, 3, 4, 5],  // mixed with a mask
            [0xC1, 0],  // with an extension's bit
            [0x83, 0],  // of an unknown kind
            [0x80, 0],  // the end of nothing
            [0x01, 0, 0x81, 0],  // a message within another
            [0x09, 0],  // a question in parts
            [0x89, 126, 0, 200],  // a long question
            [0x81, 2, 0xC3, 0x28],  // no UTF-8
            [0x81, 127, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
        ] as [[UInt8]]
    )
    func violations(bytes: [UInt8]) {
        var frames = WebSocketFrames()
        frames.add(bytes)
        #expect(throws: WebSocketFrames.Violation.self) { try frames.next() }
    }

    @Test("frames come byte by byte, and end together")
    func slowly() throws {
        var frames = WebSocketFrames()
        let bytes: [UInt8] =
            [0x01, 2, 104, 101, 0x89, 1, 33, 0x82, 1, 0, 0x80, 3, 108, 108, 111, 0x8A, 0]
        // A binary message within a text is a violation; without it all is in order.
        let sound = bytes[..<7] + bytes[10...]
        var heard: [WebSocketMessage] = []
        for byte in sound {
            frames.add([byte])
            if let message = try frames.next() { heard.append(message) }
        }
        #expect(heard == [.ping([33]), .text("hello"), .pong])
    }
}
