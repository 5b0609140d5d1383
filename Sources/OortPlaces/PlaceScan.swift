import Logging
import OortModel

/// Looks through the account in rounds, and records what it finds in the map.
///
/// Isolation: an actor; one step of a round at a time.
actor PlaceScan {
    /// One look through the account.
    private struct Round {
        /// The round's number.
        let number: Int64
        /// Whether every folder is listed, whatever its stamp.
        let isFull: Bool
        /// The folders to be listed, the next one last.
        var folders: [Int64] = []
        /// The folders whose stamps are to be asked for.
        var unstamped: [Int64] = []
        /// Those of the folders that are to be listed only because of their age.
        var aged: Set<Int64> = []
        /// The folders whose parents were listed again because they themselves were not found.
        var lookedAbove: Set<Int64> = []
        /// These parents.
        var above: Set<Int64> = []
        /// Whether due folders were collected.
        var isCollected = false
        /// The snapshot's next page; nil before the first and after the last.
        var page: PageToken?
        /// When the snapshot began, by the turns' clock.
        var snapshotBegan: UInt64?
        /// The walk over the snapshot's pages so far; below, how many they are.
        var walk = PageWalk()
        var pages = 0
    }

    private let client: any PlaceClient
    private let map: PlaceMap
    private let turns: PlaceTurns
    private let moves: PlaceMoves
    private let logger: Logger
    private let now: @Sendable () -> Timestamp
    private var current: Round?
    /// Whether the last round left open what is gone.
    private var isInDoubt = false
    /// The folders that were listed for a program since the round under way began; not a part of the round,
    /// which a step holds for itself meanwhile.
    private var looked: Set<Int64> = []
    /// Whether a round is wanted and has not begun.
    private var isWanted = true
    /// The pages of the last snapshot; below, the rounds that began since.
    private var pages = 0
    private var looks = 0
    /// How often in a row folders could not be listed, by errors that may pass.
    private var failures: [Int64: Int] = [:]
    /// When a program last used an item in a folder.
    private var visits: [Int64: Timestamp] = [:]
    /// Whether folders' stamps change with their contents, as far as is known.
    private var stampsTell = true
    /// The stamps that folders had before an item of ours came into them, and which must change.
    private var stampsBefore: [Int64: String] = [:]

    /// How long a folder counts as visited.
    private static let visitLength: Int64 = 300
    /// How often a folder is tried, with the feed's pauses in between, before it no longer delays anything
    /// else.
    private static let mostTries = 6
    /// How many folders are listed in one round without a sign of change, where there are no stamps or
    /// stamps of whole trees: a small account, or its part without stamps, is looked through each time, a
    /// large one in turn.
    private static let listingsAtOnce = 32
    /// How many folders are listed by one request rather than each by itself, at least.
    private static let fewestTogether = 4
    /// How many folders' stamps one request asks for.
    private static let stampsAtOnce = 256

    init(
        client: any PlaceClient,
        map: PlaceMap,
        turns: PlaceTurns,
        moves: PlaceMoves,
        logger: Logger,
        now: @escaping @Sendable () -> Timestamp
    ) {
        self.client = client
        self.map = map
        self.turns = turns
        self.moves = moves
        self.logger = logger
        self.now = now
    }

    /// Has the next `step` begin a round.
    func want() { isWanted = true }

    /// Notes that a program uses an item in a folder: the folder is looked at in each round for a while.
    func visit(_ folder: Int64) {
        if visits.count > 1000 {
            let oldest = now().seconds - Self.visitLength
            visits = visits.filter { $0.value.seconds > oldest }
        }
        visits[folder] = now()
    }

    /// Lists a folder that a program looks into; a round that lists everything does not list it once more.
    func look(into folder: Int64) async throws(ProviderError) {
        visit(folder)
        let number = current?.number
        try await readListing(of: folder)
        if let current, current.isFull, current.number == number { looked.insert(folder) }
    }

    /// Notes that an item of ours came into a folder a moment ago.
    func changed(_ folder: Int64) async {
        guard client.traits.scan == .folderStamps, stampsTell else { return }
        let second = now().seconds
        let stamp = try? await map.read {
            try PlaceTransaction(database: $0).settledStamp(of: folder, listedBefore: second)
        }
        if let stamp { stampsBefore[folder] = stamp }
    }

    /// Ignores folders' stamps from now until the next start: folders are looked through in turn, as where
    /// there are none.
    ///
    /// A server in front of an object store may report the same time of a folder for ever.
    private func distrustStamps() {
        guard stampsTell else { return }
        stampsTell = false
        stampsBefore = [:]
        logger.notice("the server's times of folders do not show what changes in them")
    }

    // MARK: Rounds

    /// Begins a round that lists everything; returns its number.
    func beginFull() async throws(ProviderError) -> Int64 {
        if let began = current?.snapshotBegan { turns.listingEnds(began) }
        let number = try await map.write { try PlaceTransaction(database: $0).nextRound() }
        current = Round(number: number, isFull: true)
        looked = []
        isWanted = false
        return number
    }

    /// Continues a round that lists everything, after a restart.
    func resumeFull(_ number: Int64) {
        // In this process the round is under way, or it has ended and its last pages are being read.
        guard current == nil, isWanted else { return }
        current = Round(number: number, isFull: true)
        isWanted = false
    }

    /// Whether a round is under way or wanted.
    var isRunning: Bool { current != nil || isWanted }

    /// Does a part of the round that is under way, or begins one.
    ///
    /// - Throws: the error of a listing that may work later; the next step continues the round.
    func step() async throws(ProviderError) {
        try await moves.settleAll()
        if current == nil {
            let number = try await map.write { try PlaceTransaction(database: $0).nextRound() }
            current = Round(number: number, isFull: false)
            looked = []
            isWanted = false
        }
        guard let round = current else { return }
        if !round.isCollected { return try await collect() }
        if round.snapshotBegan != nil { return try await readSnapshot() }
        if !round.unstamped.isEmpty { return try await readStamps() }
        if !round.folders.isEmpty { return try await listSome() }
        try await finish()
    }

    /// Finds what a round has to look at.
    private func collect() async throws(ProviderError) {
        guard var round = current else { return }
        round.isCollected = true
        looks += 1
        let number = round.number
        let wantsSnapshot =
            client.traits.scan == .snapshots && (round.isFull || looks >= pages)
        if wantsSnapshot {
            round.snapshotBegan = turns.listingBegins()
        } else if round.isFull {
            round.folders = try await map.read {
                try PlaceTransaction(database: $0).unlistedFolders(in: number)
            }
        } else {
            switch client.traits.scan {
            case .subtreeStamps: round.unstamped = [PlaceMap.rootRow]
            case .folderStamps where stampsTell:
                round.unstamped = try await map.read {
                    try PlaceTransaction(database: $0).folders()
                }
            case .folderStamps, .listings, .snapshots: try await collectDueFolders(for: &round)
            }
        }
        current = round
    }

    /// Finds the folders that are due, and those that programs use.
    private func collectDueFolders(for round: inout Round) async throws(ProviderError) {
        let second = now().seconds
        let scan = client.traits.scan
        let fresh = client.traits.listingFreshness.map { length in
            second - length.components.seconds...second + 60
        }
        // With stamps of whole trees a look costs one request: old folders must not all come at once.
        let aged = scan == .subtreeStamps ? Self.listingsAtOnce : .max
        let isUnstamped = scan == .listings || scan == .folderStamps && !stampsTell
        let budget = isUnstamped ? Self.listingsAtOnce : 0
        let recent = visits.filter { $0.value.seconds > second - Self.visitLength }.keys
        let visited = recent.sorted()
        (round.folders, round.aged) = try await map.read { database in
            let transaction = PlaceTransaction(database: database)
            var folders = try transaction.dueFolders()
            var known = Set(folders)
            var old: [Int64] = []
            if let fresh { old = try transaction.agedFolders(outside: fresh, atMost: aged) }
            var others: [Int64] = []
            if scan == .subtreeStamps {
                // Changes behind the service's back: no stamp tells of them.
                old += try visited.filter { try transaction.lacksStamp($0) }
                old += try transaction.stamplessFolders(atMost: aged)
            } else {
                others = try visited + transaction.oldestFolders(atMost: budget)
            }
            old = old.filter { known.insert($0).inserted }
            folders += old
            for folder in others where known.insert(folder).inserted {
                if try transaction.row(folder)?.entry.kind == .folder { folders.append(folder) }
            }
            return (folders.reversed(), Set(old))
        }
    }

    /// Asks for stamps; then the folders with new ones, and those that are due otherwise, are listed.
    private func readStamps() async throws(ProviderError) {
        guard var round = current else { return }
        let some = Array(round.unstamped.suffix(Self.stampsAtOnce))
        let paths = try await map.read { database in
            try some.map { try PlaceTransaction(database: database).path(of: $0) }
        }
        let known = zip(some, paths).compactMap { folder, path in path.map { (folder, $0) } }
        // An item that comes into a folder during the request may or may not be in the answer.
        let before = stampsBefore
        let stamps = await client.stamps(of: known.map(\.1))
        var found: [(Int64, FolderStamp)] = []
        for ((folder, _), result) in zip(known, stamps) {
            switch result {
            case .success(let stamp?):
                found.append((folder, stamp))
                guard let old = before[folder] else { continue }
                stampsBefore[folder] = nil
                if old == stamp.rawValue { distrustStamps() }
            case .success(nil): break
            case .failure(let error):
                // The parent's listing shows a folder that is gone or closed.
                guard error.isLastingRefusal, folder != PlaceMap.rootRow else {
                    throw error.asOfAccountFolder
                }
            }
        }
        try await map.write { [found] database in
            for (folder, stamp) in found {
                try PlaceTransaction(database: database).setStamp(stamp, of: folder)
            }
        }
        round.unstamped.removeLast(some.count)
        if round.unstamped.isEmpty { try await collectDueFolders(for: &round) }
        current = round
    }

    /// Lists some of the folders at once.
    private func listSome() async throws(ProviderError) {
        guard var round = current else { return }
        let some = Array(round.folders.suffix(client.traits.listingsPerPage).reversed())
        let number = round.number
        var failure: ProviderError?
        var left: [Int64] = []
        var unlistable: [Int64] = []
        var longFailing: [Int64] = []
        var unanswered: [Int64] = []
        var new: [Int64] = []
        let known = some.filter { looked.contains($0) && !round.above.contains($0) }
        for folder in known { new += try await subfolders(of: folder) }
        round.above.subtract(some)
        let (results, untried) = await list(
            some.filter { !known.contains($0) },
            round: number
        )
        for (folder, result) in results {
            switch result {
            case .success(let folders):
                failures[folder] = nil
                new += round.isFull ? try await subfolders(of: folder) : folders
            case .failure(let error)
            where round.aged.contains(folder) && Self.isOfOneFolder(error):
                logger.notice("a folder cannot be listed now", metadata: ["error": "\(error)"])
                unanswered.append(folder)
            case .failure(let error) where folder == PlaceMap.rootRow:
                // Nothing is known about the account then, so nothing counts as gone.
                failure = error.asOfAccountFolder
                left.append(folder)
            case .failure(let error) where error.kind == .notFound || error.kind == .notAFolder:
                // The parent's listing says whether it is gone.
                unlistable.append(folder)
                if round.lookedAbove.insert(folder).inserted,
                    let above = try await parent(of: folder)
                {
                    round.above.insert(above)
                    new.append(above)
                }
            case .failure(let error) where error.isLastingRefusal:
                logger.notice("a folder cannot be listed", metadata: ["error": "\(error)"])
                unlistable.append(folder)
            case .failure(let error):
                if await failsForLong(folder, error) {
                    logger.notice("a folder cannot be listed", metadata: ["error": "\(error)"])
                    unlistable.append(folder)
                    longFailing.append(folder)
                } else {
                    failure = error
                    left.append(folder)
                }
            }
        }
        round.folders.removeLast(some.count)
        round.folders += untried.reversed() + new.reversed()
        // Last, so that one that fails each time keeps no other one waiting.
        round.folders.insert(contentsOf: left.reversed(), at: 0)
        // A folder that its parent's listing names as due is listed for more than its age.
        round.aged.subtract(new)
        unanswered.removeAll { new.contains($0) }
        current = round
        let second = now().seconds
        let freshness = client.traits.listingFreshness?.components.seconds ?? 0
        try await map.write { [unlistable, longFailing, unanswered] database in
            for folder in unanswered {
                // Tried again soon, since the network may have failed; but after folders that wait for
                // their turn.
                try PlaceTransaction(database: database)
                    .noteUnanswered(folder, asOf: second - freshness + freshness / 24)
            }
            for folder in unlistable {
                let transaction = PlaceTransaction(database: database)
                try transaction.noteUnlistable(folder, round: number, now: second)
                try transaction.setClosed(true, folder)
            }
            // These are tried in each round.
            for folder in longFailing { try PlaceTransaction(database: database).makeDue(folder) }
        }
        if let failure { throw failure }
    }

    /// Whether a folder could not be listed for so long that all else goes on without it: what is known of
    /// it stays, and an entry that was moved into it shows as gone until it can be listed.
    ///
    /// If its parent cannot be listed either, the server may be at fault.
    private func failsForLong(_ folder: Int64, _ error: ProviderError) async -> Bool {
        guard Self.isOfOneFolder(error) else { return false }
        let tries = failures[folder, default: 0] + 1
        failures[folder] = tries
        guard tries >= Self.mostTries else { return false }
        do throws(ProviderError) {
            guard let above = try await parent(of: folder),
                let path = try await map.read({
                    try PlaceTransaction(database: $0).path(of: above)
                })
            else { return false }
            _ = try await client.listing(of: path)
            return true
        } catch { return false }
    }

    /// Whether a failure is probably the folder's own, while others can be listed: a folder that is listed
    /// only for its age delays nothing then.
    private static func isOfOneFolder(_ error: ProviderError) -> Bool {
        switch error.kind {
        case .outcomeUnknown, .malformedAnswer, .locked: true
        default: false
        }
    }

    /// Whether a listing failed of something that all others would meet, too.
    private static func isOfAll(_ error: ProviderError) -> Bool {
        !error.isLastingRefusal && !isOfOneFolder(error)
    }

    private func subfolders(of folder: Int64) async throws(ProviderError) -> [Int64] {
        try await map.read { try PlaceTransaction(database: $0).subfolders(of: folder) }
    }

    private func parent(of folder: Int64) async throws(ProviderError) -> Int64? {
        try await map.read { try PlaceTransaction(database: $0).row(folder)?.parent }
    }

    /// Lists folders, until it shows that none can be listed now: each would only wait for the same answer.
    ///
    /// Returns what came of those that were tried, and the others.
    private func list(
        _ folders: [Int64],
        round: Int64
    ) async -> (results: [(Int64, Result<[Int64], ProviderError>)], untried: [Int64]) {
        let together = await listTogether(folders, round: round)
        let rest = folders.filter { together[$0] == nil }
        return await withTaskGroup { group in
            var results: [(Int64, Result<[Int64], ProviderError>)] = together.map {
                ($0.key, .success($0.value.folders))
            }
            var waiting = rest[...]
            var goesOn = true
            for _ in 0..<max(1, client.traits.listingsInFlight) {
                guard let folder = waiting.popFirst() else { break }
                group.addTask { (folder, await self.list(folder, round: round)) }
            }
            for await result in group {
                results.append(result)
                if case .failure(let error) = result.1, Self.isOfAll(error) { goesOn = false }
                if goesOn, let folder = waiting.popFirst() {
                    group.addTask { (folder, await self.list(folder, round: round)) }
                }
            }
            return (results, Array(waiting))
        }
    }

    /// Lists those of some folders that one request can list, while no folder above them is moved.
    private nonisolated func listTogether(
        _ folders: [Int64],
        round: Int64
    ) async -> [Int64: StandingListing] {
        var listings: [Int64: StandingListing] = [:]
        var waiting = folders[...]
        let most = client.traits.listingsPerRequest
        while most > 1, waiting.count >= Self.fewestTogether {
            let some = Array(waiting.prefix(most))
            waiting = waiting.dropFirst(most)
            let task = PlaceTask(manner: .read, folders: some)
            do throws(ProviderError) {
                let found = try await moves.operate(on: task) { _ throws(ProviderError) in
                    try await readStandingTogether(some, round: round)
                }
                // What could not be listed so will not be a moment later either.
                if found.isEmpty { break }
                listings.merge(found) { first, _ in first }
            } catch { break }
        }
        return listings
    }

    private nonisolated func list(
        _ folder: Int64,
        round: Int64
    ) async -> Result<[Int64], ProviderError> {
        do throws(ProviderError) {
            return .success(try await readListing(of: folder, round: round))
        } catch { return .failure(error) }
    }

    /// Lists a folder, while no folder above it is moved, and records its contents; returns the folders in
    /// it that are to be listed.
    @discardableResult
    nonisolated func readListing(
        of folder: Int64,
        round: Int64? = nil
    ) async throws(ProviderError) -> [Int64] {
        let task = PlaceTask(manner: .read, folders: [folder])
        return try await moves.operate(on: task) { _ throws(ProviderError) in
            try await readStandingListing(of: folder, round: round).folders
        }
    }

    /// As `readStandingListing`, of several at once.
    nonisolated func readStandingListings(
        of folders: [Int64]
    ) async -> [(Int64, Result<StandingListing, ProviderError>)] {
        await withTaskGroup { group in
            for folder in folders {
                group.addTask { (folder, await self.standingListing(of: folder)) }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
    }

    private nonisolated func standingListing(
        of folder: Int64
    ) async -> Result<StandingListing, ProviderError> {
        do throws(ProviderError) {
            return .success(try await readStandingListing(of: folder))
        } catch { return .failure(error) }
    }

    /// As `readListing`, for a caller that knows that no folder above is being moved.
    nonisolated func readStandingListing(
        of folder: Int64,
        round: Int64? = nil
    ) async throws(ProviderError) -> StandingListing {
        let began = turns.listingBegins()
        defer { turns.listingEnds(began) }
        guard let path = try await map.read({ try PlaceTransaction(database: $0).path(of: folder) })
        else { return StandingListing() }
        let asked = asked
        let listing = try await client.listing(of: path)
        let recorder = recorder(of: round, began: began, asked: asked)
        return try await map.write { database in
            try recorder.record(listing, of: folder, PlaceTransaction(database: database))
        }
    }

    /// Lists those of some folders that one request can list, for a caller that knows that no folder above
    /// is being moved.
    private nonisolated func readStandingTogether(
        _ folders: [Int64],
        round: Int64
    ) async throws(ProviderError) -> [Int64: StandingListing] {
        let began = turns.listingBegins()
        defer { turns.listingEnds(began) }
        let paths = try await map.read { database in
            try folders.map { try PlaceTransaction(database: database).path(of: $0) }
        }
        let known = zip(folders, paths).compactMap { folder, path in path.map { (folder, $0) } }
        let asked = asked
        let listings = await client.listings(of: known.map(\.1))
        let recorder = recorder(of: round, began: began, asked: asked)
        return try await map.write { database in
            let transaction = PlaceTransaction(database: database)
            var recorded: [Int64: StandingListing] = [:]
            for ((folder, _), listing) in zip(known, listings) {
                guard let listing else { continue }
                recorded[folder] = try recorder.record(listing, of: folder, transaction)
            }
            return recorded
        }
    }

    /// What records listings that were asked for at one moment and are here now.
    private nonisolated func recorder(
        of round: Int64?,
        began: UInt64,
        asked: Int64?
    ) -> ListingRecorder {
        ListingRecorder(
            turns: turns,
            began: began,
            round: round,
            second: now().seconds,
            asked: asked
        )
    }

    /// When listings are asked for, where stamps are times: seconds since 1970.
    private nonisolated var asked: Int64? {
        client.traits.scan == .folderStamps ? now().seconds : nil
    }

    /// Reads a page of the flat list of everything.
    private func readSnapshot() async throws(ProviderError) {
        guard var round = current, let began = round.snapshotBegan else { return }
        if let page = round.page { try round.walk.goOn(to: page.rawValue) }
        let page: SnapshotPage
        do throws(ProviderError) { page = try await client.snapshot(page: round.page) } catch {
            if error.kind == .badRequest, round.page != nil {
                // A store that was replaced does not know the page: the next step begins anew.
                current?.page = nil
                current?.walk = PageWalk()
                current?.pages = 0
            }
            throw error
        }
        let turns = turns
        let number = round.number
        let second = now().seconds
        let isLast = page.next == nil
        try await map.write { database in
            let transaction = PlaceTransaction(database: database)
            for (folder, entry) in page.entries {
                try transaction.apply(entry, in: folder, round: number) {
                    turns.isUnsettled($0, since: began)
                }
            }
            if isLast {
                try transaction.endSnapshot(round: number, now: second) {
                    turns.isUnsettled($0, since: began)
                }
            }
        }
        round.page = page.next
        round.pages += 1
        if isLast {
            turns.listingEnds(began)
            round.snapshotBegan = nil
            pages = round.pages
            looks = 0
        }
        current = round
    }

    private func finish() async throws(ProviderError) {
        let second = now().seconds
        let isDone = try await map.write {
            try PlaceTransaction(database: $0).removeMissing(now: second)
        }
        if !isDone, !isInDoubt {
            logger.warning(
                "so much is missing, or a storage, that another look decides whether it is gone"
            )
        }
        isInDoubt = !isDone
        current = nil
    }
}

/// What follows from a listing that was read.
struct StandingListing: Sendable {
    /// The folders in it that are to be listed.
    var folders: [Int64] = []
    /// Whether the folder holds entries that are not shown.
    var holdsUnseen = false
}

/// Records listings that were asked for at one moment.
private struct ListingRecorder: Sendable {
    let turns: PlaceTurns
    /// The listings' beginning, by the turns' clock.
    let began: UInt64
    /// The round to which they belong; nil for the last one.
    let round: Int64?
    /// When they were read, and when they were asked for where stamps are times; seconds since 1970.
    let second: Int64
    let asked: Int64?

    func record(
        _ listing: PlaceListing,
        of folder: Int64,
        _ transaction: PlaceTransaction
    ) throws -> StandingListing {
        let turns = turns
        let began = began
        let heard = HeardListing(folder: folder, listing: listing) {
            turns.isUnsettled(PlaceTurns.Place(folder, $0), since: began)
        }
        let holdsUnseen =
            listing.holdsUnnamed || !listing.unknown.isEmpty
            || !listing.entries.allSatisfy(\.hasName)
        return StandingListing(
            folders: try folders(of: heard, transaction),
            holdsUnseen: holdsUnseen
        )
    }

    /// Records a listing, and returns the folders in it that are to be listed.
    private func folders(of heard: HeardListing, _ transaction: PlaceTransaction) throws -> [Int64]
    {
        let folder = heard.folder
        guard try transaction.row(folder) != nil else { return [] }
        let number = try round ?? transaction.round()
        // It is not known where the folder lies: what is known of it stays.
        guard try !transaction.isInMotion(folder) else {
            try transaction.noteUnlistable(folder, round: number, now: second)
            try transaction.makeDue(folder)
            return []
        }
        // A newer listing was recorded already.
        guard turns.writes(folder, begun: began) else { return [] }
        return try transaction.apply(heard, round: number, now: second, asked: asked)
    }
}
