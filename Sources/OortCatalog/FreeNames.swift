import GRDB
import OortModel
import OortPlanner

/// Finds free names for many items in one transaction: each search for a name goes on where the last one
/// ended, and the service's names in a folder are read once.
struct FreeNames {
    private let rules: AccountNameRules
    /// The number to try next.
    private var numbers: [Place: Int] = [:]
    /// Names that items in motion have in a folder at the service, as last reported.
    private var held: [Inode: Set<ExactText>] = [:]

    init(_ rules: AccountNameRules) { self.rules = rules }

    /// A name that is free in a folder: the name itself, or one with a number.
    mutating func shown(
        _ name: String,
        in folder: Inode,
        _ database: Database
    ) throws -> String {
        func isTaken(_ name: String) throws -> Bool {
            try Catalog.fetch(key: rules.comparison.key(name), in: folder, database) != nil
        }
        guard try isTaken(name) else { return name }
        let key = rules.comparison.key(name)
        let place = Place(parent: folder, name: key)
        var number = 2
        if let next = numbers[place] {
            number = next
        } else {
            // Begins after the count of numbered names: those mostly have the first numbers.
            number += Int(
                try database.number(
                    "SELECT count(*) FROM node WHERE parent = ? AND plain_key = ?",
                    [folder.column, key]
                ) ?? 0
            )
        }
        while try isTaken(ShownName.numbered(name, number)) { number += 1 }
        numbers[place] = number + 1
        return ShownName.numbered(name, number)
    }

    /// A name that no item has or had in a folder, here or at the service: the name itself, or one with the
    /// first free number; with `isNumbered`, one with a number in any case.
    mutating func new(
        _ name: String,
        in folder: Inode,
        isNumbered: Bool = false,
        _ database: Database
    ) throws -> String {
        if !isNumbered, try !isTaken(name, in: folder, database) { return name }
        var number = 2
        while try isTaken(ShownName.numbered(name, number), in: folder, database) { number += 1 }
        return ShownName.numbered(name, number)
    }

    private mutating func isTaken(
        _ name: String,
        in folder: Inode,
        _ database: Database
    ) throws -> Bool {
        let key = rules.comparison.key(name)
        if try Catalog.fetch(key: key, in: folder, database) != nil { return true }
        if held[folder] == nil { held[folder] = try heldNames(in: folder, database) }
        return held[folder]?.contains(ExactText(key)) == true
    }

    /// The keys of the shown names of items in motion that the service has in a folder.
    private func heldNames(in folder: Inode, _ database: Database) throws -> Set<ExactText> {
        let nodes = try database.all(
            """
            SELECT \(Node.columns) FROM node WHERE inode IN
                (SELECT inode FROM motion WHERE synced_parent = ? AND remote_state IN (0, 3))
            """,
            [folder.column],
            Node.init(columns:)
        )
        var names = try nodes.compactMap { node -> String? in
            guard let place = try Catalog.remotePlace(of: node, database) else { return nil }
            return try Catalog.plainName(of: node, calledAtService: place.name, database)
        }
        if let node = try Catalog.fetch(folder, database), let id = node.remoteID {
            names += try database.all(
                """
                SELECT remote_item FROM motion
                WHERE account = ? AND remote_parent_id = ? AND remote_state = 1
                """,
                [node.account.rawValue, id.rawValue]
            ) { try StoredItem(json: $0[0]).shownName }
        }
        return Set(names.map { ExactText(rules.comparison.key($0)) })
    }
}
