import OortModel

/// Sends requests with libcurl.
///
/// Two event loops, each on a thread of its own: one for small calls, which share HTTP/2
/// connections, and one for everything over HTTP/1.1. They are apart because libcurl 7.88 stops
/// multiplexing to a host as soon as an HTTP/1.1 answer of the same host passes the same loop.
///
/// Redirects are not followed, certificates always verified, `HTTPS_PROXY` and `NO_PROXY` obeyed.
/// An answer's header fields are those on the wire, so `Content-Length` may be that of a
/// compressed body.
public final class CurlClient: HTTPClient {
    /// How connections are made and watched.
    public struct Settings: Sendable {
        /// Who we say we are.
        ///
        /// Ends in `(gzip)`, without which Google does not compress.
        public var userAgent: String
        /// A file of certificate authorities (PEM) trusted in place of the system's; nil trusts the
        /// system's, and the file's that `SSL_CERT_FILE` names, if it names one.
        public var caFile: String?
        /// The proxy's URL; nil takes what the environment says.
        public var proxy: String?
        /// The longest time for name resolution, connect, proxy and TLS together.
        public var connectTimeout: Duration = .seconds(30)
        /// A body that moves slower than `minimumSpeed` for this long is given up.
        public var stallTimeout: Duration = .seconds(60)
        /// Bytes a second, on average over `stallTimeout`.
        public var minimumSpeed: Int64 = 64
        /// Bytes of an answer held for a reader that is slower than the network, in `.bulk`.
        public var receiveBuffer: Int = 2 << 20
        /// Bytes of a content read ahead of the connection.
        public var sendBuffer: Int = 1 << 20

        /// Settings with the defaults of a long-running client.
        public init(userAgent: String = "oort (gzip)", caFile: String? = nil) {
            self.userAgent = userAgent
            self.caFile = caFile
        }
    }

    private let settings: Settings
    private let shared: CurlLoop
    private let separate: CurlLoop

    /// A client with two threads, which end with it.
    ///
    /// - Throws: `.unreachable` when libcurl cannot be set up (out of memory or file descriptors).
    public init(settings: Settings = Settings()) throws(TransportError) {
        self.settings = settings
        shared = try CurlLoop(name: "oort-curl-shared", settings: settings)
        separate = try CurlLoop(name: "oort-curl-separate", settings: settings)
    }

    deinit {
        shared.stop()
        separate.stop()
    }

    /// Ends all transfers (`.cancelled`), the threads and all connections; returns when that is
    /// done.
    ///
    /// Later requests fail with `.cancelled`.
    public func shutdown() async {
        await shared.stopAndWait()
        await separate.stopAndWait()
    }

    /// Does the same for every client of the process, in use or let go, and for every `BlockingWorker`;
    /// blocks meanwhile.
    ///
    /// What calls `exit` calls this before: OpenSSL, in libcurl, frees its data in an exit handler,
    /// and the same data in each thread that is just ending.
    public static func shutdownAll() {
        CurlLoop.stopAll()
        BlockingWorker.stopAll()
    }

    public func stream(
        _ request: HTTPRequest
    ) async throws(TransportError) -> HTTPStreamedResponse {
        let usesHTTP2 = request.mayUseHTTP2
        let loop = usesHTTP2 ? shared : separate
        let transfer = CurlTransfer(
            request: request,
            usesHTTP2: usesHTTP2,
            settings: settings,
            loop: loop
        )
        let head = try await transfer.head().get()
        let reader = BodyReader(transfer: transfer, client: self)
        return HTTPStreamedResponse(
            head: head,
            body: ByteStream { () async throws(ProviderError) in
                switch await reader.transfer.part() {
                case .success(let part): return part
                case .failure(let error): throw ProviderError(error)
                }
            }
        )
    }
}

/// Ends the transfer when the stream is let go, and keeps the client's threads until then.
private final class BodyReader: Sendable {
    let transfer: CurlTransfer
    private let client: CurlClient

    init(transfer: CurlTransfer, client: CurlClient) {
        self.transfer = transfer
        self.client = client
    }

    deinit { transfer.end(.failure(.cancelled)) }
}

extension HTTPRequest {
    /// The largest body that libcurl is handed whole, and that may go over HTTP/2: libcurl 7.88
    /// fails at the end of streamed HTTP/2 uploads.
    static let largestCopiedBody = 64 << 10

    /// Whether the request goes where connections are shared.
    var mayUseHTTP2: Bool {
        guard weight == .small else { return false }
        switch body {
        case .none: return true
        case .bytes(let bytes): return bytes.count <= Self.largestCopiedBody
        case .content, .framed: return false
        }
    }
}
