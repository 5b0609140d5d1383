import OortModel
public import OortTransport

/// Reads the error answers of S3 and its kin: by the code in the body, else by status.
///
/// Source: docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html; what differs in practice is
/// in docs/providers/s3.md.
enum S3Errors {
    /// What a request was about, since one answer means different things.
    enum Subject: Sendable {
        /// The bucket, or a listing of it.
        case bucket
        /// An object that is meant to be there.
        case object
        /// A key at which something new is to be.
        case creation
        /// An upload in parts.
        case session
    }

    /// An error answer's own words.
    struct Words {
        var code: String
        var message: String
        var region: String?
    }

    /// The words of an error's body; nil where there are none.
    static func words(in body: [UInt8]) -> Words? {
        guard !body.isEmpty, body.count <= 1 << 20,
            let root = try? S3Element(document: body), root.name == "Error",
            let code = root.text(of: "Code")
        else { return nil }
        return Words(
            code: code,
            message: root.text(of: "Message") ?? "",
            region: root.text(of: "Region")
        )
    }

    /// The error that an answer without success is.
    static func error(_ response: HTTPResponse, about subject: Subject) -> ProviderError {
        let words = words(in: response.body)
        return error(
            status: response.head.status,
            head: response.head,
            words: words,
            about: subject
        )
    }

    static func error(
        status: Int,
        head: HTTPResponseHead,
        words: Words?,
        about subject: Subject
    ) -> ProviderError {
        let code = words?.code ?? ""
        let kind = kind(
            status: status,
            code: code,
            retryAfter: head.retryAfter,
            about: subject
        )
        var detail = "status \(status)"
        if let words {
            detail += ", \(String(words.code.prefix(80)))"
            if !words.message.isEmpty { detail += ": \(String(words.message.prefix(200)))" }
        }
        if let id = head.header("x-amz-request-id") { detail += ", request \(id.prefix(80))" }
        if let sentence = sentence(kind, code: code, status: status) {
            detail = "\(sentence) (\(detail))"
        }
        return ProviderError(kind, detail: detail)
    }

    /// The classes of objects that may have to be restored before they can be read.
    static let archives: Set<String> = ["GLACIER", "DEEP_ARCHIVE", "INTELLIGENT_TIERING"]

    /// The refusal of an object that is known to be archived.
    static let archived = ProviderError(.contentBlocked, detail: archivedWords)

    private static let archivedWords =
        "the object is archived: restore it at the store, then it can be read"

    /// What the person should know and do.
    private static func sentence(
        _ kind: ProviderError.Kind,
        code: String,
        status: Int
    ) -> String? {
        switch code {
        case "InvalidObjectState": return archivedWords
        case "NoSuchVersion": return "the store has this version no longer"
        case "NoSuchBucket": return "there is no bucket of this name"
        case "InvalidAccessKeyId": return "the store does not know this access key"
        case "SignatureDoesNotMatch":
            return "the store refuses the signature: the secret key is not the access key's"
        case "ExpiredToken", "TokenRefreshRequired", "InvalidToken":
            return "the keys have ended: sign in with newer ones"
        case _ where clockCodes.contains(code):
            return "this machine's clock is wrong: set it, since signatures hold the time"
        case _ where regionCodes.contains(code):
            return "the bucket lies in another region: name it by --region"
        default: break
        }
        return kind == .noPermission && status == 403 ? "the keys may not do this" : nil
    }

    private static let clockCodes: Set<String> = [
        "RequestTimeTooSkewed", "RequestExpired", "ExpiredRequest",
    ]
    private static let regionCodes: Set<String> = [
        "AuthorizationHeaderMalformed", "PermanentRedirect", "TemporaryRedirect",
        "IllegalLocationConstraintException",
    ]
    /// The keys are not taken (any more).
    static let keyCodes: Set<String> = [
        "InvalidAccessKeyId", "SignatureDoesNotMatch", "NotSignedUp", "Unauthorized",
        "ExpiredToken", "TokenRefreshRequired", "InvalidToken",
    ]
    /// Certainly not done; sooner or later it will be.
    static let patienceCodes: Set<String> = [
        "SlowDown", "ServiceUnavailable", "TooManyRequests", "RequestRateLimitExceeded",
    ]
    /// The body did not arrive as it was sent, so nothing was stored.
    static let damagedBodyCodes: Set<String> = [
        "BadDigest", "InvalidDigest", "XAmzContentSHA256Mismatch", "IncompleteBody",
        "RequestTimeout",
    ]

    private static func kind(
        status: Int,
        code: String,
        retryAfter: Duration?,
        about subject: Subject
    ) -> ProviderError.Kind {
        switch code {
        case "AccessDenied", "AllAccessDisabled", "AccountProblem", "MethodNotAllowed",
            "NoSuchBucket":
            // A missing bucket must never mean that all files are gone.
            return .noPermission
        case _ where keyCodes.contains(code): return .signedOut
        case _ where clockCodes.contains(code) || regionCodes.contains(code): return .noPermission
        case "InvalidObjectState": return .contentBlocked
        case "NoSuchKey", "NoSuchVersion": return .notFound
        case "NoSuchUpload", "InvalidPart", "InvalidPartOrder", "EntityTooSmall":
            return .sessionLost
        case "ConditionalRequestConflict", "OperationAborted", "InvalidBucketState":
            return .rateLimited(retryAfter: retryAfter)
        case "PreconditionFailed":
            return subject == .creation ? .nameTaken : .preconditionFailed
        case "KeyTooLongError": return .nameTooLong
        case "InvalidURI", "InvalidObjectName", "XMinioInvalidObjectName",
            "XMinioInvalidResourceName":
            return .nameRefused
        case "InvalidArgument": return subject == .creation ? .nameRefused : .badRequest
        case "XMinioObjectExistsAsDirectory", "XMinioParentIsObject", "ExistingObjectIsDirectory",
            "ExistingObjectIsFile":
            return .nameTaken
        case "EntityTooLarge": return .tooLarge
        case _ where damagedBodyCodes.contains(code): return .rateLimited(retryAfter: nil)
        case _ where patienceCodes.contains(code): return .rateLimited(retryAfter: retryAfter)
        case "NotImplemented": return .unsupported
        case "QuotaExceeded", "XMinioStorageFull": return .quotaExceeded
        default: break
        }
        switch status {
        case 401: return .signedOut
        case 403, 405: return .noPermission
        case 404: return subject == .session ? .sessionLost : .notFound
        case 409: return .rateLimited(retryAfter: retryAfter)
        case 412: return subject == .creation ? .nameTaken : .preconditionFailed
        case 413: return .tooLarge
        case 414: return .nameTooLong
        case 429: return .rateLimited(retryAfter: retryAfter)
        case 501: return .unsupported
        case 503 where retryAfter != nil: return .rateLimited(retryAfter: retryAfter)
        case 507: return .quotaExceeded
        case 500...: return .outcomeUnknown(retryAfter: retryAfter)
        // A store that redirects says so in its own words; otherwise a network did, whose users must log in
        // first.
        case 200..<400: return .malformedAnswer
        default: return .badRequest
        }
    }
}

extension AnswerRules {
    /// The rules of S3 and its kin, whose errors are told apart by the codes in their bodies.
    public static let s3 = AnswerRules { answer in
        let code = S3Errors.words(in: answer.body)?.code ?? ""
        if S3Errors.keyCodes.contains(code) { return .tokenRejected }
        if S3Errors.patienceCodes.contains(code) || code == "RequestTimeout" {
            return .notDone(retryAfter: answer.head.retryAfter)
        }
        return AnswerRules.standard.meaning(answer)
    }
}

extension RequestBounds {
    /// How many requests of an account of S3 may be in flight: AWS grants thousands a second to keys that
    /// begin with one prefix, wants many at once, and answers 503 when there were too many.
    public static let s3 = RequestBounds(first: 16, most: 32)
}

extension ProviderError {
    /// The same error as another kind, where the caller knows more than the answer said.
    func asKind(_ kind: Kind) -> ProviderError { ProviderError(kind, detail: detail) }
}
