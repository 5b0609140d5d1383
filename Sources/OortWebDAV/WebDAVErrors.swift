import Foundation
import OortModel
public import OortTransport

/// Reads servers' errors: by status, then by the class that the sabre family names in its body.
enum WebDAVErrors {
    /// What a request was about, since one status means different things.
    enum Subject: Sendable {
        /// An item: 404 means that it is gone.
        case item
        /// A folder that is to hold something: 404 and 409 mean that it is gone.
        case parent
        /// An upload session: 404 means that it is over.
        case session
    }

    /// The class and message of a sabre family's error; nil where the body is from another program.
    static func sabre(_ body: [UInt8]) -> (exception: String, message: String)? {
        guard body.count <= 1 << 20, let root = try? XMLScanner.document(body),
            root.name.local == "error", let exception = root.child(.sabre("exception"))?.trimmed
        else { return nil }
        let last = exception.parts(between: "\\").last.map(String.init) ?? exception
        return (last, root.child(.sabre("message"))?.trimmed ?? "")
    }

    /// Whether an answer says that the whole server is under maintenance.
    static func isMaintenance(_ response: HTTPResponse) -> Bool {
        guard response.head.status == 503 else { return false }
        if response.head.header("X-Nextcloud-Maintenance-Mode") == "1" { return true }
        guard let sabre = sabre(response.body) else { return false }
        // A healthy server gives an unavailable storage the same class as a pending update.
        return sabre.exception == "ServerMaintenanceMode"
            || sabre.message.lowercased().contains("maintenance")
            || sabre.message.lowercased().contains("upgrade needed")
    }

    /// The error that an answer without success is.
    static func error(_ response: HTTPResponse, about subject: Subject) -> ProviderError {
        let status = response.head.status
        let sabre = sabre(response.body)
        var detail = ["status \(status)"]
        if let sabre { detail.append(String("\(sabre.exception) \(sabre.message)".prefix(160))) }
        if let id = response.head.header("x-request-id") {
            detail.append("request \(id.prefix(40))")
        }
        let text = detail.joined(separator: ", ")
        if isMaintenance(response) {
            return ProviderError(.offline, detail: "the server is under maintenance (\(text))")
        }
        if (300..<400).contains(status) {
            return ProviderError(
                .malformedAnswer,
                detail: "the server sends on to another address (\(text)): sign in again with the "
                    + "address that a browser shows"
            )
        }
        return ProviderError(
            kind(
                status,
                exception: sabre?.exception ?? "",
                message: sabre?.message ?? "",
                retryAfter: response.head.retryAfter,
                about: subject
            ),
            detail: text
        )
    }

    private static func kind(
        _ status: Int,
        exception: String,
        message: String,
        retryAfter: Duration?,
        about subject: Subject
    ) -> ProviderError.Kind {
        switch status {
        case 400:
            if exception == "InvalidPath" { return .nameRefused }
            let words = message.lowercased()
            if words.contains("name validation") || words.contains("naming rules") {
                return .nameRefused
            }
            if words.contains("checksum") || words.contains("sum up") { return .contentDamaged }
            return .badRequest
        // That the account is refused as a whole is another matter (`WebDAVAPI.note`).
        case 401: return .noPermission
        case 403: return exception == "InvalidPath" ? .nameRefused : .noPermission
        case 404, 410:
            return switch subject {
            case .item: .notFound
            case .parent: .parentNotFound
            case .session: .sessionLost
            }
        case 405, 415, 501: return .unsupported
        case 408: return .outcomeUnknown(retryAfter: retryAfter)
        case 409:
            return if case .parent = subject { .parentNotFound } else { .badRequest }
        case 412: return .preconditionFailed
        case 413:
            return message.lowercased().contains("insufficient") ? .quotaExceeded : .tooLarge
        case 414, 431: return .nameTooLong
        case 423, 424, 425: return .locked
        case 429, 509: return .rateLimited(retryAfter: retryAfter)
        case 500 where exception == "ForbiddenException": return .nameRefused
        case 507: return .quotaExceeded
        case 500...: return .outcomeUnknown(retryAfter: retryAfter)
        case 200..<300: return .malformedAnswer
        default: return .badRequest
        }
    }
}

extension AnswerRules {
    /// What WebDAV servers' errors mean to the transport.
    ///
    /// A refused password is never sent again automatically: servers lock out whoever tries too often.
    public static let webDAV = AnswerRules { answer in
        switch answer.head.status {
        case 401: return .final
        case 503 where WebDAVErrors.isMaintenance(answer): return .final
        case 500, 503: return WebDAVErrors.sabre(answer.body) == nil ? fault(answer) : .final
        case 520...524: return .unknown(retryAfter: answer.head.retryAfter)
        default: return fault(answer)
        }
    }

    private static func fault(_ answer: HTTPResponse) -> Meaning {
        AnswerRules.standard.meaning(answer)
    }
}

extension ProviderError {
    /// The same error as another kind, where the caller knows more than the answer said.
    func asKind(_ kind: Kind) -> ProviderError { ProviderError(kind, detail: detail) }

    /// The error of a write that was answered as done, but not confirmed by a look: something between here
    /// and the server may have answered in its place.
    var ofUnconfirmedWrite: ProviderError {
        let unknown = asUnknownOutcome
        return unknown.isOutcomeUnknown ? unknown : asKind(.outcomeUnknown(retryAfter: nil))
    }
}
