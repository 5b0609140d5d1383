import GRDB
public import OortModel

/// Two folders that two machines made of one name in one folder, before either heard of the other, at a
/// service that holds a name twice.
///
/// They become one: the one that was made first stays, by the service's clock and then by the ids, so
/// that all machines agree. Only the machine that made the other one acts: its folder becomes the first
/// one, what lies in it is moved there, and what is left of the other one, which is empty then, is
/// deleted. Each step of that is what a program could have done by `mv` and `rmdir`. `Numbering` finds
/// the twins.
struct TwinFolders {
    /// The one that this machine made.
    var younger: Inode
    /// The one that stays at the service.
    var elder: Inode

    /// How much later than its twin a folder was made at most, in seconds: what people call alike on
    /// purpose has its second folder later.
    static let longestGap: Int64 = 120

    /// Whether all that lies in a folder at the service can be moved out of it, as far as is known.
    static func canLeave(_ folder: Node, _ database: Database) throws -> Bool {
        guard let id = folder.remoteID?.rawValue else { return false }
        // What comes into it first comes into it here; what we move into it, too.
        let isComing = try database.has(
            """
            SELECT 1 FROM motion WHERE account = ? AND (remote_state = 1 AND remote_parent_id = ?
                OR json_extract(intent, '$.kind') = 'move'
                    AND json_extract(intent, '$.folderID') = ?) LIMIT 1
            """,
            [folder.account.rawValue, id, id]
        )
        if isComing { return false }
        return try !Catalog.hasRemoteChild(of: folder, lacking: .write, database)
    }
}

extension Catalog {
    /// Says that others are about to be let into an item: a folder is no twin of another one from then on.
    public func noteShared(_ inode: Inode) async throws(CatalogError) {
        try await mutateAsync { transaction in
            transaction.touch(inode)
            try transaction.database.run(
                "UPDATE node SET born_s = NULL WHERE inode = ? AND kind = 0",
                [inode.column]
            )
        }
    }
}

extension CatalogTransaction {
    /// Makes one of two folders, where both still lie where they lay.
    ///
    /// The one that was here first keeps its number, as programs work in it.
    mutating func merge(_ twins: TwinFolders, _ rules: AccountNameRules) throws {
        guard let younger = try Catalog.fetch(twins.younger, database),
            let elder = try Catalog.fetch(twins.elder, database), let id = younger.remoteID,
            younger.parent != nil, younger.parent == elder.parent,
            try Catalog.motion(younger.inode, database) == nil,
            try Catalog.motion(elder.inode, database) == nil
        else { return }
        try startMotion(younger)
        try startMotion(elder)
        let rest = try leaveIdentity(of: younger)
        try stayAtService(in: rest, as: id, whatLiesIn: younger, at: .now)
        let (here, gone) =
            younger.inode.rawValue < elder.inode.rawValue ? (younger, elder) : (elder, younger)
        try leadIntents(into: elder.remoteID, to: here.inode, of: elder.account)
        if here.inode == younger.inode {
            let side = try takeRemoteSide(of: elder.inode)
            try give(side, to: younger.inode)
        }
        try takeLocalSide(of: elder, beside: younger, for: here.inode)
        try takeAttributes(of: gone.inode, for: here.inode)
        try reparent(gone.inode, to: here.inode, rules)
        try remove(gone)
        try restIfClean(here.inode)
        effects.locallyChanged.insert(younger.account)
    }

    /// What lies in a folder lies at the service, or is to appear there, in what is left of that.
    private mutating func stayAtService(
        in rest: Inode,
        as id: ItemID,
        whatLiesIn folder: Node,
        at now: Timestamp
    ) throws {
        let milliseconds = now.inMilliseconds
        try database.run(
            """
            INSERT INTO motion (inode, account, changed_ms, synced_parent, synced_name,
                synced_revision, synced_hash, synced_size, synced_modified_s, synced_modified_ns,
                synced_description)
            SELECT inode, account, 0, parent, ifnull(service_name, name), revision, hash, size,
                modified_s, modified_ns, description
            FROM node WHERE parent = ? AND remote_id IS NOT NULL
                AND inode NOT IN (SELECT inode FROM motion)
            """,
            [folder.inode.column]
        )
        // It is a change of this machine's, as `mv` would be.
        try database.run(
            """
            UPDATE motion SET changed_ms = max(changed_ms, ?)
            WHERE synced_parent = ? OR inode = ?
            """,
            [milliseconds, folder.inode.column, rest.column]
        )
        try database.run(
            "UPDATE motion SET synced_parent = ? WHERE synced_parent = ?",
            [rest.column, folder.inode.column]
        )
        try leadIntents(into: id, to: rest, of: folder.account)
    }

    /// What is under way into a folder at the service goes to the node that stands for it now.
    private func leadIntents(into id: ItemID?, to folder: Inode, of account: AccountID) throws {
        try database.run(
            """
            UPDATE motion SET intent = json_set(intent, '$.parent', ?)
            WHERE account = ? AND intent IS NOT NULL AND json_extract(intent, '$.folderID') = ?
            """,
            [folder.column, account.rawValue, id?.rawValue]
        )
    }

    /// A folder says of itself what the elder one said, which the service has.
    private mutating func takeLocalSide(
        of elder: Node,
        beside younger: Node,
        for folder: Inode
    ) throws {
        try database.run(
            """
            UPDATE node SET listed = ?, modified_s = ?, modified_ns = ?, description = ?
            WHERE inode = ?
            """,
            [
                younger.isListed && elder.isListed ? 1 : 0, elder.modified.seconds,
                Int64(elder.modified.nanoseconds), elder.itemDescription, folder.column,
            ]
        )
    }

    /// What was set of a folder on this machine holds for another one, of which nothing was set
    /// (`Numbering`).
    private mutating func takeAttributes(of gone: Inode, for folder: Inode) throws {
        try database.run(
            "UPDATE OR IGNORE xattr SET inode = ? WHERE inode = ?",
            [folder.column, gone.column]
        )
        try database.run(
            """
            UPDATE node SET mode = ifnull(other.mode, node.mode),
                owner = ifnull(other.owner, node.owner), grp = ifnull(other.grp, node.grp)
            FROM node AS other WHERE node.inode = ? AND other.inode = ?
            """,
            [folder.column, gone.column]
        )
        try handOverPin(from: gone, to: folder)
    }
}
