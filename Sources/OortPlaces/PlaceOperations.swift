import OortModel

/// What an operation concerns: entries where they lie now, and names in folders.
struct PlaceTask: Sendable {
    /// What may happen at the same time.
    enum Manner: Sendable {
        /// Changes its entries and names: nothing else does meanwhile, and no folder above is moved.
        case change
        /// Also changes the first entry's path, or removes it: no operation runs below it.
        case moveOrRemove
        /// Looks; no folder above is moved meanwhile.
        case look
        /// As `look`, but the entry itself is not moved meanwhile either; a path that may be old is better
        /// than none.
        case read
    }

    var manner: Manner
    /// Rows of entries.
    var rows: [Int64] = []
    /// Names in folders.
    var places: [PlaceTurns.Place] = []
    /// Rows of folders that are looked at.
    var folders: [Int64] = []
    /// The row whose open move the operation is to settle.
    var settling: Int64?

    /// A task about one entry.
    static func entry(_ row: Int64, _ manner: Manner) -> PlaceTask {
        PlaceTask(manner: manner, rows: [row])
    }

    /// A task about one name in a folder.
    static func name(_ name: String, in folder: Int64, _ manner: Manner) -> PlaceTask {
        PlaceTask(manner: manner, places: [PlaceTurns.Place(folder, name)])
    }
}

/// What a task found; our own operations leave it so until the operation ends.
struct PlaceGround: Sendable {
    /// The task's entries, and their paths.
    var rows: [PlaceRow] = []
    var rowPaths: [RemotePath] = []
    /// The paths of the task's names.
    var namePaths: [RemotePath] = []
    var claim = PlaceTurns.Claim(places: [], above: [])
    /// Moves at these places, or above them, whose answers never came.
    var motions: [Int64] = []
}

/// Operations on ground that does not move.
///
/// A path holds only while no folder above is moved: an operation asks the service only by paths that were
/// found after its turn began.
extension PlaceMoves {
    /// Runs an operation when it is its turn, and open moves above it are settled.
    ///
    /// - Throws: `.notFound` where an entry is gone, `.parentNotFound` and `.notAFolder` where there is
    ///   no folder for a name; what `body` throws.
    func operate<Value>(
        on task: PlaceTask,
        _ body: (PlaceGround) async throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        while true {
            let first = try await ground(of: task)
            if !first.motions.isEmpty {
                do throws(ProviderError) {
                    for row in first.motions { try await settle(row) }
                } catch {
                    guard case .read = task.manner, error.kind != .cancelled else { throw error }
                }
            }
            let turn = try await turns.hold(first.claim)
            defer { turns.release(turn) }
            // Other operations ran before its turn came.
            if let ground = try await standing(task, as: first.claim) {
                return try await body(ground)
            }
        }
    }

    /// Runs an operation at once, or returns nil if another one stands in its way.
    func operateAtOnce<Value>(
        on task: PlaceTask,
        _ body: (PlaceGround) async throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value? {
        let first = try await ground(of: task)
        guard let turn = turns.holdAtOnce(first.claim) else { return nil }
        defer { turns.release(turn) }
        guard let ground = try await standing(task, as: first.claim) else { return nil }
        return try await body(ground)
    }

    /// The ground of a task whose claim is held; nil when it has changed.
    private func standing(
        _ task: PlaceTask,
        as claim: PlaceTurns.Claim
    ) async throws(ProviderError) -> PlaceGround? {
        let ground = try await ground(of: task)
        guard ground.claim == claim else { return nil }
        if case .read = task.manner { return ground }
        return ground.motions.isEmpty ? ground : nil
    }

    private func ground(of task: PlaceTask) async throws(ProviderError) -> PlaceGround {
        try await map.read { try PlaceTransaction(database: $0).ground(of: task) }
    }
}

extension PlaceTransaction {
    /// Where the entries and names of a task are.
    ///
    /// - Throws: as `PlaceMoves.operate`.
    func ground(of task: PlaceTask) throws -> PlaceGround {
        var ground = PlaceGround()
        var places = task.places
        for id in task.rows {
            guard let row = try row(id), let path = try path(of: id) else {
                throw ProviderError(.notFound, detail: "place \(id) is gone")
            }
            ground.rows.append(row)
            ground.rowPaths.append(path)
            if let parent = row.parent {
                places.append(PlaceTurns.Place(parent, row.entry.name))
            }
        }
        for folder in task.folders + places.map(\.folder) {
            var next: Int64? = folder
            while let folder = next, ground.claim.above.insert(folder).inserted {
                next = try row(folder)?.parent
            }
        }
        for place in task.places {
            guard let folder = try row(place.folder), let path = try path(of: folder.id) else {
                throw ProviderError(.parentNotFound, detail: "place \(place.folder) is gone")
            }
            guard folder.entry.kind == .folder else {
                throw ProviderError(.notAFolder, detail: "\(path) is a file")
            }
            ground.namePaths.append(path.appending(place.name.text))
        }
        switch task.manner {
        case .look: break
        case .read: ground.claim.opened = task.rows.first
        case .change: ground.claim.places = Set(places)
        case .moveOrRemove:
            ground.claim.places = Set(places)
            ground.claim.moved = ground.rows.first?.id
        }
        let concerned = ground.claim.above.union(task.rows)
        for (row, motion) in try allMotions() where row != task.settling {
            let isAtPlace = places.contains(PlaceTurns.Place(motion.parent, motion.name))
            var isConcerned = concerned.contains(row) || isAtPlace
            // Before a removal or move, all moves into it and out of it have to be settled.
            if !isConcerned, let moved = ground.claim.moved, task.settling == nil {
                isConcerned = try lies(row, below: moved) || lies(motion.parent, below: moved)
            }
            if isConcerned { ground.motions.append(row) }
        }
        return ground
    }
}
