import Foundation
import OortModel
import OortTransport
import Synchronization

/// The requests: what goes out and what an answer's status means, but not what it is for.
struct WebDAVAPI: Sendable {
    let client: any HTTPClient
    let address: WebDAVAddress
    let dialect: WebDAVDialect
    let doubt: SignInDoubt

    init(
        client: any HTTPClient,
        address: WebDAVAddress,
        dialect: WebDAVDialect,
        secondLook: Duration = .seconds(60)
    ) {
        self.client = client
        self.address = address
        self.dialect = dialect
        doubt = SignInDoubt(secondLook: secondLook)
    }

    typealias Header = (name: String, value: String)

    // MARK: Exchange

    /// Sends a request; an answer is no error, whatever its status, unless it refuses the account (401).
    func exchange(
        _ request: HTTPRequest,
        isSignIn: Bool = false
    ) async throws(ProviderError) -> HTTPResponse {
        try doubt.check()
        let response: HTTPResponse
        do throws(TransportError) {
            response = try await client.send(request)
        } catch {
            throw ProviderError(error)
        }
        try await note(response.head, of: request, isSignIn: isSignIn)
        return response
    }

    /// Sends a request whose answer's body is read as it comes.
    func stream(_ request: HTTPRequest) async throws(ProviderError) -> HTTPStreamedResponse {
        try doubt.check()
        let response: HTTPStreamedResponse
        do throws(TransportError) {
            response = try await client.stream(request)
        } catch {
            throw ProviderError(error)
        }
        try await note(response.head, of: request, isSignIn: false)
        return response
    }

    private func note(
        _ head: HTTPResponseHead,
        of request: HTTPRequest,
        isSignIn: Bool
    ) async throws(ProviderError) {
        guard head.status == 401 else {
            doubt.end()
            return
        }
        if isSignIn {
            throw ProviderError(.signedOut, detail: "the server does not take the password")
        }
        // A plain server may give this answer of one folder, or to one method, where it lets only other
        // people in (Apache's `Require user`): the password is refused where the account begins.
        let root = Self.propfind(address.text, depth: 0, properties: [.dav("resourcetype")])
        let isRoot = request.url == root.url && request.method == root.method
        if dialect == .plain, !isRoot, await doubt.isLetIn({ await isAccepted(root) }) {
            doubt.end()
            return
        }
        throw doubt.refused()
    }

    private func isAccepted(_ request: HTTPRequest) async -> Bool {
        do throws(TransportError) {
            return (200..<300).contains(try await client.send(request).head.status)
        } catch { return false }
    }

    /// Sends a request and wants success (2xx, but not 207, which reports failures of parts).
    func send(
        _ request: HTTPRequest,
        about subject: WebDAVErrors.Subject
    ) async throws(ProviderError) -> HTTPResponse {
        let response = try await exchange(request)
        guard (200..<300).contains(response.head.status) else {
            throw WebDAVErrors.error(response, about: subject)
        }
        guard response.head.status != 207 else {
            throw ProviderError(
                .outcomeUnknown(retryAfter: nil),
                detail: "the server did a part of it only"
            )
        }
        return response
    }

    // MARK: Requests

    /// A request about an item.
    func request(
        _ method: String,
        _ path: RemotePath,
        isFolder: Bool,
        headers: [Header] = [],
        repetition: HTTPRequest.Repetition = .onlyIfNotDone
    ) -> HTTPRequest {
        HTTPRequest(
            method: method,
            url: address.url(path, isFolder: isFolder),
            headers: headers,
            repetition: repetition
        )
    }

    /// Where a move or copy goes: a whole address, as most servers want it, or only the path.
    func destination(_ path: RemotePath, isFolder: Bool, asPath: Bool = false) -> Header {
        (
            "Destination",
            asPath
                ? address.path(path, isFolder: isFolder) : address.url(path, isFolder: isFolder)
        )
    }

    /// What a server reports of a resource (depth 0), or of a folder and its children (depth 1).
    func look(
        at url: String,
        depth: Int,
        properties: [XMLName],
        isSignIn: Bool = false
    ) async throws(ProviderError) -> (responses: [DAVResponse], head: HTTPResponseHead) {
        var response = try await exchange(
            Self.propfind(url, depth: depth, properties: properties),
            isSignIn: isSignIn
        )
        if (300..<400).contains(response.head.status), !url.ends(with: "/") {
            // A folder's address wants its slash here (Apache).
            response = try await exchange(
                Self.propfind(url + "/", depth: depth, properties: properties),
                isSignIn: isSignIn
            )
        }
        guard response.head.status == 207 else {
            guard !(200..<300).contains(response.head.status) else {
                throw ProviderError(
                    .malformedAnswer,
                    detail: "the address does not speak WebDAV (status \(response.head.status))"
                )
            }
            throw WebDAVErrors.error(response, about: .item)
        }
        return (try Multistatus.responses(in: response.body), response.head)
    }

    static func propfind(_ url: String, depth: Int, properties: [XMLName]) -> HTTPRequest {
        let names = properties.enumerated().map { index, name in
            "<p\(index):\(name.local) xmlns:p\(index)=\"\(XMLText.escaped(name.namespace))\"/>"
        }
        let body =
            "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:propfind xmlns:D=\"DAV:\"><D:prop>"
            + names.joined() + "</D:prop></D:propfind>"
        var request = HTTPRequest(
            method: "PROPFIND",
            url: url,
            headers: [
                ("Depth", String(depth)), ("Content-Type", xml), ("Prefer", "return=minimal"),
            ],
            repetition: .harmless
        )
        request.body = .bytes(Array(body.utf8))
        return request
    }

    static let xml = "application/xml; charset=utf-8"

    /// Sets the modified time by the property that most servers with times of their own take.
    ///
    /// - Throws: `.unsupported` where the server refuses the property; `.preconditionFailed` where it knows
    ///   another `tag`.
    func setTime(
        _ time: Timestamp,
        of path: RemotePath,
        tag: String?
    ) async throws(ProviderError) {
        // The repetition of a try whose answer is lost may find the tag that the first one made: the caller
        // looks then.
        var request = request(
            "PROPPATCH",
            path,
            isFolder: false,
            headers: [("Content-Type", Self.xml)] + (tag.map { [("If-Match", "\"\($0)\"")] } ?? []),
            repetition: .harmless
        )
        request.body = .bytes(
            Array(
                ("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:propertyupdate xmlns:D=\"DAV:\">"
                    + "<D:set><D:prop><D:lastmodified>\(time.seconds)</D:lastmodified></D:prop>"
                    + "</D:set></D:propertyupdate>").utf8
            )
        )
        let response = try await exchange(request)
        guard (200..<300).contains(response.head.status) else {
            throw WebDAVErrors.error(response, about: .item)
        }
        guard response.head.status == 207 else { return }
        let parts = try Multistatus.responses(in: response.body)
        guard parts.allSatisfy({ $0.refused.isEmpty && ($0.status ?? 200) < 300 }) else {
            throw ProviderError(.unsupported, detail: "the server does not take the modified time")
        }
    }
}

/// Whether the server still accepts the password: one refusal may be a passing fault, two with a while
/// between are not.
///
/// No request goes out in between, since servers lock out whoever tries a wrong password too often.
final class SignInDoubt: Sendable {
    private let secondLook: Duration
    private let since = Mutex<ContinuousClock.Instant?>(nil)
    private let look = Mutex<Task<Bool, Never>?>(nil)

    init(secondLook: Duration) { self.secondLook = secondLook }

    /// Whether the server lets the person in elsewhere, by a request that all share who ask at once.
    func isLetIn(_ ask: @escaping @Sendable () async -> Bool) async -> Bool {
        let task = look.withLock { look in
            if let look { return look }
            // It ends by itself: whoever asked first may be cancelled.
            let task = Task {
                defer { self.look.withLock { $0 = nil } }
                return await ask()
            }
            look = task
            return task
        }
        return await task.value
    }

    /// - Throws: `.rateLimited` while it is too early for another look.
    func check() throws(ProviderError) {
        guard let since = since.withLock({ $0 }) else { return }
        let rest = secondLook - (.now - since)
        guard rest <= .zero else { throw waiting(rest) }
    }

    /// The server accepted the password.
    func end() { since.withLock { $0 = nil } }

    /// The error for a refusal.
    func refused() -> ProviderError {
        let isSecond = since.withLock { since in
            guard let before = since else {
                since = .now
                return false
            }
            return .now - before >= secondLook
        }
        guard isSecond else { return waiting(secondLook) }
        return ProviderError(.signedOut, detail: "the server does not take the password any more")
    }

    private func waiting(_ rest: Duration) -> ProviderError {
        ProviderError(
            .rateLimited(retryAfter: rest),
            detail: "the server did not take the password; it is tried once more"
        )
    }
}
