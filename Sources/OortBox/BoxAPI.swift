import Foundation
import OortModel
import OortTransport

/// Where Box's servers are; the default is the real ones.
public struct BoxEndpoints: Sendable, Hashable {
    /// Metadata, events and tokens.
    public var api: String
    /// The bytes of files that go up.
    public var upload: String
    /// The sign-in page.
    public var account: String

    /// Box's own servers.
    public static let live = BoxEndpoints(
        api: "https://api.box.com",
        upload: "https://upload.box.com",
        account: "https://account.box.com"
    )

    /// Servers at the given base URLs (no slash at the end).
    public init(api: String, upload: String, account: String) {
        self.api = api
        self.upload = upload
        self.account = account
    }

    /// Whether the account's token may go to this address, which the service gave us.
    func isTrusted(_ url: String) -> Bool {
        guard let parts = URLComponents(string: url), parts.user == nil,
            let host = parts.host?.lowercased()
        else { return false }
        for own in [api, upload].compactMap({ URLComponents(string: $0) })
        where own.scheme == parts.scheme && own.host?.lowercased() == host
            && own.port == parts.port
        {
            return true
        }
        return parts.scheme == "https" && (host == "box.com" || host.hasSuffix(".box.com"))
    }

    /// Whether an address that is a permission by itself may be used: encrypted, unless the service
    /// itself is asked without encryption (simulators).
    func isSafe(_ url: String) -> Bool {
        func begins(with scheme: String, _ text: String) -> Bool {
            text.prefix(scheme.count).lowercased() == scheme
        }
        return begins(with: "https://", url)
            || begins(with: "http://", url) && begins(with: "http://", api)
    }
}

/// The requests of Box's API 2.0, one answer each.
struct BoxAPI: Sendable {
    typealias Query = [(String, String)]

    /// An answer of the service: what was asked for, or why not.
    enum Answer {
        case success(HTTPResponse)
        case refused(BoxFailure)
    }

    let client: any HTTPClient
    let endpoints: BoxEndpoints
    let clock: any Clock<Duration>

    func url(_ path: String, _ query: Query = []) -> String {
        endpoints.api + "/2.0/" + path + (query.isEmpty ? "" : "?" + Self.form(query))
    }

    func uploadURL(_ path: String, _ query: Query = []) -> String {
        endpoints.upload + "/api/2.0/" + path + (query.isEmpty ? "" : "?" + Self.form(query))
    }

    // MARK: Requests

    func get(_ path: String, _ query: Query = []) -> HTTPRequest {
        HTTPRequest(method: "GET", url: url(path, query), repetition: .harmless)
    }

    func request(
        _ method: String,
        _ url: String,
        _ body: some Encodable,
        headers: [(name: String, value: String)] = [],
        repetition: HTTPRequest.Repetition
    ) throws(ProviderError) -> HTTPRequest {
        HTTPRequest(
            method: method,
            url: url,
            headers: [("Content-Type", "application/json")] + headers,
            body: .bytes(try Self.json(body)),
            repetition: repetition
        )
    }

    // MARK: Sending

    /// Sends a request, some times where a tree that it touches is being moved or deleted just now.
    func perform(_ request: HTTPRequest) async throws(ProviderError) -> Answer {
        var delay = Duration.seconds(1)
        while true {
            let response = try await exchange(request)
            guard !(200..<300).contains(response.head.status) else { return .success(response) }
            let failure = BoxFailure(response)
            guard failure.isBlocked, delay < .seconds(16) else { return .refused(failure) }
            try await pause(failure.retryAfter ?? delay)
            delay *= 2
        }
    }

    /// Sends a request once; an answer of any status is no error.
    func exchange(_ request: HTTPRequest) async throws(ProviderError) -> HTTPResponse {
        do throws(TransportError) { return try await client.send(request) } catch {
            throw ProviderError(error)
        }
    }

    func send<Result: Decodable>(
        _ request: HTTPRequest,
        as type: Result.Type = Result.self
    ) async throws(ProviderError) -> Result {
        switch try await perform(request) {
        case .success(let response): try Self.decode(response.body)
        case .refused(let failure): throw failure.error
        }
    }

    func open(_ request: HTTPRequest) async throws(ProviderError) -> HTTPStreamedResponse {
        do throws(TransportError) { return try await client.stream(request) } catch {
            throw ProviderError(error)
        }
    }

    func pause(_ span: Duration) async throws(ProviderError) {
        do { try await clock.sleep(for: span) } catch {
            throw ProviderError(.cancelled, detail: "cancelled")
        }
    }

    static func decode<Result: Decodable>(
        _ bytes: [UInt8],
        as type: Result.Type = Result.self
    ) throws(ProviderError) -> Result {
        do { return try JSONDecoder().decode(Result.self, from: Data(bytes)) } catch {
            throw ProviderError(
                .malformedAnswer,
                detail: "Box's answer is not a \(Result.self): \(place(of: error))"
            )
        }
    }

    // MARK: Calls

    /// An item with the folders above it.
    func item(_ id: BoxID) async throws(ProviderError) -> BoxWire.Item {
        try await send(get(id.path, [("fields", BoxWire.Item.fields + ",path_collection")]))
    }

    func user() async throws(ProviderError) -> BoxWire.User {
        try await send(get("users/me", [("fields", BoxWire.User.fields)]))
    }

    /// One page of a folder; markers are short-lived, and a root is not to be sorted with them.
    func list(_ folder: String, marker: String?) async throws(ProviderError) -> BoxWire.Listing {
        var query: Query = [
            ("fields", BoxWire.Item.fields), ("limit", "1000"), ("usemarker", "true"),
        ]
        if let marker { query.append(("marker", marker)) }
        return try await send(get("folders/\(Self.encoded(folder))/items", query))
    }

    func events(from position: String) async throws(ProviderError) -> BoxWire.Events {
        try await send(
            get(
                "events",
                [
                    ("stream_type", "changes"), ("stream_position", position),
                    ("limit", "500"),
                ]
            )
        )
    }

    // MARK: Spelling

    /// Percent-encoded but for RFC 3986's unreserved characters.
    static func encoded(_ text: String) -> String {
        var result = ""
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "_"), UInt8(ascii: "~"):
                result.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                result += (byte < 16 ? "%0" : "%") + String(byte, radix: 16, uppercase: true)
            }
        }
        return result
    }

    static func form(_ query: Query) -> String {
        query.map { "\(encoded($0.0))=\(encoded($0.1))" }.joined(separator: "&")
    }

    static func json(_ body: some Encodable) throws(ProviderError) -> [UInt8] {
        do { return Array(try JSONEncoder().encode(body)) } catch {
            throw ProviderError(.badRequest, detail: "metadata that JSON cannot say")
        }
    }

    /// Where in an answer decoding stopped: keys only, never values.
    private static func place(of error: any Error) -> String {
        let context: DecodingError.Context
        switch error as? DecodingError {
        case .dataCorrupted(let found): context = found
        case .keyNotFound(let key, let found):
            return (found.codingPath + [key]).map(\.stringValue).joined(separator: ".")
        case .typeMismatch(_, let found): context = found
        case .valueNotFound(_, let found): context = found
        default: return "unknown"
        }
        let path = context.codingPath.map(\.stringValue).joined(separator: ".")
        return path.isEmpty ? "not JSON" : path
    }
}
