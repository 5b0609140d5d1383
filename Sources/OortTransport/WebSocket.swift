import CCurl
import Crypto
import Foundation
import Synchronization

/// A WebSocket's client end (RFC 6455) for short texts, over a connection of libcurl's, which brings TLS and
/// proxies: libcurl 7.88 speaks the protocol itself in no distribution that we know.
///
/// Isolation: one thread at a time opens, sends and receives, and is blocked meanwhile; `interrupt` may be
/// called from any.
// Unchecked because one thread alone uses it, but for `interruption`.
@safe public final class WebSocket: @unchecked Sendable {
    private struct Interruption {
        var isWanted = false
        /// The connection's socket, while there is one.
        var socket: curl_socket_t = -1
    }

    private let url: String
    private let settings: CurlClient.Settings
    private let interruption = Mutex(Interruption())
    private var pointer: UnsafeMutableRawPointer?
    private var frames = WebSocketFrames()
    /// Bytes of the longest head of an answer that is read.
    private static let longestHead = 64 << 10

    /// A connection that `open` makes.
    ///
    /// - Parameters:
    ///   - url: `ws:` or `wss:`.
    ///   - settings: certificates, proxy and time limits.
    public init(url: String, settings: CurlClient.Settings) {
        self.url = url
        self.settings = settings
    }

    deinit { close() }

    /// Ends what is under way, and each later call, with `.cancelled`.
    public func interrupt() {
        interruption.withLock { interruption in
            interruption.isWanted = true
            if interruption.socket >= 0 { _ = shutdown(interruption.socket, Int32(SHUT_RDWR)) }
        }
    }

    fileprivate var isInterrupted: Bool { interruption.withLock(\.isWanted) }

    // MARK: Opening

    /// Connects, and has the server speak the protocol.
    ///
    /// - Throws: `.unreachable`, `.untrusted`, `.cancelled`; `.broken` where something else answers.
    public func open() throws(TransportError) {
        guard let parts = URLComponents(string: url), let host = parts.host, !host.isEmpty,
            parts.scheme == "wss" || parts.scheme == "ws", let easy = unsafe curl_easy_init()
        else { throw .unreachable("no address of a WebSocket") }
        unsafe pointer = easy
        // libcurl has it from here on; it knows no `ws:`.
        unsafe setUp(easy, "http" + url.dropFirst(2))
        let code = unsafe curl_easy_perform(easy)
        if isInterrupted { throw .cancelled }
        let words = unsafe String(cString: curl_easy_strerror(code))
        if let error = TransportError(code, hasBegun: false, detail: words) { throw error }
        let socket = unsafe oort_kept_socket(easy)
        interruption.withLock { $0.socket = socket }
        let key = Self.randomKey()
        let port = parts.port.map { ":\($0)" } ?? ""
        let path = parts.percentEncodedPath.isEmpty ? "/" : parts.percentEncodedPath
        let query = parts.percentEncodedQuery.map { "?\($0)" } ?? ""
        try write(
            Array(
                """
                GET \(path)\(query) HTTP/1.1\r
                Host: \(host)\(port)\r
                Upgrade: websocket\r
                Connection: Upgrade\r
                Sec-WebSocket-Key: \(key)\r
                Sec-WebSocket-Version: 13\r
                User-Agent: \(settings.userAgent)\r
                \r\n
                """.utf8
            )
        )
        try readHead(key)
    }

    private func setUp(_ easy: UnsafeMutableRawPointer, _ url: String) {
        unsafe oort_set_string(easy, CURLOPT_URL, url)
        unsafe oort_set_string(easy, CURLOPT_PROTOCOLS_STR, "http,https")
        unsafe oort_set_long(easy, CURLOPT_CONNECT_ONLY, 1)
        unsafe oort_set_long(easy, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        unsafe oort_set_long(easy, CURLOPT_HTTPPROXYTUNNEL, 1)
        unsafe oort_set_long(easy, CURLOPT_NOSIGNAL, 1)
        unsafe oort_set_long(easy, CURLOPT_QUICK_EXIT, 1)
        unsafe oort_set_long(easy, CURLOPT_TCP_KEEPALIVE, 1)
        unsafe oort_set_long(easy, CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        let patience = max(1, Int(clamping: Int64(settings.connectTimeout / .milliseconds(1))))
        unsafe oort_set_long(easy, CURLOPT_CONNECTTIMEOUT_MS, patience)
        // libcurl with OpenSSL does not look at the variable by itself.
        if let file = settings.caFile ?? ProcessInfo.processInfo.environment["SSL_CERT_FILE"] {
            unsafe oort_set_string(easy, CURLOPT_CAINFO, file)
            unsafe oort_set_string(easy, CURLOPT_PROXY_CAINFO, file)
        }
        if settings.caFile != nil {
            // Or the system's authorities, which Debian's libcurl takes from a folder, stay trusted.
            unsafe oort_set_pointer(easy, CURLOPT_CAPATH, nil)
            unsafe oort_set_pointer(easy, CURLOPT_PROXY_CAPATH, nil)
        }
        if let proxy = settings.proxy { unsafe oort_set_string(easy, CURLOPT_PROXY, proxy) }
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe oort_set_progress(easy, watchOpening, context)
    }

    private static func randomKey() -> String {
        Data((0..<16).map { _ in UInt8.random(in: .min ... .max) }).base64EncodedString()
    }

    /// Reads the answer to the greeting (RFC 6455, 4.1).
    private func readHead(_ key: String) throws(TransportError) {
        let deadline = ContinuousClock.now + settings.connectTimeout
        let end = Array("\r\n\r\n".utf8)
        var head: [UInt8] = []
        while head.suffix(4) != end[...] {
            guard head.count < Self.longestHead else { throw .tooLarge(limit: Self.longestHead) }
            // Byte by byte, as what follows is frames already; it is read once for a connection.
            guard let byte = try read(atMost: 1, until: deadline)?.first else {
                throw .unreachable("no answer within \(settings.connectTimeout)")
            }
            head.append(byte)
        }
        let lines = String(decoding: head, as: UTF8.self).components(separatedBy: "\r\n")
        let status = lines[0].split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        guard status == 101 else {
            throw .broken("the server answered \(status) in place of the WebSocket")
        }
        var fields: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            fields[line[..<colon].lowercased()] =
                line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
        }
        let proof = Insecure.SHA1.hash(data: Data((key + Self.suffix).utf8))
        guard fields["upgrade"]?.lowercased() == "websocket",
            fields["sec-websocket-accept"] == Data(proof).base64EncodedString()
        else { throw .broken("what answers there is no WebSocket") }
    }

    /// What a server puts behind a client's key before it proves that it knows the protocol.
    private static let suffix = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

    // MARK: Messages

    /// Sends a text.
    ///
    /// - Throws: `.broken`, `.cancelled`.
    public func send(_ text: String) throws(TransportError) {
        try write(WebSocketFrames.text(text, mask: .random(in: .min ... .max)))
    }

    /// Asks whether the server is there: `receive` returns `.pong` then.
    ///
    /// - Throws: as `send`.
    public func ping() throws(TransportError) {
        try write(WebSocketFrames.ping(mask: .random(in: .min ... .max)))
    }

    /// The next message, or nil when none came within `time`; pings are answered by themselves.
    ///
    /// - Throws: `.broken` also where the server ends it or breaks the protocol; `.cancelled`.
    public func receive(within time: Duration) throws(TransportError) -> WebSocketMessage? {
        let deadline = ContinuousClock.now + time
        while true {
            let message: WebSocketMessage?
            do throws(WebSocketFrames.Violation) { message = try frames.next() } catch {
                throw .broken("the server sent \(error.words)")
            }
            switch message {
            case .ping(let bytes)?:
                try write(WebSocketFrames.pong(bytes, mask: .random(in: .min ... .max)))
                return message
            case .close(let code)?:
                try? write(WebSocketFrames.close(mask: .random(in: .min ... .max)))
                throw .broken("the server ended it (\(code.map(String.init) ?? "no code"))")
            case let message?: return message
            case nil:
                guard let bytes = try read(atMost: 16 << 10, until: deadline) else { return nil }
                frames.add(bytes)
            }
        }
    }

    /// Ends the connection.
    public func close() {
        guard let easy = unsafe pointer else { return }
        interruption.withLock { $0.socket = -1 }
        unsafe curl_easy_cleanup(easy)
        unsafe pointer = nil
    }

    // MARK: Bytes

    /// Some bytes, at least one; nil when none came in time.
    private func read(
        atMost count: Int,
        until deadline: ContinuousClock.Instant
    ) throws(TransportError) -> [UInt8]? {
        guard let easy = unsafe pointer else { throw .broken("there is no connection") }
        var buffer = [UInt8](repeating: 0, count: count)
        while true {
            if isInterrupted { throw .cancelled }
            var received = 0
            let code = unsafe curl_easy_recv(easy, &buffer, count, &received)
            if code == CURLE_OK {
                guard received > 0 else { throw .broken("the server closed the connection") }
                return Array(buffer.prefix(received))
            }
            guard code == CURLE_AGAIN else { throw failure(code) }
            guard try wait(for: Int16(POLLIN), until: deadline) else { return nil }
        }
    }

    private func write(_ bytes: [UInt8]) throws(TransportError) {
        guard let easy = unsafe pointer else { throw .broken("there is no connection") }
        let deadline = ContinuousClock.now + settings.stallTimeout
        var left = bytes[...]
        while !left.isEmpty {
            if isInterrupted { throw .cancelled }
            var sent = 0
            let part = Array(left)
            let code = unsafe curl_easy_send(easy, part, part.count, &sent)
            left = left.dropFirst(sent)
            guard code != CURLE_OK else { continue }
            guard code == CURLE_AGAIN else { throw failure(code) }
            guard try wait(for: Int16(POLLOUT), until: deadline) else {
                throw .broken("the server takes nothing")
            }
        }
    }

    private func failure(_ code: CURLcode) -> TransportError {
        let words = unsafe String(cString: curl_easy_strerror(code))
        return isInterrupted ? .cancelled : .broken("\(words) (curl \(code.rawValue))")
    }

    /// Blocks until the socket is ready; false when it was not in time.
    private func wait(
        for events: Int16,
        until deadline: ContinuousClock.Instant
    ) throws(TransportError) -> Bool {
        let socket = interruption.withLock(\.socket)
        while true {
            let left = deadline - .now
            guard left > .zero else { return false }
            var descriptor = pollfd(fd: socket, events: events, revents: 0)
            let milliseconds = Int32(clamping: Int64(left / .milliseconds(1)) + 1)
            let ready = unsafe poll(&descriptor, 1, milliseconds)
            if isInterrupted { throw .cancelled }
            if ready > 0 { return true }
            if ready < 0, errno != EINTR { throw .broken("poll: error \(errno)") }
        }
    }
}

/// Whether opening goes on; called by libcurl on the thread that opens.
private func watchOpening(
    _ context: UnsafeMutableRawPointer?,
    _: curl_off_t,
    _: curl_off_t,
    _: curl_off_t,
    _: curl_off_t
) -> CInt {
    guard let context = unsafe context else { return 1 }
    return unsafe Unmanaged<WebSocket>.fromOpaque(context).takeUnretainedValue().isInterrupted
        ? 1 : 0
}
