import Foundation
import OortModel
import OortTransport

/// Where the service is; anything else than `live` is for simulators.
public struct OneDriveEndpoints: Sendable, Hashable {
    /// Microsoft Graph with its version, without a slash at the end.
    public var graph: String
    /// The OAuth endpoints' common beginning, without a slash at the end.
    public var signIn: String

    /// Endpoints at other places than the real ones.
    public init(graph: String, signIn: String) {
        self.graph = graph
        self.signIn = signIn
    }

    /// The real service, for accounts of persons and of organizations.
    public static let live = OneDriveEndpoints(
        graph: "https://graph.microsoft.com/v1.0",
        signIn: "https://login.microsoftonline.com/common/oauth2/v2.0"
    )
}

/// The requests: what goes out and what an answer's status means, but not what it is for.
struct OneDriveAPI: Sendable {
    let client: any HTTPClient
    let endpoints: OneDriveEndpoints

    typealias Header = (name: String, value: String)
    typealias Parameter = (name: String, value: String)

    /// The fields of an item that are used; the download address comes only when it is named.
    static let itemFields =
        "id,name,size,eTag,cTag,description,createdDateTime,lastModifiedDateTime,fileSystemInfo,"
        + "file,folder,package,root,malware,image,photo,video,remoteItem,parentReference,"
        + "createdBy,lastModifiedBy,shared,@microsoft.graph.downloadUrl"
    /// The same for the change feed, which has no download addresses.
    static let feedFields =
        "id,name,size,eTag,cTag,description,createdDateTime,lastModifiedDateTime,fileSystemInfo,"
        + "file,folder,package,root,malware,image,photo,video,remoteItem,parentReference,deleted,"
        + "createdBy,lastModifiedBy,shared"

    /// Without this, personal drives do not list folders that were added from other drives.
    static let sharedFolders: Header = ("Prefer", "Include-Feature=AddToOneDrive")

    // MARK: Graph

    /// An absolute URL below Graph's version.
    func url(_ path: String, _ query: [Parameter] = []) -> String {
        guard !query.isEmpty else { return endpoints.graph + path }
        let pairs = query.map { "\($0.name)=\(Self.queryValue($0.value))" }
        return endpoints.graph + path + "?" + pairs.joined(separator: "&")
    }

    /// A query value: as a path segment, but with the marks that lists of fields are full of.
    private static func queryValue(_ text: String) -> String {
        PercentEncoding.segment(text).replacingOccurrences(of: "%2C", with: ",")
            .replacingOccurrences(of: "%40", with: "@")
    }

    /// A request to Graph, with the account's token.
    func request(
        _ method: String,
        _ path: String,
        query: [Parameter] = [],
        headers: [Header] = [],
        repetition: HTTPRequest.Repetition = .harmless
    ) -> HTTPRequest {
        HTTPRequest(
            method: method,
            url: url(path, query),
            headers: [("Accept", "application/json")] + headers,
            repetition: repetition
        )
    }

    /// A request to Graph with a body of JSON.
    ///
    /// - Throws: `.nameRefused` when a string in it is no Unicode that JSON could carry.
    func request(
        _ method: String,
        _ path: String,
        query: [Parameter] = [],
        headers: [Header] = [],
        json: some Encodable,
        repetition: HTTPRequest.Repetition = .onlyIfNotDone
    ) throws(ProviderError) -> HTTPRequest {
        var request = request(
            method,
            path,
            query: query,
            headers: headers + [("Content-Type", "application/json")],
            repetition: repetition
        )
        do {
            request.body = .bytes(Array(try JSONEncoder().encode(json)))
        } catch {
            throw ProviderError(.badRequest, detail: "could not be written as JSON")
        }
        return request
    }

    /// A request for a link that Graph gave to go on with a list: the link as it is.
    ///
    /// - Throws: `.malformedAnswer` when it leads elsewhere than to Graph: the token goes nowhere
    ///   else.
    func request(
        following link: String,
        headers: [Header] = []
    ) throws(ProviderError) -> HTTPRequest {
        guard link.hasPrefix(endpoints.graph + "/") else {
            throw ProviderError(.malformedAnswer, detail: "a link that leads out of the service")
        }
        return HTTPRequest(
            method: "GET",
            url: link,
            headers: [("Accept", "application/json")] + headers,
            repetition: .harmless
        )
    }

    /// An address with which Graph gives a permission, for bytes or for news of a copy.
    ///
    /// - Throws: `.malformedAnswer` when bytes would go there without encryption, unless Graph itself is
    ///   asked without it (simulators).
    func presigned(_ url: String) throws(ProviderError) -> String {
        func begins(with scheme: String, _ text: String) -> Bool {
            text.prefix(scheme.count).lowercased() == scheme
        }
        guard
            begins(with: "https://", url)
                || begins(with: "http://", url) && begins(with: "http://", endpoints.graph)
        else {
            throw ProviderError(.malformedAnswer, detail: "an address that is not encrypted")
        }
        return url
    }

    // MARK: Exchange

    /// Sends a request; an answer of any status is no error.
    func exchange(_ request: HTTPRequest) async throws(ProviderError) -> HTTPResponse {
        do throws(TransportError) {
            return try await client.send(request)
        } catch {
            throw ProviderError(error)
        }
    }

    /// Sends a request and wants success (2xx).
    func send(
        _ request: HTTPRequest,
        about subject: OneDriveErrors.Subject
    ) async throws(ProviderError) -> HTTPResponse {
        let response = try await exchange(request)
        guard (200..<300).contains(response.head.status) else {
            throw OneDriveErrors.error(response, about: subject)
        }
        return response
    }

    /// Sends a request and reads its answer's JSON.
    func send<Answer: Decodable>(
        _ request: HTTPRequest,
        for type: Answer.Type,
        about subject: OneDriveErrors.Subject
    ) async throws(ProviderError) -> Answer {
        try Self.decode(type, from: try await send(request, about: subject).body)
    }

    /// Reads JSON.
    static func decode<Answer: Decodable>(
        _ type: Answer.Type,
        from body: [UInt8]
    ) throws(ProviderError) -> Answer {
        do {
            return try JSONDecoder().decode(type, from: Data(body))
        } catch {
            throw ProviderError(
                .malformedAnswer,
                detail: "\(type) was expected, \(body.count) bytes came"
            )
        }
    }

    // MARK: Items

    /// An item as it is now.
    func item(at address: DriveAddress) async throws(ProviderError) -> DriveItemWire {
        let query: [Parameter] = [("$select", Self.itemFields)]
        do throws(ProviderError) {
            return try await send(
                request("GET", address.path, query: query, headers: [Self.sharedFolders]),
                for: DriveItemWire.self,
                about: .item
            )
        } catch {
            // Only a 404 to both spellings of an id is a positive one.
            guard error.kind == .notFound, let padded = address.paddedPath else { throw error }
            return try await send(
                request("GET", padded, query: query, headers: [Self.sharedFolders]),
                for: DriveItemWire.self,
                about: .item
            )
        }
    }

    /// What has this name in a folder; nil when there is positively nothing.
    ///
    /// - Throws: `.parentNotFound`.
    func item(
        named name: String,
        in folder: DriveAddress
    ) async throws(ProviderError) -> DriveItemWire? {
        do throws(ProviderError) {
            return try await send(
                request(
                    "GET",
                    "\(folder.path):/\(PercentEncoding.segment(name)):",
                    query: [("$select", Self.itemFields)],
                    headers: [Self.sharedFolders]
                ),
                for: DriveItemWire.self,
                about: .item
            )
        } catch  where error.kind == .notFound {
            do throws(ProviderError) {
                _ = try await item(at: folder)
            } catch  where error.kind == .notFound {
                throw error.asKind(.parentNotFound)
            }
            return nil
        }
    }
}
