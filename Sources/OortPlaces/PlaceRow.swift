import GRDB
import OortModel

/// One row of the map: an entry with its id and its folder.
struct PlaceRow: FetchableRecord, Sendable {
    var id: Int64
    /// The folder's row; nil of the root.
    var parent: Int64?
    var entry: PlaceEntry
    /// The number of the row's last change.
    var changed: Int64
    /// Whether the last listing did not name it.
    var isMissing: Bool
    /// Whether it is a folder whose last listing was refused.
    var isClosed: Bool
    /// Of a file: the number of the last change that brought a size and second back which it had with
    /// another content; 0 where none did.
    var recurrence: Int64

    /// The columns of a row, in the order in which they are read: reading by position is faster than by
    /// name.
    static let columns = """
        id, parent, changed, is_missing, name, is_folder, size, revision, modified, modified_nanoseconds,
        stored, stored_nanoseconds, created, created_nanoseconds, mime_type, hash, item_key, permissions,
        is_own, owner, is_shared, has_thumbnail, is_closed, recurrence, shared_with, tags,
        mount
        """

    init(row: Row) {
        id = row[0]
        parent = row[1]
        changed = row[2]
        isMissing = row[3]
        let name: String = row[4]
        let isFolder: Bool = row[5]
        if isFolder {
            entry = .folder(name)
        } else {
            entry = .file(
                name,
                size: row[6] ?? 0,
                revision: Revision(row[7] ?? ""),
                modifiedTime: nil
            )
        }
        entry.modifiedTime = Self.time(row[8], row[9])
        entry.storedTime = Self.time(row[10], row[11])
        entry.createdTime = Self.time(row[12], row[13])
        entry.mimeType = row[14]
        entry.hash = (row[15] as String?).flatMap { ContentHash(description: $0) }
        entry.key = row[16]
        let permissions: Int64 = row[17]
        entry.permissions = Permissions(rawValue: UInt8(truncatingIfNeeded: permissions))
        entry.isOwn = row[18]
        entry.owner = row[19]
        entry.isShared = row[20]
        entry.hasThumbnail = row[21]
        isClosed = row[22]
        recurrence = row[23]
        entry.sharedWith = (row[24] as String?).map { TextList(joined: $0) } ?? TextList()
        entry.tags = (row[25] as String?).map { TextList(joined: $0) }
        entry.mount = (row[26] as Int64?).flatMap { PlaceEntry.Mount(rawValue: $0) }
    }

    private static func time(_ seconds: Int64?, _ nanoseconds: Int64?) -> Timestamp? {
        seconds.map {
            Timestamp(seconds: $0, nanoseconds: Int32(clamping: nanoseconds ?? 0))
        }
    }
}

extension PlaceEntry {
    /// What the map keeps of an entry: columns and values, without the name.
    var columns: [(String, (any DatabaseValueConvertible)?)] {
        [
            ("is_folder", kind == .folder),
            ("size", size),
            ("revision", revision?.rawValue),
            ("modified", modifiedTime?.seconds),
            ("modified_nanoseconds", modifiedTime.map { Int64($0.nanoseconds) }),
            ("stored", storedTime?.seconds),
            ("stored_nanoseconds", storedTime.map { Int64($0.nanoseconds) }),
            ("created", createdTime?.seconds),
            ("created_nanoseconds", createdTime.map { Int64($0.nanoseconds) }),
            ("mime_type", mimeType),
            ("hash", hash?.description),
            ("item_key", key),
            ("permissions", Int64(permissions.rawValue)),
            ("is_own", isOwn),
            ("owner", owner),
            ("is_shared", isShared),
            ("has_thumbnail", hasThumbnail),
            ("shared_with", sharedWith.isEmpty ? nil : sharedWith.joined),
            ("tags", tags?.joined),
            ("mount", mount?.rawValue),
        ]
    }

    /// The entry as the map gives it back, so that two can be compared.
    var kept: PlaceEntry {
        var entry = self
        entry.stamp = nil
        entry.isYoung = false
        return entry
    }

    /// Whether the name can be an entry's: an entry whose name cannot is not shown.
    var hasName: Bool {
        !name.isEmpty && !name.isSameText(as: ".") && !name.isSameText(as: "..")
            && !name.utf8.contains(0) && !name.utf8.contains(UInt8(ascii: "/"))
    }
}
