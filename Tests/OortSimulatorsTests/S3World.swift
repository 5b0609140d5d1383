import Foundation
import OortS3
import OortSignIn
import OortSimulators
import OortTransport
import Testing

/// A simulated store, a plain client, and keys that the store knows.
struct S3World {
    let simulator: Simulator
    let store: S3Simulator
    let client: CurlClient
    var keys: S3Keys
    let signer: S3Signer

    static func with(
        isSample: Bool = false,
        now: @escaping @Sendable () -> Date = { Date() },
        _ body: (S3World) async throws -> Void
    ) async throws {
        let store = isSample ? S3Simulator.sample() : S3Simulator()
        let simulator = try await Simulator.start(store)
        let client = try CurlClient()
        let issued = store.account.tokens.issue()
        let world = S3World(
            simulator: simulator,
            store: store,
            client: client,
            keys: S3Keys(
                accessKeyID: issued.access,
                secretAccessKey: Secret(issued.refresh ?? "")
            ),
            signer: S3Signer(region: "us-east-1", now: now)
        )
        let outcome: Result<Void, any Error>
        do {
            try await body(world)
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        await client.shutdown()
        await simulator.stop()
        try outcome.get()
    }

    /// The address of a key, which is encoded here, or of the bucket with a query.
    func url(_ key: String, query: String = "") -> String {
        let unreserved = CharacterSet(
            charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/"
        )
        let path = key.addingPercentEncoding(withAllowedCharacters: unreserved) ?? key
        return simulator.url(host: S3Simulator.host) + "/\(S3Simulator.bucket)"
            + (key.isEmpty ? "" : "/\(path)") + (query.isEmpty ? "" : "?\(query)")
    }

    /// Sends a signed request for a key, or for the bucket where that is empty.
    func send(
        _ method: String,
        _ key: String = "",
        query: String = "",
        headers: [(name: String, value: String)] = [],
        body: [UInt8]? = nil
    ) async throws -> HTTPResponse {
        let request = HTTPRequest(
            method: method,
            url: url(key, query: query),
            headers: headers,
            body: body.map { .bytes($0) } ?? .none
        )
        return try await client.send(
            try signer.sign(request, with: keys.secret.revealed()),
            limit: 64 << 20
        )
    }

    @discardableResult
    func put(
        _ key: String,
        _ text: String,
        headers: [(name: String, value: String)] = []
    ) async throws -> HTTPResponse {
        try await send("PUT", key, headers: headers, body: Array(text.utf8))
    }

    func text(_ key: String, query: String = "") async throws -> String? {
        let answer = try await send("GET", key, query: query)
        return answer.head.status == 200 ? String(decoding: answer.body, as: UTF8.self) : nil
    }
}

extension HTTPResponse {
    /// What stands in each element of a name in an answer of XML.
    func all(_ name: String) -> [String] {
        let text = String(decoding: body, as: UTF8.self)
        return text.components(separatedBy: "<\(name)>").dropFirst()
            .compactMap { $0.components(separatedBy: "</\(name)>").first }
    }

    /// The code of an error.
    var code: String? { all("Code").first }

    /// The ETag as it is sent.
    var tag: String { head.header("ETag") ?? "" }
}
