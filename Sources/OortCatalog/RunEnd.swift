import GRDB
import OortModel

/// The end of a run of the feed, within a transaction: an item that was reported as gone, and not reported
/// elsewhere since, is gone.
///
/// A removal by path may be half of a move, and a folder that is not found may have lost its contents to
/// other folders before: such an item *may be gone* (`motion.remote_state` 3) until the last page of a run
/// has been applied.
struct RunEnd {
    private(set) var transaction: CatalogTransaction
    /// Items that must be asked for by themselves.
    private(set) var unsure: Set<ItemID>
    private let account: AccountID
    /// Items that operations of ours touched after the last page was asked for.
    private let touched: Set<ItemID>
    /// All items that are not taken out with a folder: those above, and those that were to be asked for
    /// before this end; nil until they are needed.
    private var doubts: Set<ItemID>?

    private var database: Database { transaction.database }

    init(
        _ transaction: CatalogTransaction,
        account: AccountID,
        touched: Set<ItemID>,
        unsure: Set<ItemID>
    ) {
        self.transaction = transaction
        self.account = account
        self.touched = touched
        self.unsure = unsure
    }

    /// Items that may still be gone are gone, except for those that must be asked for.
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
            // An operation of ours touched it since this page was asked for, or it is to be asked for.
            if let id = node.remoteID, try allDoubts().contains(id) {
                doubt([id])
            } else {
                try takeOut(node)
            }
        }
    }

    private mutating func doubt(_ ids: Set<ItemID>) {
        unsure.formUnion(ids)
        doubts?.formUnion(ids)
    }

    private mutating func allDoubts() throws -> Set<ItemID> {
        if let doubts { return doubts }
        let found = try Set(
            database.all("SELECT remote_id FROM unsure WHERE account = ?", [account.rawValue]) {
                ItemID($0[0] as String)
            }
        )
        let all = found.union(touched).union(unsure)
        doubts = all
        return all
    }

    /// Makes items unsure that were reported in a folder by a path that no folder has: a folder that was
    /// reported without its contents has another path by now.
    mutating func doubtMisplaced() throws {
        doubt(
            try Set(
                database.all(
                    """
                    SELECT remote_id FROM node WHERE remote_id IS NOT NULL AND inode IN
                        (SELECT inode FROM motion WHERE account = ? AND remote_state = 1
                            AND remote_parent_id >= '/' AND remote_parent_id < '0')
                    """,
                    [account.rawValue]
                ) { ItemID($0[0] as String) }
            )
        )
    }

    /// Takes out what an enumeration did not name, except for items made here meanwhile; those of `lagging` it
    /// may not show yet.
    mutating func takeOutUnnamed(in enumeration: Int64, lagging: Set<ItemID>) throws {
        let nodes = try database.all(
            """
            SELECT \(Node.columns) FROM node
            WHERE account = ? AND remote_id IS NOT NULL AND enumeration < ? AND parent IS NOT 1
            """,
            [account.rawValue, enumeration],
            Node.init(columns:)
        )
        // Once for all: an account may have lost many.
        let suspects = touched.union(lagging)
        doubts = try allDoubts().union(lagging)
        for node in nodes {
            guard let still = try Catalog.fetch(node.inode, database), let id = still.remoteID
            else { continue }
            let motion = try Catalog.motion(still.inode, database)
            if motion?.remoteState == .gone { continue }
            if suspects.contains(id) || motion?.intent != nil {
                doubt([id])
            } else {
                try takeOut(still, of: enumeration)
            }
        }
        try database.run(
            "UPDATE account SET enumerated = 1, enumeration_began_ms = NULL WHERE id = ?",
            [account.rawValue]
        )
    }

    private mutating func takeOut(_ node: Node, of enumeration: Int64? = nil) throws {
        // With a folder nothing goes that is to be asked for.
        switch try transaction.takeOutGone(node, allDoubts(), unnamedIn: enumeration) {
        case .takenOut(let ids): unsure.subtract(ids)
        case .doubtful(let ids): doubt(ids)
        }
    }
}

extension Catalog {
    /// Whether there are items for which a run of the feed must show whether they are gone.
    public func hasAnyThatMayBeGone(_ account: AccountID) async throws(CatalogError) -> Bool {
        try await readAsync { database in
            try database.has(
                "SELECT 1 FROM motion WHERE account = ? AND remote_state = 3 LIMIT 1",
                [account.rawValue]
            )
        }
    }
}

/// What became of an item that was reported as gone.
enum GoneOutcome {
    /// It is out of the remote tree with all below it, which are these items: none has to be asked for.
    case takenOut(Set<ItemID>)
    /// It may still be gone: these items below it must be asked for first.
    case doubtful(Set<ItemID>)
}

extension CatalogTransaction {
    /// Notes that an item was reported as gone, which the end of a run of the feed decides.
    mutating func setMayBeGone(_ node: Node) throws {
        try startMotion(node)
        try database.run("UPDATE motion SET remote_state = 3 WHERE inode = ?", [node.inode.column])
    }

    /// Takes an item that is gone at the service, with all below it, out of the remote tree.
    ///
    /// A clean tree vanishes at once; the planner decides about any other. Items that an operation of ours
    /// touched since this was asked for may lie elsewhere by now: they are asked for by themselves, and a
    /// later run of the feed decides about the whole.
    ///
    /// With `enumeration` the service reported nothing but that it did not name the item. If it named one
    /// below it, one of the two changed meanwhile, and the next run of the feed shows which.
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

    /// The items below an item that may lie elsewhere by now.
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

    /// Whether a tree has nothing here that the service does not know.
    private func isClean(_ tree: RemoteSubtree, below top: Node) throws -> Bool {
        if let motion = try Catalog.motion(top.inode, database), !motion.isOnlyRemovedByPath {
            return false
        }
        // A program that writes to a file must find it.
        if tree.inodes.contains(where: writers.isOpen) { return false }
        // A folder may hold a pipe, or something that was made here.
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
    /// Whether the service reported that it does not have the item, for certain or perhaps.
    var isHeardMissing: Bool { remoteState == .gone || remoteState == .mayBeGone }
    /// Whether nothing was changed here, and the service reported that the item may be gone.
    fileprivate var isOnlyRemovedByPath: Bool { remoteState == .mayBeGone && changed == 0 }
}
