public import Logging
public import OortModel
import Synchronization

/// The provider of a service of places: gives its entries ids and a change feed, from a durable map, so
/// that the core needs one kind of identity only.
///
/// The cursor is a number of the map's changes. `changes` looks at the service only in a round, which
/// begins at the start, after `waitForChanges` has let the poll interval pass, or where an entry is not
/// found; otherwise it reads the map.
public final class PlaceProvider: Provider {
    /// The id of the root of every account.
    public static let rootID = PlaceMap.rootID

    public let traits: ProviderTraits
    let client: any PlaceClient
    let map: PlaceMap
    let turns = PlaceTurns()
    let moves: PlaceMoves
    let scan: PlaceScan
    let logger: Logger
    private let now: @Sendable () -> Timestamp
    /// The change of the map up to which the feed has been stored.
    let stored = Mutex<Int64>(0)

    /// The most rows that one page of the feed has.
    private static let pageLength = 2000

    /// The provider over `client`, whose places `map` remembers; the map is this provider's alone.
    public init(
        client: any PlaceClient,
        map: PlaceMap,
        logger: Logger,
        now: @escaping @Sendable () -> Timestamp = { .now }
    ) {
        self.client = client
        self.map = map
        self.logger = logger
        self.now = now
        var traits = client.traits.provider
        traits.feed = .scan
        traits.timeChangesRevision = true
        self.traits = traits
        moves = PlaceMoves(client: client, map: map, turns: turns, logger: logger, now: now)
        scan = PlaceScan(
            client: client,
            map: map,
            turns: turns,
            moves: moves,
            logger: logger,
            now: now
        )
    }

    // MARK: Account

    public func identity() async throws(ProviderError) -> AccountIdentity {
        let owner = try await client.owner()
        return AccountIdentity(
            id: owner.id,
            displayName: owner.displayName,
            email: owner.email,
            rootID: PlaceMap.rootID
        )
    }

    public func quota() async throws(ProviderError) -> Quota { try await client.quota() }

    public func signOut() async throws(ProviderError) { try await client.signOut() }

    public func makeHasher() -> any ContentHasher { client.makeHasher() }

    public var remarks: [String] { moves.splitMoves.words(at: now()) }

    public func keepsDeleted(_ id: ItemID) -> Bool {
        guard client.traits.deletesToTrash else { return true }
        guard client.keepsDeleted else { return false }
        guard client.traits.mayHaveDisks else { return true }
        do throws(ProviderError) {
            let number = try map.row(of: id)
            return try map.readBlocking { database in
                let transaction = PlaceTransaction(database: database)
                guard let row = try transaction.row(number), let parent = row.parent,
                    let root = try transaction.disk(of: PlaceMap.rootRow),
                    let disk = try transaction.disk(of: parent)
                else { return true }
                return try disk.isSameText(as: root) && !transaction.isOfOtherDisk(row, than: root)
            }
        } catch {
            // The service will say so when it is asked.
            logger.warning("a disk could not be read", metadata: ["error": "\(error)"])
            return true
        }
    }

    public func trashMark(of id: ItemID) -> String? {
        do throws(ProviderError) {
            let number = try map.row(of: id)
            return try map.readBlocking { database in
                let transaction = PlaceTransaction(database: database)
                guard let row = try transaction.row(number),
                    let path = try transaction.path(of: number)
                else { return nil }
                return client.trashMark(of: row.entry, at: path, id: id)
            }
        } catch {
            logger.warning("an item got no mark", metadata: ["error": "\(error)"])
            return nil
        }
    }

    // MARK: Change feed

    public func changes(since cursor: Cursor?) async throws(ProviderError) -> ChangePage {
        var place: FeedPlace
        if let cursor {
            place = try FeedPlace(cursor, of: map.generation)
            if place.enumeration == nil { map.hasToldAll() }
            let last = try await map.read { try PlaceTransaction(database: $0).lastChange() }
            guard place.position <= last else {
                throw ProviderError(
                    .cursorLost,
                    detail: "the map of places is older than the cursor"
                )
            }
            if let round = place.enumeration {
                await scan.resumeFull(round)
            } else if place.step == 0 {
                // Everything up to here has been read.
                let position = place.position
                try await map.write {
                    try PlaceTransaction(database: $0).forgetGone(upTo: position)
                }
            }
        } else {
            place = FeedPlace(position: 0, enumeration: try await scan.beginFull(), step: 0)
        }
        if await scan.isRunning { try await scan.step() }
        let isRunning = await scan.isRunning
        let isEnumeration = place.enumeration != nil
        var news: [PlaceNews] = []
        // An entry that is missing in one step may turn up in another: only whole rounds are news.
        if isEnumeration || !isRunning {
            let position = place.position
            let read = try await map.read { database in
                try PlaceTransaction(database: database)
                    .news(after: position, limit: Self.pageLength)
            }
            (news, place.position) = (read.news, read.last)
        }
        let last = try await map.read { try PlaceTransaction(database: $0).lastChange() }
        let hasMore = isRunning || place.position < last
        if !hasMore {
            place.enumeration = nil
            place.step = 0
        } else {
            place.step += 1
        }
        return ChangePage(
            changes: news.map { change($0) },
            cursor: place.cursor(of: map.generation),
            hasMore: hasMore,
            isEnumeration: isEnumeration
        )
    }

    public func hasStored(upTo cursor: Cursor) {
        // A cursor of another map does not apply to this one.
        guard let place = try? FeedPlace(cursor, of: map.generation) else { return }
        if place.enumeration == nil { map.hasToldAll() }
        stored.withLock { $0 = max($0, place.position) }
    }

    private func change(_ news: PlaceNews) -> Change {
        switch news {
        case .there(let row): .changed(item(row))
        case .gone(let row): .removed(map.id(of: row))
        }
    }

    public func waitForChanges(
        since cursor: Cursor,
        atMost limit: Duration
    ) async throws(ProviderError) -> FeedNews {
        let place = try FeedPlace(cursor, of: map.generation)
        if place.enumeration == nil { map.hasToldAll() }
        try await client.waitForNews(atMost: limit)
        await scan.want()
        return .changed
    }

    public func children(
        of folder: ItemReference,
        page: PageToken?
    ) async throws(ProviderError) -> ListingPage {
        let row = try await row(of: folder)
        guard row.entry.kind == .folder else {
            throw ProviderError(.notAFolder, detail: "\(folder.path) is a file")
        }
        try await scan.look(into: row.id)
        let rows = try await map.read { database in
            try PlaceTransaction(database: database).children(of: row.id)
        }
        return ListingPage(items: rows.map { item($0) }, next: nil)
    }

    public func item(_ reference: ItemReference) async throws(ProviderError) -> Item {
        let id = try await row(of: reference).id
        return try await moves.operate(on: .entry(id, .look)) { ground throws(ProviderError) in
            try await look(ground.rows[0], at: ground.rowPaths[0], reference)
        }
    }

    private func look(
        _ row: PlaceRow,
        at path: RemotePath,
        _ reference: ItemReference
    ) async throws(ProviderError) -> Item {
        guard let parent = row.parent else { return item(row) }
        let began = turns.listingBegins()
        defer { turns.listingEnds(began) }
        var entry: PlaceEntry
        do throws(ProviderError) { entry = try await client.entry(at: path) } catch {
            guard error.kind == .notFound else { throw error }
            throw try await doubt(row, "\(path) is not there")
        }
        guard entry.kind == row.entry.kind else {
            throw try await doubt(row, "\(path) is of another kind now")
        }
        entry.name = row.entry.name
        let turns = turns
        let new = try await map.write { [entry] database -> PlaceRow? in
            let transaction = PlaceTransaction(database: database)
            guard var now = try transaction.row(row.id) else { return nil }
            let place = PlaceTurns.Place(parent, row.entry.name)
            guard turns.writes(place, begun: began) else {
                // The answer was true at its moment; the newer state stays in the map.
                guard
                    try !self.client.traits.hasRevisionsOfTimes
                        || !transaction.comesBack(entry, over: now)
                else {
                    throw ProviderError(
                        .outcomeUnknown(retryAfter: nil),
                        detail: "\(path) changed while it was looked at"
                    )
                }
                now.entry = entry
                return now
            }
            return try transaction.rewrite(now, as: entry)
        }
        guard let new else { throw gone(reference) }
        return item(new)
    }

    public func items(
        named name: String,
        in folder: ItemReference
    ) async throws(ProviderError) -> [Item] {
        let parent = try await self.folder(folder)
        return try await moves.operate(on: .name(stored(name), in: parent, .change)) {
            ground throws(ProviderError) in
            let entry: PlaceEntry
            do throws(ProviderError) {
                entry = try await client.entry(at: ground.namePaths[0])
            } catch {
                guard error.kind == .notFound else { throw error }
                return []
            }
            // A service that ignores case answers with the name as it is stored.
            let row = try await map.write { database in
                try PlaceTransaction(database: database).put(entry, in: parent)
            }
            return [item(row)]
        }
    }

    // MARK: Reading

    public func read(
        _ item: ItemReference,
        revision: Revision?,
        range: Range<Int64>
    ) async throws(ProviderError) -> ByteStream {
        let first = try await open(item, revision, range)
        // Without a revision, nothing proves that the bytes at another place are of the same content; and a
        // confirmation by the service is for one place.
        guard revision != nil, first.stream.provisionalBytes == 0 else { return first.stream }
        let reader = MovableReading(first) { count throws(ProviderError) in
            try await self.open(item, revision, range.lowerBound + count..<range.upperBound)
        }
        return ByteStream { () async throws(ProviderError) in try await reader.next() }
    }

    private func open(
        _ item: ItemReference,
        _ revision: Revision?,
        _ range: Range<Int64>
    ) async throws(ProviderError) -> MovableReading.Opened {
        try await reading(item) { row, path throws(ProviderError) in
            if let parent = row.parent { await scan.visit(parent) }
            let known = try clientRevision(revision, of: row)
            let stream = try await client.read(path, revision: known, range: range)
            return MovableReading.Opened(stream: stream, path: path)
        }
    }

    /// Opens an item for reading, while neither it nor a folder above is moved.
    private func reading<Opened>(
        _ reference: ItemReference,
        _ body: (PlaceRow, RemotePath) async throws(ProviderError) -> Opened
    ) async throws(ProviderError) -> Opened {
        let id = try await row(of: reference).id
        return try await moves.operate(on: .entry(id, .read)) { ground throws(ProviderError) in
            try await body(ground.rows[0], ground.rowPaths[0])
        }
    }

    public func export(
        _ item: ItemReference,
        to format: ExportFormat
    ) async throws(ProviderError) -> ByteStream {
        throw ProviderError(.unsupported, detail: "the service has no documents of its own")
    }

    public func thumbnail(
        of item: ItemReference,
        edge: Int
    ) async throws(ProviderError) -> ByteStream {
        try await reading(item) { _, path throws(ProviderError) in
            try await client.thumbnail(of: path, edge: edge)
        }
    }

    // MARK: Rows

    /// The row in the canonical schema.
    func item(_ row: PlaceRow) -> Item {
        let entry = row.entry
        var item = Item(
            id: map.id(of: row.id),
            kind: entry.kind == .folder ? .folder : .file,
            fileName: entry.name,
            parentID: row.parent.map { map.id(of: $0) }
        )
        item.clientModifiedTime = entry.modifiedTime
        item.serverModifiedTime = entry.storedTime
        item.createdTime = entry.createdTime
        item.size = entry.size
        item.mimeType = entry.mimeType
        item.thumbnail = entry.hasThumbnail
        item.rev = revision(of: row)
        item.contentHash = entry.hash
        item.permissions = row.isClosed ? entry.permissions.subtracting(.read) : entry.permissions
        item.isOwn = entry.isOwn
        item.owner = entry.owner
        item.isShared = entry.isShared
        item.sharedWith = entry.sharedWith
        item.tags = entry.tags
        return item
    }

    func row(of reference: ItemReference) async throws(ProviderError) -> PlaceRow {
        let id = try map.row(of: reference.id)
        guard let row = try await map.read({ try PlaceTransaction(database: $0).row(id) }) else {
            throw gone(reference)
        }
        return row
    }

    /// A name in the form in which the service stores it, and its listings show it.
    func stored(_ name: String) -> String { traits.names.comparison.stored(name) }

    /// The row of a folder in which an item is to be.
    func folder(_ reference: ItemReference) async throws(ProviderError) -> Int64 {
        do throws(ProviderError) {
            let row = try await row(of: reference)
            guard row.entry.kind == .folder else {
                throw ProviderError(.notAFolder, detail: "\(reference.path) is a file")
            }
            return row.id
        } catch {
            guard error.kind == .notFound else { throw error }
            throw ProviderError(.parentNotFound, detail: error.detail)
        }
    }

    /// Has a round find out whether a missing entry is gone, or elsewhere, or on a disk that is not
    /// mounted; returns the error until then.
    private func doubt(
        _ row: PlaceRow,
        _ words: String
    ) async throws(ProviderError) -> ProviderError {
        if let parent = row.parent {
            try await map.write { try PlaceTransaction(database: $0).makeDue(parent) }
            await scan.want()
        }
        return ProviderError(.outcomeUnknown(retryAfter: nil), detail: words)
    }

    func gone(_ reference: ItemReference) -> ProviderError {
        ProviderError(.notFound, detail: "\(reference.path) is gone")
    }
}

/// A place in the map's feed: `GENERATION.POSITION`, within a round `GENERATION.POSITION.STEP`, within
/// an enumeration `GENERATION.POSITION.STEP.ROUND`.
struct FeedPlace {
    /// The last change that was handed out.
    var position: Int64
    /// The round that lists everything for the enumeration under way.
    var enumeration: Int64?
    /// Counts the pages of a round, so that no two have one cursor.
    var step: Int64

    init(position: Int64, enumeration: Int64?, step: Int64) {
        self.position = position
        self.enumeration = enumeration
        self.step = step
    }

    /// - Throws: `.cursorLost` for a cursor of another map.
    init(_ cursor: Cursor, of generation: String) throws(ProviderError) {
        let parts = cursor.rawValue.split(separator: ".", omittingEmptySubsequences: false)
        let numbers = parts.dropFirst().compactMap { Int64($0) }
        guard let first = parts.first, String(first).isSameText(as: generation),
            numbers.count == parts.count - 1, (1...3).contains(numbers.count)
        else {
            throw ProviderError(.cursorLost, detail: "the cursor is of another map of places")
        }
        position = numbers[0]
        step = numbers.count > 1 ? numbers[1] : 0
        enumeration = numbers.count > 2 ? numbers[2] : nil
    }

    func cursor(of generation: String) -> Cursor {
        var numbers = [position]
        if step > 0 || enumeration != nil { numbers.append(step) }
        if let enumeration { numbers.append(enumeration) }
        return Cursor(([generation] + numbers.map(String.init)).joined(separator: "."))
    }
}
