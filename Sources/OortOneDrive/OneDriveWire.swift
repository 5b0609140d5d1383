import Foundation
import OortModel

// Microsoft Graph's JSON, as far as it is used. Every field may be missing: which ones come depends
// on the kind of drive, the kind of item and the call.

/// A driveItem.
struct DriveItemWire: Decodable, Sendable {
    var id: String?
    var name: String?
    var size: ReportedSize?
    var eTag: String?
    var cTag: String?
    var description: String?
    var createdDateTime: String?
    var lastModifiedDateTime: String?
    var fileSystemInfo: FileSystemInfoWire?
    var file: FileWire?
    var folder: FolderWire?
    var package: MarkerWire?
    var root: MarkerWire?
    var deleted: MarkerWire?
    var malware: MarkerWire?
    var image: MarkerWire?
    var photo: MarkerWire?
    var video: MarkerWire?
    var remoteItem: RemoteItemWire?
    var parentReference: ParentReferenceWire?
    var createdBy: IdentityWire?
    var lastModifiedBy: IdentityWire?
    var shared: MarkerWire?
    var downloadURL: String?

    private enum CodingKeys: String, CodingKey {
        case id, name, size, eTag, cTag, description, createdDateTime, lastModifiedDateTime
        case fileSystemInfo, file, folder, package, root, deleted, malware, image, photo, video
        case remoteItem, parentReference, createdBy, lastModifiedBy, shared
        case downloadURL = "@microsoft.graph.downloadUrl"
    }
}

/// Who did something to an item.
struct IdentityWire: Decodable, Sendable {
    struct User: Decodable, Sendable {
        var id: String?
        var displayName: String?
    }
    var user: User?
}

/// A facet of which only the presence counts; decodes from anything but null.
struct MarkerWire: Decodable, Sendable {
    init(from decoder: any Decoder) {}
}

/// The times that the client may set.
struct FileSystemInfoWire: Codable, Sendable {
    var createdDateTime: String?
    var lastModifiedDateTime: String?
}

/// The facet of files.
struct FileWire: Decodable, Sendable {
    struct Hashes: Decodable, Sendable {
        var quickXorHash: String?
    }
    var mimeType: String?
    var hashes: Hashes?
}

/// The facet of folders.
struct FolderWire: Decodable, Sendable {
    var childCount: Int64?
}

/// Where an item lies.
struct ParentReferenceWire: Decodable, Sendable {
    var driveId: String?
    var driveType: String?
    var id: String?
    var path: String?
}

/// What lives in another drive.
struct RemoteItemWire: Decodable, Sendable {
    var id: String?
    var size: ReportedSize?
    var eTag: String?
    var fileSystemInfo: FileSystemInfoWire?
    var lastModifiedDateTime: String?
    var createdDateTime: String?
    var file: FileWire?
    var folder: FolderWire?
    var package: MarkerWire?
    var parentReference: ParentReferenceWire?
}

/// One page of items: a listing, or the change feed.
struct ItemPageWire: Decodable, Sendable {
    var value: [DriveItemWire]
    var nextLink: String?
    var deltaLink: String?

    private enum CodingKeys: String, CodingKey {
        case value
        case nextLink = "@odata.nextLink"
        case deltaLink = "@odata.deltaLink"
    }
}

/// A drive.
struct DriveWire: Decodable, Sendable {
    struct Owner: Decodable, Sendable {
        struct User: Decodable, Sendable {
            var id: String?
            var displayName: String?
            var email: String?
        }
        var user: User?
    }
    struct Quota: Decodable, Sendable {
        var total: Int64?
        var used: Int64?
    }
    var id: String?
    var driveType: String?
    var owner: Owner?
    var quota: Quota?
}

/// The person.
struct UserWire: Decodable, Sendable {
    var displayName: String?
    var userPrincipalName: String?
    var mail: String?
}

/// An upload session, and its state.
struct UploadSessionWire: Decodable, Sendable {
    var uploadUrl: String?
    var expirationDateTime: String?
    var nextExpectedRanges: [String]?

    /// The first byte that the service misses; only that number of the ranges means anything.
    var nextExpectedByte: Int64? {
        guard let first = nextExpectedRanges?.first else { return nil }
        return Int64(first.prefix { $0 != "-" })
    }
}

/// How far a copy has come.
struct CopyMonitorWire: Decodable, Sendable {
    struct Failure: Decodable, Sendable {
        var code: String?
    }
    var status: String?
    var resourceId: String?
    var errorCode: String?
    var error: Failure?
}

/// An item's pictures.
struct ThumbnailSetsWire: Decodable, Sendable {
    struct Picture: Decodable, Sendable {
        var url: String?
    }
    struct ThumbnailSet: Decodable, Sendable {
        var small: Picture?
        var medium: Picture?
        var large: Picture?
    }
    var value: [ThumbnailSet]
}

/// The answers of a batch, in any order.
struct BatchAnswerWire: Decodable, Sendable {
    struct Answer: Decodable, Sendable {
        var id: String
        var status: Int
        var headers: [String: String]?
        /// The body as JSON text again, so that it is read like any other answer's.
        var body: [UInt8]

        private enum CodingKeys: String, CodingKey { case id, status, headers, body }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            id = try container.decode(String.self, forKey: .id)
            status = try container.decode(Int.self, forKey: .status)
            headers = try? container.decodeIfPresent([String: String].self, forKey: .headers)
            let body = try container.decodeIfPresent(JSONValue.self, forKey: .body)
            self.body = try body.map { Array(try JSONEncoder().encode($0)) } ?? []
        }
    }
    var responses: [Answer]
}

/// Any JSON value.
enum JSONValue: Codable, Sendable {
    case null
    case bool(Bool)
    case integer(Int64)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Int64.self) {
            self = .integer(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSONValue].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .integer(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .string(let value): try container.encode(value)
        case .array(let value): try container.encode(value)
        case .object(let value): try container.encode(value)
        }
    }
}

// What is sent.

/// What to do when a name is taken.
enum ConflictBehavior: String, Encodable, Sendable {
    case fail
    case replace
}

/// The attributes of an item that is created or changed; nil is left out.
struct ItemChangeWire: Encodable, Sendable {
    struct Parent: Encodable, Sendable {
        var driveId: String?
        var id: String
    }
    struct Empty: Encodable, Sendable {}

    var name: String?
    var parentReference: Parent?
    var fileSystemInfo: FileSystemInfoWire?
    var description: String?
    var folder: Empty?
    var conflictBehavior: ConflictBehavior?
    var fileSize: Int64?

    enum CodingKeys: String, CodingKey {
        case name, parentReference, fileSystemInfo, description, folder, fileSize
        case conflictBehavior = "@microsoft.graph.conflictBehavior"
    }
}

/// The body that opens an upload session.
struct NewUploadSessionWire: Encodable, Sendable {
    var item: ItemChangeWire
}

/// A batch of requests.
struct BatchRequestWire: Encodable, Sendable {
    struct Request: Encodable, Sendable {
        var id: String
        var method: String
        var url: String
        var headers: [String: String]?
        var body: Body?
    }

    /// The JSON that a part sends.
    enum Body: Encodable, Sendable {
        case change(ItemChangeWire)
        case session(NewUploadSessionWire)

        func encode(to encoder: any Encoder) throws {
            switch self {
            case .change(let wire): try wire.encode(to: encoder)
            case .session(let wire): try wire.encode(to: encoder)
            }
        }
    }
    var requests: [Request]
}

extension FileSystemInfoWire {
    /// Times for the service, which keeps whole seconds.
    init(modified: Timestamp, created: Timestamp? = nil) {
        self.init(
            createdDateTime: created?.rfc3339(.seconds),
            lastModifiedDateTime: modified.rfc3339(.seconds)
        )
    }
}
