import GRDB
import OortModel

/// One row of the map: an entry with its id and its folder.
struct PlaceRow: Sendable {
    var id: Int64
    /// The folder's row; nil of the root.
    var parent: Int64?
    var entry: PlaceEntry
    /// The number of the change that made the row what it is.
    var changed: Int64
    /// Whether the last listing did not name it.
    var isMissing: Bool

    init(_ row: Row) {
        id = row["id"]
        parent = row["parent"]
        changed = row["changed"]
        isMissing = row["is_missing"]
        let name: String = row["name"]
        let isFolder: Bool = row["is_folder"]
        if isFolder {
            entry = .folder(name)
        } else {
            entry = .file(
                name,
                size: row["size"] ?? 0,
                revision: Revision(row["revision"] ?? ""),
                modifiedTime: nil
            )
        }
        entry.modifiedTime = Self.time(row["modified"], row["modified_nanoseconds"])
        entry.storedTime = Self.time(row["stored"], row["stored_nanoseconds"])
        entry.createdTime = Self.time(row["created"], row["created_nanoseconds"])
        entry.mimeType = row["mime_type"]
        entry.hash = (row["hash"] as String?).flatMap { ContentHash(description: $0) }
        entry.key = row["item_key"]
        let permissions: Int64 = row["permissions"]
        entry.permissions = Permissions(rawValue: UInt8(truncatingIfNeeded: permissions))
        entry.isOwn = row["is_own"]
        entry.owner = row["owner"]
        entry.isShared = row["is_shared"]
        entry.hasThumbnail = row["has_thumbnail"]
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
        ]
    }

    /// The entry as the map gives it back, so that two can be compared.
    var kept: PlaceEntry {
        var entry = self
        entry.stamp = nil
        entry.isYoung = false
        return entry
    }

    /// Whether the name can be an entry's: what cannot is not shown.
    var hasName: Bool {
        !name.isEmpty && !name.isSameText(as: ".") && !name.isSameText(as: "..")
            && !name.utf8.contains(0) && !name.utf8.contains(UInt8(ascii: "/"))
    }
}
