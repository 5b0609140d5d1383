import GRDB
public import OortModel

/// Two folders of one name that two machines made in one folder, before either learnt of the other's, at a
/// service that allows a name twice.
///
/// They become one. The one that was made first stays, by the service's clock and then by the ids, so that
/// all machines agree. Only the machine that made the other one acts: that folder becomes the first one,
/// its contents are moved there, and the emptied remainder is deleted. A program could do each step by `mv`
/// and `rmdir`. `Numbering` finds the twins.
struct TwinFolders {
    /// The folder that this machine made.
    var younger: Inode
    /// The folder that stays at the service.
    var elder: Inode

    /// How much later than its twin a folder may have been made, in seconds: people who choose the same
    /// name on purpose make the second folder later.
    static let longestGap: Int64 = 120

    /// When a folder counts as made that nobody chose to have where it is: whoever made it and another one of its
    /// name there, this machine merges them.
    static let byChance = Timestamp(seconds: 0)

    /// When a folder counts as made that somebody let others into from here: it is nobody's twin.
    static let byPerson = Timestamp(seconds: -1)

    /// Whether all contents of a folder at the service can be moved out of it, as far as is known.
    static func canLeave(_ folder: Node, _ database: Database) throws -> Bool {
        guard let id = folder.remoteID?.rawValue else { return false }
        // An item on its way into it must arrive first, and so must one that we move into it.
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
    /// Notes that an item is about to be shared: such a folder is nobody's twin from then on.
    public func noteShared(_ inode: Inode) async throws(CatalogError) {
        try await mutateAsync { transaction in
            transaction.touch(inode)
            try transaction.database.run(
                "UPDATE node SET born_s = ? WHERE inode = ? AND kind = 0",
                [TwinFolders.byPerson.seconds, inode.column]
            )
        }
    }
}

extension CatalogTransaction {
    /// Merges two folders, if both are still where they were.
    ///
    /// The one that was here first keeps its inode, as programs use it.
    mutating func merge(_ twins: TwinFolders, _ rules: AccountNameRules) throws {
        guard let younger = try Catalog.fetch(twins.younger, database),
            let elder = try Catalog.fetch(twins.elder, database), let id = younger.remoteID,
            younger.parent != nil, younger.parent == elder.parent,
            try Catalog.motion(younger.inode, database) == nil,
            try Catalog.motion(elder.inode, database) == nil
        else { return }
        try letMeet(foldersIn: younger.inode)
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

    /// Folders that move from one twin into the other become one with those of their names there.
    ///
    /// The machine that merges the twins sees to it, whoever made them and whenever they are reported.
    private func letMeet(foldersIn twin: Inode) throws {
        try database.run(
            "UPDATE node SET born_s = ?1 WHERE parent = ?2 AND kind = 0 AND born_s IS NOT ?3",
            [TwinFolders.byChance.seconds, twin.column, TwinFolders.byPerson.seconds]
        )
    }

    /// Notes that the contents of a folder lie, or are to appear, in what remains of it at the service.
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
        // This counts as a change by this machine, as `mv` would be.
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

    /// Leads operations under way into a folder at the service to the node that stands for it now.
    private func leadIntents(into id: ItemID?, to folder: Inode, of account: AccountID) throws {
        try database.run(
            """
            UPDATE motion SET intent = json_set(intent, '$.parent', ?)
            WHERE account = ? AND intent IS NOT NULL AND json_extract(intent, '$.folderID') = ?
            """,
            [folder.column, account.rawValue, id?.rawValue]
        )
    }

    /// Gives a folder the attributes of the elder one, which the service has.
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

    /// Gives a folder the attributes that another one had on this machine only; its own are no others
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
