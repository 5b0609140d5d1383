import GRDB
import OortModel
import OortPlanner

/// One row of `motion`, as far as the trees need it.
struct MotionRow {
    /// What the service last reported, compared with the base.
    enum RemoteState: Int64 {
        case asSynced = 0
        case present = 1
        case gone = 2
        /// Reported as gone; the end of a run of the feed decides (`RunEnd`).
        case mayBeGone = 3
    }

    static let columns = """
        motion.changed_ms, motion.synced_parent, motion.synced_name, motion.synced_revision, \
        motion.synced_hash, motion.synced_size, motion.synced_modified_s, \
        motion.synced_modified_ns, motion.synced_description, motion.remote_state, \
        motion.remote_parent_id, motion.remote_item, motion.next_try_ms, motion.intent, \
        motion.attempts, motion.error_kind, motion.error_detail
        """

    var changed: Int64
    var syncedParent: Inode?
    var syncedName: String
    var syncedRevision: Revision?
    var syncedHash: ContentHash?
    var syncedSize: Int64
    var syncedModified: Timestamp?
    var syncedDescription: String?
    var remoteState: RemoteState
    var remoteParentID: String?
    var remoteItem: StoredItem?
    var nextTry: Int64
    var intent: Intent?
    var attempts: Int64
    var errorKind: String?
    var errorDetail: String?

    /// Reads a row of `columns` that begin at `start`.
    init(columns row: Columns, from start: Int) throws {
        changed = row[start]
        syncedParent = (row[start + 1] as Int64?).map { Inode(column: $0) }
        syncedName = row[start + 2] ?? ""
        syncedRevision = (row[start + 3] as String?).map { Revision($0) }
        syncedHash = (row[start + 4] as String?).flatMap { ContentHash(description: $0) }
        syncedSize = row[start + 5] ?? 0
        syncedModified = Timestamp(seconds: row[start + 6], nanoseconds: row[start + 7])
        syncedDescription = row[start + 8]
        remoteState = RemoteState(rawValue: row[start + 9]) ?? .asSynced
        remoteParentID = row[start + 10]
        remoteItem = try (row[start + 11] as String?).map { try StoredItem(json: $0) }
        nextTry = row[start + 12]
        intent = try (row[start + 13] as String?).map { try Intent(json: $0) }
        attempts = row[start + 14]
        errorKind = row[start + 15]
        errorDetail = row[start + 16]
    }

    /// Whether the base has the modified time that the service reports, as finely as the service keeps it.
    func isModified(asIn item: StoredItem) -> Bool {
        guard let mine = syncedModified, let told = item.modifiedTime else { return false }
        return mine.isKept(as: told)
    }
}

extension Timestamp {
    /// Whether a service that was given this time may report it as `told`: as finely as it keeps times.
    func isKept(as told: Timestamp) -> Bool {
        told == self || told == truncated(to: .milliseconds) || told == truncated(to: .seconds)
    }
}

/// The remote tree, which differs from the local one only in items in motion.
extension Catalog {
    static func motion(_ inode: Inode, _ database: Database) throws -> MotionRow? {
        try database.first(
            "SELECT \(MotionRow.columns) FROM motion WHERE inode = ?",
            [inode.column]
        ) { try MotionRow(columns: $0, from: 0) }
    }

    static func node(
        _ id: String,
        in account: AccountID,
        _ database: Database
    ) throws -> Node? {
        try database.first(
            "SELECT \(Node.columns) FROM node WHERE account = ? AND remote_id = ?",
            [account.rawValue, id],
            Node.init(columns:)
        )
    }

    /// The folder of an id; nil where the id is a file's, which a service may have reported as a parent.
    static func folder(
        _ id: String,
        in account: AccountID,
        _ database: Database
    ) throws -> Node? {
        let node = try node(id, in: account, database)
        return node?.kind == .folder ? node : nil
    }

    /// Where the service has an item, as last reported; nil when it does not have it.
    static func remotePlace(of node: Node, _ database: Database) throws -> Place? {
        guard let motion = try motion(node.inode, database) else {
            return node.parent.map { Place(parent: $0, name: node.serviceName) }
        }
        switch motion.remoteState {
        case .gone: return nil
        case .asSynced, .mayBeGone:
            return motion.syncedParent.map { Place(parent: $0, name: motion.syncedName) }
        case .present:
            guard let item = motion.remoteItem, let id = motion.remoteParentID,
                let parent = try folder(id, in: node.account, database)
            else { return nil }
            return Place(parent: parent.inode, name: item.fileName)
        }
    }

    /// How the service is asked for an item: by id, and by the path last reported.
    static func reference(_ inode: Inode, _ database: Database) throws -> ItemReference? {
        guard let node = try fetch(inode, database), let id = node.remoteID else { return nil }
        var names: [String] = []
        var next = node
        var seen: Set<Inode> = []
        while !next.isAccountRoot {
            if let path = try pathMark(of: next, database) {
                names += path.parts.reversed()
                break
            }
            guard let place = try remotePlace(of: next, database),
                let parent = try fetch(place.parent, database), seen.insert(next.inode).inserted
            else { return nil }
            names.append(place.name)
            next = parent
        }
        return ItemReference(id: id, path: RemotePath(names.reversed()))
    }

    /// Where an item is whose folder was reported by a path that is not known.
    private static func pathMark(of node: Node, _ database: Database) throws -> RemotePath? {
        guard let motion = try motion(node.inode, database), motion.remoteState == .present,
            let path = motion.remoteParentID.flatMap(pathOfMark), let item = motion.remoteItem
        else { return nil }
        return path.appending(item.fileName)
    }

    /// The folder's path, where a mark is one (`Observer.parentMark`); nil for an id.
    static func pathOfMark(_ mark: String) -> RemotePath? {
        guard let path = mark.dropping(beginning: "/") else { return nil }
        return RemotePath(path.parts(between: "/").filter { !$0.isEmpty }.map(String.init))
    }

    /// The items in a folder at the service, as last reported; with `onlyRenamed` without clean ones that
    /// are shown under their own name, which may be very many.
    static func remoteChildren(
        of folder: Node,
        onlyRenamed: Bool = false,
        limit: Int = -1,
        _ database: Database
    ) throws -> [Node] {
        let names = onlyRenamed ? " AND service_name IS NOT NULL" : ""
        var found: [Node] = []
        for (index, some) in remoteChildrenRows(of: folder).enumerated() {
            found += try database.all(
                """
                SELECT \(Node.columns) FROM node
                WHERE \(some.condition)\(index == 0 ? names : "") LIMIT ?
                """,
                some.arguments + StatementArguments([limit]),
                Node.init(columns:)
            )
        }
        return found
    }

    /// Whether a folder at the service, as last reported, has an item for which this account lacks a right.
    static func hasRemoteChild(
        of folder: Node,
        lacking permission: Permissions,
        _ database: Database
    ) throws -> Bool {
        for some in remoteChildrenRows(of: folder) {
            let isThere = try database.has(
                "SELECT 1 FROM node WHERE \(some.condition) AND permissions & ? = 0 LIMIT 1",
                some.arguments + StatementArguments([Int64(permission.rawValue)])
            )
            if isThere { return true }
        }
        return false
    }

    /// The rows of a folder's items at the service: clean ones, those in motion without news, and those
    /// that were reported to be there.
    private static func remoteChildrenRows(
        of folder: Node
    ) -> [(condition: String, arguments: StatementArguments)] {
        var rows: [(condition: String, arguments: StatementArguments)] = [
            (
                """
                parent = ? AND remote_id IS NOT NULL AND inode NOT IN (SELECT inode FROM motion)
                """,
                [folder.inode.column]
            ),
            (
                """
                inode IN (SELECT inode FROM motion WHERE synced_parent = ?
                    AND remote_state IN (0, 3))
                """,
                [folder.inode.column]
            ),
        ]
        if let id = folder.remoteID {
            rows.append(
                (
                    """
                    inode IN (SELECT inode FROM motion WHERE account = ? AND remote_parent_id = ?
                        AND remote_state = 1)
                    """,
                    [folder.account.rawValue, id.rawValue]
                )
            )
        }
        return rows
    }
}
