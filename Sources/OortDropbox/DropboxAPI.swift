import Foundation
import OortModel
import OortTransport
import Synchronization

/// Where Dropbox's hosts are; pointed to a simulator for tests and the demo.
public struct DropboxEndpoints: Hashable, Sendable {
    /// Metadata: `https://api.dropboxapi.com`.
    public var api: String
    /// Bytes: `https://content.dropboxapi.com`.
    public var content: String
    /// Long polls: `https://notify.dropboxapi.com`.
    public var notify: String
    /// Sign-in pages: `https://www.dropbox.com`.
    public var web: String

    /// The base URLs of the four hosts, without a slash at their ends.
    public init(api: String, content: String, notify: String, web: String) {
        self.api = api
        self.content = content
        self.notify = notify
        self.web = web
    }

    /// Dropbox itself.
    public static let live = DropboxEndpoints(
        api: "https://api.dropboxapi.com",
        content: "https://content.dropboxapi.com",
        notify: "https://notify.dropboxapi.com",
        web: "https://www.dropbox.com"
    )
}

/// Dropbox's requests: three styles, one way to read their errors.
struct DropboxAPI: Sendable {
    let client: any HTTPClient
    let endpoints: DropboxEndpoints
    let pathRoot = PathRoot()
    let commits = CommitTurn()

    /// The namespace that paths begin at: for a team's member that of the whole team, which must be
    /// named with every call.
    ///
    /// Learned with the account, once.
    final class PathRoot: Sendable {
        private let state = Mutex<(isKnown: Bool, header: String?)>((false, nil))

        var isKnown: Bool { state.withLock { $0.isKnown } }
        var header: String? { state.withLock { $0.header } }

        func learn(_ info: DropboxWire.RootInfo) {
            let header =
                info.root_namespace_id == info.home_namespace_id
                ? nil : #"{".tag":"root","root":"\#(info.root_namespace_id)"}"#
            state.withLock { $0 = (true, header) }
        }
    }

    // MARK: Styles

    /// JSON to a host, JSON back.
    func call<Answer: Decodable>(
        _ route: String,
        _ argument: some Encodable & Sendable,
        as type: Answer.Type = Answer.self,
        repetition: HTTPRequest.Repetition = .harmless
    ) async throws(ProviderError) -> Answer {
        let body = try DropboxWire.encode(argument)
        return try await rooted { header throws(ProviderError) in
            var request = HTTPRequest(
                method: "POST",
                url: "\(endpoints.api)/2/\(route)",
                headers: [("Content-Type", "application/json")] + header,
                body: .bytes(body),
                repetition: repetition
            )
            // Large trees are listed slowly.
            request.answerTimeout = .seconds(300)
            let answer = try await inTurn(route) { () throws(ProviderError) in
                try await sent(request)
            }
            return try DropboxWire.decode(type, from: answer.body)
        }
    }

    /// A route without argument.
    func call<Answer: Decodable>(
        _ route: String,
        as type: Answer.Type = Answer.self
    ) async throws(ProviderError) -> Answer {
        let request = HTTPRequest(
            method: "POST",
            url: "\(endpoints.api)/2/\(route)",
            headers: [("Content-Type", "application/json")],
            body: .bytes(Array("null".utf8)),
            repetition: .harmless
        )
        return try DropboxWire.decode(type, from: try await sent(request).body)
    }

    /// The long poll, which takes no token.
    func poll(
        _ argument: DropboxWire.LongPoll
    ) async throws(ProviderError) -> DropboxWire.LongPollResult {
        var request = HTTPRequest(
            method: "POST",
            url: "\(endpoints.notify)/2/files/list_folder/longpoll",
            headers: [("Content-Type", "application/json")],
            body: .bytes(try DropboxWire.encode(argument)),
            repetition: .harmless,
            isAuthorized: false
        )
        request.isLongPoll = true
        // Dropbox adds up to 90 seconds of jitter.
        request.answerTimeout = .seconds(argument.timeout + 120)
        let answer: HTTPResponse
        do throws(ProviderError) { answer = try await sent(request) } catch {
            // A request without a token cannot be signed out: this is a fault of a front end.
            throw error.kind == .signedOut
                ? ProviderError(.outcomeUnknown(retryAfter: nil), detail: error.detail)
                : error.asOfCursor
        }
        return try DropboxWire.decode(DropboxWire.LongPollResult.self, from: answer.body)
    }

    /// Bytes with a JSON argument in a header field, JSON back.
    func upload<Answer: Decodable>(
        _ route: String,
        _ argument: some Encodable & Sendable,
        body: HTTPRequest.Body,
        as type: Answer.Type = Answer.self,
        repetition: HTTPRequest.Repetition = .harmless,
        onSent: (@Sendable (Int64) -> Void)? = nil
    ) async throws(ProviderError) -> Answer {
        let field = try DropboxWire.headerText(argument)
        return try await rooted { header throws(ProviderError) in
            var request = HTTPRequest(
                method: "POST",
                url: "\(endpoints.content)/2/\(route)",
                headers: [
                    ("Content-Type", "application/octet-stream"), ("Dropbox-API-Arg", field),
                ] + header,
                body: body,
                repetition: repetition,
                weight: .bulk
            )
            request.answerTimeout = .seconds(300)
            request.onSent = onSent
            let answer = try await inTurn(route, bytes: body.count) { () throws(ProviderError) in
                try await sent(request)
            }
            return try DropboxWire.decode(type, from: answer.body)
        }
    }

    /// A JSON argument in a header field, bytes back.
    func download(
        _ route: String,
        _ argument: some Encodable & Sendable,
        range: Range<Int64>? = nil
    ) async throws(ProviderError) -> HTTPStreamedResponse {
        let field = try DropboxWire.headerText(argument)
        return try await rooted { header throws(ProviderError) in
            var headers = [(name: "Dropbox-API-Arg", value: field)] + header
            if let range {
                headers.append(("Range", "bytes=\(range.lowerBound)-\(range.upperBound - 1)"))
            }
            let request = HTTPRequest(
                method: "POST",
                url: "\(endpoints.content)/2/\(route)",
                headers: headers,
                repetition: .harmless,
                weight: .bulk
            )
            let response: HTTPStreamedResponse
            do throws(TransportError) {
                response = try await client.stream(request)
            } catch { throw ProviderError(error) }
            guard response.head.status >= 400 else { return response }
            let body = try await response.body.collect(atMost: 1 << 20)
            throw DropboxErrors.error(HTTPResponse(head: response.head, body: body))
        }
    }

    // MARK: Sending

    /// Routes that commit, one at a time; those that launch a job are not done with their answer.
    private static let committing: Set<String> = [
        "files/upload", "files/upload_session/finish", "files/upload_session/finish_batch_v2",
        "files/create_folder_v2", "files/move_v2", "files/copy_v2", "files/delete_v2",
        "files/restore",
    ]
    /// Bytes above which a request takes long to send, and commits at its end only.
    private static let longRequest: Int64 = 4 << 20

    private func inTurn(
        _ route: String,
        bytes: Int64 = 0,
        _ send: () async throws(ProviderError) -> HTTPResponse
    ) async throws(ProviderError) -> HTTPResponse {
        guard Self.committing.contains(route), bytes <= Self.longRequest else {
            return try await send()
        }
        return try await commits.run(send)
    }

    private func sent(_ request: HTTPRequest) async throws(ProviderError) -> HTTPResponse {
        let response: HTTPResponse
        do throws(TransportError) {
            response = try await client.send(request)
        } catch { throw ProviderError(error) }
        guard (200..<300).contains(response.head.status) else {
            throw DropboxErrors.error(response)
        }
        return response
    }

    /// Runs `body` with the header field of the path root, which is learned first if need be.
    private func rooted<Answer>(
        _ body: ([(name: String, value: String)]) async throws(ProviderError) -> Answer
    ) async throws(ProviderError) -> Answer {
        if !pathRoot.isKnown {
            let account: DropboxWire.Account = try await call("users/get_current_account")
            pathRoot.learn(account.root_info)
        }
        return try await body(pathRoot.header.map { [("Dropbox-API-Path-Root", $0)] } ?? [])
    }
}
