import OortModel

/// What Box's answers and requests hold, in its own field names.
enum BoxWire {
    /// A file, folder or web link; any field may be missing or null.
    struct Item: Decodable, Sendable {
        var type: String
        var id: BoxText
        var sequence_id: BoxText?
        var etag: BoxText?
        var sha1: String?
        var name: String?
        var size: BoxNumber?
        var parent: Reference?
        var created_at: String?
        var content_created_at: String?
        var modified_at: String?
        var content_modified_at: String?
        var trashed_at: String?
        var item_status: String?
        var file_version: Reference?
        var description: String?
        var permissions: Permissions?
        var owned_by: Person?
        var created_by: Person?
        var modified_by: Person?
        var url: String?
        var shared_link: SharedLink?
        /// Not in events.
        var tags: [String]?
        var path_collection: Above?

        /// One list everywhere: what is asked for is all that comes, but for type, id and etag.
        static let fields = [
            "type", "id", "sequence_id", "etag", "sha1", "name", "size", "parent", "created_at",
            "content_created_at", "modified_at", "content_modified_at", "item_status",
            "file_version", "description", "permissions", "owned_by", "created_by", "modified_by",
            "url", "shared_link", "tags",
        ].joined(separator: ",")
    }

    /// The folders above an item, the account's root first.
    struct Above: Decodable, Sendable {
        struct Folder: Decodable, Sendable {
            var id: BoxText?
        }

        var total_count: BoxNumber?
        var entries: [Folder]?
    }

    /// Who did something.
    struct Person: Decodable, Sendable {
        var id: BoxText?
        var name: String?
    }

    /// What is named by its id.
    struct Reference: Codable, Sendable {
        var type: String?
        var id: BoxText

        init(_ id: String, type: String? = nil) {
            self.type = type
            self.id = BoxText(id)
        }
    }

    struct Permissions: Decodable, Sendable {
        var can_download: Bool?
        var can_upload: Bool?
        var can_rename: Bool?
        var can_delete: Bool?
        var can_share: Bool?
    }

    struct User: Decodable, Sendable {
        var id: BoxText
        var name: String?
        var login: String?
        var space_amount: BoxNumber?
        var space_used: BoxNumber?
        var max_upload_size: BoxNumber?

        static let fields = "id,name,login,space_amount,space_used,max_upload_size"
    }

    /// What a listing or an event names: the item, and its id alone where the rest cannot be read.
    struct Entry: Decodable, Sendable {
        var item: Item?
        /// Nil for what is none of the tree, and for what cannot be read at all.
        var id: BoxID?

        init(from decoder: any Decoder) throws {
            item = try? Item(from: decoder)
            if let item {
                id = item.boxID
            } else {
                id = (try? Reference(from: decoder)).flatMap { BoxID(type: $0.type, id: $0.id) }
            }
        }
    }

    struct Listing: Decodable, Sendable {
        var entries: [Entry]?
        var next_marker: String?
        var total_count: BoxNumber?

        /// Empty at the end, or null, or not there.
        var next: String? { next_marker.flatMap { $0.isEmpty ? nil : $0 } }
    }

    struct Uploaded: Decodable, Sendable { var entries: [Item] }

    // MARK: Events

    struct Events: Decodable, Sendable {
        var next_stream_position: BoxText
        var entries: [Event]?
    }

    struct Event: Decodable, Sendable {
        var event_id: String?
        var event_type: String?
        /// The item as it is now; nil where there is none.
        var source: Entry?

        private enum CodingKeys: String, CodingKey { case event_id, event_type, source }

        /// Never fails: one unreadable event is no reason to skip all others.
        init(from decoder: any Decoder) throws {
            guard let container = try? decoder.container(keyedBy: CodingKeys.self) else { return }
            event_id = (try? container.decodeIfPresent(BoxText.self, forKey: .event_id))?.text
            event_type = try? container.decodeIfPresent(String.self, forKey: .event_type)
            // Of other things than items other fields come.
            source = try? container.decodeIfPresent(Entry.self, forKey: .source)
        }
    }

    struct Servers: Decodable, Sendable {
        struct Server: Decodable, Sendable {
            var type: String?
            var url: String
            var max_retries: BoxText?
        }
        var entries: [Server]
    }

    struct News: Decodable, Sendable { var message: String? }

    // MARK: Changes

    /// What of an item is to be set; what is nil stays.
    struct Change: Encodable, Sendable {
        var name: String?
        var parent: Reference?
        var description: String?
        var content_created_at: String?
        var content_modified_at: String?
        /// The version of a file that is copied.
        var version: String?
    }

    /// What an upload may do before its bytes are sent.
    struct Preflight: Encodable, Sendable {
        var name: String
        var parent: Reference
        var size: Int64
    }

    // MARK: Upload sessions

    struct NewSession: Encodable, Sendable {
        var folder_id: String?
        var file_size: Int64
        var file_name: String?
    }

    struct Session: Codable, Sendable {
        struct Endpoints: Codable, Sendable {
            var upload_part: String
            var commit: String
            var abort: String?
            var list_parts: String
        }
        var part_size: Int64
        var session_expires_at: String?
        var session_endpoints: Endpoints
    }

    struct Part: Codable, Sendable {
        var part_id: String
        var offset: Int64
        var size: Int64
        var sha1: String?
    }

    struct UploadedPart: Decodable, Sendable { var part: Part }

    struct Parts: Decodable, Sendable {
        var entries: [Part]
        var total_count: Int64?
    }

    struct Commit: Encodable, Sendable {
        var parts: [Part]
        var attributes: Change
    }

    // MARK: Versions and links

    struct Versions: Decodable, Sendable {
        var entries: [Version]
        var total_count: BoxNumber?
    }

    struct Version: Decodable, Sendable {
        struct Author: Decodable, Sendable { var name: String? }
        var id: BoxText
        var size: BoxNumber?
        var created_at: String?
        var modified_at: String?
        var trashed_at: String?
        var modified_by: Author?
    }

    struct SharedLink: Decodable, Sendable {
        var url: String
        var access: String?
        var unshared_at: String?
        var is_password_enabled: Bool?
        /// `can_edit`, `can_download`, `can_preview` or `no_access`.
        var effective_permission: String?
    }

    struct Sharing: Encodable, Sendable {
        struct Link: Encodable, Sendable {
            struct Rights: Encodable, Sendable { var can_download: Bool }
            var access = "open"
            var password: String?
            var unshared_at: String?
            /// Folders and files that can be seen can be fetched.
            var permissions = Rights(can_download: true)
        }
        /// Nil takes the link back.
        var shared_link: Link?

        private enum CodingKeys: String, CodingKey { case shared_link }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(shared_link, forKey: .shared_link)
        }
    }
}

/// A text that some answers write as a number: ids, tags, places in the stream of events.
struct BoxText: Codable, Hashable, Sendable {
    var text: String

    init(_ text: String) { self.text = text }

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let text = try? container.decode(String.self) {
            self.text = text
        } else if let number = try? container.decode(Int64.self) {
            text = String(number)
        } else {
            text = String(try container.decode(UInt64.self))
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}

/// A count of bytes or items, which huge ones come as `1.0e+18`.
struct BoxNumber: Decodable, Hashable, Sendable {
    /// From 0 to `ReportedSize.largest`.
    var value: Int64
    /// Whether what came was larger than what is taken for a size.
    var isHuge: Bool

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let number: Double
        if let text = try? container.decode(String.self) {
            number = Double(text) ?? -1
        } else {
            number = try container.decode(Double.self)
        }
        guard number >= 0 else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "not a size"
            )
        }
        isHuge = number > Double(ReportedSize.largest)
        value = isHuge ? ReportedSize.largest : Int64(number)
    }
}
