import GRDB
import OortModel
import OortPlanner

/// Two items that would be shown under one name: the later one is shown with a number, for as long
/// as the name is not free.
extension Catalog {
    /// What is shown with a number though nothing has its name any longer, here or at the service;
    /// of several in a folder the lowest number.
    ///
    /// It is asked of the state, not of what happened, so that no way in which a name becomes free
    /// can be forgotten.
    static func namesToGiveBack(
        in account: AccountID,
        _ database: Database,
        _ rules: AccountNameRules
    ) throws -> [Node] {
        let numbered = try database.all(
            """
            SELECT \(Node.columns) FROM node
            WHERE account = ? AND plain_key IS NOT NULL AND parent IS NOT NULL AND NOT EXISTS
                (SELECT 1 FROM node AS other
                    WHERE other.parent = node.parent AND other.name_key = node.plain_key)
            ORDER BY length(name), name
            """,
            [account.rawValue],
            Node.init(columns:)
        )
        var seen: Set<[String]> = []
        return try numbered.filter { node in
            guard let parent = node.parent, let key = node.plainKey,
                seen.insert(["\(parent)", key]).inserted
            else { return false }
            // Those of the same name that have numbers, too, do not keep it from one another.
            return try !holders(of: key, in: parent, database, rules).contains {
                $0.parent != parent || $0.plainKey?.isSameText(as: key) != true
            }
        }
    }

    /// The items in motion that the service has in a folder, as last heard, under a name that shows
    /// with this key.
    static func holders(
        of key: String,
        in folder: Inode,
        _ database: Database,
        _ rules: AccountNameRules
    ) throws -> [Node] {
        func isOfKey(_ name: String) -> Bool { rules.comparison.key(name).isSameText(as: key) }
        var holders = try database.all(
            """
            SELECT \(Node.columns), synced_name FROM motion JOIN node USING (inode, account)
            WHERE synced_parent = ? AND remote_state IN (0, 3)
            """,
            [folder.column]
        ) { (Node(columns: $0), $0[Node.columnCount] as String) }
        .filter { isOfKey(try plainName(of: $0, calledAtService: $1, database)) }
        .map(\.0)
        if let node = try fetch(folder, database), let id = node.remoteID {
            holders += try database.all(
                """
                SELECT inode, remote_item FROM motion
                WHERE account = ? AND remote_parent_id = ? AND remote_state = 1
                """,
                [node.account.rawValue, id.rawValue]
            ) { (Inode(column: $0[0]), $0[1] as String) }
            .compactMap { inode, item in
                isOfKey(try StoredItem(json: item).shownName) ? try fetch(inode, database) : nil
            }
        }
        return holders
    }

    /// How a node would be shown, were it alone and called so at the service.
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

    /// What a native document's shown name has and its service's name has not.
    static func exportExtension(of node: Node, _ database: Database) throws -> String? {
        guard node.kind == .nativeDocument else { return nil }
        return try database.text(
            "SELECT details FROM node WHERE inode = ?",
            [node.inode.column]
        )
        .flatMap { try StoredItem(json: $0).exports?.first?.last }
    }
}

extension CatalogTransaction {
    /// A name that nothing has or had in a folder, here or at the service: the name itself, or with
    /// the first free number.
    func freeName(_ name: String, in parent: Inode, _ rules: AccountNameRules) throws -> String {
        var candidate = name
        var number = 2
        while try isTaken(candidate, in: parent, rules) {
            candidate = ShownName.numbered(name, number)
            number += 1
        }
        return candidate
    }

    private func isTaken(_ name: String, in parent: Inode, _ rules: AccountNameRules) throws -> Bool
    {
        let key = rules.comparison.key(name)
        return try Catalog.fetch(key: key, in: parent, database) != nil
            || !Catalog.holders(of: key, in: parent, database, rules).isEmpty
    }

    /// Shows under their own names what was shown with a number and need not be any longer.
    mutating func giveBackNames(in account: AccountID, _ rules: AccountNameRules) throws {
        for node in try Catalog.namesToGiveBack(in: account, database, rules) {
            guard let parent = node.parent else { continue }
            let name = try plainName(of: node, calledAtService: node.serviceName)
            try put(
                node,
                at: parent,
                name: name,
                plainName: name,
                serviceName: node.serviceName,
                rules
            )
        }
    }

    /// How a node would be shown, were it alone and called so at the service.
    func plainName(of node: Node, calledAtService name: String) throws -> String {
        try Catalog.plainName(of: node, calledAtService: name, database)
    }

    /// Notes of each item whether it is shown with a number, as a catalog of before did not.
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
            item.exports = try (row[4] as String?).flatMap { try StoredItem(json: $0).exports }
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
