import GRDB
public import OortModel
public import OortPlanner

/// What is needed to send one operation.
public struct OperationStart: Sendable {
    /// The node as it is now.
    public var node: Node
    /// The item, where the service has it.
    public var item: ItemReference?
    /// The revision that both sides last agreed on.
    public var revision: Revision?
    /// The folder that it lies in at the service.
    public var oldParent: ItemReference?
    /// The folder that it goes to.
    public var parent: ItemReference?
    /// The file that is copied at the service, where its bytes need not be sent.
    public var original: ItemReference?
    /// The session that an earlier try of the same upload left.
    public var session: UploadSession?
    /// The id to create the item with: an earlier try's, or a new one.
    public var reservedID: ItemID?
    /// What is stored before the request goes out.
    public var intent: Intent
    /// For a folder that is deleted: whether the service has reported nothing in it.
    public var holdsNothing = false
}

/// What went wrong with the push of an item, and when it is tried again.
public struct PushTrouble: Sendable {
    /// The error's kind, for code.
    public var kind: String
    /// In words, for people; holds no secret.
    public var detail: String
    /// When it is tried again, milliseconds since 1970.
    public var nextTry: Int64
    /// Whether the service answered; a request that did not arrive, or whose outcome is unknown, counts as
    /// no attempt.
    public var isAnswer: Bool

    /// Trouble with all of its parts.
    public init(kind: String, detail: String, nextTry: Int64, isAnswer: Bool = true) {
        self.kind = kind
        self.detail = detail
        self.nextTry = nextTry
        self.isAnswer = isAnswer
    }
}

/// An item with an operation that has no answer yet.
public struct OpenIntent: Sendable {
    /// The item.
    public var inode: Inode
    /// Bytes of the content that was sent, or copied; 0 for everything else.
    public var size: Int64

    /// An open intent of an item.
    public init(inode: Inode, size: Int64) {
        self.inode = inode
        self.size = size
    }
}

/// The push, step by step: each is a transaction, so that the process may die between any two.
extension Catalog {
    /// Stores what the service is about to be asked; nil when the plan no longer holds.
    ///
    /// No operation begins for an item that is gone, or may be: so neither the end of a feed's run nor an
    /// answer meets that case. `copiesFiles` says whether the service copies a file on request. With
    /// `newsNumber`, the plan's, nothing begins once there are later news (`PlannedWork.newsNumber`).
    public func begin(
        _ operation: RemoteOperation,
        account: AccountID,
        reservedID: ItemID?,
        copiesFiles: Bool = false,
        newsNumber: UInt64? = nil
    ) async throws(CatalogError) -> OperationStart? {
        try await mutateAsync { transaction in
            let database = transaction.database
            let latest = self.newsNumber(of: account)
            guard newsNumber ?? latest == latest else { return nil }
            guard let node = try Self.fetch(operation.inode, database),
                let motion = try Self.motion(operation.inode, database), motion.intent == nil,
                !motion.isHeardMissing, !node.isHeld, try !Self.isHeir(node, database)
            else { return nil }
            var intent = Intent(operation.action)
            intent.enumeration = try Self.enumeration(of: account, database)
            var start = OperationStart(node: node, intent: intent)
            start.item = try Self.reference(node.inode, database)
            start.revision = motion.syncedRevision
            if let place = try Self.remotePlace(of: node, database) {
                start.oldParent = try Self.reference(place.parent, database)
            }
            switch operation.action {
            case .createFolder(let place), .upload(let place, _):
                guard node.remoteID == nil, node.parent != nil else { return nil }
                start.parent = try Self.reference(place.parent, database)
            case .duplicate(let place, let heir):
                guard node.remoteID != nil, node.parent != nil,
                    let other = try Self.fetch(heir, database), other.remoteID == nil,
                    other.parent != nil, try Self.motion(heir, database)?.intent == nil
                else { return nil }
                start.parent = try Self.reference(place.parent, database)
            case .move(let place, _):
                guard node.parent != nil, start.item != nil else { return nil }
                start.parent = try Self.reference(place.parent, database)
            case .replace:
                guard node.parent != nil, start.item != nil else { return nil }
            case .delete:
                guard node.parent == nil, start.item != nil else { return nil }
                if node.kind == .folder {
                    let some = try Self.remoteChildren(of: node, limit: 1, database)
                    start.holdsNothing = some.isEmpty
                }
            case .setAttributes:
                guard node.parent != nil, start.item != nil else { return nil }
            }
            if let staged = Self.staged(operation.action), staged > 0,
                node.staged?.rawValue != staged
            {
                return nil
            }
            if intent.parent != nil {
                guard let parent = start.parent else { return nil }
                intent.folderID = parent.id.rawValue
                intent.folderPath = parent.path.parts
            }
            let kept = try database.first(
                """
                SELECT session_state, session_bytes, session_expires_s, session_hash,
                    reserved_id
                FROM motion WHERE inode = ?
                """,
                [node.inode.column]
            ) { row in
                let session = (row[0] as String?).map { state in
                    UploadSession(
                        state: state,
                        confirmedBytes: row[1],
                        expires: (row[2] as Int64?).map { Timestamp(seconds: $0) }
                    )
                }
                // Not if a program has written to the same content since.
                let isOfContent = intent.hash != nil && row[3] as String? == intent.sessionMark
                return (isOfContent ? session : nil, (row[4] as String?).map { ItemID($0) })
            }
            start.session = kept?.0
            if intent.hasBytes, node.staged == nil, let item = node.contentItem {
                intent.source = [item.rawValue, node.revision?.rawValue ?? ""]
            }
            if intent.kind == .duplicate {
                (intent.hash, intent.size) = (node.hash?.description, node.size)
            }
            if intent.kind == .upload || intent.kind == .duplicate {
                try intent.keepTraces(of: node, database)
            }
            if intent.kind == .replace { intent.modified = node.modified.parts }
            if copiesFiles {
                start.original = try Self.original(for: operation.action, of: node, database)
                intent.originalID = start.original?.id.rawValue
                intent.originalPath = start.original?.path.parts
            }
            if intent.expected != nil {
                start.reservedID = kept?.1 ?? reservedID
                intent.reservedID = start.reservedID?.rawValue
            }
            start.intent = intent
            try database.run(
                "UPDATE motion SET intent = ?, reserved_id = ? WHERE inode = ?",
                [
                    try intent.json(), start.reservedID?.rawValue, node.inode.column,
                ]
            )
            return start
        }
    }

    /// Whether a copy is under way after which this file takes over another one's identity: a plan that was
    /// made before no longer holds for it.
    private static func isHeir(_ node: Node, _ database: Database) throws -> Bool {
        try database.has(
            """
            SELECT 1 FROM motion WHERE account = ? AND intent IS NOT NULL
                AND json_extract(intent, '$.heir') = ?
            """,
            [node.account.rawValue, node.inode.column]
        )
    }

    /// Forgets the id that was reserved for an item, which is used up: the next try has another one.
    public func forgetReservedID(of inode: Inode) async throws(CatalogError) {
        try await mutateAsync { transaction in
            try transaction.database.run(
                "UPDATE motion SET reserved_id = NULL WHERE inode = ?",
                [inode.column]
            )
        }
    }

    private static func staged(_ action: RemoteOperation.Action) -> Int64? {
        switch action {
        case .upload(_, let content), .replace(_, let content): content.staged
        default: nil
        }
    }

    /// Stores the state of an upload session, the hash of what it sends and the intent that it belongs to;
    /// nil when it is over.
    public func setSession(
        _ session: UploadSession?,
        sending hash: ContentHash? = nil,
        for intent: Intent? = nil,
        of inode: Inode
    ) async throws(CatalogError) {
        try await mutateAsync { transaction in
            try transaction.database.run(
                """
                UPDATE motion SET session_state = ?, session_bytes = ?, session_expires_s = ?,
                    session_hash = ?
                WHERE inode = ?
                """,
                [
                    session?.state, session?.confirmedBytes, session?.expires?.seconds,
                    session == nil ? nil : hash.map { $0.sessionMark(of: intent?.staged) },
                    inode.column,
                ]
            )
        }
    }

    /// Stores that the service did what was asked; `item` is its answer, nil after a deletion.
    ///
    /// `isOlder` says that the item has changed since `item`; `answersUpload`, that `item` is the answer to
    /// bytes that were sent, and not to a copy, nor found after a lost answer; `timeChangesRevision` is the
    /// provider's trait.
    ///
    /// - Returns: whether the item's present state is not certain; it is among `unsureItems` then.
    public func succeeded(
        _ intent: Intent,
        of inode: Inode,
        item: Item?,
        sentModified: Timestamp?,
        isOlder: Bool = false,
        answersUpload: Bool = false,
        timeChangesRevision: Bool = false
    ) async throws(CatalogError) -> Bool {
        try await mutateAsync { transaction in
            try transaction.database.run(
                """
                UPDATE motion SET intent = NULL, attempts = 0, error_kind = NULL,
                    error_detail = NULL, next_try_ms = 0, session_state = NULL,
                    session_hash = NULL, reserved_id = NULL
                WHERE inode = ?
                """,
                [inode.column]
            )
            // Nothing is sent while there are news: these came after the plan, may be older or newer than
            // the answer, and so are asked for again.
            try transaction.database.run(
                """
                UPDATE motion SET remote_state = 0, remote_parent_id = NULL, remote_item = NULL
                WHERE inode = ? AND remote_state = 1
                """,
                [inode.column]
            )
            var isOpen = transaction.database.changesCount > 0
            let node = try transaction.node(inode)
            let account = node.account
            var folders = [try Self.remotePlace(of: node, transaction.database)?.parent]
            if isOpen, let id = node.remoteID { try transaction.beUnsure(of: id, in: account) }
            if let id = item?.id ?? node.remoteID {
                try transaction.rememberAnswer(about: id, in: account, self.nameRules(of: account))
            }
            if let item {
                let isUnsure = try transaction.recordAnswer(
                    intent,
                    of: inode,
                    StoredItem(item),
                    item.parentID,
                    sentModified,
                    answersUpload: answersUpload,
                    timeChangesRevision: timeChangesRevision,
                    self.nameRules(of: account)
                )
                if isUnsure || isOlder {
                    try transaction.beUnsure(of: item.id, in: account)
                    isOpen = true
                }
            } else {
                try transaction.deleted(inode)
            }
            // The next plan does this, too; here only operations that can free a name do, so that uploads
            // cost nothing.
            if intent.kind == .move || intent.kind == .delete {
                folders.append(try Self.fetch(inode, transaction.database)?.parent)
                for folder in Set(folders.compactMap(\.self)).sorted() {
                    let rules = self.nameRules(of: account)
                    try transaction.settleNumbers(in: account, folder: folder, rules)
                }
            }
            return isOpen
        }
    }

    /// Stores that an operation was not done or, with `isUnknown`, that its outcome is unknown: the intent
    /// stays.
    public func failed(
        _ inode: Inode,
        _ trouble: PushTrouble?,
        isUnknown: Bool
    ) async throws(CatalogError) {
        try await mutateAsync { transaction in
            transaction.touch(inode)
            if !isUnknown {
                try transaction.database.run(
                    "UPDATE motion SET intent = NULL WHERE inode = ?",
                    [inode.column]
                )
                try self.holdUnsent(inode, &transaction)
            }
            guard let trouble else { return }
            try transaction.database.run(
                """
                UPDATE motion SET attempts = attempts + ?, error_kind = ?, error_detail = ?,
                    next_try_ms = ?
                WHERE inode = ?
                """,
                [
                    trouble.isAnswer ? 1 : 0, trouble.kind, trouble.detail, trouble.nextTry,
                    inode.column,
                ]
            )
        }
    }

    /// The items with an operation that has no answer yet.
    public func openIntents(of account: AccountID) async throws(CatalogError) -> [OpenIntent] {
        try await readAsync { database in
            try database.all(
                """
                SELECT inode, ifnull(json_extract(intent, '$.size'), 0) FROM motion
                WHERE account = ? AND intent IS NOT NULL
                """,
                [account.rawValue]
            ) { OpenIntent(inode: Inode(column: $0[0]), size: $0[1]) }
        }
    }

    /// The operation of an item that has no answer yet, with the reference to the item at the service; nil
    /// when there is none.
    public func intent(
        of inode: Inode
    ) async throws(CatalogError) -> (intent: Intent, item: ItemReference?)? {
        try await readAsync { database in
            guard let intent = try Self.motion(inode, database)?.intent else { return nil }
            return (intent, try Self.reference(inode, database))
        }
    }

    /// The reference by which the service is asked for an item, as last reported.
    public func reference(to inode: Inode) async throws(CatalogError) -> ItemReference? {
        try await readAsync { try Self.reference(inode, $0) }
    }

    /// The reference by which the service is asked for an item of this id; nil when the catalog has none.
    public func reference(
        to id: ItemID,
        in account: AccountID
    ) async throws(CatalogError) -> ItemReference? {
        try await readAsync { database in
            guard let node = try Self.node(id.rawValue, in: account, database) else { return nil }
            return try Self.reference(node.inode, database)
        }
    }

    /// Whether a change waits that the service refused for this reason.
    public func hasRefused(
        _ account: AccountID,
        kind: String
    ) async throws(CatalogError) -> Bool {
        try await readAsync { database in
            try database.has(
                "SELECT 1 FROM motion WHERE account = ? AND error_kind = ? LIMIT 1",
                [account.rawValue, kind]
            )
        }
    }

    /// Makes everything due that waits for its next try, since the cause may be gone: all of the account's,
    /// or only some items and kinds of errors.
    public func retryNow(
        _ account: AccountID,
        of inodes: [Inode]? = nil,
        kinds: [String]? = nil
    ) async throws(CatalogError) {
        try await mutateAsync { transaction in
            var condition = ""
            var arguments: StatementArguments = [account.rawValue]
            if let inodes {
                condition += " AND inode IN (\(databaseQuestionMarks(count: inodes.count)))"
                arguments += StatementArguments(inodes.map(\.rawValue))
            }
            if let kinds {
                condition += " AND error_kind IN (\(databaseQuestionMarks(count: kinds.count)))"
                arguments += StatementArguments(kinds)
            }
            try transaction.database.run(
                "UPDATE motion SET next_try_ms = 0 WHERE account = ? AND next_try_ms > 0"
                    + condition,
                arguments
            )
        }
    }
}

extension CatalogTransaction {
    fileprivate mutating func recordAnswer(
        _ intent: Intent,
        of inode: Inode,
        _ item: StoredItem,
        _ parentID: ItemID?,
        _ sentModified: Timestamp?,
        answersUpload: Bool,
        timeChangesRevision: Bool,
        _ rules: AccountNameRules
    ) throws -> Bool {
        let asked = AskedContent(intent: intent, isAnswered: answersUpload)
        guard let node = try Catalog.fetch(inode, database) else { return true }
        // A copy is another item than its original.
        if intent.kind == .duplicate, node.remoteID?.rawValue.isSameText(as: item.id) == true {
            return true
        }
        var isOpen = false
        // The feed may have reported the item before the answer came, and may know more.
        if let twin = try Catalog.node(item.id, in: node.account, database), twin.inode != inode,
            intent.expected != nil
        {
            let known = try Catalog.motion(twin.inode, database)
            guard try mayBeMade(node, known: twin, known) else { return true }
            isOpen =
                known?.remoteItem?.revision != item.revision
                || known?.remoteItem?.fileName.isSameText(as: item.fileName) != true
            try remove(twin)
            try reparent(twin.inode, to: inode, rules)
        }
        // Services that use paths do not name the parent: it is the folder that the item was sent to.
        var folder = parentID?.rawValue ?? intent.folderID
        if intent.expected != nil, let told = folder,
            try Catalog.folder(told, in: node.account, database) == nil
        {
            // Without a known folder the item would be forgotten and created again: it counts as in the
            // folder that it was sent to, and is asked for.
            (folder, isOpen) = (intent.folderID, true)
        }
        switch intent.kind {
        case .createFolder, .upload:
            try become(inode, item, parentID: folder, asked: asked)
            // The service has just created a folder that was here before, and removed there meanwhile: it
            // counts as made here by chance, unless it was renamed since.
            if node.kind == .folder, node.born == nil,
                intent.name.map(node.serviceName.isSameText) ?? false
            {
                try database.run(
                    "UPDATE node SET born_s = ? WHERE inode = ?",
                    [TwinFolders.byChance.seconds, inode.column]
                )
            }
        case .duplicate:
            try recordBackup(node, heir: intent.heir.map { Inode($0) }, item, folder)
        case .move:
            guard let folder, let parent = try Catalog.folder(folder, in: node.account, database)
            else { return true }
            try database.run(
                "UPDATE motion SET synced_parent = ?, synced_name = ? WHERE inode = ?",
                [parent.inode.column, item.fileName, inode.column]
            )
            if node.kind == .folder, parentID == nil {
                try database.run(
                    "INSERT OR IGNORE INTO told_again (inode, account) VALUES (?, ?)",
                    [inode.column, node.account.rawValue]
                )
            }
            try keepRevision(inode, item)
        case .replace:
            try database.run(
                """
                UPDATE motion SET synced_revision = ?, synced_hash = ?, synced_size = ?
                WHERE inode = ?
                """,
                [item.revision, item.hash, item.size ?? 0, inode.column]
            )
            if node.staged != nil {
                try database.run(
                    "UPDATE node SET revision = ? WHERE inode = ?",
                    [item.revision, inode.column]
                )
            }
            try takeRevision(inode, item, asked: asked)
        case .setAttributes:
            // A description other than ours is another person's news, which is still to come.
            if item.description ?? "" == intent.description ?? node.itemDescription ?? "" {
                try database.run(
                    "UPDATE motion SET synced_description = ? WHERE inode = ?",
                    [item.description, inode.column]
                )
            }
            let time = timeChangesRevision ? intent.modifiedTime : nil
            try keepRevision(inode, item, timeSent: time)
        case .delete: break
        }
        if let sentModified {
            try database.run(
                """
                UPDATE motion SET synced_modified_s = ?, synced_modified_ns = ? WHERE inode = ?
                """,
                [sentModified.seconds, sentModified.nanoseconds, inode.column]
            )
        }
        try database.run(
            // Not every answer has the type and the tags.
            """
            UPDATE node SET details = iif(remote_id IS ?, ?, ?), mime_type = ifnull(?, mime_type),
                tags = nullif(ifnull(?, tags), '')
            WHERE inode = ?
            """,
            item.detailsArguments(hasName: false, hasHash: false) + [
                item.mimeType, item.tags, inode.column,
            ]
        )
        try noteNamed(inode)
        touch(inode)
        try restIfClean(inode)
        // Something asked before an enumeration began may have been undone before that: the enumeration
        // must not decide that, so the item is asked for.
        let isOlder = try intent.enumeration.map {
            try $0 < Catalog.enumeration(of: node.account, database)
        }
        // The folder may have been removed before this operation, or after it.
        let folderIsGone = try Catalog.fetch(inode, database)?.parent.map {
            try Catalog.motion($0, database)?.remoteState == .gone
        }
        return isOpen || isOlder ?? false || folderIsGone ?? false
    }

    /// Whether an item that the feed reported may be the one that was created from a node.
    ///
    /// It must be of the node's kind, and no folder that the node lies in. Both stay if a program has
    /// changed the item or is about to, and if the item shows with something in it while the node was
    /// removed here.
    private func mayBeMade(_ node: Node, known twin: Node, _ motion: MotionRow?) throws -> Bool {
        guard motion?.isOnlyObserved ?? true, !writers.isOpen(twin.inode), !twin.isAccountRoot,
            (twin.kind == .folder) == (node.kind == .folder),
            try node.parent != nil || !Catalog.hasChildren(twin.inode, database)
        else { return false }
        var above = node.parent
        while let inode = above, inode != .root {
            if inode == twin.inode { return false }
            above = try Catalog.fetch(inode, database)?.parent
        }
        return true
    }

    /// Takes over the revision that a move, or the setting of a time (`timeSent`), gave to unchanged
    /// content.
    ///
    /// Where the answer has no hash that tells contents apart, the size and the time that was set prove
    /// that it is unchanged.
    private mutating func keepRevision(
        _ inode: Inode,
        _ item: StoredItem,
        timeSent: Timestamp? = nil
    ) throws {
        guard let motion = try Catalog.motion(inode, database), let revision = item.revision else {
            return
        }
        let known = motion.syncedHash
        let hashProves = known?.provesSameContent(as: item.hash) ?? false
        let hashAllows = item.hash == nil || item.hash == known?.description
        let timeProves =
            timeSent != nil && item.modifiedTime?.seconds == timeSent?.seconds
            && item.size == motion.syncedSize
        guard hashProves || hashAllows && timeProves else { return }
        if let old = motion.syncedRevision {
            try carryContent(of: item.id, at: inode, from: old, to: Revision(revision))
        }
        try database.run(
            "UPDATE motion SET synced_revision = ? WHERE inode = ?",
            [item.revision, inode.column]
        )
        try database.run(
            "UPDATE node SET revision = ? WHERE inode = ? AND revision IS ?",
            [item.revision, inode.column, motion.syncedRevision?.rawValue]
        )
    }

    /// Stores that a backup's copy exists: the file with the old name takes over the old identity.
    private mutating func recordBackup(
        _ original: Node,
        heir: Inode?,
        _ copy: StoredItem,
        _ folder: String?
    ) throws {
        // The bytes are the old item's, in case the copy turns out to have another person's newer ones.
        try keepBytes(of: original)
        if let heir, let node = try Catalog.fetch(heir, database), node.remoteID == nil,
            node.parent != nil
        {
            // If the backup was removed meanwhile, its copy will be deleted.
            try swapIdentities(original.inode, heir, forgets: false)
        } else {
            // The heir is gone: the old identity stays without a file, and is deleted or comes back.
            try leaveIdentity(of: original)
        }
        try become(original.inode, copy, parentID: folder)
        try restIfClean(original.inode)
    }

    /// Separates a node from what the service has of it; the planner deletes that, or brings it back.
    ///
    /// - Returns: the node, outside the local tree, that stands for it now.
    @discardableResult
    mutating func leaveIdentity(of node: Node) throws -> Inode {
        let side = try takeRemoteSide(of: node.inode)
        try database.run(
            """
            INSERT INTO node (account, name, name_key, service_name, plain_key, kind, size,
                modified_s, modified_ns, changed_s, changed_ns, revision, hash)
            SELECT account, name, name_key, service_name, plain_key, kind, size, modified_s,
                modified_ns, changed_s, changed_ns, revision, hash
            FROM node WHERE inode = ?
            """,
            [node.inode.column]
        )
        let orphan = Inode(column: database.lastInsertedRowID)
        try database.run(
            """
            INSERT INTO motion (inode, account, changed_ms)
            SELECT ?, account, changed_ms FROM motion WHERE inode = ?
            """,
            [orphan.column, node.inode.column]
        )
        try give(side, to: orphan)
        return orphan
    }
}

extension Intent {
    /// What marks an upload session as one that sends this content.
    fileprivate var sessionMark: String? {
        hash.flatMap { ContentHash(description: $0) }?.sessionMark(of: staged)
    }
}

extension ContentHash {
    /// What marks an upload session as one that sends a content of this hash; where the hash does not tell
    /// contents apart, the mark names the staged content, too.
    fileprivate func sessionMark(of staged: Int64?) -> String {
        algorithm.tellsContentsApart ? description : "\(description) of \(staged ?? 0)"
    }

    /// Whether a content of this hash and one reported with another are certainly the same.
    func provesSameContent(as told: String?) -> Bool {
        algorithm.tellsContentsApart && description == told
    }
}
