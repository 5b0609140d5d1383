import Foundation
import OortModel

/// The media types that say at Drive what an item is.
enum DriveType {
    static let folder = "application/vnd.google-apps.folder"
    static let shortcut = "application/vnd.google-apps.shortcut"
    static let nativePrefix = "application/vnd.google-apps."
}

/// An id as Drive answers it; an empty one is none.
@propertyWrapper
struct DriveID: Decodable, Sendable {
    var wrappedValue: String

    init(wrappedValue: String) { self.wrappedValue = wrappedValue }

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        wrappedValue = try container.decode(String.self)
        guard !wrappedValue.isEmpty else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "an empty id")
        }
    }
}

/// A `files` resource of Drive v3, with the fields that Oort asks for; v2 answers are translated.
struct DriveFile: Decodable, Sendable {
    struct Capabilities: Decodable, Sendable {
        var canEdit: Bool?
        var canTrash: Bool?
        var canShare: Bool?
        var canDownload: Bool?
        var canAddChildren: Bool?
    }

    struct ShortcutDetails: Decodable, Sendable {
        var targetId: String?
    }

    struct User: Decodable, Sendable {
        var me: Bool?
        var displayName: String?
        /// What v2 calls `me`.
        var isAuthenticatedUser: Bool?

        /// The name, if it is another person's.
        var othersName: String? { me ?? isAuthenticatedUser == true ? nil : displayName }
    }

    @DriveID var id: String
    var name: String?
    var mimeType: String?
    var parents: [String]?
    var description: String?
    var originalFilename: String?
    var createdTime: String?
    var modifiedTime: String?
    var size: ReportedSize?
    var md5Checksum: String?
    var headRevisionId: String?
    var version: String?
    var trashed: Bool?
    var driveId: String?
    var ownedByMe: Bool?
    var owners: [User]?
    var shared: Bool?
    var lastModifyingUser: User?
    var sharedWithMeTime: String?
    var hasThumbnail: Bool?
    var shortcutDetails: ShortcutDetails?
    var capabilities: Capabilities?

    /// The `fields` mask that fills all of the above.
    static let fields =
        "id,name,mimeType,parents,description,originalFilename,createdTime,modifiedTime,size,"
        + "md5Checksum,headRevisionId,version,trashed,driveId,ownedByMe,sharedWithMeTime,"
        + "hasThumbnail,shortcutDetails(targetId),lastModifyingUser(me,displayName),"
        + "owners(me,displayName),shared,"
        + "capabilities(canEdit,canTrash,canShare,canDownload,canAddChildren)"
}

/// A `files` resource of Drive v2, which alone has an ETag to put into If-Match.
struct DriveFileV2: Decodable, Sendable {
    struct Parent: Decodable, Sendable {
        var id: String
    }

    struct Labels: Decodable, Sendable {
        var trashed: Bool?
    }

    @DriveID var id: String
    var etag: String?
    var title: String?
    var mimeType: String?
    var parents: [Parent]?
    var description: String?
    var originalFilename: String?
    var createdDate: String?
    var modifiedDate: String?
    var fileSize: ReportedSize?
    var md5Checksum: String?
    var headRevisionId: String?
    var version: String?
    var labels: Labels?
    var driveId: String?
    var ownedByMe: Bool?
    var owners: [DriveFile.User]?
    var shared: Bool?
    var sharedWithMeDate: String?
    var thumbnailLink: String?
    var capabilities: DriveFile.Capabilities?

    static let fields =
        "id,etag,title,mimeType,parents(id),description,originalFilename,createdDate,modifiedDate,"
        + "fileSize,md5Checksum,headRevisionId,version,labels(trashed),driveId,ownedByMe,"
        + "owners(isAuthenticatedUser,displayName),shared,sharedWithMeDate,thumbnailLink,"
        + "capabilities(canEdit,canTrash,canShare,canDownload,canAddChildren)"

    /// The same file in v3's words.
    var v3: DriveFile {
        DriveFile(
            id: id,
            name: title,
            mimeType: mimeType,
            parents: parents.map { $0.map(\.id) },
            description: description,
            originalFilename: originalFilename,
            createdTime: createdDate,
            modifiedTime: modifiedDate,
            size: fileSize,
            md5Checksum: md5Checksum,
            headRevisionId: headRevisionId,
            version: version,
            trashed: labels?.trashed,
            driveId: driveId,
            ownedByMe: ownedByMe,
            owners: owners,
            shared: shared,
            lastModifyingUser: nil,
            sharedWithMeTime: sharedWithMeDate,
            hasThumbnail: thumbnailLink != nil,
            shortcutDetails: nil,
            capabilities: capabilities
        )
    }
}

/// A page of `files.list`.
struct DriveFileList: Decodable, Sendable {
    var files: [DriveFile]?
    var nextPageToken: String?

    static let fields = "nextPageToken,files(\(DriveFile.fields))"
}

/// One entry of `changes.list`.
struct DriveChange: Decodable, Sendable {
    var changeType: String?
    var removed: Bool?
    var time: String?
    var fileId: String?
    var file: DriveFile?
    var driveId: String?
    var drive: DriveDrive?
}

/// A page of `changes.list`.
struct DriveChangeList: Decodable, Sendable {
    var changes: [DriveChange]?
    var nextPageToken: String?
    var newStartPageToken: String?

    static let fields =
        "nextPageToken,newStartPageToken,changes(changeType,removed,time,fileId,driveId,"
        + "drive(\(DriveDrive.fields)),file(\(DriveFile.fields)))"
}

struct DriveStartPageToken: Decodable, Sendable {
    var startPageToken: String
}

/// A shared drive; its id is also the id of its root folder.
struct DriveDrive: Decodable, Sendable {
    struct Capabilities: Decodable, Sendable {
        var canAddChildren: Bool?
    }

    var id: String
    var name: String?
    var createdTime: String?
    var capabilities: Capabilities?

    static let fields = "id,name,createdTime,capabilities(canAddChildren)"
}

struct DriveDriveList: Decodable, Sendable {
    var drives: [DriveDrive]?
    var nextPageToken: String?
}

struct DriveAbout: Decodable, Sendable {
    struct User: Decodable, Sendable {
        var displayName: String?
        var emailAddress: String?
        var permissionId: String?
    }

    struct StorageQuota: Decodable, Sendable {
        var limit: String?
        var usage: String?
    }

    var user: User?
    var storageQuota: StorageQuota?
}

struct DriveGeneratedIDs: Decodable, Sendable {
    var ids: [String]
}

/// Where the exports of one document and its picture lie.
struct DriveLinks: Decodable, Sendable {
    var exportLinks: [String: String]?
    var thumbnailLink: String?
}

/// The body of a create, update or copy: only what is meant to be set.
struct DriveMetadata: Encodable, Sendable {
    var id: String?
    var name: String?
    var parents: [String]?
    var mimeType: String?
    var modifiedTime: String?
    var description: String?
    var trashed: Bool?
}

/// The body of an update by v2.
struct DriveMetadataV2: Encodable, Sendable {
    var title: String?
    var description: String?
    var mimeType: String?
    var modifiedDate: String?
}
