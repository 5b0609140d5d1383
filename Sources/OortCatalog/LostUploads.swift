import GRDB
public import OortModel
import OortPlanner

// What an upload without an answer may have created: how the provider is asked about it, and where it is
// looked for when it is not where it was sent to.

extension Intent {
    /// Stores, with an upload or a copy, the traits by which the item that it created can be recognised.
    mutating func keepTraces(of node: Node, _ database: Database) throws {
        modified = node.modified.parts
        created = node.created?.parts
        newestInode = try database.number(
            "SELECT seq FROM sqlite_sequence WHERE name = 'node'",
            []
        ).map { Inode(column: $0).rawValue }
    }

    /// The creation of a file, as the provider is asked about it; nil for everything else.
    public var upload: LostUpload? {
        guard kind == .upload || kind == .duplicate, let folder, let name,
            let hash = hash.flatMap({ ContentHash(description: $0) })
        else { return nil }
        return LostUpload(
            folder: folder,
            name: name,
            hash: hash,
            modifiedTime: modifiedTime,
            createdTime: Timestamp(parts: created)
        )
    }
}

extension Catalog {
    /// Stores, with an operation under way, the hash of the bytes that are about to be sent, where it was
    /// not known when the operation was begun: the content is another item's, at a service without hashes.
    ///
    /// Without it, bytes that arrived while their answer was lost could not be recognised.
    ///
    /// - Returns: the intent as it is stored now.
    public func noteHash(
        _ hash: ContentHash,
        sentBy intent: Intent,
        of inode: Inode
    ) async throws(CatalogError) -> Intent {
        var sent = intent
        sent.hash = hash.description
        return try await mutateAsync { [sent] transaction in
            try transaction.database.run(
                "UPDATE motion SET intent = ? WHERE inode = ? AND intent IS NOT NULL",
                [try sent.json(), inode.column]
            )
            return sent
        }
    }

    /// The files that the service reported since an upload was begun and that may be what it created.
    ///
    /// They have its content, or its size where the service reports no hash; were not changed or created
    /// here; and are not where this side has a file that is still to be sent.
    public func newcomers(
        since intent: Intent,
        in account: AccountID
    ) async throws(CatalogError) -> [ItemReference] {
        guard let newest = intent.newestInode, let hash = intent.hash else { return [] }
        let rules = nameRules(of: account)
        return try await readAsync { database in
            let nodes = try database.all(
                """
                SELECT \(Node.columns) FROM node WHERE account = ? AND inode > ?
                    AND (hash = ? OR hash IS NULL AND kind = 1 AND size = ?) AND remote_id IS NOT NULL AND staged IS NULL AND born_s IS NULL
                ORDER BY inode
                """,
                [account.rawValue, Inode(newest).column, hash, intent.size],
                Node.init(columns:)
            )
            return try nodes.filter { node in
                guard try Self.motion(node.inode, database)?.isOnlyObserved ?? true,
                    let place = try Self.remotePlace(of: node, database)
                else { return false }
                let other = try Self.fetch(
                    key: rules.comparison.key(place.name),
                    in: place.parent,
                    database
                )
                return other?.remoteID != nil || other == nil
            }.compactMap { try Self.reference($0.inode, database) }
        }
    }
}
