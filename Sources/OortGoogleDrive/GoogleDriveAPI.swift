import Foundation
import OortModel
import OortTransport

/// Where Drive's servers are; the default is the real ones.
public struct GoogleDriveEndpoints: Sendable, Hashable {
    /// Metadata, content and batches.
    public var api: String
    /// The sign-in page.
    public var accounts: String
    /// Tokens, device codes and their revocation.
    public var oauth: String

    /// Google's own servers.
    public static let live = GoogleDriveEndpoints(
        api: "https://www.googleapis.com",
        accounts: "https://accounts.google.com",
        oauth: "https://oauth2.googleapis.com"
    )

    /// Servers at the given base URLs (no slash at the end).
    public init(api: String, accounts: String, oauth: String) {
        self.api = api
        self.accounts = accounts
        self.oauth = oauth
    }

    /// Whether the account's token may go to this address, which a service gave us as a link.
    func isTrusted(_ url: String) -> Bool {
        guard let parts = URLComponents(string: url), parts.user == nil,
            let host = parts.host?.lowercased()
        else { return false }
        if let own = URLComponents(string: api), own.scheme == parts.scheme,
            own.host?.lowercased() == host, own.port == parts.port
        {
            return true
        }
        guard parts.scheme == "https" else { return false }
        return [".googleapis.com", ".google.com", ".googleusercontent.com"].contains {
            host.hasSuffix($0)
        }
    }
}

/// The requests of Drive v3 (and the two of v2 that take preconditions), one answer each.
struct GoogleDriveAPI: Sendable {
    /// An answer of the service: what was asked for, or why not.
    enum Answer {
        case success(HTTPResponse)
        case refused(DriveFailure)
    }

    let client: any HTTPClient
    let endpoints: GoogleDriveEndpoints

    /// A URL of the API; `supportsAllDrives` goes with every call on files, or items of shared
    /// drives would be "not found".
    func url(_ path: String, _ query: [(String, String)]) -> String {
        endpoints.api + path + (query.isEmpty ? "" : "?" + Self.form(Self.compact(query)))
    }

    /// The query by which a JSON answer comes without the indentation that Drive gives it otherwise,
    /// as much again as the answer.
    private static func compact(_ query: [(String, String)]) -> [(String, String)] {
        query.contains { $0.0 == "fields" } ? query + [("prettyPrint", "false")] : query
    }

    func file(_ id: ItemID, _ action: String = "") -> String {
        "/drive/v3/files/\(Self.encoded(id.rawValue))\(action)"
    }

    // MARK: Sending

    func perform(_ request: HTTPRequest) async throws(ProviderError) -> Answer {
        let response: HTTPResponse
        do throws(TransportError) {
            response = try await client.send(request)
        } catch { throw ProviderError(error) }
        return (200..<300).contains(response.head.status)
            ? .success(response) : .refused(DriveFailure(response))
    }

    func send<Result: Decodable>(
        _ request: HTTPRequest,
        as type: Result.Type = Result.self
    ) async throws(ProviderError) -> Result {
        switch try await perform(request) {
        case .success(let response): try decode(response)
        case .refused(let failure): throw failure.error
        }
    }

    func decode<Result: Decodable>(
        _ response: HTTPResponse,
        as type: Result.Type = Result.self
    ) throws(ProviderError) -> Result {
        do {
            return try JSONDecoder().decode(Result.self, from: Data(response.body))
        } catch {
            throw ProviderError(
                .malformedAnswer,
                detail: "Drive's answer is not a \(Result.self): \(Self.place(of: error))"
            )
        }
    }

    func get<Result: Decodable>(
        _ path: String,
        _ query: [(String, String)],
        as type: Result.Type = Result.self
    ) async throws(ProviderError) -> Result {
        try await send(getRequest(path, query))
    }

    /// A query too long for a URL goes as a form, which Drive takes as the same GET.
    private func getRequest(_ path: String, _ query: [(String, String)]) -> HTTPRequest {
        let whole = url(path, query)
        guard whole.utf8.count > 2048 else {
            return HTTPRequest(method: "GET", url: whole, repetition: .harmless)
        }
        return HTTPRequest(
            method: "POST",
            url: url(path, []),
            headers: [
                ("X-HTTP-Method-Override", "GET"),
                ("Content-Type", "application/x-www-form-urlencoded"),
            ],
            body: .bytes(Array(Self.form(Self.compact(query)).utf8)),
            repetition: .harmless
        )
    }

    func request(
        _ method: String,
        _ path: String,
        _ query: [(String, String)],
        _ body: some Encodable,
        repetition: HTTPRequest.Repetition
    ) throws(ProviderError) -> HTTPRequest {
        HTTPRequest(
            method: method,
            url: url(path, query),
            headers: [("Content-Type", "application/json; charset=UTF-8")],
            body: .bytes(try Self.json(body)),
            repetition: repetition
        )
    }

    // MARK: Calls

    static let fileQuery = [("supportsAllDrives", "true"), ("fields", DriveFile.fields)]

    func metadata(_ id: ItemID) async throws(ProviderError) -> DriveFile {
        try await get(file(id), Self.fileQuery)
    }

    func metadataV2(_ id: ItemID) async throws(ProviderError) -> DriveFileV2 {
        try await get(
            "/drive/v2/files/\(Self.encoded(id.rawValue))",
            [("supportsAllDrives", "true"), ("fields", DriveFileV2.fields)]
        )
    }

    /// One page of `files.list`; `drive` names the shared drive to search in, nil the user's items.
    ///
    /// The oldest come first: of two of one name the first is shown without a number, and should be
    /// the same on all machines. The order is undefined else.
    func list(
        _ condition: String,
        drive: String? = nil,
        page: String?,
        pageSize: Int = 1000
    ) async throws(ProviderError) -> DriveFileList {
        try await get(Self.files, Self.query(condition, drive, page, pageSize))
    }

    /// The address of what `list` asks for.
    func listing(_ condition: String, page: String?, pageSize: Int) -> String {
        url(Self.files, Self.query(condition, nil, page, pageSize))
    }

    private static let files = "/drive/v3/files"

    private static func query(
        _ condition: String,
        _ drive: String?,
        _ page: String?,
        _ pageSize: Int
    ) -> [(String, String)] {
        var query = [
            ("q", condition), ("pageSize", String(pageSize)), ("spaces", "drive"),
            ("orderBy", "createdTime"),
            ("supportsAllDrives", "true"), ("includeItemsFromAllDrives", "true"),
            ("fields", DriveFileList.fields),
        ]
        if let drive { query += [("corpora", "drive"), ("driveId", drive)] }
        if let page { query.append(("pageToken", page)) }
        return query
    }

    /// The condition of all items in a folder that are not in the trash.
    static func children(of folder: ItemID) -> String {
        "\(quoted(folder.rawValue)) in parents and trashed=false"
    }

    /// One page of what `fullText` finds in all drives of the account, the most relevant first.
    ///
    /// Drive refuses `orderBy` beside such a term
    /// (developers.google.com/workspace/drive/api/reference/rest/v3/files/list).
    func search(_ condition: String, page: String?) async throws(ProviderError) -> DriveFileList {
        var query = [
            ("q", condition), ("pageSize", "100"), ("spaces", "drive"), ("corpora", "allDrives"),
            ("supportsAllDrives", "true"), ("includeItemsFromAllDrives", "true"),
            ("fields", DriveFileList.fields),
        ]
        if let page { query.append(("pageToken", page)) }
        return try await get("/drive/v3/files", query)
    }

    func startPageToken(drive: String?) async throws(ProviderError) -> String {
        var query = [("supportsAllDrives", "true"), ("fields", "startPageToken")]
        if let drive { query.append(("driveId", drive)) }
        let answer: DriveStartPageToken = try await get("/drive/v3/changes/startPageToken", query)
        return answer.startPageToken
    }

    func changes(token: String, drive: String?) async throws(ProviderError) -> DriveChangeList {
        var query = [
            ("pageToken", token), ("pageSize", "1000"), ("spaces", "drive"),
            ("supportsAllDrives", "true"), ("includeItemsFromAllDrives", "true"),
            // Distinguishes an item that only moved to another log from one that is lost.
            ("includeCorpusRemovals", "true"),
            ("fields", DriveChangeList.fields),
        ]
        if let drive { query.append(("driveId", drive)) }
        return try await get("/drive/v3/changes", query)
    }

    func drives() async throws(ProviderError) -> [DriveDrive] {
        var drives: [DriveDrive] = []
        var page: String?
        var walk = PageWalk()
        repeat {
            if let page { try walk.goOn(to: page) }
            var query = [
                ("pageSize", "100"), ("fields", "nextPageToken,drives(\(DriveDrive.fields))"),
            ]
            if let page { query.append(("pageToken", page)) }
            let answer: DriveDriveList = try await get("/drive/v3/drives", query)
            drives += answer.drives ?? []
            page = answer.nextPageToken
        } while page != nil
        return drives
    }

    // MARK: Streams

    /// Opens a download.
    ///
    /// What is refused is thrown; 416 is an end, and so an empty stream.
    func download(
        _ url: String,
        headers: [(name: String, value: String)] = []
    ) async throws(ProviderError) -> HTTPStreamedResponse {
        guard endpoints.isTrusted(url) else {
            throw ProviderError(.malformedAnswer, detail: "a link to an unexpected host")
        }
        let request = HTTPRequest(
            method: "GET",
            url: url,
            headers: headers,
            repetition: .harmless,
            weight: .bulk,
            answerTimeout: .seconds(120)
        )
        let response: HTTPStreamedResponse
        do throws(TransportError) {
            response = try await client.stream(request)
        } catch { throw ProviderError(error) }
        switch response.head.status {
        case 200..<300: return response
        case 416: return HTTPStreamedResponse(head: response.head, body: ByteStream { nil })
        default:
            let body = try? await response.body.collect(atMost: 1 << 20)
            throw DriveFailure(
                status: response.head.status,
                body: body ?? [],
                retryAfter: response.head.retryAfter
            ).error
        }
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
                let digits = String(byte, radix: 16, uppercase: true)
                result += digits.count == 1 ? "%0" + digits : "%" + digits
            }
        }
        return result
    }

    static func form(_ query: [(String, String)]) -> String {
        query.map { "\(encoded($0.0))=\(encoded($0.1))" }.joined(separator: "&")
    }

    /// A text as a value of the search language: quoted, `'` and `\` escaped.
    static func quoted(_ text: String) -> String {
        var result = "'"
        for scalar in text.unicodeScalars {
            if scalar == "'" || scalar == "\\" { result += "\\" }
            result.unicodeScalars.append(scalar)
        }
        return result + "'"
    }

    static func json(_ body: some Encodable) throws(ProviderError) -> [UInt8] {
        do {
            return Array(try JSONEncoder().encode(body))
        } catch {
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
