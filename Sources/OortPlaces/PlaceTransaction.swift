import GRDB
import OortModel

/// One transaction on the map; not valid after it.
struct PlaceTransaction {
    let database: Database

    // MARK: Rows

    func row(_ id: Int64) throws -> PlaceRow? {
        try PlaceRow.fetchOne(
            database.cachedStatement(sql: "SELECT \(PlaceRow.columns) FROM place WHERE id = ?"),
            arguments: [id]
        )
    }

    func row(named name: String, in parent: Int64) throws -> PlaceRow? {
        try PlaceRow.fetchOne(
            database.cachedStatement(
                sql: "SELECT \(PlaceRow.columns) FROM place WHERE parent = ? AND name = ?"
            ),
            arguments: [parent, name]
        )
    }

    func children(of folder: Int64) throws -> [PlaceRow] {
        try PlaceRow.fetchAll(
            database.cachedStatement(
                sql: "SELECT \(PlaceRow.columns) FROM place WHERE parent = ? ORDER BY id"
            ),
            arguments: [folder]
        )
    }

    /// All that lies at and below a folder that lies at a path.
    func contents(of folder: Int64, at path: RemotePath) throws -> PlaceContents {
        var contents = PlaceContents()
        var waiting = [(folder, path)]
        while let (next, path) = waiting.popLast() {
            contents.folders.append(path)
            for child in try children(of: next) {
                let place = path.appending(child.entry.name)
                switch child.entry.kind {
                case .folder: waiting.append((child.id, place))
                case .file:
                    guard let revision = child.entry.revision else { continue }
                    contents.files.append((place, revision))
                }
            }
        }
        return contents
    }

    /// Where a row lies; nil when there is no such row.
    func path(of id: Int64) throws -> RemotePath? {
        var names: [String] = []
        var next = id
        while next != PlaceMap.rootRow {
            guard let row = try row(next), let parent = row.parent else { return nil }
            names.append(row.entry.name)
            next = parent
        }
        return RemotePath(names.reversed())
    }

    /// The disk on which a folder lies, as far as its listings said.
    func disk(of folder: Int64) throws -> String? {
        try String.fetchOne(
            database.cachedStatement(sql: "SELECT disk FROM folder WHERE id = ?"),
            arguments: [folder]
        )
    }

    /// Whether a folder lies on another disk than this one, as far as both are known.
    func isOfOtherDisk(_ row: PlaceRow, than disk: String?) throws -> Bool {
        guard row.entry.kind == .folder, let disk, let own = try self.disk(of: row.id) else {
            return false
        }
        return !own.isSameText(as: disk)
    }

    /// Whether a row lies in a folder, or is it.
    func lies(_ id: Int64, below folder: Int64) throws -> Bool {
        var next: Int64? = id
        while let current = next {
            if current == folder { return true }
            next = try row(current)?.parent
        }
        return false
    }

    // MARK: Changes

    func nextChange() throws -> Int64 {
        try database.cachedStatement(sql: "UPDATE state SET change = change + 1").execute()
        return try Int64.fetchOne(database.cachedStatement(sql: "SELECT change FROM state")) ?? 0
    }

    /// Records an entry over the row at its place, or makes a row; returns the row as it is then.
    ///
    /// Changes nothing if everything is as it was.
    @discardableResult
    func put(_ entry: PlaceEntry, in parent: Int64) throws -> PlaceRow {
        if let old = try row(named: entry.name, in: parent) { return try rewrite(old, as: entry) }
        return try insert(entry, in: parent)
    }

    /// Makes a new row, whatever was at the place before.
    func insert(_ entry: PlaceEntry, in parent: Int64) throws -> PlaceRow {
        guard try row(parent)?.entry.kind == .folder else {
            // The service put it into a folder that others moved or removed meanwhile.
            throw ProviderError(
                .outcomeUnknown(retryAfter: nil),
                detail: "the folder of \(entry.name) is not where it was"
            )
        }
        if let old = try row(named: entry.name, in: parent) { try remove(old.id) }
        let columns = entry.columns
        let names = columns.map(\.0).joined(separator: ", ")
        let marks = columns.map { _ in ", ?" }.joined()
        let change = try nextChange()
        let values: [(any DatabaseValueConvertible)?] = [parent, entry.name, change]
        try database.cachedStatement(
            sql: "INSERT INTO place (parent, name, changed, \(names)) VALUES (?, ?, ?\(marks))"
        ).execute(arguments: StatementArguments(values + columns.map(\.1)))
        let id = database.lastInsertedRowID
        if entry.kind == .folder {
            try database.cachedStatement(sql: "INSERT INTO folder (id, stamp) VALUES (?, ?)")
                .execute(arguments: [id, entry.stamp?.rawValue])
        }
        return try row(id) ?? { throw lost(id) }()
    }

    /// Records an entry over a row, wherever that lies; returns the row then.
    ///
    /// A row of the other kind makes way for a new one: the entry is not the one that the id was given to,
    /// and a file holds nothing.
    @discardableResult
    func rewrite(_ old: PlaceRow, as entry: PlaceEntry) throws -> PlaceRow {
        var entry = entry
        entry.name = old.entry.name
        if entry.kind != old.entry.kind, let parent = old.parent {
            return try insert(entry, in: parent)
        }
        if entry.kind == .file, entry.revision == old.entry.revision {
            // What a listing does not say about a content stays known for the same revision.
            if entry.modifiedTime == nil, entry.storedTime != nil {
                entry.modifiedTime = old.entry.modifiedTime
            }
            entry.storedTime = entry.storedTime ?? old.entry.storedTime
            entry.mimeType = entry.mimeType ?? old.entry.mimeType
        }
        // What was known about the content stays known for the same revision.
        if entry.revision == old.entry.revision { entry.hash = entry.hash ?? old.entry.hash }
        if entry.kind == .folder, let stamp = entry.stamp {
            try database.cachedStatement(sql: "UPDATE folder SET stamp = ? WHERE id = ?")
                .execute(arguments: [stamp.rawValue, old.id])
        } else if entry.kind == .folder, entry.key != old.entry.key {
            // Another folder of the name, and a stamp of the former one says nothing of it.
            try database.cachedStatement(
                sql: "UPDATE folder SET stamp = NULL, listed_stamp = NULL, is_due = 1 WHERE id = ?"
            ).execute(arguments: [old.id])
        }
        if old.isMissing {
            try database.execute(
                sql: "UPDATE place SET is_missing = 0 WHERE id = ?",
                arguments: [old.id]
            )
        }
        guard entry.kept != old.entry else { return old }
        let columns = entry.columns
        let sets = columns.map { "\($0.0) = ?" }.joined(separator: ", ")
        let change = try nextChange()
        let recurrence = try comesBack(entry, over: old) ? change : old.recurrence
        try database.cachedStatement(
            sql: "UPDATE place SET \(sets), changed = ?, recurrence = ? WHERE id = ?"
        )
        .execute(
            arguments: StatementArguments(columns.map(\.1) + [change, recurrence, old.id])
        )
        return try row(old.id) ?? { throw lost(old.id) }()
    }

    /// Whether a file has another revision now, of a size and second that it had with another content.
    func comesBack(_ entry: PlaceEntry, over old: PlaceRow) throws -> Bool {
        guard entry.kind == .file, entry.revision != old.entry.revision, let size = entry.size,
            let time = entry.modifiedTime
        else { return false }
        return try Bool.fetchOne(
            database.cachedStatement(
                sql: "SELECT 1 FROM former WHERE id = ? AND size = ? AND modified = ?"
            ),
            arguments: [old.id, size, time.seconds]
        ) ?? false
    }

    /// Records whether a folder's listing is refused; the root's is never, since nothing is known then.
    func setClosed(_ isClosed: Bool, _ folder: Int64) throws {
        guard folder != PlaceMap.rootRow, let old = try row(folder), old.isClosed != isClosed else {
            return
        }
        try database.cachedStatement(
            sql: "UPDATE place SET is_closed = ?, changed = ? WHERE id = ?"
        )
        .execute(arguments: [isClosed, try nextChange(), folder])
    }

    /// Moves a row, and with it all that lies below; a row at the new place makes way.
    func move(_ id: Int64, to parent: Int64, name: String) throws {
        guard try row(parent)?.entry.kind == .folder, try !lies(parent, below: id) else {
            throw ProviderError(
                .outcomeUnknown(retryAfter: nil),
                detail: "the folder of \(name) is not where it was"
            )
        }
        if let old = try row(named: name, in: parent), old.id != id { try remove(old.id) }
        try database.execute(
            sql: """
                UPDATE place SET parent = ?, name = ?, changed = ?, is_missing = 0 WHERE id = ?
                """,
            arguments: [parent, name, try nextChange(), id]
        )
        try database.execute(sql: "DELETE FROM motion WHERE id = ?", arguments: [id])
    }

    /// Removes a row with all below it.
    ///
    /// Each row is recorded by itself: the reader of the feed may know some of them elsewhere, where they
    /// came from.
    func remove(_ id: Int64) throws {
        let change = try lastChange()
        try database.cachedStatement(
            sql: """
                WITH RECURSIVE below(id, depth) AS (
                    SELECT id, 0 FROM place WHERE id = ?1
                    UNION ALL
                    SELECT place.id, depth + 1 FROM place JOIN below ON place.parent = below.id
                )
                INSERT INTO gone (change, id)
                SELECT ?2 + row_number() OVER (ORDER BY depth, id), id FROM below
                """
        ).execute(arguments: [id, change])
        let count = database.changesCount
        guard count > 0 else { return }
        try database.execute(sql: "UPDATE state SET change = change + ?", arguments: [count])
        try database.cachedStatement(sql: "DELETE FROM place WHERE id = ?")
            .execute(arguments: [id])
    }

    private func lost(_ id: Int64) -> ProviderError {
        ProviderError(.localContent, detail: "the map of places has no row \(id)")
    }

    /// The number of the last change below a folder.
    func lastNews(below folder: Int64) throws -> Int64 {
        try Int64.fetchOne(
            database,
            sql: """
                WITH RECURSIVE below(id, changed) AS (
                    SELECT id, changed FROM place WHERE parent = ?
                    UNION ALL
                    SELECT place.id, place.changed FROM place JOIN below ON place.parent = below.id
                ) SELECT max(changed) FROM below
                """,
            arguments: [folder]
        ) ?? 0
    }

    // MARK: Moves without an answer

    func noteMotion(of id: Int64, to parent: Int64, name: String) throws {
        try database.execute(
            sql: """
                INSERT INTO motion (id, parent, name) VALUES (?1, ?2, ?3)
                ON CONFLICT (id) DO UPDATE SET parent = ?2, name = ?3
                """,
            arguments: [id, parent, name]
        )
    }

    /// Notes that a part of a move was done.
    func noteBegun(_ id: Int64) throws {
        try database.execute(sql: "UPDATE motion SET is_begun = 1 WHERE id = ?", arguments: [id])
    }

    func motion(of id: Int64) throws -> PlaceMotion? {
        try Row.fetchOne(
            database,
            sql: "SELECT parent, name, is_begun FROM motion WHERE id = ?",
            arguments: [id]
        ).map { PlaceMotion(parent: $0["parent"], name: $0["name"], isBegun: $0["is_begun"]) }
    }

    func motions() throws -> [Int64] { try allMotions().map(\.row) }

    /// All moves without an answer, with their rows; there are few at any time.
    func allMotions() throws -> [(row: Int64, motion: PlaceMotion)] {
        try Row.fetchAll(
            database.cachedStatement(
                sql: "SELECT id, parent, name, is_begun FROM motion ORDER BY id"
            )
        ).map { row in
            let motion = PlaceMotion(
                parent: row["parent"],
                name: row["name"],
                isBegun: row["is_begun"]
            )
            return (row["id"], motion)
        }
    }

    /// The names in a folder from which, or to which, a move without an answer leads.
    func namesInMotion(in folder: Int64) throws -> Set<ExactText> {
        var names: Set<ExactText> = []
        for (id, motion) in try allMotions() {
            if motion.parent == folder { names.insert(ExactText(motion.name)) }
            if let row = try row(id), row.parent == folder {
                names.insert(ExactText(row.entry.name))
            }
        }
        return names
    }

    /// Whether a row, or a folder above it, has a move without an answer: it is not known where it lies.
    func isInMotion(_ id: Int64) throws -> Bool {
        let moving = Set(try motions())
        var next: Int64? = moving.isEmpty ? nil : id
        while let current = next {
            if moving.contains(current) { return true }
            next = try row(current)?.parent
        }
        return false
    }

    func forgetMotion(of id: Int64) throws {
        try database.execute(sql: "DELETE FROM motion WHERE id = ?", arguments: [id])
    }

    /// The first second from a time on that a file had with no other content of a size; and that it does
    /// not have now either, if the content `isOther` than its present one.
    func freeTime(
        from time: Timestamp,
        of row: PlaceRow,
        size: Int64,
        isOther: Bool
    ) throws -> Timestamp {
        var taken = try Set(
            Int64.fetchAll(
                database.cachedStatement(
                    sql: """
                        SELECT modified FROM former WHERE id = ? AND size = ? AND modified >= ?
                        """
                ),
                arguments: [row.id, size, time.seconds]
            )
        )
        if isOther, row.entry.size == size, let now = row.entry.modifiedTime {
            taken.insert(now.seconds)
        }
        var seconds = time.seconds
        while taken.contains(seconds), seconds < .max { seconds += 1 }
        return seconds == time.seconds ? time : Timestamp(seconds: seconds)
    }
}
