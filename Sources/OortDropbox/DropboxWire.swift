import Foundation
import OortModel

/// Dropbox's JSON, field by field in its own spelling.
enum DropboxWire {
    // MARK: Account

    struct Account: Decodable, Sendable {
        struct Name: Decodable, Sendable { var display_name: String }
        var account_id: String
        var name: Name
        var email: String?
        var root_info: RootInfo
    }

    struct RootInfo: Decodable, Sendable {
        var root_namespace_id: String
        var home_namespace_id: String
    }

    struct SpaceUsage: Decodable, Sendable {
        struct Allocation: Decodable, Sendable {
            var allocated: Int64?
            /// A team's use; the member's own `used` is part of it.
            var used: Int64?
        }
        var used: Int64
        var allocation: Allocation
    }

    /// An answer of which nothing is wanted.
    struct Nothing: Decodable, Sendable { init(from decoder: any Decoder) throws {} }

    // MARK: Metadata

    struct Metadata: Decodable, Sendable {
        struct Sharing: Decodable, Sendable {
            var read_only: Bool?
            /// Only of a shared folder itself, where it is mounted; not of what is in it.
            var shared_folder_id: String?
        }
        struct Export: Decodable, Sendable {
            var export_as: String?
            var export_options: [String]?
        }

        /// Only where the type is polymorphic: file, folder or deleted.
        var tag: String?
        var name: String
        var path_display: String?
        var path_lower: String?
        var id: String?
        var client_modified: String?
        var server_modified: String?
        var rev: String?
        var size: ReportedSize?
        var is_downloadable: Bool?
        var content_hash: String?
        var export_info: Export?
        var sharing_info: Sharing?

        enum CodingKeys: String, CodingKey {
            case tag = ".tag"
            case name, path_display, path_lower, id, client_modified, server_modified, rev, size
            case is_downloadable, content_hash, export_info, sharing_info
        }
    }

    struct Listing: Decodable, Sendable {
        var entries: [Metadata]
        var cursor: String
        var has_more: Bool
    }

    struct ListFolder: Encodable, Sendable {
        var path: String
        var recursive = false
        var limit = 2000
        var include_deleted: Bool?
    }

    struct CursorArgument: Codable, Sendable { var cursor: String }

    struct LongPoll: Encodable, Sendable {
        var cursor: String
        var timeout: Int
    }

    struct LongPollResult: Decodable, Sendable {
        var changes: Bool
        var backoff: Int64?
    }

    struct PathArgument: Encodable, Sendable { var path: String }

    struct ListRevisions: Encodable, Sendable {
        var path: String
        var mode = "path"
        var limit = 100
    }

    struct Revisions: Decodable, Sendable {
        var is_deleted: Bool?
        var server_deleted: String?
        var entries: [Metadata]

        var deletedTime: Timestamp? { server_deleted.flatMap { Timestamp(rfc3339: $0) } }
    }

    struct Restore: Encodable, Sendable {
        var path: String
        var rev: String
    }

    // MARK: Links

    struct LinkSettings: Encodable, Sendable {
        var access: String?
        var expires: String?
        var require_password: Bool?
        var link_password: String?

        var isEmpty: Bool { access == nil && expires == nil && link_password == nil }
    }

    struct CreateLink: Encodable, Sendable {
        var path: String
        var settings: LinkSettings?
    }

    struct ListLinks: Encodable, Sendable {
        var path: String?
        var cursor: String?
        var direct_only: Bool?
    }

    struct LinkAddress: Encodable, Sendable { var url: String }

    struct SharedLink: Decodable, Sendable {
        struct Tagged: Decodable, Sendable {
            var tag: String
            enum CodingKeys: String, CodingKey { case tag = ".tag" }
        }
        struct Permissions: Decodable, Sendable {
            var link_access_level: Tagged?
            var resolved_visibility: Tagged?
            var require_password: Bool?
        }
        var url: String
        var id: String?
        var path_lower: String?
        var expires: String?
        var link_permissions: Permissions?

        /// Whether it opens for everybody who has it, or who knows its password too: not only for members
        /// of a team or of a shared folder.
        var isOpen: Bool {
            switch link_permissions?.resolved_visibility?.tag {
            case nil, "public", "password": true
            default: false
            }
        }
    }

    struct SharedLinks: Decodable, Sendable {
        var links: [SharedLink]
        var has_more: Bool
        var cursor: String?
    }

    // MARK: Other forms of content

    struct Search: Encodable, Sendable {
        struct Options: Encodable, Sendable {
            var path = ""
            var max_results = 100
            var filename_only = false
        }
        var query: String
        var options = Options()
    }

    struct SearchResult: Decodable, Sendable {
        struct Match: Decodable, Sendable { var metadata: Wrapping }
        /// Metadata, or of another kind that this protocol may have one day.
        struct Wrapping: Decodable, Sendable { var metadata: Metadata? }
        var matches: [Match]
        var has_more: Bool
        var cursor: String?
    }

    struct ExportArgument: Encodable, Sendable {
        var path: String
        var export_format: String?
    }

    struct Thumbnail: Encodable, Sendable {
        struct Resource: Encodable, Sendable {
            var tag = "path"
            var path: String
            enum CodingKeys: String, CodingKey {
                case tag = ".tag"
                case path
            }
        }
        var resource: Resource
        var format = "jpeg"
        var size: String
        var mode = "bestfit"
    }

    // MARK: Writing

    struct CreateFolder: Encodable, Sendable {
        var path: String
        var autorename = false
    }

    struct CreateFolders: Encodable, Sendable {
        var paths: [String]
        var autorename = false
    }

    struct Wrapped: Decodable, Sendable { var metadata: Metadata }

    struct Delete: Encodable, Sendable {
        var path: String
        var parent_rev: String?
    }

    struct Relocate: Encodable, Sendable {
        var from_path: String
        var to_path: String
    }

    struct Entries<Entry: Encodable & Sendable>: Encodable, Sendable { var entries: [Entry] }

    struct JobID: Encodable, Sendable { var async_job_id: String }

    /// A batch's launch or status: `complete`, `async_job_id`, `in_progress`, `failed`.
    struct Job: Decodable, Sendable {
        var tag: String
        var async_job_id: String?
        var entries: [BatchEntry]?

        enum CodingKeys: String, CodingKey {
            case tag = ".tag"
            case async_job_id, entries
        }
    }

    /// One entry's outcome, in the shape of any of the batches: the metadata lie in `metadata`, in
    /// `success`, or flat beside the tag.
    struct BatchEntry: Decodable, Sendable {
        var tag: String
        var metadata: Metadata?
        var failure: DropboxErrors.Union?

        private enum CodingKeys: String, CodingKey {
            case tag = ".tag"
            case metadata, success, failure, id
        }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            tag = try container.decode(String.self, forKey: .tag)
            failure = try container.decodeIfPresent(DropboxErrors.Union.self, forKey: .failure)
            if let moved = try container.decodeIfPresent(Metadata.self, forKey: .success) {
                metadata = moved
            } else if let inner = try container.decodeIfPresent(Metadata.self, forKey: .metadata) {
                metadata = inner
            } else if container.contains(.id) {
                var flat = try Metadata(from: decoder)
                flat.tag = nil
                metadata = flat
            }
        }
    }

    // MARK: Uploads

    enum Mode: Encodable, Hashable, Sendable {
        case add
        case overwrite
        case update(String)

        private enum CodingKeys: String, CodingKey {
            case tag = ".tag"
            case update
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            switch self {
            case .add: try container.encode("add", forKey: .tag)
            case .overwrite: try container.encode("overwrite", forKey: .tag)
            case .update(let revision):
                try container.encode("update", forKey: .tag)
                try container.encode(revision, forKey: .update)
            }
        }
    }

    struct Commit: Encodable, Sendable {
        var path: String
        var mode: Mode
        var client_modified: String?
        var mute = true
        /// Of `files/upload` only: the hash of this call's bytes.
        var content_hash: String?
    }

    struct SessionStart: Encodable, Sendable {
        var session_type = "concurrent"
    }

    struct SessionID: Decodable, Sendable { var session_id: String }

    struct SessionStartBatch: Encodable, Sendable { var num_sessions: Int }

    struct SessionIDs: Decodable, Sendable { var session_ids: [String] }

    struct SessionCursor: Codable, Sendable {
        var session_id: String
        var offset: Int64
    }

    struct SessionAppend: Encodable, Sendable {
        var cursor: SessionCursor
        var close: Bool
        var content_hash: String
    }

    struct SessionAppendBatch: Encodable, Sendable {
        struct Entry: Encodable, Sendable {
            var cursor: SessionCursor
            var length: Int64
            var close = true
        }
        var entries: [Entry]
        var content_hash: String
    }

    struct SessionFinish: Encodable, Sendable {
        var cursor: SessionCursor
        var commit: Commit
    }

    struct BatchResult: Decodable, Sendable { var entries: [BatchEntry] }

    // MARK: Coding

    static func encode(_ value: some Encodable) throws(ProviderError) -> [UInt8] {
        do {
            let encoder = JSONEncoder()
            encoder.outputFormatting = .withoutEscapingSlashes
            return Array(try encoder.encode(value))
        } catch {
            throw ProviderError(.badRequest, detail: "the argument cannot be written as JSON")
        }
    }

    /// The argument for a header field: everything outside of ASCII is escaped.
    ///
    /// Source: dropbox.com/developers/reference/json-encoding.
    static func headerText(_ value: some Encodable) throws(ProviderError) -> String {
        let text = String(decoding: try encode(value), as: UTF8.self)
        guard text.utf8.contains(where: { $0 >= 0x7F }) else { return text }
        var escaped = ""
        for unit in text.utf16 {
            if unit < 0x7F, let scalar = Unicode.Scalar(unit) {
                escaped.unicodeScalars.append(scalar)
            } else {
                let digits = String(unit, radix: 16)
                escaped += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }
        }
        return escaped
    }

    private static func place(_ error: any Error) -> String {
        let context: DecodingError.Context
        switch error as? DecodingError {
        case .typeMismatch(_, let found), .valueNotFound(_, let found), .dataCorrupted(let found):
            context = found
        case .keyNotFound(let key, let found):
            return (found.codingPath + [key]).map(\.stringValue).joined(separator: ".")
        default: return ""
        }
        return context.codingPath.map(\.stringValue).joined(separator: ".")
    }

    static func decode<Value: Decodable>(
        _ type: Value.Type,
        from bytes: [UInt8]
    ) throws(ProviderError) -> Value {
        do {
            return try JSONDecoder().decode(type, from: Data(bytes))
        } catch {
            // Only the place: the decoder's words would quote the answer, which may hold a secret.
            throw ProviderError(
                .malformedAnswer,
                detail: "not of the protocol: \(Self.place(error))"
            )
        }
    }
}
