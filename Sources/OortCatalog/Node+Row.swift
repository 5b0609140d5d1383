import GRDB
import OortModel

extension Node {
    /// The columns that `init(columns:)` reads, in its order.
    static let columns = """
        inode, account, parent, name, service_name, kind, size, modified_s, modified_ns, \
        changed_s, changed_ns, accessed_s, accessed_ns, created_s, created_ns, mode, owner, \
        grp, remote_id, revision, content_item, hash, staged, target, permissions, listed, \
        description, mime_type, born_s, plain_key, generation, is_strangers, held
        """

    /// How many columns `columns` names.
    static let columnCount = columns.split(separator: ",").count

    /// Reads a row of `columns`.
    ///
    /// The table is STRICT, so that no value is of another type.
    init(columns row: Columns) {
        inode = Inode(UInt64(bitPattern: row[0] as Int64))
        account = AccountID(row[1])
        parent = (row[2] as Int64?).map { Inode(UInt64(bitPattern: $0)) }
        name = row[3]
        storedServiceName = row[4]
        kind = NodeKind(rawValue: row[5]) ?? .file
        // An older version took any number for a size.
        size = min(max(row[6], 0), ReportedSize.largest)
        modified = Timestamp(
            seconds: row[7],
            nanoseconds: Int32(truncatingIfNeeded: row[8] as Int64)
        )
        changed = Timestamp(
            seconds: row[9],
            nanoseconds: Int32(truncatingIfNeeded: row[10] as Int64)
        )
        accessed = Timestamp(seconds: row[11], nanoseconds: row[12])
        created = Timestamp(seconds: row[13], nanoseconds: row[14])
        mode = (row[15] as Int64?).map { UInt16(truncatingIfNeeded: $0) }
        owner = (row[16] as Int64?).map { UInt32(truncatingIfNeeded: $0) }
        group = (row[17] as Int64?).map { UInt32(truncatingIfNeeded: $0) }
        remoteID = (row[18] as String?).map { ItemID($0) }
        revision = (row[19] as String?).map { Revision($0) }
        contentItem = (row[20] as String?).map { ItemID($0) }
        hash = (row[21] as String?).flatMap { ContentHash(description: $0) }
        staged = (row[22] as Int64?).map { ContentID($0) }
        target = row[23]
        permissions = Permissions(rawValue: UInt8(truncatingIfNeeded: row[24] as Int64))
        isListed = row[25] as Int64 != 0
        itemDescription = row[26]
        mimeType = row[27]
        born = (row[28] as Int64?).map { Timestamp(seconds: $0) }
        plainKey = row[29]
        generation = UInt64(bitPattern: row[30])
        isStrangers = row[31]
        isHeld = row[32] && remoteID == nil
    }
}

extension Inode {
    /// The number as SQLite keeps it.
    var column: Int64 { Int64(bitPattern: rawValue) }

    /// The number as SQLite kept it.
    init(column: Int64) { self.init(UInt64(bitPattern: column)) }
}
