import Logging
public import OortCatalog
public import OortModel
import Synchronization

/// The result of removing cached contents.
public struct FreedRoom: Hashable, Sendable {
    /// Contents that were removed.
    public var freed = ContentSum()
    /// Contents that stay because they are to be kept here.
    public var kept = ContentSum()
    /// Contents that stay because unsent content is made of them.
    public var needed = ContentSum()
    /// Contents that stay because they are in use.
    public var inUse = ContentSum()

    /// None.
    public init() {}

    /// Counts another result with this one.
    public mutating func add(_ other: FreedRoom) {
        freed.add(other.freed)
        kept.add(other.kept)
        needed.add(other.needed)
        inUse.add(other.inUse)
    }
}

/// Contents that stay in the cache because a person wants them there, and those that give way to them.
extension ContentStore {
    /// Bytes that contents which are to be kept here may have together.
    public var keepCapacity: Int64 { max(settings.limit - room.used.staged, 0) }

    /// Bytes that the cache's disk can still take.
    public var diskRoom: Int64 { room.freeForCache }

    /// Bytes that are worth fetching before a program asks for them: other cached bytes give way to these.
    public var readAheadRoom: Int64 { settings.limit / 20 }

    /// Brings all bytes of a revision that are missing, and compares them with the service's hash.
    ///
    /// - Parameters:
    ///   - key: the revision.
    ///   - size: its bytes.
    ///   - hash: their hash, where the service has one.
    ///   - others: bytes that are being fetched at the same time and need room, too.
    ///   - priority: the priority of the requests; below `.interactive`, since no program waits.
    /// - Throws: `.noSpace` when there would be no room although all that may go went, and nothing does then;
    ///   what reading throws.
    public func bring(
        _ key: ContentKey,
        size: Int64,
        hash: ContentHash?,
        besides others: Int64 = 0,
        _ priority: RequestPriority
    ) async throws(ContentError) {
        let content = try open(key, size: size, hash: hash)
        defer { close(content) }
        let missing = size - content.state.withLock { $0.present.byteCount } + others
        if room.excess(with: 0, cached: missing) > 0 {
            guard try await canMakeRoom(for: missing) else { throw .noSpace }
            await makeCacheRoom(for: missing)
            guard room.excess(with: 0, cached: missing) == 0 else { throw .noSpace }
        }
        try await content.bring(priority)
    }

    /// Whether fetched bytes would find room if all that may be evicted went.
    private func canMakeRoom(for bytes: Int64) async throws(ContentError) -> Bool {
        guard room.excess(with: 0, cached: bytes) <= room.used.cached else { return false }
        // A content whose state is not stored counts as used.
        await save()
        do throws(CatalogError) {
            return try await catalog.areEvictable(
                room.excess(with: 0, cached: bytes),
                without: Set(contentsInUse.keys)
            )
        } catch { throw ContentError(error) }
    }

    /// Whether all bytes of a revision are here, or some, at this moment.
    ///
    /// - Returns: nil where it is not in use and its state is stored.
    public func present(_ key: ContentKey) -> (bytes: Int64, isComplete: Bool)? {
        let content = state.withLock { $0.cached[key]?.content }
        return content?.state.withLock { ($0.present.byteCount, $0.isVerified) }
    }

    /// Removes cached contents: of an item and all below it, or all of them for nil.
    ///
    /// Contents stay that are open, that are to be kept, or that unsent content is made of; where a moment
    /// is given, milliseconds since 1970, also those used since.
    public func free(
        below inode: Inode?,
        unusedSince moment: Int64?
    ) async throws(ContentError) -> FreedRoom {
        // A content that is not stored counts as used.
        await save()
        await storeUses()
        do throws(CatalogError) {
            let found = try await catalog.cachedContents(below: inode, unusedSince: moment)
            var result = FreedRoom()
            (result.kept, result.needed) = (found.kept, found.needed)
            var left = found.free[...]
            while !left.isEmpty {
                let some = Array(left.prefix(256))
                left = left.dropFirst(256)
                // What was read since the list was made counts as used.
                await storeUses()
                let removed = try await remove(cached: some, unusedSince: moment)
                result.freed.count += removed.count
                result.freed.bytes += removed.bytes
                result.inUse.count += some.count - removed.count
                result.inUse.bytes += max(some.reduce(0) { $0 + $1.bytesOnDisk } - removed.bytes, 0)
            }
            return result
        } catch { throw ContentError(error) }
    }

    /// Whether there is more than the limit allows, and looking for what may go is not in vain: what is to be
    /// kept here may have more than that by itself.
    var mayEvict: Bool {
        let excess = room.excess(with: 0)
        guard excess > 0 else { return false }
        let standing = state.withLock(\.standing)
        let age = Timestamp.now.inMilliseconds - standing.moment
        return excess > standing.excess || !(0..<Self.longestStanding).contains(age)
    }

    /// After how long it is looked again for what may be evicted, milliseconds: what nobody wants to be kept any
    /// longer, or what is moved out of a folder that is kept, says nothing.
    private static let longestStanding: Int64 = 60_000

    // MARK: Uses

    /// Notes that a content was read; stored a little later.
    func noteUse(of content: CachedContent) {
        guard let id = content.id else { return }
        let isFirst = state.withLock { state in
            state.used[id] = Timestamp.now.inMilliseconds
            return state.used.count == 1
        }
        guard isFirst else { return }
        // Ends by itself; `stop` stores the same.
        Task { [weak self, clock, settings] in
            try? await clock.sleep(for: settings.useInterval)
            await self?.storeUses()
        }
    }

    /// Stores which contents were read.
    func storeUses() async {
        let used = state.withLock { state in
            defer { state.used = [:] }
            return state.used
        }
        guard !used.isEmpty else { return }
        do throws(CatalogError) {
            try await catalog.markUsed(used)
        } catch {
            logger.info("which contents were read is not stored", metadata: ["cause": "\(error)"])
        }
    }
}
