import GRDB
public import OortModel

extension Catalog {
    /// Finds items of all accounts by words of their paths, the best first: by how well the names fit, and
    /// how recently the items were modified and read.
    ///
    /// Case, diacritics and punctuation do not count. A word of three letters or more is found inside other
    /// words, a shorter one only where a word begins. If more than a thousand items fit, the results are
    /// taken from the newest of them.
    public func search(_ query: SearchQuery) async throws(CatalogError) -> SearchAnswer {
        try await search(query, within: SearchBounds())
    }

    /// The same within the caller's own bounds.
    func search(
        _ query: SearchQuery,
        within bounds: SearchBounds
    ) async throws(CatalogError) -> SearchAnswer {
        do {
            return try await pool.readForTask { database in
                let leftOut = try self.leftOutInodes(database)
                return try Search(database, query, without: leftOut, within: bounds).answer()
            }
        } catch let error as DatabaseError where SearchIndex.isDamage(error) {
            // Without the index all names are looked at; it is rebuilt meanwhile.
            searchBacklog.foundDamage()
        } catch { throw noted(error) }
        return try await readAsync { database in
            let search = Search(database, query, without: try self.leftOutInodes(database))
            return try search.answer(usingIndex: false)
        }
    }

    /// The result for an item that was found otherwise, such as by its content; nil where it is not in the
    /// tree or does not match the query.
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
final class Search {
    private static let columns = """
        inode, parent, size, modified_s, modified_ns, kind, account, name, description, mime_type,
        tags
        """
    private static let oneItem = "SELECT \(columns) FROM node WHERE inode = ?"

    private struct Row {
        let inode: Int64
        let parent: Int64?
        let size: Int64
        let modified: Timestamp
        let kind: NodeKind
        let account: Int64
        let name: String
        let description: String?
        let type: String?
        let tags: String?

        init(_ row: Columns) {
            inode = row[0]
            parent = row[1]
            size = min(max(row[2], 0), ReportedSize.largest)
            modified = Timestamp(
                seconds: row[3],
                nanoseconds: Int32(truncatingIfNeeded: row[4] as Int64)
            )
            kind = NodeKind(rawValue: row[5]) ?? .file
            account = row[6]
            name = row[7]
            description = row[8]
            type = row[9]
            tags = row[10]
        }
    }

    /// What is known of the folders above an item, itself included.
    private struct Above {
        var parent: Int64
        var name: String
        /// The terms that fit its name, or a name above.
        var terms: Set<Int>
        var isInside: Bool
        var depth: Int
    }

    private struct Found {
        var row: Row
        var score: Double
    }

    let database: Database
    let query: SearchQuery
    let terms: [SearchTerm]
    let bounds: SearchBounds
    /// Folders that are not shown, with all that lies in them.
    private let leftOut: Set<Int64>
    private let now = Timestamp.now
    /// By inode; nil for folders that are not in the tree.
    private var above: [Int64: Above?] = [:]
    private var looked: Set<Int64> = []
    private var unindexedFolders: [Row] = []
    private var found: [Found] = []
    /// Whether items that may fit were not looked at.
    var isCut = false

    init(
        _ database: Database,
        _ query: SearchQuery,
        without leftOut: Set<Int64>,
        within bounds: SearchBounds = SearchBounds()
    ) {
        self.database = database
        self.leftOut = leftOut
        self.query = query
        self.bounds = bounds
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
        if found.count > query.limit { isCut = true }
        let best = try byUse(candidates()).prefix(query.limit)
        return SearchAnswer(
            hits: try best.compactMap { try hit($0.row) },
            unindexed: unindexed,
            isCut: isCut
        )
    }

    func hit(of inode: Inode) throws -> SearchHit? {
        guard
            let row = try database.first(Self.oneItem, [inode.column], Row.init),
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

    /// Looks at items that the index lacks, or has under an old name: the latest first.
    private func lookAtUnindexed(usingIndex: Bool) throws -> Int {
        let mark = usingIndex ? try SearchIndex(database).state().mark : 0
        func look(at row: Row) throws {
            looked.insert(row.inode)
            if usingIndex, row.kind == .folder { unindexedFolders.append(row) }
            try judge(row)
        }
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
            SELECT \(Self.columns) FROM node WHERE inode IN (SELECT inode FROM search_stale)
                AND inode <= ?
            """,
            [mark]
        ) { row in
            try look(at: Row(row))
            return true
        }
        return count
    }

    /// Folders that the index lacks, or has under an old name, and whose names have a term.
    func unindexedFolders(named term: SearchTerm) -> [Int64] {
        unindexedFolders.filter { term.fit(in: SearchText.framed($0.name)) != .no }.map(\.inode)
    }

    /// How many items fit, of those that were looked at.
    var foundCount: Int { found.count }

    /// Looks at an item once; where `folders` are given, only if it is in one of them.
    func look(at inode: Int64, in folders: Set<Int64>? = nil) throws {
        guard !looked.contains(inode) else { return }
        let row: Row?? = try database.first(Self.oneItem, [inode]) { columns in
            if let folders {
                guard let parent: Int64 = columns[1], folders.contains(parent) else { return nil }
            }
            looked.insert(inode)
            return mayBeWanted(columns) ? Row(columns) : nil
        }
        if case .some(.some(let row)) = row { try judge(row) }
    }

    /// Whether a row may match, as far as can be said before its texts are read.
    private func mayBeWanted(_ columns: Columns) -> Bool {
        if let size = query.largerThan, (columns[2] as Int64) <= size { return false }
        if let time = query.modifiedSince, (columns[3] as Int64) < time.seconds { return false }
        return true
    }

    // MARK: What fits

    /// Adds an item to the results if it fits.
    private func judge(_ row: Row) throws {
        guard row.inode != Inode.root.column, isWanted(row) else { return }
        let name = SearchText.framed(row.name)
        let described = row.description.map(SearchText.framedDescription)
        let tagged = row.tags.map(SearchText.framed)
        var missing: [Int] = []
        var sum = 0.0
        for (number, term) in terms.enumerated() {
            let fit = term.fit(in: name)
            if fit != .no {
                sum += Self.worth(fit)
            } else if let tagged, term.fit(in: tagged) != .no {
                sum += Self.worthInTags
            } else if let described, term.fit(in: described) != .no {
                sum += Self.worthInDescription
            } else {
                missing.append(number)
            }
        }
        guard missing.count < terms.count else { return }
        guard let parent = row.parent, let above = try above(parent), above.isInside,
            missing.allSatisfy(above.terms.contains)
        else { return }
        sum += Double(missing.count) * Self.worthInPath
        let score = sum / Double(terms.count) + recency(row) - Double(min(above.depth, 20)) * 0.2
        found.append(Found(row: row, score: score))
    }

    private static let worthInTags = 50.0
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

    /// From 15 for an item that was modified just now to nothing, 7.5 after a month.
    private func recency(_ row: Row) -> Double {
        let age = Double(now.seconds) - Double(row.modified.seconds)
        return 15 / (1 + max(age, 0) / 2_592_000)
    }

    /// Items that may be among the best: a recent read may lift an item by `mostByUse`.
    private func candidates() -> [Found] {
        guard found.count > query.limit else { return found }
        let least = found.map(\.score).sorted(by: >)[query.limit - 1] - Self.mostByUse
        return found.filter { $0.score >= least }
    }

    private static let mostByUse = 15.0

    /// Items that were read recently before others; equal ones by name, then the latest first.
    private func byUse(_ found: [Found]) throws -> [Found] {
        let uses = try uses(of: found)
        var found = found
        for index in found.indices {
            guard let used = uses[found[index].row.inode] else { continue }
            let days = max(Double(now.seconds) - Double(used) / 1000, 0) / 86_400
            found[index].score += Self.mostByUse / (1 + days / 7)
        }
        return found.sorted { left, right in
            if left.score != right.score { return left.score > right.score }
            if left.row.name.utf8.elementsEqual(right.row.name.utf8) {
                return left.row.inode > right.row.inode
            }
            return left.row.name.utf8.lexicographicallyPrecedes(right.row.name.utf8)
        }
    }

    /// When contents were last read, by inode, milliseconds since 1970: those of the found items, or all.
    ///
    /// The query begins at the smaller side: while the index is rebuilt, some 100,000 names may fit.
    private func uses(of found: [Found]) throws -> [Int64: Int64] {
        var uses: [Int64: Int64] = [:]
        let hasMoreContents = try database.has(
            "SELECT 1 FROM content WHERE is_staged = 0 ORDER BY used_ms LIMIT 1 OFFSET ?",
            [found.count]
        )
        guard hasMoreContents else {
            try database.each(
                """
                SELECT node.inode, content.used_ms FROM content CROSS JOIN node
                    ON node.account = content.account AND node.remote_id = content.item
                    WHERE content.is_staged = 0 ORDER BY content.used_ms
                """
            ) { row in
                uses[row[0] as Int64] = row[1] as Int64
                return true
            }
            return uses
        }
        for found in found {
            uses[found.row.inode] = try database.number(
                """
                SELECT max(used_ms) FROM content
                    WHERE account = ? AND item = (SELECT remote_id FROM node WHERE inode = ?)
                """,
                [found.row.account, found.row.inode]
            )
        }
        return uses
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

    /// What is known of a folder and those above it; nil where it is not in the tree.
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
