import GRDB
import OortModel

/// A listing, and which parts of it are current.
struct HeardListing: Sendable {
    /// The folder's row.
    let folder: Int64
    /// What the service said.
    let listing: PlaceListing
    /// Whether an operation of ours touched a place of this name in the folder while the listing was under
    /// way: what it says of that place may be old.
    let isUnsettled: @Sendable (_ name: String) -> Bool
}

/// Changes by whole folders.
extension PlaceTransaction {
    /// Records a listing over the rows of its folder.
    ///
    /// A row that it does not name is marked, and removed at the end of the round, since it may turn up
    /// elsewhere. `round` is the number of the round, or of the last one. `now` and `asked` are seconds
    /// since 1970; `asked` is when the listing was asked for, where stamps are times, and nil elsewhere. A
    /// change in the same second as a stamp does not change the stamp, so the folder is listed in each
    /// round until a listing was asked for after that second.
    ///
    /// Returns the folders in it that are to be listed.
    func apply(
        _ heard: HeardListing,
        round: Int64,
        now: Int64,
        asked: Int64?
    ) throws -> [Int64] {
        var rows: [ExactText: PlaceRow] = [:]
        for row in try children(of: heard.folder) { rows[ExactText(row.entry.name)] = row }
        var isDue = heard.listing.isYoung
        var folders: [Int64] = []
        var named: Set<ExactText> = []
        let inMotion = try namesInMotion(in: heard.folder)
        for entry in heard.listing.entries where entry.hasName {
            let name = ExactText(entry.name)
            guard named.insert(name).inserted else { continue }
            guard !heard.isUnsettled(entry.name), !inMotion.contains(name) else {
                isDue = true
                continue
            }
            if entry.isYoung { isDue = true }
            let row: PlaceRow
            if let old = rows[name], old.entry.kind == entry.kind {
                row = try rewrite(old, as: entry)
            } else if let moved = try missing(like: entry),
                try !lies(heard.folder, below: moved.id)
            {
                try move(moved.id, to: heard.folder, name: entry.name)
                row = try rewrite(try self.row(moved.id) ?? moved, as: entry)
            } else {
                row = try insert(entry, in: heard.folder)
            }
            if entry.kind == .folder, try isNew(row.id) { folders.append(row.id) }
        }
        let unknown = Set(heard.listing.unknown.map(ExactText.init))
        for (name, row) in rows where !named.contains(name) && !unknown.contains(name) {
            if heard.isUnsettled(row.entry.name) || inMotion.contains(name) {
                isDue = true
            } else {
                try miss(row.id, in: round, now: now)
            }
        }
        let stamp = heard.listing.stamp?.rawValue
        var listed = now
        if let asked, let stamp {
            // Between two of which one comes two seconds after the other a whole second lies; a clock that
            // was set back says nothing.
            let first = try listingTime(of: heard.folder, with: stamp)
            let age = first.map { asked.addingSaturating(-$0) } ?? -1
            if let first, (0..<2).contains(age) { listed = first }
            if age < 2 { isDue = true }
        }
        try database.cachedStatement(
            sql: """
                UPDATE folder SET stamp = coalesce(?1, stamp), listed_stamp = coalesce(?1, stamp),
                    listed_round = ?2, listed_at = ?3, is_due = ?4, disk = coalesce(?6, disk)
                WHERE id = ?5
                """
        ).execute(arguments: [stamp, round, listed, isDue, heard.folder, heard.listing.disk])
        try setClosed(false, heard.folder)
        return folders
    }

    /// The stamp of a folder whose next change must give it another one; nil where that is not sure.
    ///
    /// It is sure where the folder was listed under this stamp in an earlier second than `now` (since
    /// 1970), and once more after a change of the stamp.
    func settledStamp(of folder: Int64, listedBefore now: Int64) throws -> String? {
        try String.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT stamp FROM folder WHERE id = ? AND stamp IS listed_stamp AND is_due = 0
                        AND listed_round > 0 AND listed_at + 1 < ?
                    """
            ),
            arguments: [folder, now]
        )
    }

    private func miss(_ id: Int64, in round: Int64, now: Int64) throws {
        try database.cachedStatement(
            sql: """
                UPDATE place SET is_missing = 1, missing_round = CASE
                    WHEN is_missing = 0 OR missing_round > 0 THEN ?1
                    WHEN -missing_round < ?1 THEN 0
                    ELSE missing_round END,
                    missing_since = CASE WHEN is_missing = 0 THEN ?3 ELSE missing_since END
                WHERE id = ?2
                """
        ).execute(arguments: [round, id, now])
    }

    /// A row that its own folder's listing no longer named, and that has the key of an entry elsewhere.
    private func missing(like entry: PlaceEntry) throws -> PlaceRow? {
        guard let key = entry.key else { return nil }
        return try PlaceRow.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT \(PlaceRow.columns) FROM place
                    WHERE item_key = ? AND is_missing = 1 AND is_folder = ? ORDER BY id LIMIT 1
                    """
            ),
            arguments: [key, entry.kind == .folder]
        )
    }

    /// Whether a folder's stamp differs from that of its last listing, or it was never listed.
    private func isNew(_ folder: Int64) throws -> Bool {
        try Bool.fetchOne(
            database.cachedStatement(
                sql: "SELECT listed_round = 0 OR stamp IS NOT listed_stamp FROM folder WHERE id = ?"
            ),
            arguments: [folder]
        ) ?? false
    }

    /// When a folder was listed with a stamp, the first time where that may be too soon to be believed; nil
    /// where its last listing had another one.
    private func listingTime(of folder: Int64, with stamp: String) throws -> Int64? {
        try Int64.fetchOne(
            database.cachedStatement(
                sql:
                    "SELECT listed_at FROM folder WHERE id = ? AND listed_stamp IS ? AND listed_round > 0"
            ),
            arguments: [folder, stamp]
        )
    }

    /// Notes that a folder's listing was refused for good: what is known of it stays, and it is tried again
    /// when its stamp changes.
    func noteUnlistable(_ folder: Int64, round: Int64, now: Int64) throws {
        try database.execute(
            sql: """
                UPDATE folder SET listed_stamp = stamp, listed_round = ?, listed_at = ?, is_due = 0
                WHERE id = ?
                """,
            arguments: [round, now, folder]
        )
    }

    /// Notes that a folder that was listed only for its age could not be: it counts as last listed at a
    /// second since 1970, and all else that is known of it stays.
    func noteUnanswered(_ folder: Int64, asOf second: Int64) throws {
        try database.cachedStatement(sql: "UPDATE folder SET listed_at = ? WHERE id = ?")
            .execute(arguments: [second, folder])
    }

    /// Has a folder listed in the next round.
    func makeDue(_ folder: Int64) throws {
        try database.cachedStatement(sql: "UPDATE folder SET is_due = 1 WHERE id = ?")
            .execute(arguments: [folder])
    }

    // MARK: Snapshots

    /// Records an entry that a snapshot names, and that the folders above it exist.
    func apply(
        _ entry: PlaceEntry,
        in path: RemotePath,
        round: Int64,
        isUnsettled: (PlaceTurns.Place) -> Bool
    ) throws {
        guard entry.hasName else { return }
        var folder = PlaceMap.rootRow
        for name in path.parts {
            let above = PlaceEntry.folder(name)
            guard above.hasName, !isUnsettled(PlaceTurns.Place(folder, name)),
                try !namesInMotion(in: folder).contains(ExactText(name))
            else { return }
            let row =
                if let old = try row(named: name, in: folder), old.entry.kind == .folder {
                    // The snapshot may name the folder itself earlier or later.
                    try rewrite(old, as: old.entry)
                } else { try put(above, in: folder) }
            try see(row.id, round)
            folder = row.id
        }
        guard !isUnsettled(PlaceTurns.Place(folder, entry.name)),
            try !namesInMotion(in: folder).contains(ExactText(entry.name))
        else { return }
        try see(try put(entry, in: folder).id, round)
    }

    private func see(_ id: Int64, _ round: Int64) throws {
        try database.cachedStatement(sql: "UPDATE place SET seen_round = ? WHERE id = ?")
            .execute(arguments: [round, id])
    }

    /// Marks the rows that a whole snapshot did not name, except below places that were touched meanwhile,
    /// about which it says nothing.
    func endSnapshot(
        round: Int64,
        now: Int64,
        isUnsettled: (PlaceTurns.Place) -> Bool
    ) throws {
        let unseen = try Int64.fetchAll(
            database,
            sql: "SELECT id FROM place WHERE seen_round < ? AND parent IS NOT NULL",
            arguments: [round]
        )
        let moving = Set(try motions())
        var unsettled: Set<Int64> = []
        var settled: Set<Int64> = []
        // A snapshot says nothing about what lies below a folder that was moved meanwhile, even if an
        // earlier page named the folder itself.
        func isBelowUnsettled(_ id: Int64) throws -> Bool {
            var way: [Int64] = []
            var next: Int64? = id
            while let current = next, !settled.contains(current) {
                way.append(current)
                let row = try row(current)
                let place = row?.parent.map { PlaceTurns.Place($0, row?.entry.name ?? "") }
                if unsettled.contains(current) || moving.contains(current)
                    || place.map(isUnsettled) == true
                {
                    unsettled.formUnion(way)
                    return true
                }
                next = row?.parent
            }
            settled.formUnion(way)
            return false
        }
        let missing = try unseen.filter { try !isBelowUnsettled($0) }
        for id in missing { try miss(id, in: round, now: now) }
        try database.execute(
            sql: "UPDATE folder SET listed_round = ?, listed_at = ?, is_due = 0",
            arguments: [round, now]
        )
        // The next snapshot may be some rounds away.
        for id in unseen where unsettled.contains(id) {
            if let folder = try row(id)?.parent { try makeDue(folder) }
        }
    }

    // MARK: Rounds

    func round() throws -> Int64 {
        try Int64.fetchOne(database, sql: "SELECT round FROM state") ?? 0
    }

    func nextRound() throws -> Int64 {
        try database.execute(sql: "UPDATE state SET round = round + 1")
        return try round()
    }

    /// All folders with their stamps.
    func folders() throws -> [Int64] {
        try Int64.fetchAll(database, sql: "SELECT id FROM folder ORDER BY id")
    }

    func setStamp(_ stamp: FolderStamp, of folder: Int64) throws {
        try database.cachedStatement(sql: "UPDATE folder SET stamp = ? WHERE id = ?")
            .execute(arguments: [stamp.rawValue, folder])
    }

    /// The folders that are to be listed: asked for, never listed, or of a new stamp.
    func dueFolders() throws -> [Int64] {
        try Int64.fetchAll(
            database,
            sql: """
                SELECT id FROM folder
                WHERE is_due = 1 OR listed_round = 0 OR stamp IS NOT listed_stamp
                ORDER BY id
                """
        )
    }

    /// The folders that were last listed outside of a span of seconds since 1970, the longest ago first;
    /// one that was listed after the span's end was so before the clock was set back.
    func agedFolders(outside span: ClosedRange<Int64>, atMost count: Int) throws -> [Int64] {
        try Int64.fetchAll(
            database,
            sql: """
                SELECT id FROM folder WHERE listed_at < ? OR listed_at > ?
                ORDER BY listed_at, id LIMIT ?
                """,
            arguments: [span.lowerBound, span.upperBound, count]
        )
    }

    /// The folders of which the service tells no stamp, those first that were listed the longest ago; none in a
    /// storage that is away, of which the server has nothing.
    func stamplessFolders(atMost count: Int) throws -> [Int64] {
        try Int64.fetchAll(
            database,
            sql: """
                WITH RECURSIVE away(id) AS (
                    SELECT id FROM place WHERE is_missing = 1 AND mount = ?
                    UNION SELECT place.id FROM place JOIN away ON place.parent = away.id
                )
                SELECT id FROM folder WHERE stamp IS NULL AND id NOT IN (SELECT id FROM away)
                ORDER BY listed_at, id LIMIT ?
                """,
            arguments: [PlaceEntry.Mount.storage.rawValue, count]
        )
    }

    /// Whether an entry lies in a storage that is away, or is where that begins.
    func isAway(_ id: Int64) throws -> Bool {
        var next: Int64? = id
        while let current = next, let row = try row(current) {
            if row.isMissing, row.entry.mount == .storage { return true }
            next = row.parent
        }
        return false
    }

    /// Lets the folder of a storage that is away be deleted here, whatever the server allows: nothing goes with it.
    ///
    /// The next listing that names it takes this back.
    private func allowRemoval(_ row: PlaceRow) throws {
        guard row.entry.mount == .storage, !row.entry.permissions.contains(.delete) else { return }
        let permissions = row.entry.permissions.union(.delete)
        try database.execute(
            sql: "UPDATE place SET permissions = ?, changed = ? WHERE id = ?",
            arguments: [Int64(permissions.rawValue), try nextChange(), row.id]
        )
    }

    /// Whether a row is a folder of which the service tells no stamp.
    func lacksStamp(_ id: Int64) throws -> Bool {
        try Bool.fetchOne(
            database.cachedStatement(sql: "SELECT stamp IS NULL FROM folder WHERE id = ?"),
            arguments: [id]
        ) ?? false
    }

    /// The folders that were listed the longest ago.
    func oldestFolders(atMost count: Int) throws -> [Int64] {
        try Int64.fetchAll(
            database,
            sql: "SELECT id FROM folder ORDER BY listed_round, id LIMIT ?",
            arguments: [count]
        )
    }

    /// The folders that a round which lists everything has not listed yet, below those that it has.
    func unlistedFolders(in round: Int64) throws -> [Int64] {
        try Int64.fetchAll(
            database,
            sql: """
                SELECT folder.id FROM folder JOIN place USING (id)
                LEFT JOIN folder AS above ON above.id = place.parent
                WHERE folder.listed_round < ?1
                    AND (place.parent IS NULL OR above.listed_round >= ?1)
                ORDER BY folder.id
                """,
            arguments: [round]
        )
    }

    func subfolders(of folder: Int64) throws -> [Int64] {
        try Int64.fetchAll(
            database.cachedStatement(
                sql:
                    "SELECT id FROM place WHERE parent = ? AND is_folder = 1 AND is_missing = 0 ORDER BY id"
            ),
            arguments: [folder]
        )
    }

    /// Removes rows that listings no longer named, unless they turned up elsewhere.
    ///
    /// If so much is missing that a disk may be away, they stay until a later round has listed their folder
    /// and it named as little. A share stays until it was missing for `longestAbsence`, and a storage of its
    /// own until it is named again, or deleted here.
    ///
    /// Returns whether all of it is done by `now` (seconds since 1970); if not, another round must look again.
    func removeMissing(now: Int64) throws -> Bool {
        let all = try PlaceRow.fetchAll(
            database,
            sql: "SELECT \(PlaceRow.columns) FROM place WHERE is_missing = 1 ORDER BY id"
        )
        let rounds = try Int64.fetchAll(
            database,
            sql: "SELECT missing_round FROM place WHERE is_missing = 1 ORDER BY id"
        )
        let doubted = try doubtful(all)
        let away = try Set(mountsAway(at: now))
        var missing: [PlaceRow] = []
        for (row, round) in zip(all, rounds) {
            if away.contains(row.id), try elsewhere(row) == nil {
                try allowRemoval(row)
                if let folder = row.parent { try makeDue(folder) }
                continue
            }
            // Zero was in doubt before and is missing again; below zero waits for that listing. An entry
            // that is seen elsewhere was moved, whatever its folder lost.
            guard round < 0 || round > 0 && row.parent.map(doubted.contains) == true,
                try elsewhere(row) == nil
            else {
                missing.append(row)
                continue
            }
            try database.cachedStatement(
                sql: "UPDATE place SET missing_round = -abs(missing_round) WHERE id = ?"
            ).execute(arguments: [row.id])
            if let folder = row.parent { try makeDue(folder) }
        }
        for row in missing {
            // It may have been removed with its folder.
            guard try self.row(row.id) != nil else { continue }
            if let twin = try elsewhere(row), let parent = twin.parent {
                // The older id stays, with the children of both.
                for child in try children(of: twin.id)
                where try self.row(named: child.entry.name, in: row.id) == nil {
                    try move(child.id, to: row.id, name: child.entry.name)
                }
                try remove(twin.id)
                try move(row.id, to: parent, name: twin.entry.name)
                try rewrite(try self.row(row.id) ?? row, as: twin.entry)
                if twin.entry.kind == .folder { try makeDue(row.id) }
                continue
            }
            try remove(row.id)
        }
        return missing.count == all.count
    }

    /// How long a share may be missing, in seconds, before it counts as withdrawn: a server that cannot
    /// reach it may not name it.
    private static let longestAbsence: Int64 = 600

    /// The storages that are missing, and the shares that have been for less than that; no share after a
    /// clock was set back.
    private func mountsAway(at now: Int64) throws -> [Int64] {
        try Int64.fetchAll(
            database,
            sql: """
                SELECT id FROM place WHERE is_missing = 1 AND (mount = ?1
                    OR mount = ?2 AND ?3 - missing_since BETWEEN 0 AND ?4 - 1)
                """,
            arguments: [
                PlaceEntry.Mount.storage.rawValue, PlaceEntry.Mount.share.rawValue, now,
                Self.longestAbsence,
            ]
        )
    }

    /// A younger row of the same key, which is not missing.
    private func elsewhere(_ row: PlaceRow) throws -> PlaceRow? {
        guard let key = row.entry.key else { return nil }
        return try PlaceRow.fetchOne(
            database,
            sql: """
                SELECT \(PlaceRow.columns) FROM place
                WHERE item_key = ? AND is_missing = 0 AND is_folder = ? AND id > ?
                ORDER BY id LIMIT 1
                """,
            arguments: [key, row.entry.kind == .folder, row.id]
        ).flatMap { twin in
            // A row below the other one cannot take its place.
            guard let parent = twin.parent, try !lies(parent, below: row.id),
                try !lies(row.id, below: twin.id)
            else { return nil }
            return twin
        }
    }

    /// The folders that lost so much at once that a disk may be away.
    ///
    /// That is everything that they held, or more than half of more than 100 entries. If more than half of
    /// an account of more than 100 places is missing, it is all of the folders.
    private func doubtful(_ missing: [PlaceRow]) throws -> Set<Int64> {
        let folders = Set(missing.compactMap(\.parent))
        guard !folders.isEmpty else { return [] }
        let all = try Int.fetchOne(database, sql: "SELECT count(*) FROM place") ?? 0
        let gone =
            try Int.fetchOne(
                database,
                sql: """
                    WITH RECURSIVE below(id) AS (
                        SELECT id FROM place WHERE is_missing = 1
                        UNION SELECT place.id FROM place JOIN below ON place.parent = below.id
                    ) SELECT count(*) FROM below
                    """
            ) ?? 0
        if Self.isMost(gone, of: all) { return folders }
        return try folders.filter { folder in
            let entries = try children(of: folder)
            let gone = entries.count { $0.isMissing }
            return gone == entries.count || Self.isMost(gone, of: entries.count)
        }
    }

    private static func isMost(_ count: Int, of all: Int) -> Bool { all > 100 && count > all / 2 }

    // MARK: The feed

    /// The number of the last change.
    func lastChange() throws -> Int64 {
        try Int64.fetchOne(database, sql: "SELECT change FROM state") ?? 0
    }

    /// The rows that changed after `position`, in order, at most `limit`, and the number of the last change
    /// among them; the rows that are gone come after all others.
    ///
    /// They come last because the reader removes everything below them as it knows it: it must have learnt
    /// by then what moved elsewhere.
    func news(after position: Int64, limit: Int) throws -> (news: [PlaceNews], last: Int64) {
        let rows = try PlaceRow.fetchAll(
            database,
            sql: """
                SELECT \(PlaceRow.columns) FROM place
                WHERE changed > ? AND id != ? ORDER BY changed LIMIT ?
                """,
            arguments: [position, PlaceMap.rootRow, limit]
        )
        let news = rows.map { PlaceNews.there($0) }
        if rows.count == limit, let last = rows.last { return (news, last.changed) }
        let gone = try Int64.fetchAll(database, sql: "SELECT id FROM gone ORDER BY change")
        return (news + gone.map { PlaceNews.gone($0) }, try lastChange())
    }

    /// Forgets rows that are gone, once the reader has come back with this position.
    func forgetGone(upTo position: Int64) throws {
        try database.execute(sql: "DELETE FROM gone WHERE change <= ?", arguments: [position])
    }
}

/// One entry of the feed.
enum PlaceNews: Sendable {
    /// What lies somewhere, as it is now.
    case there(PlaceRow)
    /// A row that is gone, with all below it.
    case gone(Int64)
}
