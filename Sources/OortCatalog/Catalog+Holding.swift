import GRDB
public import OortModel
import Synchronization

/// Items that stay on this machine by the person's rules, or by the service's (`NameRules.stayHere`).
///
/// Such an item is unknown to the service, in motion like all of these, and marked (`node.held`): nothing
/// is planned for it, and it does not count as pending. All that lies in such a folder is marked, too. An
/// item that has an id at the service, or may get one from an operation under way, is never held.
///
/// Only a person's own act releases it: a rename here, or other rules that match neither where it lies
/// nor where it lay when rules held it (`node.held_at`). Another person's rename at the service does not
/// publish it, and neither do rules that have nothing to do with it.
extension Catalog {
    /// Whether a row of `node` is held, in SQL.
    static let isHeldInSQL = "(node.held = 1 AND node.remote_id IS NULL)"

    /// Sets the rules by which items of an account stay here; to be called before anything is made in it.
    ///
    /// Items that the service does not have are checked again: those that match are held, those that
    /// were held and no longer match are released.
    public func setIgnoreRules(
        _ rules: IgnoreRules,
        of account: AccountID
    ) throws(CatalogError) {
        ignoring.withLock { $0[account] = rules }
        try mutate { transaction in
            let database = transaction.database
            let known = try database.text(
                "SELECT ignored FROM account WHERE id = ?",
                [account.rawValue]
            )
            guard !rules.isEmpty || !(known ?? "").isEmpty else { return }
            let tops = try database.all(
                """
                SELECT node.inode FROM motion JOIN node ON node.inode = motion.inode
                    JOIN node AS folder ON folder.inode = node.parent
                WHERE motion.account = ? AND node.remote_id IS NULL
                    AND (folder.remote_id IS NOT NULL OR folder.parent = 1)
                """,
                [account.rawValue]
            ) { Inode(column: $0[0]) }
            let former = IgnoreRules(lines: known)
            for top in tops {
                try transaction.hold(below: top, by: rules, since: .others(former: former))
            }
            try database.run(
                "UPDATE account SET ignored = ? WHERE id = ?",
                [rules.text, account.rawValue]
            )
        }
    }

    /// Uses the rules of the last time, for an account that nothing is sent to.
    public func keepIgnoreRules(of account: AccountID) throws(CatalogError) {
        let known = try read {
            try $0.text("SELECT ignored FROM account WHERE id = ?", [account.rawValue])
        }
        let rules = IgnoreRules(lines: known)
        ignoring.withLock { $0[account] = rules }
    }

    /// Finds further items to hold in folders that a transaction moved because the service did.
    func holdAnew(_ transaction: inout CatalogTransaction) throws {
        for inode in transaction.effects.movedFolders {
            guard let folder = try Self.fetch(inode, transaction.database) else { continue }
            let rules = ignoreRules(of: folder.account)
            guard !rules.isEmpty else { continue }
            let isAnythingNew = try transaction.database.has(
                """
                SELECT 1 FROM motion JOIN node ON node.inode = motion.inode
                WHERE motion.account = ? AND node.remote_id IS NULL
                """,
                [folder.account.rawValue]
            )
            if isAnythingNew {
                try transaction.hold(below: inode, by: rules, since: .others())
            }
        }
    }

    /// Holds an item that got a matching name during an operation which would have sent it, but did not.
    func holdUnsent(_ inode: Inode, _ transaction: inout CatalogTransaction) throws {
        guard let node = try Self.fetch(inode, transaction.database), node.remoteID == nil else {
            return
        }
        let rules = ignoreRules(of: node.account)
        guard !rules.isEmpty else { return }
        try transaction.hold(below: inode, by: rules, since: .others())
    }

    func ignoreRules(of account: AccountID) -> IgnoreRules {
        ignoring.withLock { $0[account] } ?? IgnoreRules()
    }

    /// Whether a new item of this name would stay here.
    public func staysHere(
        _ name: String,
        kind: NodeKind,
        in folder: Node
    ) throws(CatalogError) -> Bool {
        if folder.isHeld { return true }
        let rules = ignoreRules(of: folder.account)
        guard !rules.isEmpty else { return false }
        return try read { database in
            try Self.isIgnored(name, kind: kind, in: folder.inode, by: rules, database)
        }
    }

    /// How many items of an account stay here by rules.
    public func heldCount(_ account: AccountID) async throws(CatalogError) -> Int {
        try await readAsync { try Self.heldCount(account, $0) }
    }

    static func heldCount(_ account: AccountID, _ database: Database) throws -> Int {
        let count = try database.number(
            """
            SELECT count(*) FROM node
            WHERE account = ? AND held = 1 AND remote_id IS NULL AND parent IS NOT NULL
            """,
            [account.rawValue]
        )
        return Int(count ?? 0)
    }

    fileprivate static func isIgnored(
        _ name: String,
        kind: NodeKind,
        in folder: Inode,
        by rules: IgnoreRules,
        _ database: Database
    ) throws -> Bool {
        guard let above = try path(of: folder, database)?.map(\.name) else { return false }
        return rules.ignore(above + [name], isFolder: kind == .folder)
    }
}

extension CatalogTransaction {
    /// Whether a new item is held.
    func holds(
        _ name: String,
        calledAtService serviceName: String,
        kind: NodeKind,
        in folder: Node,
        _ rules: IgnoreRules
    ) throws -> Bool {
        guard !kind.isLocalOnly else { return false }
        if folder.isHeld { return true }
        guard !rules.isEmpty,
            try Catalog.isIgnored(name, kind: kind, in: folder.inode, by: rules, database)
        else { return false }
        return try !isAtService(serviceName, in: folder.inode)
    }

    /// Whether the service has an item at a place: one that takes that place here is a save of it.
    private func isAtService(_ name: String, in folder: Inode) throws -> Bool {
        try database.has(
            "SELECT 1 FROM motion WHERE synced_parent = ? AND synced_name = ?",
            [folder.column, name]
        )
    }

    func isIgnored(_ node: Node, by rules: IgnoreRules) throws -> Bool {
        guard !rules.isEmpty, let parent = node.parent else { return false }
        return try Catalog.isIgnored(
            node.name,
            kind: node.kind,
            in: parent,
            by: rules,
            database
        )
    }

    private func isAnythingHeld(_ account: AccountID) throws -> Bool {
        try database.has(
            """
            SELECT 1 FROM motion JOIN node ON node.inode = motion.inode
            WHERE motion.account = ? AND \(Catalog.isHeldInSQL)
            """,
            [account.rawValue]
        )
    }

    /// - Throws: `.staysHere` when the item, or one in it, cannot be held and would go into a folder that
    ///   is.
    func refuseToHold(_ node: Node, movingTo target: Node, from source: Node) throws {
        guard target.isHeld, !source.isHeld, !node.isHeld, !node.kind.isLocalOnly else { return }
        guard try Subtree(node.inode, database).isHoldable(node.inode) else {
            throw CatalogError.staysHere
        }
    }

    /// Holds a renamed node, with what lies in it, or releases it.
    mutating func hold(_ inode: Inode, wasIgnored: Bool, by rules: IgnoreRules) throws {
        guard !rules.isEmpty else { return }
        let node = try node(inode)
        guard node.kind == .folder else {
            if node.remoteID == nil { try hold(below: inode, by: rules) }
            return
        }
        let isIgnored = try isIgnored(node, by: rules)
        // Its contents are held as before.
        if wasIgnored, isIgnored, node.isHeld { return try noteWhereHeld(inode) }
        if !wasIgnored, !isIgnored, !rules.dependOnFolders {
            // Items that stayed here through another person's rename are released by this one.
            guard try isAnythingHeld(node.account) else { return }
        }
        try hold(below: inode, by: rules)
    }

    /// Why it is decided anew what is held.
    enum Cause {
        /// Its person renamed it.
        case rename
        /// Other rules, or something that another person did.
        ///
        /// By the former rules, if any, it is known of an item that an older version held whether it
        /// still lies where they held it.
        case others(former: IgnoreRules = IgnoreRules())
    }

    /// Decides anew which of a node, and of all that lies in it, is held.
    ///
    /// But for a person's rename, a held item stays so also as long as rules match the path at which they
    /// held it, or where that is not known.
    mutating func hold(
        below top: Inode,
        by rules: IgnoreRules,
        since cause: Cause = .rename
    ) throws {
        guard let path = try Catalog.path(of: top, database), let node = path.last else { return }
        let tree = try Subtree(top, database)
        let names = path.map(\.name)
        let isInIgnored =
            path.count > 1 && rules.ignore(Array(names.dropLast()), isFolder: true)
        var queue = [
            Visit(
                inode: node.inode,
                names: names,
                isInIgnored: isInIgnored,
                isInHeld: path.dropLast().last?.isHeld ?? false
            )
        ]
        let now = Timestamp.now
        while let visit = queue.popLast() {
            guard let member = tree.members[visit.inode] else { continue }
            let isIgnored =
                visit.isInIgnored
                || rules.decision(visit.names, isFolder: member.isFolder) == true
            var isHeld = visit.isInHeld || isIgnored && tree.isHoldable(visit.inode)
            if isHeld, !visit.isInHeld, let parent = member.parent,
                try isAtService(member.serviceName, in: parent)
            {
                isHeld = false
            }
            var past: [String]?
            if case .others(let former) = cause, member.isHeld, !visit.isInHeld {
                past = visit.past(of: member, former)
                // An older version did not note it: that it goes out is certain only without any rule.
                let isPastIgnored = past.map { rules.ignore($0, isFolder: member.isFolder) }
                isHeld = isHeld || isPastIgnored ?? !rules.isEmpty
            }
            if !member.isLocalOnly, !member.isAtService {
                let heldAt = past ?? (isIgnored ? visit.names : nil)
                let isTop = isHeld && !visit.isInHeld
                try setHeld(isHeld, at: isTop ? heldAt : nil, of: visit.inode, member, now)
            }
            for child in tree.children[visit.inode] ?? [] {
                let name = tree.members[child]?.name ?? ""
                queue.append(
                    Visit(
                        inode: child,
                        names: visit.names + [name],
                        isInIgnored: isIgnored,
                        isInHeld: isHeld,
                        pastOfFolder: isHeld ? nil : past
                    )
                )
            }
        }
    }

    private mutating func setHeld(
        _ isHeld: Bool,
        at path: [String]?,
        of inode: Inode,
        _ member: Subtree.Member,
        _ now: Timestamp
    ) throws {
        if member.isHeld != isHeld || isHeld && member.heldAt != path {
            try database.run(
                "UPDATE node SET held = ?, held_at = ? WHERE inode = ?",
                [isHeld ? 1 : 0, path?.joined(separator: "/"), inode.column]
            )
        }
        // The item's way to the service begins here, or ends.
        if member.isHeld != isHeld { try setInMotion(try node(inode), at: now) }
    }

    /// Notes that rules hold a held item where it lies now, unless the folder in which it lies is held.
    func noteWhereHeld(_ inode: Inode) throws {
        guard let path = try Catalog.path(of: inode, database) else { return }
        let isInHeld = path.dropLast().last?.isHeld ?? false
        try database.run(
            "UPDATE node SET held_at = ? WHERE inode = ?",
            [isInHeld ? nil : path.map(\.name).joined(separator: "/"), inode.column]
        )
    }
}

extension IgnoreRules {
    /// The rules as the catalog has them.
    fileprivate init(lines text: String?) {
        self.init((text ?? "").parts(between: "\n").map(String.init))
    }
}

/// An item of a tree of which it is decided what is held.
private struct Visit {
    var inode: Inode
    /// Its path in the account.
    var names: [String]
    var isInIgnored: Bool
    var isInHeld: Bool
    /// Where the folder in which it lies was when rules held that, if it is released.
    var pastOfFolder: [String]?

    /// Where it was when rules held it, or the folder in which it lies; nil where that is not known.
    func past(of member: Subtree.Member, _ former: IgnoreRules) -> [String]? {
        if let own = member.heldAt { return own }
        if let pastOfFolder { return pastOfFolder + [member.name] }
        return former.ignore(names, isFolder: member.isFolder) ? names : nil
    }
}

/// A node with all that lies in it, as far as that decides what can be held.
private struct Subtree {
    struct Member {
        var parent: Inode?
        var name: String
        var serviceName: String
        var isFolder: Bool
        var isLocalOnly: Bool
        var isAtService: Bool
        var isHeld: Bool
        /// Its path when rules held it; nil where that is not known, or where it lies in a held folder.
        var heldAt: [String]?
        /// Whether an operation under way may bring it to the service, or its bytes are only there, as
        /// another item's.
        var isBound: Bool
    }

    private(set) var members: [Inode: Member] = [:]
    private(set) var children: [Inode: [Inode]] = [:]
    /// Items at the service or bound to it, and all folders above them.
    private var unholdable: Set<Inode> = []

    init(_ top: Inode, _ database: Database) throws {
        let rows = try database.all(
            """
            WITH RECURSIVE below(number) AS (
                VALUES (?)
                UNION ALL
                SELECT node.inode FROM below JOIN node ON node.parent = below.number
            )
            SELECT inode, parent, name, coalesce(service_name, name), kind,
                remote_id IS NOT NULL, held,
                content_item IS NOT NULL OR EXISTS (SELECT 1 FROM content
                    WHERE content.id = node.staged AND content.base_item IS NOT NULL)
                OR EXISTS (SELECT 1 FROM motion
                    WHERE motion.inode = node.inode AND motion.intent IS NOT NULL),
                held_at
            FROM node WHERE inode IN (SELECT number FROM below)
            """,
            [top.column]
        ) { row in
            let kind = NodeKind(rawValue: row[4]) ?? .file
            return (
                Inode(column: row[0]),
                Member(
                    parent: (row[1] as Int64?).map { Inode(column: $0) },
                    name: row[2],
                    serviceName: row[3],
                    isFolder: kind == .folder,
                    isLocalOnly: kind.isLocalOnly,
                    isAtService: row[5],
                    isHeld: row[6] && !(row[5] as Bool),
                    heldAt: (row[8] as String?)?.parts(between: "/").map(String.init),
                    isBound: row[7]
                )
            )
        }
        for (inode, member) in rows {
            members[inode] = member
            if inode != top, let parent = member.parent {
                children[parent, default: []].append(inode)
            }
        }
        for (inode, member) in rows where member.isAtService || member.isBound {
            var next: Inode? = inode
            while let above = next, members[above] != nil, unholdable.insert(above).inserted {
                next = above == top ? nil : members[above]?.parent
            }
        }
    }

    /// Whether it, and all that lies in it, can stay here.
    func isHoldable(_ inode: Inode) -> Bool { !unholdable.contains(inode) }
}
