import Crypto
public import Foundation
import OortModel
import OortSignIn
public import OortTransport
import Synchronization

/// Signs requests by Signature Version 4 of AWS, which all of S3's kin accept.
///
/// The secret is a key file (`S3Keys.secret`); requests of an anonymous one stay unsigned. What is learned
/// meanwhile, the bucket's region and how far this machine's clock is off, is kept here for all requests.
///
/// Source: docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html. libcurl's own signer is
/// wrong before 8.14: it sorts neither queries nor header names as it must.
public final class S3Signer: RequestSigner {
    private struct State {
        var terms: Terms
        var derived: DerivedKey?
    }

    /// What signatures are made with.
    struct Terms {
        var region: String
        /// The service's clock minus ours, in seconds.
        var clockOffset: TimeInterval = 0
    }

    /// A day's key, which stays the same for all requests of the day.
    private struct DerivedKey {
        var secret: String
        var scope: String
        var key: SymmetricKey
    }

    private let state: Mutex<State>
    private let now: @Sendable () -> Date

    /// A signer for buckets of `region`.
    public init(region: String, now: @escaping @Sendable () -> Date = { Date() }) {
        state = Mutex(State(terms: Terms(region: region)))
        self.now = now
    }

    /// The region that signatures are for.
    public var region: String {
        get { terms.region }
        set { state.withLock { $0.terms.region = newValue } }
    }

    /// How many seconds the service's clock is ahead of this machine's; 0 until a signature was
    /// refused for its time.
    public var clockOffset: TimeInterval { terms.clockOffset }

    /// What signatures are made with now.
    var terms: Terms { state.withLock { $0.terms } }

    /// The time by the service's clock.
    var serviceTime: Date { now().addingTimeInterval(clockOffset) }

    /// Takes over the region from an answer that refused a signature made with `terms`.
    ///
    /// - Returns: Whether it is another one, so that another signature may be taken.
    func learn(region: String, refusing terms: Terms) -> Bool {
        guard !region.isSameText(as: terms.region) else { return false }
        self.region = region
        return true
    }

    /// Takes over the service's clock from an answer that refused a signature made with `terms`.
    ///
    /// - Returns: Whether the clocks were so far apart that another signature may be taken.
    func learn(serviceTime: Date, refusing terms: Terms) -> Bool {
        let offset = serviceTime.timeIntervalSince(now())
        guard abs(offset - terms.clockOffset) > Self.toleratedSkew else { return false }
        state.withLock { $0.terms.clockOffset = offset }
        return true
    }

    /// Services accept signatures that are up to 15 minutes old; the rest is for the answer's own way.
    private static let toleratedSkew: TimeInterval = 14 * 60

    public func sign(
        _ request: HTTPRequest,
        with secret: String
    ) throws(TransportError) -> HTTPRequest {
        let keys = try Self.keys(secret)
        guard !keys.isAnonymous else { return request }
        var request = request
        let date = Self.stamp(serviceTime)
        var payload = request.headers.first { $0.name.lowercased() == Self.payloadField }?.value
        if payload == nil {
            let hash = Self.payloadHash(of: request.body)
            request.headers.append((Self.payloadField, hash))
            payload = hash
        }
        request.headers.append(("x-amz-date", date))
        if let token = keys.sessionToken {
            request.headers.append(("x-amz-security-token", token.revealed()))
        }
        let place = Place(request.url)
        let signed = Self.signedFields(of: request, host: place.signedHost)
        let names = signed.map(\.name).joined(separator: ";")
        let canonical = [
            request.method, place.path, Self.canonical(query: place.query),
            signed.map { "\($0.name):\($0.value)\n" }.joined(), names,
            payload ?? Self.unsignedPayload,
        ].joined(separator: "\n")
        let (scope, signature) = signature(of: canonical, at: date, keys: keys)
        request.headers.append(
            (
                "Authorization",
                "AWS4-HMAC-SHA256 Credential=\(keys.accessKeyID)/\(scope), "
                    + "SignedHeaders=\(names), Signature=\(signature)"
            )
        )
        return request
    }

    /// A link by which whoever has it may GET `url` for `validity` (one second to seven days), or as
    /// long as the keys live.
    ///
    /// - Throws: `.signedOut` when `secret` is no key file, or nobody's.
    public func presigned(
        _ url: String,
        with secret: String,
        validity: Duration
    ) throws(TransportError) -> String {
        let keys = try Self.keys(secret)
        guard !keys.isAnonymous else { throw .signedOut("a link needs keys that sign it") }
        let date = Self.stamp(serviceTime)
        let place = Place(url)
        let seconds = min(max(validity.components.seconds, 1), 604_800)
        var query = [
            ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
            ("X-Amz-Credential", "\(keys.accessKeyID)/\(scope(of: date))"),
            ("X-Amz-Date", date), ("X-Amz-Expires", "\(seconds)"),
            ("X-Amz-SignedHeaders", "host"),
        ]
        if let token = keys.sessionToken {
            query.append(("X-Amz-Security-Token", token.revealed()))
        }
        let added = query.map {
            "\($0.0)=\(S3Text.percentEncoded($0.1, keepsSlash: false))"
        }
        let text = Self.canonical(
            query: ([place.query].compactMap(\.self) + added).joined(separator: "&")
        )
        let canonical = [
            "GET", place.path, text, "host:\(place.signedHost)\n", "host", Self.unsignedPayload,
        ].joined(separator: "\n")
        let (_, signature) = signature(of: canonical, at: date, keys: keys)
        return "\(place.beginning)\(place.path)?\(text)&X-Amz-Signature=\(signature)"
    }

    // MARK: Parts of a signature

    static let payloadField = "x-amz-content-sha256"
    static let unsignedPayload = "UNSIGNED-PAYLOAD"

    /// The hash of a body at hand; the caller has to hash a content, which it can read.
    static func payloadHash(of body: HTTPRequest.Body) -> String {
        switch body {
        case .none: S3Text.sha256([])
        case .bytes(let bytes): S3Text.sha256(bytes)
        case .content, .framed: unsignedPayload
        }
    }

    private static func keys(_ secret: String) throws(TransportError) -> S3Keys {
        do throws(S3KeysError) {
            return try S3Keys(keyFile: Array(secret.utf8))
        } catch {
            throw .signedOut("the account's keys are not of their form: sign in again")
        }
    }

    /// `20130524T000000Z`.
    private static func stamp(_ date: Date) -> String {
        let second = Date(timeIntervalSince1970: date.timeIntervalSince1970.rounded(.down))
        let text: String = second.formatted(.iso8601)
        return text.filter { (character: Character) in character != "-" && character != ":" }
    }

    /// Everything that S3 wants signed, by name: the names sorted, not the lines, or
    /// `x-amz-copy-source-if-match` would come before `x-amz-copy-source`.
    private static func signedFields(
        of request: HTTPRequest,
        host: String
    ) -> [(name: String, value: String)] {
        var fields: [String: String] = ["host": host]
        for (name, value) in request.headers {
            let name = name.lowercased()
            guard name.hasPrefix("x-amz-") || signedByName.contains(name) else { continue }
            let words = value.split { $0 == " " || $0 == "\t" }.joined(separator: " ")
            fields[name] = fields[name].map { "\($0),\(words)" } ?? words
        }
        return fields.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
            .map { ($0.key, $0.value) }
    }

    /// Fields that a proxy on the way leaves alone.
    private static let signedByName: Set<String> = [
        "content-md5", "content-type", "date", "if-match", "if-none-match", "range",
    ]

    /// Names and values as they are encoded, sorted in bytes; a name without a value gets `=`.
    private static func canonical(query: String?) -> String {
        (query ?? "").split(separator: "&").map { pair -> (name: Substring, value: Substring) in
            guard let equals = pair.firstIndex(of: "=") else { return (pair, "") }
            return (pair[..<equals], pair[pair.index(after: equals)...])
        }
        .sorted {
            $0.name == $1.name
                ? $0.value.utf8.lexicographicallyPrecedes($1.value.utf8)
                : $0.name.utf8.lexicographicallyPrecedes($1.name.utf8)
        }
        .map { "\($0.name)=\($0.value)" }.joined(separator: "&")
    }

    private func scope(of date: String) -> String {
        "\(date.prefix(8))/\(region)/s3/aws4_request"
    }

    private func signature(
        of canonical: String,
        at date: String,
        keys: S3Keys
    ) -> (scope: String, signature: String) {
        let scope = scope(of: date)
        let text = [
            "AWS4-HMAC-SHA256", date, scope, S3Text.sha256(Array(canonical.utf8)),
        ].joined(separator: "\n")
        let key = derivedKey(scope: scope, secret: keys.secretAccessKey.revealed())
        return (scope, S3Text.hex(Self.code(text, key)))
    }

    private func derivedKey(scope: String, secret: String) -> SymmetricKey {
        let known = state.withLock { $0.derived }
        if let known, known.scope == scope, known.secret == secret { return known.key }
        var key = SymmetricKey(data: Data("AWS4\(secret)".utf8))
        for part in scope.split(separator: "/") {
            key = SymmetricKey(data: Self.code(String(part), key))
        }
        let made = key
        state.withLock { $0.derived = DerivedKey(secret: secret, scope: scope, key: made) }
        return made
    }

    private static func code(_ text: String, _ key: SymmetricKey) -> HMAC<SHA256>.MAC {
        HMAC<SHA256>.authenticationCode(for: Data(text.utf8), using: key)
    }

    /// The parts of an absolute URL, as they are sent.
    private struct Place {
        /// Scheme and authority.
        var beginning: String
        /// The authority without the port that the scheme has anyway.
        var signedHost: String
        /// Encoded, never empty.
        var path: String
        /// Encoded, without its `?`; nil where there is none.
        var query: String?

        init(_ url: String) {
            let scheme = url.range(of: "://").map { url[..<$0.lowerBound] } ?? "https"
            let rest = url.range(of: "://").map { url[$0.upperBound...] } ?? url[...]
            let authority = rest.prefix { $0 != "/" && $0 != "?" }
            let target = rest.dropFirst(authority.count)
            beginning = "\(scheme)://\(authority)"
            let implied = scheme == "http" ? ":80" : ":443"
            signedHost = String(
                authority.hasSuffix(implied) ? authority.dropLast(implied.count) : authority
            )
            let end = target.firstIndex(of: "?")
            let path = String(target[..<(end ?? target.endIndex)])
            self.path = path.isEmpty ? "/" : path
            query = end.map { String(target[target.index(after: $0)...]) }
        }
    }
}
