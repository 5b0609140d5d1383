import Foundation
import Logging
import OortModel
import OortProcesses
import OortS3
import OortSignIn
import OortTransport
import ServerTesting
import Synchronization
import Testing

let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

/// A client of a store in a prefix of its own, and what passes between them.
struct World: Sendable {
    let running: RunningStore
    let client: S3Client
    let wire: WatchedClient
    let account: S3Account

    var store: Store { running.store }

    init(
        _ store: Store,
        settings: S3Client.Settings = .init(),
        prefix: String = "t-\(UUID().uuidString)/"
    ) async throws {
        running = try await Stores.shared.running(store)
        var account = running.finding.account
        account.place.prefix = prefix
        self.account = account
        wire = WatchedClient(running.wire)
        client = Self.client(account, wire, settings)
    }

    /// Another client of the same place, as after a restart.
    func another(
        settings: S3Client.Settings = .init(),
        begunUploads: String? = nil
    ) -> S3Client {
        Self.client(account, wire, settings, begunUploads: begunUploads)
    }

    static func client(
        _ account: S3Account,
        _ wire: any HTTPClient,
        _ settings: S3Client.Settings = .init(),
        keys: S3Keys = Store.keys,
        begunUploads: String? = nil
    ) -> S3Client {
        var policy = RetryPolicy()
        policy.firstDelay = .milliseconds(50)
        policy.backgroundPatience = .seconds(20)
        policy.interactivePatience = .seconds(20)
        return S3Client.make(
            account: account,
            wire: wire,
            tokens: S3FixedTokens(keys),
            logger: quiet,
            begunUploads: begunUploads,
            settings: settings,
            policy: policy
        )
    }

    /// Sends a request past the client: the address is that of a key as it is in the bucket.
    @discardableResult
    func raw(
        _ method: String,
        _ key: String,
        query: String = "",
        headers: [(name: String, value: String)] = [],
        body: [UInt8] = []
    ) async throws -> HTTPResponse {
        let base = running.endpoint + "/" + Store.bucket
        var encoded = ""
        for byte in (account.place.prefix + key).utf8 {
            let isPlain =
                byte == 0x2F || byte == 0x2D || byte == 0x2E || byte == 0x5F || byte == 0x7E
                || Character(Unicode.Scalar(byte)).isASCII
                    && Character(Unicode.Scalar(byte)).isLetter
                || (0x30...0x39).contains(byte)
            let digits = String(byte, radix: 16, uppercase: true)
            let zero = byte < 16 ? "0" : ""
            encoded += isPlain ? String(Unicode.Scalar(byte)) : "%\(zero)\(digits)"
        }
        let request = HTTPRequest(
            method: method,
            url: "\(base)/\(encoded)\(query)",
            headers: headers,
            body: method == "PUT" || method == "POST" ? .bytes(body) : .none
        )
        let signer = S3Signer(region: "us-east-1")
        return try await running.wire.send(
            signer.sign(request, with: Store.keys.secret.revealed())
        )
    }

    // MARK: Shorthand

    func upload(
        _ text: String,
        to path: String...,
        before: PlaceUpload.Before = .nothing,
        time: Timestamp? = Timestamp(seconds: 1_700_000_000, nanoseconds: 123_456_789)
    ) async throws -> PlaceEntry {
        try await client.upload(
            upload(Array(text.utf8), to: RemotePath(path), before: before, time: time),
            observer: SilentUploadObserver()
        )
    }

    func upload(
        _ bytes: [UInt8],
        to path: RemotePath,
        before: PlaceUpload.Before = .nothing,
        time: Timestamp? = Timestamp(seconds: 1_700_000_000),
        content: (any ContentSource)? = nil,
        session: UploadSession? = nil
    ) -> PlaceUpload {
        var hasher = client.makeHasher()
        hasher.update(bytes[...])
        return PlaceUpload(
            path: path,
            before: before,
            size: Int64(bytes.count),
            hash: hasher.finalize(),
            modifiedTime: time,
            mimeType: "text/plain",
            content: content ?? BytesSource(bytes),
            session: session
        )
    }

    func text(
        _ path: String...,
        revision: Revision? = nil,
        range: Range<Int64> = 0..<1_000_000
    ) async throws -> String {
        let stream = try await client.read(RemotePath(path), revision: revision, range: range)
        return String(decoding: try await stream.collect(atMost: 1 << 24), as: UTF8.self)
    }

    func names(_ path: String...) async throws -> [String] {
        try await client.listing(of: RemotePath(path)).entries
            .map { $0.kind == .folder ? $0.name + "/" : $0.name }
            .sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    /// All that a snapshot has, files and named folders, with the paths written with slashes.
    func snapshot() async throws -> [String] {
        var result: [String] = []
        var token: PageToken?
        repeat {
            let page = try await client.snapshot(page: token)
            for (folder, entry) in page.entries {
                let path = folder.appending(entry.name).parts.joined(separator: "/")
                result.append(entry.kind == .folder ? path + "/" : path)
            }
            token = page.next
        } while token != nil
        return result.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }
}

/// Counts requests, and loses the answers of some.
final class WatchedClient: HTTPClient {
    struct State {
        var requests: [String] = []
        var loses: (@Sendable (HTTPRequest) -> Bool)?
    }

    private let next: any HTTPClient
    let state = Mutex(State())

    init(_ next: any HTTPClient) { self.next = next }

    /// Method and query of each request, in order.
    var requests: [String] { state.withLock { $0.requests } }

    func count(_ method: String, _ part: String = "") -> Int {
        requests.filter { $0.hasPrefix(method + " ") && (part.isEmpty || $0.contains(part)) }.count
    }

    /// The answer of the next request for which `test` is true is lost after it was done.
    func loseAnswer(_ test: @escaping @Sendable (HTTPRequest) -> Bool) {
        state.withLock { $0.loses = test }
    }

    func stream(
        _ request: OortTransport.HTTPRequest
    ) async throws(TransportError) -> HTTPStreamedResponse {
        let isLost = state.withLock { state in
            state.requests.append("\(request.method) \(request.url)")
            guard let test = state.loses, test(request) else { return false }
            state.loses = nil
            return true
        }
        let answer = try await next.stream(request)
        guard isLost else { return answer }
        _ = try? await answer.body.collect(atMost: 1 << 20)
        throw .broken("the answer is lost")
    }
}

/// The kind of error that `body` ends with; nil for none.
func kind(_ body: () async throws -> Void) async -> ProviderError.Kind? {
    do {
        try await body()
        return nil
    } catch let error as ProviderError {
        return error.kind
    } catch {
        Issue.record(error)
        return nil
    }
}

/// What rclone says, as a client of a running store whose remote is `s:`.
func rclone(_ running: RunningStore, _ arguments: String...) async throws -> String {
    var program = Program(Stores.programs + "/rclone", arguments)
    let own = [
        "RCLONE_CONFIG": "/nonexistent", "RCLONE_CONFIG_S_TYPE": "s3",
        "RCLONE_CONFIG_S_PROVIDER": "Other", "RCLONE_CONFIG_S_ENDPOINT": running.endpoint,
        "RCLONE_CONFIG_S_ACCESS_KEY_ID": Store.keys.accessKeyID,
        "RCLONE_CONFIG_S_SECRET_ACCESS_KEY": Store.keys.secretAccessKey.revealed(),
        "RCLONE_CONFIG_S_NO_CHECK_BUCKET": "true", "NO_PROXY": "127.0.0.1",
    ]
    program.environment.merge(own) { $1 }
    let outcome = await program.outcome(timeLimit: .seconds(600))
    let text = outcome.map { String(decoding: $0.output, as: UTF8.self) + $0.errors } ?? "no end"
    guard outcome?.status == 0 else { throw StoreFailure(description: "rclone: \(text)") }
    return text
}
