import Crypto
import Foundation
import OortModel
import OortTransport

/// A request to a bucket, before it has an address and a signature.
struct S3Request: Sendable {
    var method: String
    /// Nil for the bucket itself.
    var key: String?
    var query: [(name: String, value: String)] = []
    var headers: [(name: String, value: String)] = []
    var body: HTTPRequest.Body = .none
    var repetition: HTTPRequest.Repetition = .harmless
    var weight: HTTPRequest.Weight = .small
    /// Copies and the end of an upload in parts may take minutes.
    var isLong = false
    var onSent: (@Sendable (Int64) -> Void)?

    init(_ method: String, _ key: String? = nil) {
        self.method = method
        self.key = key
    }
}

/// The requests: what goes out and what an answer's status means, but not what it is for.
struct S3API: Sendable {
    let client: any HTTPClient
    let place: S3Place
    let signer: S3Signer

    // MARK: Exchange

    /// Sends a request; an answer of any status is no error.
    ///
    /// A request that was refused for its region or its time is sent once more, corrected: by its own
    /// answer, or by that of another request meanwhile.
    func exchange(_ request: S3Request) async throws(ProviderError) -> HTTPResponse {
        let terms = signer.terms
        let answer = try await once(request)
        guard answer.head.status >= 300, learns(from: answer, refusing: terms) else {
            return answer
        }
        return try await once(request)
    }

    private func once(_ request: S3Request) async throws(ProviderError) -> HTTPResponse {
        do throws(TransportError) {
            return try await client.send(prepared(request))
        } catch {
            throw ProviderError(error)
        }
    }

    /// Sends a request whose answer's body is a content.
    func stream(
        _ request: S3Request
    ) async throws(ProviderError) -> Result<HTTPStreamedResponse, HTTPResponse.Refusal> {
        var hasLearned = false
        while true {
            let terms = signer.terms
            let streamed: HTTPStreamedResponse
            do throws(TransportError) {
                streamed = try await client.stream(prepared(request))
            } catch {
                throw ProviderError(error)
            }
            guard streamed.head.status >= 300 else { return .success(streamed) }
            let body = (try? await streamed.body.collect(atMost: 1 << 20)) ?? []
            let answer = HTTPResponse(head: streamed.head, body: body)
            guard !hasLearned, learns(from: answer, refusing: terms) else {
                return .failure(HTTPResponse.Refusal(answer: answer))
            }
            hasLearned = true
        }
    }

    /// Sends a request and wants success.
    func send(
        _ request: S3Request,
        about subject: S3Errors.Subject
    ) async throws(ProviderError) -> HTTPResponse {
        let answer = try await exchange(request)
        guard (200..<300).contains(answer.head.status) else {
            throw S3Errors.error(answer, about: subject)
        }
        return answer
    }

    /// Sends a request and reads its answer's XML; `root` is nil where stores differ in the name of its
    /// root.
    ///
    /// Stores begin some answers with 200 before they know the outcome: an error in such an answer, or one
    /// that cannot be read, counts as one with 500.
    func element(
        _ request: S3Request,
        named root: String? = nil,
        about subject: S3Errors.Subject
    ) async throws(ProviderError) -> S3Element {
        let answer = try await send(request, about: subject)
        let element = try S3Element(document: answer.body)
        if element.name == "Error" {
            let words = S3Errors.words(in: answer.body)
            throw S3Errors.error(status: 500, head: answer.head, words: words, about: subject)
        }
        guard root == nil || element.name == root else {
            throw ProviderError(.malformedAnswer, detail: "an answer of another form")
        }
        return element
    }

    private func prepared(_ request: S3Request) -> HTTPRequest {
        var result = HTTPRequest(
            method: request.method,
            url: place.url(of: request.key, request.query, region: signer.region),
            // Otherwise a store may unpack packed content, and lengths and ranges refer to other bytes.
            headers: request.headers + [("Accept-Encoding", "identity")],
            body: request.body,
            repetition: request.repetition,
            weight: request.weight,
            answerTimeout: request.isLong ? .seconds(900) : .seconds(60)
        )
        result.onSent = request.onSent
        return result
    }

    /// Whether an answer to a request that was signed with `terms` brought something with which it may
    /// succeed.
    private func learns(from answer: HTTPResponse, refusing terms: S3Signer.Terms) -> Bool {
        let status = answer.head.status
        guard [301, 307, 400, 403].contains(status) else { return false }
        let region =
            answer.head.header("x-amz-bucket-region") ?? S3Errors.words(in: answer.body)?.region
        if let region, !region.isEmpty,
            region.utf8.allSatisfy({ $0 == 0x2D || (0x30...0x39).contains($0) || $0 > 0x60 }),
            signer.learn(region: region, refusing: terms)
        {
            return true
        }
        guard status != 301, status != 307, let date = answer.head.date else { return false }
        return signer.learn(serviceTime: date.date, refusing: terms)
    }

    /// Whether the bucket keeps versions of what is written now; nil where the keys may not ask.
    func keepsVersions() async -> Bool? {
        var request = S3Request("GET")
        request.query = [("versioning", "")]
        // Without an answer, what was known before stands.
        let root = try? await element(request, about: .bucket)
        return root.map { $0.text(of: "Status") == "Enabled" }
    }

    // MARK: Bodies

    /// The MD5 of an empty body, as `Content-MD5` has it.
    static let digestOfNothing = Data(Insecure.MD5.hash(data: [UInt8]())).base64EncodedString()

    /// The fields that protect a content on its way; it is read once, and twice where it goes out
    /// unencrypted.
    ///
    /// - Throws: `.localContent`.
    func protection(
        of content: any ContentSource,
        _ range: Range<Int64>,
        md5: [UInt8]?
    ) async throws(ProviderError) -> (headers: [(name: String, value: String)], md5: [UInt8]) {
        let isPlain = place.isPlain
        var (content5, content256) = (Insecure.MD5(), SHA256())
        if isPlain || md5 == nil {
            var position = range.lowerBound
            while position < range.upperBound {
                let count = Int(min(1 << 20, range.upperBound - position))
                let piece = try await content.read(at: position, count: count)
                if md5 == nil { content5.update(data: piece) }
                if isPlain { content256.update(data: piece) }
                position += Int64(count)
            }
        }
        let known = md5 ?? Array(content5.finalize())
        let payload = isPlain ? S3Text.hex(content256.finalize()) : S3Signer.unsignedPayload
        return (
            [
                ("Content-MD5", Data(known).base64EncodedString()),
                (S3Signer.payloadField, payload),
            ], known
        )
    }

    /// A request whose body is XML of ours.
    func xml(_ text: String, in request: S3Request) -> S3Request {
        var request = request
        let bytes = Array(text.utf8)
        request.body = .bytes(bytes)
        request.headers += [
            ("Content-Type", "application/xml"),
            ("Content-MD5", Data(Insecure.MD5.hash(data: bytes)).base64EncodedString()),
        ]
        return request
    }

    /// A text in XML; line breaks become character references, which readers do not change.
    static func escaped(_ text: String) -> String {
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result.append(contentsOf: "&amp;".unicodeScalars)
            case "<": result.append(contentsOf: "&lt;".unicodeScalars)
            case ">": result.append(contentsOf: "&gt;".unicodeScalars)
            case "\"": result.append(contentsOf: "&quot;".unicodeScalars)
            case "\r": result.append(contentsOf: "&#13;".unicodeScalars)
            case "\n": result.append(contentsOf: "&#10;".unicodeScalars)
            default: result.append(scalar)
            }
        }
        return String(result)
    }
}

extension HTTPResponse {
    /// An answer without success, where success would have given a stream.
    struct Refusal: Error {
        var answer: HTTPResponse
    }
}
