import GRDB
import Logging
import Synchronization

/// The index of names, by which `search` finds.
///
/// A table of FTS5 without the names themselves: for each item with an inode up to the mark, the runs of
/// three scalars of its name, description and tags, and what kind of file it is. Items above the mark are not in
/// it yet, and stale ones are in it under their old names; triggers note both in the transaction that
/// changes the tree. So a search that looks at these one by one finds the present names, and the index may
/// follow in steps: neither a transaction of the tree, nor an older catalog without an index, waits for it.
/// A damaged one is discarded and rebuilt.
extension Catalog {
    /// What the tree's transactions noted in the first version; `searchedTags` has what they note today.
    ///
    /// An index of another version is rebuilt.
    static let searchSchema = """
        CREATE TABLE search_state (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            -- `SearchText.version` with which the index was made; 0 for none.
            version INTEGER NOT NULL,
            -- The highest inode that the index has.
            mark INTEGER NOT NULL
        ) STRICT;
        INSERT INTO search_state (id, version, mark) VALUES (1, 0, 0);
        -- What the index has under these words and the tree does not have so any more.
        CREATE TABLE search_stale (
            inode INTEGER PRIMARY KEY,
            name TEXT NOT NULL,
            description TEXT
        ) STRICT;
        CREATE TRIGGER search_renamed AFTER UPDATE OF name, description ON node
            WHEN OLD.inode <= (SELECT mark FROM search_state)
                AND (OLD.name IS NOT NEW.name OR OLD.description IS NOT NEW.description)
        BEGIN
            INSERT INTO search_stale (inode, name, description)
                SELECT OLD.inode, OLD.name, OLD.description
                WHERE NOT EXISTS (SELECT 1 FROM search_stale WHERE inode = OLD.inode);
        END;
        CREATE TRIGGER search_removed AFTER DELETE ON node
            WHEN OLD.inode <= (SELECT mark FROM search_state)
        BEGIN
            INSERT INTO search_stale (inode, name, description)
                SELECT OLD.inode, OLD.name, OLD.description
                WHERE NOT EXISTS (SELECT 1 FROM search_stale WHERE inode = OLD.inode);
        END;
        """

    /// What the tree's transactions noted in the second version, and what finds the items that filters leave.
    static let searchedKinds = """
        DROP TRIGGER search_renamed;
        DROP TRIGGER search_removed;
        DROP TABLE search_stale;
        UPDATE search_state SET version = 0, mark = 0;
        -- What the index has under these words, and as this, and the tree does not have so any more.
        CREATE TABLE search_stale (
            inode INTEGER PRIMARY KEY,
            name TEXT NOT NULL,
            description TEXT,
            kind INTEGER NOT NULL,
            mime_type TEXT
        ) STRICT;
        CREATE TRIGGER search_renamed AFTER UPDATE OF name, description, kind, mime_type ON node
            WHEN OLD.inode <= (SELECT mark FROM search_state)
                AND (OLD.name IS NOT NEW.name OR OLD.description IS NOT NEW.description
                    OR OLD.kind IS NOT NEW.kind OR OLD.mime_type IS NOT NEW.mime_type)
        BEGIN
            INSERT INTO search_stale (inode, name, description, kind, mime_type)
                SELECT OLD.inode, OLD.name, OLD.description, OLD.kind, OLD.mime_type
                WHERE NOT EXISTS (SELECT 1 FROM search_stale WHERE inode = OLD.inode);
        END;
        CREATE TRIGGER search_removed AFTER DELETE ON node
            WHEN OLD.inode <= (SELECT mark FROM search_state)
        BEGIN
            INSERT INTO search_stale (inode, name, description, kind, mime_type)
                SELECT OLD.inode, OLD.name, OLD.description, OLD.kind, OLD.mime_type
                WHERE NOT EXISTS (SELECT 1 FROM search_stale WHERE inode = OLD.inode);
        END;
        CREATE INDEX node_folders ON node(parent, kind) WHERE kind = 0;
        CREATE INDEX node_by_size ON node(size) WHERE size >= 1048576;
        """

    /// The tags of items, and what the tree's transactions note.
    static let searchedTags = """
        -- What the service reported, as one text (`TextList`); NULL for none.
        ALTER TABLE node ADD COLUMN tags TEXT;
        ALTER TABLE search_stale ADD COLUMN tags TEXT;
        DROP TRIGGER search_renamed;
        DROP TRIGGER search_removed;
        CREATE TRIGGER search_renamed AFTER UPDATE OF name, description, kind, mime_type, tags ON node
            WHEN OLD.inode <= (SELECT mark FROM search_state)
                AND (OLD.name IS NOT NEW.name OR OLD.description IS NOT NEW.description
                    OR OLD.kind IS NOT NEW.kind OR OLD.mime_type IS NOT NEW.mime_type
                    OR OLD.tags IS NOT NEW.tags)
        BEGIN
            INSERT INTO search_stale (inode, name, description, kind, mime_type, tags)
                SELECT OLD.inode, OLD.name, OLD.description, OLD.kind, OLD.mime_type, OLD.tags
                WHERE NOT EXISTS (SELECT 1 FROM search_stale WHERE inode = OLD.inode);
        END;
        CREATE TRIGGER search_removed AFTER DELETE ON node
            WHEN OLD.inode <= (SELECT mark FROM search_state)
        BEGIN
            INSERT INTO search_stale (inode, name, description, kind, mime_type, tags)
                SELECT OLD.inode, OLD.name, OLD.description, OLD.kind, OLD.mime_type, OLD.tags
                WHERE NOT EXISTS (SELECT 1 FROM search_stale WHERE inode = OLD.inode);
        END;
        """

    /// Brings the index up to the tree whenever that has changed by much; returns when its task is
    /// cancelled.
    ///
    /// Holds the writer for some milliseconds at a time, and for at most half of the time.
    public func keepSearchIndex() async {
        searchBacklog.ask()
        var damages = 0
        for await _ in searchBacklog.asked {
            do {
                var isBehind = true
                while isBehind {
                    let began = ContinuousClock.now
                    isBehind = try await advanceSearchIndex()
                    try await Task.sleep(for: ContinuousClock.now - began)
                }
                damages = 0
            } catch is CancellationError {
                return
            } catch {
                // For instance a full disk; until then, searches look at the missing items one by one.
                logger.warning("the search index is behind", metadata: ["cause": "\(error)"])
                guard case CatalogError.corrupt = error else { continue }
                // Damage beyond the index is not mended by rebuilding it again and again.
                damages += 1
                if damages < 3 { searchBacklog.ask() }
            }
        }
    }

    /// Puts the next names into the index, at most `count`.
    ///
    /// - Returns: whether there are more.
    /// - Throws: `.corrupt` where the index is damaged, which the next call rebuilds; `.diskFull`,
    ///   `.storage`; the index is as it was then.
    @discardableResult
    public func advanceSearchIndex(by count: Int = 500) async throws(CatalogError) -> Bool {
        let isDamaged = searchBacklog.takeDamage()
        do {
            let outcome = try await pool.write { database -> Result<Bool, CatalogError> in
                let index = SearchIndex(database)
                if isDamaged { try index.forget() }
                var isMore = false
                do {
                    try database.inSavepoint {
                        isMore = try index.advance(by: count)
                        return .commit
                    }
                } catch let error as DatabaseError where SearchIndex.isDamage(error) {
                    try index.forget()
                    return .failure(.corrupt(detail: "the search index: \(error)"))
                }
                return .success(isMore)
            }
            return try outcome.get()
        } catch { throw Self.translate(error) }
    }
}

/// Makes and mends the index inside a transaction.
struct SearchIndex {
    private let database: Database

    init(_ database: Database) { self.database = database }

    /// Whether an error is damage of the index, which can be rebuilt.
    static func isDamage(_ error: DatabaseError) -> Bool {
        switch error.resultCode {
        case .SQLITE_CORRUPT, .SQLITE_ERROR, .SQLITE_CONSTRAINT, .SQLITE_MISMATCH: true
        default: false
        }
    }

    /// Has the next steps rebuild the index.
    func forget() throws {
        try database.execute(sql: "UPDATE search_state SET version = 0, mark = 0")
    }

    /// Puts the next names in, at most `count`; stale ones before new ones.
    ///
    /// - Returns: whether there may be more.
    func advance(by count: Int) throws -> Bool {
        var (version, mark) = try state()
        if version != SearchText.version {
            try drop()
            try database.execute(sql: "DELETE FROM search_stale")
            try database.execute(sql: Self.table)
            try database.run(
                "UPDATE search_state SET version = ?, mark = 0",
                [SearchText.version]
            )
            (version, mark) = (SearchText.version, 0)
        }
        let stale = try database.all(
            "SELECT \(Entry.columns) FROM search_stale LIMIT ?",
            [count],
            Entry.init
        )
        for entry in stale {
            try remove(entry)
            if let now = try database.first(
                "SELECT \(Entry.columns) FROM node WHERE inode = ?",
                [entry.inode],
                Entry.init
            ) {
                try add(now)
            }
            try database.run("DELETE FROM search_stale WHERE inode = ?", [entry.inode])
        }
        guard stale.count < count else { return true }
        let new = try database.all(
            "SELECT \(Entry.columns) FROM node WHERE inode > ? ORDER BY inode LIMIT ?",
            [mark, count - stale.count],
            Entry.init
        )
        guard let last = new.last else { return false }
        for entry in new { try add(entry) }
        try database.run("UPDATE search_state SET mark = ?", [last.inode])
        return stale.count + new.count == count
    }

    /// Removes the index, whatever is left of it.
    private func drop() throws {
        do {
            try database.execute(sql: "DROP TABLE IF EXISTS search_index")
        } catch let error as DatabaseError where Self.isDamage(error) {
            // Only a table that can be opened can be dropped: it is given the beginnings of an empty one
            // (https://www.sqlite.org/fts5.html#fts5_data_structures).
            try database.execute(
                sql: """
                    CREATE TABLE IF NOT EXISTS search_index_data (id INTEGER PRIMARY KEY, block BLOB);
                    CREATE TABLE IF NOT EXISTS search_index_idx
                        (segid, term, pgno, PRIMARY KEY (segid, term)) WITHOUT ROWID;
                    CREATE TABLE IF NOT EXISTS search_index_config (k PRIMARY KEY, v) WITHOUT ROWID;
                    DELETE FROM search_index_data;
                    DELETE FROM search_index_idx;
                    INSERT INTO search_index_data (id, block)
                        VALUES (1, X''), (10, X'00000000000000');
                    INSERT OR REPLACE INTO search_index_config (k, v) VALUES ('version', 4);
                    DROP TABLE search_index;
                    """
            )
        }
        // Removes what is left of a table that is missing.
        for part in ["data", "idx", "config"] {
            try database.execute(sql: "DROP TABLE IF EXISTS search_index_\(part)")
        }
    }

    /// With which folding the index was built, and the highest inode that it has.
    func state() throws -> (version: Int, mark: Int64) {
        try database.first("SELECT version, mark FROM search_state", []) { ($0[0], $0[1]) } ?? (
            0, 0
        )
    }

    /// The marks that are part of words are those of `SearchText` in ASCII.
    private static let table = """
        CREATE VIRTUAL TABLE search_index USING fts5(
            words, content = '', detail = none, columnsize = 0,
            tokenize = "ascii tokenchars '_$+<=>^`|~'"
        )
        """

    private struct Entry {
        static let columns = "inode, name, description, kind, mime_type, tags"

        var inode: Int64
        var name: String
        var description: String?
        var kind: SearchKind?
        var tags: String?

        init(_ row: Columns) {
            inode = row[0]
            name = row[1]
            description = row[2]
            kind = SearchKind.of(NodeKind(rawValue: row[3]) ?? .file, name: name, type: row[4])
            tags = row[5]
        }

        /// The words of the index for an item; empty where it cannot be found by any.
        var words: String {
            var all = SearchText.trigrams(SearchText.framed(name))
            if let description {
                all.formUnion(SearchText.trigrams(SearchText.framedDescription(description)))
            }
            if let tags { all.formUnion(SearchText.trigrams(SearchText.framed(tags))) }
            guard !all.isEmpty else { return "" }
            var text = Array((kind?.mark ?? "").utf8) + [UInt8(ascii: " ")]
            for word in all {
                text += word
                text.append(UInt8(ascii: " "))
            }
            return String(decoding: text, as: UTF8.self)
        }
    }

    private func add(_ entry: Entry) throws {
        let words = entry.words
        guard !words.isEmpty else { return }
        try database.run(
            "INSERT INTO search_index (rowid, words) VALUES (?, ?)",
            [entry.inode, words]
        )
    }

    private func remove(_ entry: Entry) throws {
        let words = entry.words
        guard !words.isEmpty else { return }
        // A table without content must be told what it holds:
        // https://www.sqlite.org/fts5.html#the_delete_command
        try database.run(
            "INSERT INTO search_index (search_index, rowid, words) VALUES ('delete', ?, ?)",
            [entry.inode, words]
        )
    }
}

/// How far the index is behind, and whether a search met damage in it.
final class SearchBacklog: Sendable {
    private struct State {
        var changes = 0
        var isDamaged = false
    }

    /// How many rows may change before the index follows: a search looks at as many in no time.
    private static let bearable = 256

    private let state = Mutex(State())
    private let asker: AsyncStream<Void>.Continuation
    /// Yields an element whenever the index has to follow.
    let asked: AsyncStream<Void>

    init() { (asked, asker) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1)) }

    /// Has the index follow.
    func ask() { asker.yield() }

    /// Counts rows of any table that a transaction changed.
    func grew(by changes: Int) {
        let isMuch = state.withLock { state in
            state.changes += changes
            guard state.changes >= Self.bearable else { return false }
            state.changes = 0
            return true
        }
        if isMuch { ask() }
    }

    /// A search found the index damaged or missing.
    func foundDamage() {
        state.withLock { $0.isDamaged = true }
        ask()
    }

    /// Whether damage was found since this was asked last.
    func takeDamage() -> Bool {
        state.withLock { state in
            defer { state.isDamaged = false }
            return state.isDamaged
        }
    }
}
