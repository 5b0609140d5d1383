import Foundation
import OortModel
import OortTransport

/// Reads the service's errors: by status first, then by the codes in the body.
///
/// Source: github.com/OneDrive/onedrive-api-docs, docs/rest-api/concepts/errors; what differs in
/// practice is in docs/providers/onedrive.md.
enum OneDriveErrors {
    /// What a request was about, since one status means different things.
    enum Subject: Sendable {
        /// An item: 404 means that it is gone.
        case item
        /// A folder that is to hold something: 404 means that the parent is gone, and an invalid
        /// request that the name is refused.
        case parent
        /// The change feed: a token that is malformed or too old means enumerating again.
        case feed
        /// An upload session, or anything else at a pre-signed address, which needs no sign-in.
        case session
    }

    private struct Body: Decodable {
        struct Failure: Decodable {
            var code: String?
            var message: String?
            var innerError: Inner?
            var innererror: Inner?
        }
        final class Inner: Decodable {
            var code: String?
            var requestID: String?
            var innerError: Inner?
            var innererror: Inner?

            enum CodingKeys: String, CodingKey {
                case code, innerError, innererror
                case requestID = "request-id"
            }
        }
        var error: Failure
    }

    /// The codes of an error body, outermost first, and the request's id.
    static func codes(in body: [UInt8]) -> (codes: [String], requestID: String?) {
        guard body.count <= 1 << 20,
            let failure = try? JSONDecoder().decode(Body.self, from: Data(body)).error
        else { return ([], nil) }
        var codes = [failure.code].compactMap(\.self)
        var requestID: String?
        var inner = failure.innerError ?? failure.innererror
        while let current = inner, codes.count < 16 {
            if let code = current.code { codes.append(code) }
            requestID = requestID ?? current.requestID
            inner = current.innerError ?? current.innererror
        }
        return (codes, requestID)
    }

    /// The error that an answer without success is.
    static func error(_ response: HTTPResponse, about subject: Subject) -> ProviderError {
        error(
            status: response.head.status,
            retryAfter: response.head.retryAfter,
            requestID: response.head.header("request-id"),
            body: response.body,
            about: subject
        )
    }

    /// The error that an answer without success is, from its parts.
    static func error(
        status: Int,
        retryAfter: Duration?,
        requestID: String?,
        body: [UInt8],
        about subject: Subject
    ) -> ProviderError {
        let (codes, innerID) = codes(in: body)
        let detail =
            ["status \(status)"] + codes.map(shortened)
            + [requestID ?? innerID].compactMap(\.self).map { "request \(shortened($0))" }
        return ProviderError(
            kind(status: status, codes: codes, retryAfter: retryAfter, about: subject),
            detail: detail.joined(separator: ", ")
        )
    }

    private static func shortened(_ text: String) -> String { String(text.prefix(80)) }

    private static func kind(
        status: Int,
        codes: [String],
        retryAfter: Duration?,
        about subject: Subject
    ) -> ProviderError.Kind {
        let codes = Set(codes.map { $0.lowercased() })
        switch status {
        case 400: return invalidRequest(codes, about: subject)
        case 401: return subject.isPresigned ? .sessionLost : .signedOut
        case 403:
            if !codes.isDisjoint(with: ["malwaredetected", "virussuspicious"]) {
                return .contentBlocked
            }
            if codes.contains("notsupported") { return .unsupported }
            if codes.contains("quotalimitreached") { return .quotaExceeded }
            return .noPermission
        case 404: return subject.gone
        case 409:
            if codes.contains("namealreadyexists") { return .nameTaken }
            if codes.contains("resourcemodified") { return .preconditionFailed }
            return .nameTaken
        case 410: return subject.isFeed ? .cursorLost : subject.gone
        case 412: return .preconditionFailed
        case 413: return .tooLarge
        case 416: return .badRequest
        case 423: return .locked
        case 429: return .rateLimited(retryAfter: retryAfter)
        case 501: return .unsupported
        case 503 where retryAfter != nil: return .rateLimited(retryAfter: retryAfter)
        case 507: return .quotaExceeded
        case 500...: return .outcomeUnknown(retryAfter: retryAfter)
        case 200..<400: return .malformedAnswer
        default: return .badRequest
        }
    }

    private static func invalidRequest(
        _ codes: Set<String>,
        about subject: Subject
    ) -> ProviderError.Kind {
        if !codes.isDisjoint(with: ["pathistoolong", "pathtoodeep", "parameteristoolong"]) {
            return .nameTooLong
        }
        switch subject {
        case .feed: return .cursorLost
        case .parent where codes.contains("invalidrequest"): return .nameRefused
        default: return .badRequest
        }
    }
}

extension OneDriveErrors.Subject {
    fileprivate var isPresigned: Bool {
        if case .session = self { true } else { false }
    }

    fileprivate var isFeed: Bool {
        if case .feed = self { true } else { false }
    }

    fileprivate var gone: ProviderError.Kind {
        switch self {
        case .item, .feed: .notFound
        case .parent: .parentNotFound
        case .session: .sessionLost
        }
    }
}

extension ProviderError {
    /// The same error as another kind, where the caller knows more than the answer said.
    func asKind(_ kind: Kind) -> ProviderError { ProviderError(kind, detail: detail) }
}
