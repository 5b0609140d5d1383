import GRDB
public import OortModel

extension Catalog {
    /// Finds items of all accounts by words of their paths, the best first: by how well the names fit, by
    /// how lately the items were modified and read.
    ///
    /// Case, diacritics and punctuation do not count. A word of three letters or more is found inside of
    /// others, a shorter one where a word begins. What fits more than a thousand items is found among
    /// those that came last.
    public func search(_ query: SearchQuery) async throws(CatalogError) -> SearchAnswer {
        do {
            return try await pool.readForTask { database in
                let search = Search(database, query, without: try self.leftOutInodes(database))
                return try search.answer()
            }
        } catch let error as DatabaseError where SearchIndex.isDamage(error) {
            // Without the index all names are looked at; it is made anew meanwhile.
            searchBacklog.foundDamage()
        } catch { throw noted(error) }
        return try await readAsync { database in
            let search = Search(database, query, without: try self.leftOutInodes(database))
            return try search.answer(usingIndex: false)
        }
    }

    /// What a search shows of an item that was found otherwise, such as by its content; nil where it is
    /// not in the tree or not what is looked for.
    public func searchHit(
        of inode: Inode,
        in query: SearchQuery
    ) async throws(CatalogError) -> SearchHit? {
        try await readAsync { database in
            let search = Search(database, query, without: try self.leftOutInodes(database))
            return try search.hit(of: inode)
        }
    }
}

/// One search, within one read of the catalog.
private final class Search {
    /// As many are enough to choose the best from.
    private static let leastEnough = 1000
    /// Rows of the index that are looked at for one question to it.
    private static let mostRows = 5_000
    /// The same where most of them may be refused by what they are.
    private static let mostFilteredRows = 300_000
    /// Items below folders that fit, which are looked at where a word fits too much by itself.
    private static let mostBelow = 5_000

    private static let columns = """
        node.inode, node.account, node.parent, node.name, node.kind, node.size, \
        node.modified_s, node.modified_ns, node.mime_type, node.description, node.remote_id
        """

    private struct Row {
        let inode: Int64
        let account: Int64
        let parent: Int64?
        let name: String
        let kind: NodeKind
        let size: Int64
        let modified: Timestamp
        let type: String?
        let description: String?
        let remoteID: String?

        init(_ row: Columns) {
            inode = row[0]
            account = row[1]
            parent = row[2]
            name = row[3]
            kind = NodeKind(rawValue: row[4]) ?? .file
            size = min(max(row[5], 0), ReportedSize.largest)
            modified = Timestamp(
                seconds: row[6],
                nanoseconds: Int32(truncatingIfNeeded: row[7] as Int64)
            )
            type = row[8]
            description = row[9]
            remoteID = row[10]
        }
    }

    /// What the folders above an item say, itself counted among them.
    private struct Above {
        var parent: Int64
        var name: String
        /// The terms that its name or one above fits.
        var terms: Set<Int>
        var isInside: Bool
        var depth: Int
    }

    private struct Found {
        var row: Row
        var score: Double
    }

    private let database: Database
    private let query: SearchQuery
    private let terms: [SearchTerm]
    private let enough: Int
    /// What is not shown, with all that lies in it.
    private let leftOut: Set<Int64>
    private let now = Timestamp.now
    /// By inode; nil for what is not in the tree.
    private var above: [Int64: Above?] = [:]
    private var seen: Set<Int64> = []
    private var found: [Found] = []
    private var isCut = false

    init(_ database: Database, _ query: SearchQuery, without leftOut: Set<Int64>) {
        self.database = database
        self.leftOut = leftOut
        self.query = query
        enough = max(Self.leastEnough, query.limit)
        var terms: [SearchTerm] = []
        for word in query.words.prefix(SearchQuery.mostWords) {
            if let term = SearchTerm(word), !terms.contains(term) { terms.append(term) }
        }
        self.terms = terms
    }

    // MARK: The answer

    func answer(usingIndex: Bool = true) throws -> SearchAnswer {
        guard !terms.isEmpty, query.limit > 0 else {
            return SearchAnswer(hits: [], unindexed: 0, isCut: false)
        }
        let unindexed = try lookAtUnindexed(usingIndex: usingIndex)
        if usingIndex, try SearchIndex(database).state().mark > 0 { try askIndex() }
        found.sort { $0.score > $1.score }
        if found.count > query.limit { isCut = true }
        let best = try byUse(found.prefix(query.limit * 4)).prefix(query.limit)
        return SearchAnswer(
            hits: try best.compactMap { try hit($0.row) },
            unindexed: unindexed,
            isCut: isCut
        )
    }

    func hit(of inode: Inode) throws -> SearchHit? {
        guard
            let row = try database.first(
                "SELECT \(Self.columns) FROM node WHERE inode = ?",
                [inode.column],
                Row.init
            ),
            isWanted(row), let parent = row.parent, let above = try above(parent), above.isInside
        else { return nil }
        return try hit(row)
    }

    private func hit(_ row: Row) throws -> SearchHit? {
        var names = [row.name]
        var next = row.parent
        while let folder = next, folder != Inode.root.column {
            guard let above = try above(folder) else { return nil }
            names.append(above.name)
            next = above.parent
        }
        return SearchHit(
            inode: Inode(column: row.inode),
            account: AccountID(row.account),
            path: names.reversed(),
            node: row.kind,
            size: row.size,
            modified: row.modified
        )
    }

    // MARK: Where to look

    /// What the index does not have, or not as it is: the latest first.
    private func lookAtUnindexed(usingIndex: Bool) throws -> Int {
        let mark = usingIndex ? try SearchIndex(database).state().mark : 0
        var count = 0
        try database.each(
            "SELECT \(Self.columns) FROM node WHERE inode > ? ORDER BY inode DESC",
            [mark]
        ) { row in
            count += 1
            try look(at: Row(row))
            return true
        }
        try database.each(
            """
            SELECT \(Self.columns) FROM search_stale JOIN node ON node.inode = search_stale.inode
            """
        ) { row in
            try look(at: Row(row))
            return true
        }
        return count
    }

    private func askIndex() throws {
        let loosest = terms.compactMap { $0.query(.inside) ?? $0.query(.word) }
        if terms.count > 1 {
            try ask(loosest.map { "(\($0))" }.joined(separator: " AND "))
        }
        var cutTerms: Set<Int> = []
        for (number, term) in terms.enumerated() {
            for fit in [SearchTerm.Fit.beginning, .word, .inside] {
                guard let question = term.query(fit) else { continue }
                if terms.count == 1, found.count >= enough {
                    isCut = true
                    break
                }
                if try ask(question) { cutTerms.insert(number) }
            }
        }
        // What has all words in its own name fits better than what lies in a folder of one of them.
        guard terms.count > 1, !cutTerms.isEmpty, found.count < query.limit else { return }
        // An item of a name that many have may lie in a folder of the other word.
        for term in terms {
            guard let question = term.query(.inside) ?? term.query(.word) else { continue }
            var folders: [Int64] = []
            try rows(question, "AND node.kind = 0") { row in
                folders.append(row.inode)
                return folders.count < enough
            }
            try lookBelow(folders)
        }
    }

    /// - Returns: whether there was more than was looked at.
    @discardableResult
    private func ask(_ question: String) throws -> Bool {
        let hasFilter =
            query.kind != nil || query.folder != nil || query.largerThan != nil
            || query.modifiedSince != nil
        var left = hasFilter ? Self.mostFilteredRows : max(Self.mostRows, enough)
        let before = found.count
        var isMore = false
        try rows(question) { row in
            guard left > 0, found.count - before < enough else {
                isMore = true
                return false
            }
            left -= 1
            try look(at: row)
            return true
        }
        if isMore { isCut = true }
        return isMore
    }

    /// What the index finds, the latest first.
    private func rows(
        _ question: String,
        _ condition: String = "",
        _ body: (Row) throws -> Bool
    ) throws {
        var conditions = condition
        var arguments: StatementArguments = [question]
        if let size = query.largerThan, condition.isEmpty {
            conditions += " AND node.size > ?"
            arguments += [size]
        }
        if let time = query.modifiedSince, condition.isEmpty {
            conditions += " AND node.modified_s >= ?"
            arguments += [time.seconds]
        }
        try database.each(
            """
            SELECT \(Self.columns) FROM search_index
                CROSS JOIN node ON node.inode = search_index.rowid
            WHERE search_index MATCH ? \(conditions) ORDER BY search_index.rowid DESC
            """,
            arguments
        ) { try body(Row($0)) }
    }

    private func lookBelow(_ folders: [Int64]) throws {
        var queue = folders
        var known = Set(folders)
        var left = Self.mostBelow
        while let folder = queue.popLast() {
            try database.each(
                "SELECT \(Self.columns) FROM node WHERE parent = ? ORDER BY inode DESC",
                [folder]
            ) { columns in
                let row = Row(columns)
                left -= 1
                try look(at: row)
                if row.kind == .folder, known.insert(row.inode).inserted { queue.append(row.inode) }
                return left > 0
            }
            if left <= 0 { break }
        }
    }

    // MARK: What fits

    /// Takes an item where it fits.
    private func look(at row: Row) throws {
        guard !seen.contains(row.inode), row.inode != Inode.root.column, isWanted(row) else {
            return
        }
        let name = SearchText.framed(row.name)
        let described = row.description.map(SearchText.framedDescription)
        var missing: [Int] = []
        var sum = 0.0
        for (number, term) in terms.enumerated() {
            let fit = term.fit(in: name)
            if fit != .no {
                sum += Self.worth(fit)
            } else if let described, term.fit(in: described) != .no {
                sum += Self.worthInDescription
            } else {
                missing.append(number)
            }
        }
        guard missing.count < terms.count else { return }
        seen.insert(row.inode)
        guard let parent = row.parent, let above = try above(parent), above.isInside,
            missing.allSatisfy(above.terms.contains)
        else { return }
        sum += Double(missing.count) * Self.worthInPath
        let score = sum / Double(terms.count) + recency(row) - Double(min(above.depth, 20)) * 0.2
        found.append(Found(row: row, score: score))
    }

    private static let worthInDescription = 30.0
    private static let worthInPath = 20.0

    private static func worth(_ fit: SearchTerm.Fit) -> Double {
        switch fit {
        case .no: 0
        case .inside: 40
        case .word: 60
        case .beginning: 70
        case .whole: 90
        }
    }

    /// From 15 for what was modified just now to nothing, 7.5 after a month.
    private func recency(_ row: Row) -> Double {
        let age = Double(now.seconds) - Double(row.modified.seconds)
        return 15 / (1 + max(age, 0) / 2_592_000)
    }

    /// What was read lately before what was not; of equal ones by name.
    private func byUse(_ found: ArraySlice<Found>) throws -> [Found] {
        var found = Array(found)
        for index in found.indices {
            guard let id = found[index].row.remoteID,
                let used = try database.number(
                    "SELECT max(used_ms) FROM content WHERE account = ? AND item = ?",
                    [found[index].row.account, id]
                )
            else { continue }
            let days = max(Double(now.seconds) - Double(used) / 1000, 0) / 86_400
            found[index].score += 15 / (1 + days / 7)
        }
        return found.sorted {
            $0.score != $1.score
                ? $0.score > $1.score
                : $0.row.name.utf8.lexicographicallyPrecedes($1.row.name.utf8)
        }
    }

    private func isWanted(_ row: Row) -> Bool {
        guard !leftOut.contains(row.inode) else { return false }
        if let kind = query.kind, SearchKind.of(row.kind, name: row.name, type: row.type) != kind {
            return false
        }
        if let time = query.modifiedSince, row.modified < time { return false }
        if let size = query.largerThan {
            guard row.kind != .folder, row.size > size else { return false }
        }
        return true
    }

    /// What a folder and those above it say; nil where it is not in the tree.
    private func above(_ folder: Int64) throws -> Above? {
        if let known = above[folder] { return known }
        var chain: [(inode: Int64, parent: Int64, name: String)] = []
        var next = folder
        var base: Above?
        while true {
            if next == Inode.root.column {
                base = Above(
                    parent: next,
                    name: "",
                    terms: [],
                    isInside: query.folder == nil || query.folder == .root,
                    depth: 0
                )
                break
            }
            if let known = above[next] {
                base = known
                break
            }
            // A circle cannot be, and must not become an endless loop if the file is damaged.
            guard chain.count < 10_000, !leftOut.contains(next),
                let row = try database.first(
                    "SELECT parent, name FROM node WHERE inode = ?",
                    [next],
                    { ($0[0] as Int64?, $0[1] as String) }
                ),
                let parent = row.0
            else { break }
            chain.append((next, parent, row.1))
            next = parent
        }
        for folder in chain.reversed() {
            guard let upper = base else {
                above[folder.inode] = .some(nil)
                continue
            }
            var here = upper
            here.parent = folder.parent
            here.name = folder.name
            here.depth += 1
            if query.folder?.column == folder.inode { here.isInside = true }
            let name = SearchText.framed(folder.name)
            for (number, term) in terms.enumerated() where term.fit(in: name) != .no {
                here.terms.insert(number)
            }
            above[folder.inode] = here
            base = here
        }
        return base
    }
}
