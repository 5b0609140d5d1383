import GRDB
import OortModel

/// The end of a run of the feed, within a transaction: what was told to be gone and not told
/// elsewhere since, is.
///
/// A removal by path may be half of a move, and a folder that is not found may have lost its
/// content to other folders before: such an item *may be gone* (`motion.remote_state` 3) until
/// the last page of a run has been applied.
struct RunEnd {
    private(set) var transaction: CatalogTransaction
    /// Items that must be asked for by themselves.
    private(set) var unsure: Set<ItemID>
    private let account: AccountID
    /// Items that operations of ours touched after the last page was asked for.
    private let suspects: Set<ItemID>

    private var database: Database { transaction.database }

    init(
        _ transaction: CatalogTransaction,
        account: AccountID,
        suspects: Set<ItemID>,
        unsure: Set<ItemID>
    ) {
        self.transaction = transaction
        self.account = account
        self.suspects = suspects
        self.unsure = unsure
    }

    /// What may still be gone is gone, but for what must be asked for.
    mutating func decideWhatMayBeGone() throws {
        let nodes = try database.all(
            """
            SELECT \(Node.columns) FROM node WHERE inode IN
                (SELECT inode FROM motion WHERE account = ? AND remote_state = 3)
            """,
            [account.rawValue],
            Node.init(columns:)
        )
        for node in nodes {
            // Found to be missing, or touched, since this page was asked for, or told by an earlier one
            // that may be older than that.
            if let id = node.remoteID, try suspects.contains(id) || isUnsure(id) {
                unsure.insert(id)
            } else {
                try takeOut(node)
            }
        }
    }

    private func isUnsure(_ id: ItemID) throws -> Bool {
        try unsure.contains(id)
            || database.has(
                "SELECT 1 FROM unsure WHERE account = ? AND remote_id = ?",
                [account.rawValue, id.rawValue]
            )
    }

    /// What lies in a folder by a path that no folder has must be asked for: a folder that was not
    /// told with what lies in it has another path by now.
    mutating func doubtMisplaced() throws {
        unsure.formUnion(
            try database.all(
                """
                SELECT remote_id FROM node WHERE remote_id IS NOT NULL AND inode IN
                    (SELECT inode FROM motion WHERE account = ? AND remote_state = 1
                        AND remote_parent_id >= '/' AND remote_parent_id < '0')
                """,
                [account.rawValue]
            ) { ItemID($0[0] as String) }
        )
    }

    /// What an enumeration did not name is gone; what was made here meanwhile is not.
    mutating func takeOutUnnamed(in enumeration: Int64) throws {
        let nodes = try database.all(
            """
            SELECT \(Node.columns) FROM node
            WHERE account = ? AND remote_id IS NOT NULL AND enumeration < ? AND parent IS NOT 1
            """,
            [account.rawValue, enumeration],
            Node.init(columns:)
        )
        for node in nodes {
            guard let still = try Catalog.fetch(node.inode, database), let id = still.remoteID
            else { continue }
            let motion = try Catalog.motion(still.inode, database)
            if motion?.remoteState == .gone { continue }
            if suspects.contains(id) || motion?.intent != nil {
                unsure.insert(id)
            } else {
                try takeOut(still, of: enumeration)
            }
        }
        try database.run("UPDATE account SET enumerated = 1 WHERE id = ?", [account.rawValue])
    }

    private mutating func takeOut(_ node: Node, of enumeration: Int64? = nil) throws {
        switch try transaction.takeOutGone(node, suspects, unnamedIn: enumeration) {
        case .takenOut(let ids): unsure.subtract(ids)
        case .doubtful(let ids): unsure.formUnion(ids)
        }
    }
}

extension Catalog {
    /// Whether there are items of which a run of the feed must tell whether they are gone.
    public func hasAnyThatMayBeGone(_ account: AccountID) async throws(CatalogError) -> Bool {
        try await readAsync { database in
            try database.has(
                "SELECT 1 FROM motion WHERE account = ? AND remote_state = 3 LIMIT 1",
                [account.rawValue]
            )
        }
    }
}

/// What became of an item that was told to be gone.
enum GoneOutcome {
    /// It is out of the remote tree with all below it, which these are: nothing of them is open.
    case takenOut(Set<ItemID>)
    /// It may still be gone: these of what lies below it must be asked for first.
    case doubtful(Set<ItemID>)
}

extension CatalogTransaction {
    /// Notes that an item was told to be gone, which the end of a run of the feed decides.
    mutating func setMayBeGone(_ node: Node) throws {
        try startMotion(node)
        try database.run("UPDATE motion SET remote_state = 3 WHERE inode = ?", [node.inode.column])
    }

    /// An item is gone at the service with all below it.
    ///
    /// A tree that is clean vanishes at once; the rest is the planner's. What an operation of ours
    /// touched since this was asked for may lie elsewhere by now: it is asked for by itself, and a
    /// later run of the feed decides of the whole.
    ///
    /// With `enumeration` nothing was said of the item but that it was not named: where something
    /// below it was, one of the two changed meanwhile, and the next run of the feed tells which.
    mutating func takeOutGone(
        _ node: Node,
        _ suspects: Set<ItemID>,
        unnamedIn enumeration: Int64? = nil
    ) throws -> GoneOutcome {
        let tree = try RemoteSubtree(of: node, database)
        let doubtful = try doubtful(in: tree, below: node, suspects)
        guard doubtful.isEmpty else {
            try setMayBeGone(node)
            return .doubtful(doubtful)
        }
        if let enumeration,
            try tree.has(
                """
                SELECT 1 FROM node WHERE inode IN (SELECT value FROM json_each(?))
                    AND enumeration >= ? LIMIT 1
                """,
                [enumeration],
                database
            )
        {
            try setMayBeGone(node)
            return .doubtful([])
        }
        let outcome = GoneOutcome.takenOut(try tree.ids(database))
        if try isClean(tree, below: node) {
            try forget(tree, tellsKernel: true)
        } else {
            try setGone(tree)
        }
        return outcome
    }

    /// What lies below an item and may lie elsewhere by now.
    private func doubtful(
        in tree: RemoteSubtree,
        below top: Node,
        _ suspects: Set<ItemID>
    ) throws -> Set<ItemID> {
        guard tree.inodes.count > 1 else { return [] }
        var found = try tree.ids(database, where: "motion.intent IS NOT NULL")
        if !suspects.isEmpty { found.formUnion(try tree.ids(database).intersection(suspects)) }
        if let id = top.remoteID { found.remove(id) }
        return found
    }

    /// Whether nobody here has anything in a tree that the service would not know.
    private func isClean(_ tree: RemoteSubtree, below top: Node) throws -> Bool {
        if let motion = try Catalog.motion(top.inode, database), !motion.isOnlyRemovedByPath {
            return false
        }
        // What is written to a file is to be found in it.
        if tree.inodes.contains(where: writers.isOpen) { return false }
        // A pipe, or what was made here, may lie in a folder.
        return try !tree.has(
            """
            SELECT 1 FROM json_each(?) AS item WHERE
                item.value IS NOT ? AND item.value IN (SELECT inode FROM motion)
                OR EXISTS (SELECT 1 FROM node WHERE node.parent = item.value AND
                    (node.remote_id IS NULL OR node.inode IN (SELECT inode FROM motion)))
            LIMIT 1
            """,
            [top.inode.column],
            database
        )
    }
}

extension MotionRow {
    /// Whether the service was heard not to have the item, for certain or perhaps.
    var isHeardMissing: Bool { remoteState == .gone || remoteState == .mayBeGone }
    /// Whether the item was clean until a removal by path put it in motion.
    fileprivate var isOnlyRemovedByPath: Bool { remoteState == .mayBeGone && changed == 0 }
}
