import GRDB
import OortModel
import OortPlanner

/// Items of a folder that would be shown under one name: one has it, the others are shown with numbers, in
/// an order that is the same on every machine: by when the service's items were made, then by their names
/// there, then by their ids.
///
/// Where a service has no ids, the ids are this machine's own.
///
/// The numbers follow from the state, not from events, so that no way in which a name becomes free is
/// forgotten, and the order of reports does not matter. Three kinds of items keep the name that they are
/// shown under: those that a program has open for writing; those that the service does not have where they
/// are shown (the merge numbers them); and, as far as the others are concerned, those that were removed
/// here and still have their name at the service.
struct Numbering {
    /// An item that is to be shown under another name than it is.
    struct Renaming {
        var node: Node
        /// The name that it is to be shown under.
        var name: String
        /// The name that it would be shown under if it were alone.
        var plainName: String
    }

    /// What has to change.
    struct Findings {
        /// Items whose shown name has to change.
        var renamings: [Renaming] = []
        /// Folders that have to become one.
        var twins: [TwinFolders] = []
        /// Whether nothing has to change.
        var isEmpty: Bool { renamings.isEmpty && twins.isEmpty }
    }

    /// One of several items that share a name.
    private struct Namesake {
        var node: Node
        /// Whether the three trees are not known to be equal.
        var isInMotion = false
        var plainName: String
        /// Its name at the service, as last reported.
        var calledThere: String
        /// When the service's item was made; nil where the details in its row are another item's.
        var created: Timestamp?
        /// Whether somebody else made it, as far as the service says.
        var isForeign = false
        /// Whether others can reach it, as far as the service says.
        var isShared = false
        /// Whether the service has it where it is shown, as last reported.
        var isAtService: Bool
        /// Whether it is in the folder here.
        var isHere: Bool

        func precedes(_ other: Namesake) -> Bool {
            let times = (created ?? .unknown, other.created ?? .unknown)
            if times.0 != times.1 { return times.0 < times.1 }
            let names = (calledThere, other.calledThere)
            if !names.0.isSameText(as: names.1) {
                return names.0.utf8.lexicographicallyPrecedes(names.1.utf8)
            }
            let ids = (node.remoteID?.rawValue ?? "", other.node.remoteID?.rawValue ?? "")
            return ids.0.utf8.lexicographicallyPrecedes(ids.1.utf8)
        }
    }

    private let account: AccountID
    private let database: Database
    private let rules: AccountNameRules
    private let writers: WriterRegistry

    init(
        _ account: AccountID,
        _ database: Database,
        _ rules: AccountNameRules,
        _ writers: WriterRegistry
    ) {
        self.account = account
        self.database = database
        self.rules = rules
        self.writers = writers
    }

    /// What has to change, in one folder or in all.
    func findings(in folder: Inode? = nil) throws -> Findings {
        var findings = Findings()
        for (folder, keys) in try numberedKeys(in: folder) {
            try look(at: keys, in: folder, &findings)
        }
        return findings
    }

    /// For each folder, the names of which an item is shown with a number.
    private func numberedKeys(in folder: Inode?) throws -> [(folder: Inode, keys: [String])] {
        let limit = folder == nil ? "account = ? AND parent IS NOT NULL" : "parent = ?"
        let rows = try database.all(
            """
            SELECT DISTINCT parent, plain_key FROM node
            WHERE plain_key IS NOT NULL AND \(limit) ORDER BY parent, plain_key
            """,
            [folder?.column ?? account.rawValue]
        ) { (Inode(column: $0[0]), $0[1] as String) }
        var found: [(folder: Inode, keys: [String])] = []
        for (folder, key) in rows {
            if found.last?.folder == folder {
                found[found.count - 1].keys.append(key)
            } else {
                found.append((folder, [key]))
            }
        }
        return found
    }

    private func look(at keys: [String], in folder: Inode, _ findings: inout Findings) throws {
        let claims = Set(keys.map { ExactText($0) })
        let removed = try removedHere(from: folder)
        // A name that an item keeps is not free for items of other names either.
        var given: Set<ExactText> = []
        var groups: [(key: String, namesakes: [Namesake])] = []
        for key in keys {
            let here = try namesakes(of: key, in: folder)
            findings.twins += try twins(among: here)
            for one in here where isFixed(one) { given.insert(nameKey(one.node.name)) }
            groups.append((key, here + (removed[ExactText(key)] ?? [])))
        }
        for (key, namesakes) in groups {
            findings.renamings +=
                try deal(namesakes, key, in: folder, claims: claims, given: &given)
        }
    }

    // MARK: Who has a name

    /// The items of a folder that are shown under a name, with a number or without.
    private func namesakes(of key: String, in folder: Inode) throws -> [Namesake] {
        var found: [Namesake] = []
        for condition in ["plain_key = ?", "plain_key IS NULL AND name_key = ?"] {
            let rows = try database.all(
                """
                SELECT \(Self.columns) FROM node LEFT JOIN motion ON motion.inode = node.inode
                WHERE parent = ? AND \(condition) ORDER BY node.inode
                """,
                [folder.column, key]
            ) { ($0[Node.columnCount + 1] as Bool, try namesake($0)) }
            for (isInMotion, namesake) in rows {
                var namesake = namesake
                namesake.isInMotion = isInMotion
                namesake.isAtService = namesake.node.remoteID != nil
                if isInMotion, namesake.isAtService {
                    let place = try Catalog.remotePlace(of: namesake.node, database)
                    namesake.isAtService =
                        place == Place(parent: folder, name: namesake.node.serviceName)
                }
                if namesake.node.plainKey != nil {
                    namesake.plainName = try Catalog.plainName(
                        of: namesake.node,
                        calledAtService: namesake.node.serviceName,
                        database
                    )
                }
                found.append(namesake)
            }
        }
        return found
    }

    /// Items that the service has in a folder, as last reported, and that lie elsewhere here or nowhere, by
    /// the name that they would be shown under.
    ///
    /// Items that are not shown yet are left out: they get a name when they are.
    private func removedHere(from folder: Inode) throws -> [ExactText: [Namesake]] {
        let rows = try database.all(
            """
            SELECT \(Self.columns) FROM motion JOIN node ON node.inode = motion.inode
            WHERE synced_parent = ? AND remote_state IN (0, 3) AND (parent IS NOT synced_parent
                OR ifnull(service_name, name) IS NOT synced_name)
            """,
            [folder.column],
            namesake
        )
        let id = try Catalog.fetch(folder, database)?.remoteID
        let news = try database.all(
            """
            SELECT \(Self.columns) FROM motion JOIN node ON node.inode = motion.inode
            WHERE motion.account = ? AND remote_parent_id = ? AND remote_state = 1
                AND (synced_parent IS NOT NULL OR parent IS NOT NULL)
            """,
            [account.rawValue, id?.rawValue],
            namesake
        )
        var found: [ExactText: [Namesake]] = [:]
        for var one in rows + news {
            guard let place = try Catalog.remotePlace(of: one.node, database),
                place != one.node.parent.map({ Place(parent: $0, name: one.node.serviceName) })
            else { continue }
            one.isHere = false
            one.calledThere = place.name
            let plain = try Catalog.plainName(
                of: one.node,
                calledAtService: place.name,
                database
            )
            found[ExactText(rules.comparison.key(plain)), default: []].append(one)
        }
        return found
    }

    /// A node, what else the service said of it, and whether it is in motion.
    private static let columns = """
        \(Node.columns.split(separator: ",").map { "node." + $0.drop { $0 == " " } }
            .joined(separator: ", ")),
        details, motion.inode IS NOT NULL
        """

    private func namesake(_ row: Columns) throws -> Namesake {
        let node = Node(columns: row)
        let told = try (row[Node.columnCount] as String?).map {
            try StoredItem(details: $0, of: node.remoteID?.rawValue)
        }
        let isOfThis = told.map { node.remoteID == ItemID($0.id) } ?? false
        return Namesake(
            node: node,
            plainName: node.name,
            calledThere: node.serviceName,
            created: isOfThis ? told?.createdTime : nil,
            isForeign: isOfThis && told?.isOwn == false,
            isShared: isOfThis && told?.isShared == true,
            isAtService: false,
            isHere: true
        )
    }

    // MARK: Who is whose twin

    /// Folders that were made just after another machine made one of the same name, and that this machine can
    /// make that one now; each with the oldest such folder.
    private func twins(among namesakes: [Namesake]) throws -> [TwinFolders] {
        guard rules.allowsDuplicates, !rules.isReadOnly else { return [] }
        let folders = namesakes.filter { one in
            // Two folders of a shared one may have links or people of their own: Drive reports only that each
            // is shared.
            one.node.kind == .folder && one.isAtService && !one.isInMotion && !one.isForeign
                && !one.isShared && one.node.permissions.contains(.write)
        }
        var found: [TwinFolders] = []
        for younger in folders {
            let elder = folders.filter { isTwin(younger, of: $0) }.min { $0.precedes($1) }
            guard let elder, younger.node.permissions.contains(.delete),
                try !haveDifferentAttributes(elder.node, younger.node),
                try TwinFolders.canLeave(younger.node, database)
            else { continue }
            found.append(TwinFolders(younger: younger.node.inode, elder: elder.node.inode))
        }
        return found
    }

    /// Whether `younger` was made soon after `elder`, by the service's clock, it is for this machine to merge
    /// them, and the merge would lose nothing that `younger` says of itself.
    private func isTwin(_ younger: Namesake, of elder: Namesake) -> Bool {
        guard elder.precedes(younger), let first = elder.created, let second = younger.created,
            Self.areNobodysChoice(younger.node.born, elder.node.born),
            younger.node.serviceName.isSameText(as: elder.node.serviceName),
            saysNoMore(younger.node, than: elder.node)
        else { return false }
        let gap = second.seconds.subtractingReportingOverflow(first.seconds)
        return !gap.overflow && gap.partialValue <= TwinFolders.longestGap
    }

    /// Whether another machine made the elder of two folders, and this one the younger, or they met by chance.
    private static func areNobodysChoice(_ younger: Timestamp?, _ elder: Timestamp?) -> Bool {
        let (byChance, byPerson) = (TwinFolders.byChance, TwinFolders.byPerson)
        guard younger != byPerson, elder != byPerson else { return false }
        return younger == byChance || elder == byChance || younger != nil && elder == nil
    }

    /// Whether of the attributes that only this machine knows, including the mode that `mkdir` sets, one folder
    /// could not have both folders'.
    private func haveDifferentAttributes(_ one: Node, _ other: Node) throws -> Bool {
        func differ<Value: Equatable>(_ mine: Value?, _ others: Value?) -> Bool {
            mine != nil && others != nil && mine != others
        }
        func hasMore(_ node: Node) throws -> Bool {
            try database.has(
                "SELECT 1 FROM xattr WHERE inode = ?1 UNION ALL SELECT 1 FROM pin WHERE inode = ?1",
                [node.inode.column]
            )
        }
        return try differ(one.mode, other.mode) || differ(one.owner, other.owner)
            || differ(one.group, other.group) || hasMore(one) && hasMore(other)
    }

    private func saysNoMore(_ younger: Node, than elder: Node) -> Bool {
        let text = younger.itemDescription ?? ""
        return text.isEmpty || text.isSameText(as: elder.itemDescription ?? "")
    }

    // MARK: Who gets it

    /// Whether an item keeps its shown name, whatever the others' names are.
    private func isFixed(_ one: Namesake) -> Bool {
        one.isHere && (!one.isAtService || one.node.kind == .file && isOpen(one.node))
    }

    /// Distributes names among the items that share one; `given` are names that other items of the folder
    /// got, or keep.
    private func deal(
        _ namesakes: [Namesake],
        _ key: String,
        in folder: Inode,
        claims: Set<ExactText>,
        given: inout Set<ExactText>
    ) throws -> [Renaming] {
        let own = Set(namesakes.lazy.filter(\.isHere).map { nameKey($0.node.name) })
        func isFree(_ name: String, _ number: Int) throws -> Bool {
            let candidate = nameKey(name)
            if given.contains(candidate) || number > 1 && claims.contains(candidate) {
                return false
            }
            if own.contains(candidate) { return true }
            // An item that has a number, and gets another one, does not block a name.
            let other = try Catalog.fetch(key: candidate.text, in: folder, database)
            return other.map { $0.plainKey != nil && !isOpen($0) } ?? true
        }
        var renamings: [Renaming] = []
        var next = 1
        func name(_ plain: String) -> String {
            next == 1 ? plain : ShownName.numbered(plain, next)
        }
        for one in namesakes.filter({ !isFixed($0) }).sorted(by: { $0.precedes($1) }) {
            while try !isFree(name(one.plainName), next) { next += 1 }
            if one.isHere {
                let wanted = name(one.plainName)
                given.insert(nameKey(wanted))
                if !wanted.isSameText(as: one.node.name) {
                    renamings.append(
                        Renaming(node: one.node, name: wanted, plainName: one.plainName)
                    )
                }
            }
            next += 1
        }
        // No item has the name, here or at the service: the one with the lowest number gets it.
        if next == 1, let heir = try heir(of: key, among: namesakes, isFree) {
            given.insert(nameKey(heir.name))
            renamings.append(heir)
        }
        return renamings
    }

    /// An item that the service does not have, which gets its plain name back.
    private func heir(
        of key: String,
        among namesakes: [Namesake],
        _ isFree: (String, Int) throws -> Bool
    ) throws -> Renaming? {
        let numbered = namesakes.filter { $0.isHere && $0.node.plainKey != nil && !isOpen($0.node) }
        let first = numbered.min {
            ($0.node.name.utf8.count, $0.node.name) < ($1.node.name.utf8.count, $1.node.name)
        }
        guard let first, try isFree(first.plainName, 1) else { return nil }
        return Renaming(node: first.node, name: first.plainName, plainName: first.plainName)
    }

    private func nameKey(_ name: String) -> ExactText { ExactText(rules.comparison.key(name)) }

    private func isOpen(_ node: Node) -> Bool {
        node.kind == .file && writers.isOpen(node.inode)
    }
}

extension Catalog {
    /// How a node with this name at the service would be shown if it were alone.
    static func plainName(
        of node: Node,
        calledAtService name: String,
        _ database: Database
    ) throws -> String {
        var item = StoredItem(Item(id: ItemID(""), kind: .file, fileName: name))
        item.kind = node.kind.rawValue
        if let ending = try exportExtension(of: node, database) { item.exports = [["", ending]] }
        return item.shownName
    }

    /// The extension that a native document has in its shown name only.
    static func exportExtension(of node: Node, _ database: Database) throws -> String? {
        guard node.kind == .nativeDocument else { return nil }
        return try database.text(
            "SELECT details FROM node WHERE inode = ?",
            [node.inode.column]
        )
        .flatMap { try StoredItem(details: $0, of: nil).exports?.first?.last }
    }
}

extension CatalogTransaction {
    /// Gives items the shown names that `Numbering` finds, and merges twin folders.
    ///
    /// - Returns: whether there were twins, so that there is something to send.
    @discardableResult
    mutating func settleNumbers(
        in account: AccountID,
        folder: Inode? = nil,
        _ rules: AccountNameRules
    ) throws -> Bool {
        func findings() throws -> Numbering.Findings {
            try Numbering(account, database, rules, writers).findings(in: folder)
        }
        var found = try findings()
        let hasTwins = !found.twins.isEmpty
        // Each round merges at least one pair; a third folder of the same name may have to wait for that.
        while !found.twins.isEmpty {
            for twins in found.twins { try merge(twins, rules) }
            found = try findings()
        }
        let renamings = found.renamings
        // All are taken out of their places first, since names must be unique at every step.
        for renaming in renamings {
            if let parent = renaming.node.parent {
                effects.news.append(
                    .entryLeft(
                        parent: parent,
                        name: renaming.node.name,
                        isFolder: renaming.node.kind == .folder
                    )
                )
            }
            try database.run(
                "UPDATE node SET parent = NULL WHERE inode = ?",
                [renaming.node.inode.column]
            )
        }
        for renaming in renamings {
            guard let parent = renaming.node.parent else { continue }
            try put(
                renaming.node.withoutParent,
                at: parent,
                name: renaming.name,
                plainName: renaming.plainName,
                serviceName: renaming.node.serviceName,
                rules
            )
        }
        return hasTwins
    }

    /// How a node with this name at the service would be shown if it were alone.
    func plainName(of node: Node, calledAtService name: String) throws -> String {
        try Catalog.plainName(of: node, calledAtService: name, database)
    }

    /// Notes for each item whether it is shown with a number, which older catalogs did not store.
    func findNumberedNames() throws {
        let rows = try database.all(
            """
            SELECT inode, node.name, service_name, kind, details, comparison
            FROM node JOIN account ON account.id = node.account
            WHERE service_name IS NOT NULL AND remote_id IS NOT NULL AND node.name LIKE '% (%)%'
            """
        ) { row in
            var item = StoredItem(Item(id: ItemID(""), kind: .file, fileName: row[2]))
            item.kind = row[3]
            item.exports = try (row[4] as String?).flatMap {
                try StoredItem(details: $0, of: nil).exports
            }
            let comparison = NameRules.Comparison(column: row[5])
            return (
                inode: row[0] as Int64, name: row[1] as String, plain: item.shownName, comparison
            )
        }
        for (inode, name, plain, comparison) in rows
        where (2..<1000).contains(where: { ShownName.numbered(plain, $0).isSameText(as: name) }) {
            try database.run(
                "UPDATE node SET plain_key = ? WHERE inode = ?",
                [comparison.key(plain), inode]
            )
        }
    }
}

extension Timestamp {
    /// Earlier than every moment that a service reports.
    fileprivate static let unknown = Timestamp(seconds: .min)
}
