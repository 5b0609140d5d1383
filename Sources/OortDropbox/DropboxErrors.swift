import Foundation
import OortModel
public import OortTransport

/// Reads Dropbox's errors; no other file does.
enum DropboxErrors {
    /// An error union with all of its levels: `path/conflict/file` has three tags.
    struct Union: Decodable, Sendable, Equatable {
        /// The tags from the outside in.
        var tags: [String]
        /// Where a session goes on.
        var correctOffset: Int64?
        /// Seconds to wait.
        var retryAfter: Int64?

        private struct Key: CodingKey {
            var stringValue: String
            var intValue: Int? { nil }
            init?(stringValue: String) { self.stringValue = stringValue }
            init?(intValue: Int) { nil }
            init(_ name: String) { stringValue = name }
        }

        init(tags: [String]) { self.tags = tags }

        init(from decoder: any Decoder) throws {
            if let tag = try? decoder.singleValueContainer().decode(String.self) {
                tags = [tag]
                return
            }
            let container = try decoder.container(keyedBy: Key.self)
            retryAfter = try? container.decode(Int64.self, forKey: Key("retry_after"))
            correctOffset = try? container.decode(Int64.self, forKey: Key("correct_offset"))
            let tag = try container.decodeIfPresent(String.self, forKey: Key(".tag"))
            tags = tag.map { [$0] } ?? []
            // A rate limit's and an upload's inner union is called "reason".
            for name in [tag, "reason"].compactMap({ $0 }) {
                guard let inner = try? container.decode(Union.self, forKey: Key(name)) else {
                    continue
                }
                tags += inner.tags
                correctOffset = correctOffset ?? inner.correctOffset
                retryAfter = retryAfter ?? inner.retryAfter
                break
            }
        }

        func has(_ tag: String) -> Bool { tags.contains(tag) }
        /// The tags as the service's summaries join them.
        var summary: String { tags.joined(separator: "/") }
    }

    private struct Envelope: Decodable { var error: Union }

    /// The error behind an answer of another status than 2xx.
    static func error(_ response: HTTPResponse) -> ProviderError {
        let union = try? JSONDecoder().decode(Envelope.self, from: Data(response.body)).error
        let head = response.head
        let request = head.header("X-Dropbox-Request-Id") ?? "none"
        let detail = "\(head.status) \(union?.summary ?? "") (request \(request))"
        let kind: ProviderError.Kind
        switch head.status {
        case 400: kind = .badRequest
        case 401: kind = union?.has("missing_scope") == true ? .noPermission : .signedOut
        case 403: kind = .noPermission
        case 409, 422:
            guard let union else { return ProviderError(.malformedAnswer, detail: detail) }
            kind = self.kind(union)
        case 410: kind = .notFound
        case 429:
            kind = .rateLimited(
                retryAfter: head.retryAfter ?? Duration(reportedSeconds: union?.retryAfter ?? 1)
            )
        case 500...: kind = .outcomeUnknown(retryAfter: head.retryAfter)
        default: kind = .malformedAnswer
        }
        return ProviderError(kind, detail: detail)
    }

    /// The error of one entry of a batch.
    static func error(_ union: Union) -> ProviderError {
        ProviderError(kind(union), detail: "entry: \(union.summary)")
    }

    private static let kinds: [(tag: String, kind: ProviderError.Kind)] = [
        ("reset", .cursorLost),
        ("lookup_failed", .sessionLost),
        ("too_many_write_operations", .rateLimited(retryAfter: nil)),
        ("too_many_requests", .rateLimited(retryAfter: nil)),
        ("internal_error", .outcomeUnknown(retryAfter: nil)),
        ("retry_error", .outcomeUnknown(retryAfter: .seconds(5))),
        ("cant_move_folder_into_itself", .moveIntoItself),
        ("too_many_files", .limitExceeded),
        ("file_ancestor", .notAFolder),
        ("conflict", .nameTaken),
        ("content_hash_mismatch", .contentDamaged),
        ("incorrect_offset", .sessionLost),
        ("payload_too_large", .tooLarge),
        ("too_large", .tooLarge),
        ("file_too_large", .tooLarge),
        ("insufficient_space", .quotaExceeded),
        ("insufficient_quota", .quotaExceeded),
        ("not_file", .notAFile),
        ("not_folder", .notAFolder),
        ("malformed_path", .nameRefused),
        ("disallowed_name", .nameRefused),
        ("restricted_content", .contentBlocked),
        ("locked", .locked),
        ("unsupported_content_type", .unsupported),
        ("unsupported_file", .unsupported),
        ("non_exportable", .unsupported),
        ("invalid_export_format", .unsupported),
        ("unsupported_extension", .unsupported),
        ("unsupported_image", .unsupported),
        ("conversion_error", .unsupported),
        ("encrypted_content", .unsupported),
        ("no_write_permission", .noPermission),
        ("access_restricted", .noPermission),
        ("operation_suppressed", .noPermission),
        ("team_folder", .noPermission),
        ("no_permission", .noPermission),
        ("cant_copy_shared_folder", .noPermission),
        ("cant_nest_shared_folder", .noPermission),
        ("cant_move_shared_folder", .noPermission),
        ("cant_transfer_ownership", .noPermission),
        ("cant_move_into_vault", .noPermission),
        ("cant_move_into_family", .noPermission),
        ("invalid_revision", .notFound),
        ("shared_link_already_exists", .nameTaken),
        ("shared_link_not_found", .notFound),
        // A plan without ends and passwords.
        ("not_authorized", .unsupported),
        ("invalid_settings", .unsupported),
        ("email_not_verified", .noPermission),
        ("access_denied", .noPermission),
        ("shared_link_access_denied", .noPermission),
        ("not_found", .notFound),
    ]

    /// What a route's error means; the first tag of the table that it has decides.
    ///
    /// New tags appear without notice: an unknown one is a refusal.
    static func kind(_ union: Union) -> ProviderError.Kind {
        if let found = kinds.first(where: { union.has($0.tag) }) { return found.kind }
        if union.tags.contains(where: {
            $0.hasSuffix("insufficient_space") || $0.hasSuffix("insufficient_quota")
                || $0 == "upload_traffic_limit_reached"
        }) {
            return .quotaExceeded
        }
        if union.tags.contains(where: { $0.hasPrefix("concurrent_session_") }) {
            return .sessionLost
        }
        return .badRequest
    }
}

extension AnswerRules {
    /// Dropbox's own: a token without a scope is not refreshed, and a busy namespace
    /// (`too_many_write_operations`), which may come as a route's error, is waited out.
    public static let dropbox = AnswerRules { answer in
        let error = DropboxErrors.error(answer)
        switch (answer.head.status, error.kind) {
        case (401, .noPermission): return .final
        case (409, .rateLimited(let after)): return .notDone(retryAfter: after ?? .seconds(1))
        case (429, .rateLimited(let after)): return .notDone(retryAfter: after)
        default: return AnswerRules.standard.meaning(answer)
        }
    }
}
