import Foundation
import OortModel
public import OortTransport

/// A refusal as Box words it: status and `code`, by which alone we decide.
///
/// Source: developer.box.com, guides api-calls/permissions-and-errors; docs/providers/box.md.
struct BoxFailure: Sendable {
    /// The item that has a name already.
    struct Conflict: Decodable, Sendable {
        var type: String?
        var id: BoxText?
        var sha1: String?
    }

    var status: Int
    var code: String
    var message: String
    var conflicts: [Conflict]
    var retryAfter: Duration?
    private var requestID: String

    init(_ response: HTTPResponse) {
        self.init(head: response.head, body: response.body)
    }

    /// A 401 may have no body at all, and front ends answer HTML.
    init(head: HTTPResponseHead, body: [UInt8]) {
        status = head.status
        retryAfter = head.retryAfter
        let wire = try? JSONDecoder().decode(Wire.self, from: Data(body))
        code = wire?.code ?? wire?.error ?? ""
        message = String((wire?.message ?? "").prefix(200))
        conflicts = wire?.context_info?.conflicts ?? []
        requestID = wire?.request_id ?? head.header("box-request-id") ?? ""
    }

    private struct Wire: Decodable {
        var code: String?
        /// Where the token host or a gateway answers.
        var error: String?
        var message: String?
        var request_id: String?
        var context_info: Context?
    }

    /// For other errors it holds other things, which mean nothing here.
    private struct Context: Decodable {
        var conflicts: [Conflict]

        private enum CodingKeys: String, CodingKey { case conflicts }

        init(from decoder: any Decoder) throws {
            let container = try? decoder.container(keyedBy: CodingKeys.self)
            // A list of one for folders, the item itself for files.
            if let list = try? container?.decode([Conflict].self, forKey: .conflicts) {
                conflicts = list
            } else if let one = try? container?.decode(Conflict.self, forKey: .conflicts) {
                conflicts = [one]
            } else {
                conflicts = []
            }
        }
    }

    /// The refusal in canonical words.
    var error: ProviderError {
        let parts = ["Box answered \(status)", code, message, requestID].filter { !$0.isEmpty }
        return ProviderError(kind, detail: parts.joined(separator: ", "))
    }

    /// Whether a move, copy or deletion of a tree is under way that this one would meet.
    var isBlocked: Bool { status == 409 && code == "operation_blocked_temporary" }

    private var kind: ProviderError.Kind {
        switch (status, code) {
        case (_, "password_reset_required"), (_, "terms_of_service_required"),
            (_, "user_email_confirmation_required"), (_, "access_from_location_blocked"):
            // The person has to do something on Box's website.
            .signedOut
        case (_, "storage_limit_exceeded"): .quotaExceeded
        case (_, "file_size_limit_exceeded"): .tooLarge
        case (400, "item_name_invalid"): .nameRefused
        case (400, "item_name_too_long"): .nameTooLong
        case (400, "bad_digest"): .contentDamaged
        case (400, "cyclical_folder_structure"): .moveIntoItself
        case (400, "folder_not_empty"): .preconditionFailed
        case (400, _): .badRequest
        case (401, _): .signedOut
        // Not in Box's own words: something on the way answered, which knows nothing of the item.
        case (403, ""), (404, ""): .outcomeUnknown(retryAfter: retryAfter)
        case (403, "access_denied_item_locked"): .locked
        case (403, _): .noPermission
        case (404, _): .notFound
        case (409, "item_name_in_use"): .nameTaken
        // An equal request is under way, perhaps our own without an answer.
        case (409, "name_temporarily_reserved"):
            .outcomeUnknown(retryAfter: retryAfter ?? .seconds(1))
        case (409, "operation_blocked_temporary"): .locked
        case (410, _): .sessionLost
        case (412, _): .preconditionFailed
        case (413, _): .tooLarge
        case (429, _): .rateLimited(retryAfter: retryAfter)
        case (408, _), (500..., _): .outcomeUnknown(retryAfter: retryAfter)
        // Box never redirects here: a network did, whose users must log in first.
        case (200..<400, _): .malformedAnswer
        default: .badRequest
        }
    }
}

extension AnswerRules {
    /// The standard's rules, but that a write may take effect after a 503, whatever it says of when
    /// to come again.
    public static let box = AnswerRules { answer in
        guard answer.head.status == 503 else { return AnswerRules.standard.meaning(answer) }
        return .unknown(retryAfter: answer.head.retryAfter)
    }
}

extension RequestBounds {
    /// Box grants 1,000 calls a minute, of which the person's own programs want some.
    public static let box = RequestBounds(first: 4, most: 6)
}
