import OortCatalog
import Synchronization

/// How much of the disk the contents may take, and how much they do.
///
/// Contents that programs wrote may fill the disk; the limit is for cached contents, which also give way to
/// them. Staged bytes are counted for each content, and their sum follows from that.
final class Room: Sendable {
    private struct State {
        /// Bytes that each staged content has on the disk.
        var ledger: [ContentID: Int64] = [:]
        /// The ledger's sum.
        var staged: Int64 = 0
        var cached: Int64 = 0
        /// Bytes that may be written before the disk itself is asked again.
        var unchecked: Int64 = 0
        /// Counts the room that was given back, so that a waiting caller sees progress.
        var given: Int64 = 0
        /// That count when a caller waited in vain.
        var givenInVain: Int64?
        /// The bytes that contents which are being completed still have to take.
        var promises: [ContentID: Promise] = [:]

        mutating func set(_ id: ContentID, to bytes: Int64) {
            let before = ledger[id] ?? 0
            ledger[id] = bytes > 0 ? bytes : nil
            staged += max(bytes, 0) - before
            given += max(before - bytes, 0)
        }
    }

    /// What a content that is being completed still has to take of the disk: bytes of its own, and those
    /// that are fetched for it.
    struct Promise {
        var lacking: Int64
        var cached: Int64
    }

    /// Bytes that cached contents may have together.
    let limit: Int64
    /// Bytes of the disk that are left for the catalog.
    let reserve: Int64
    private let folder: String
    /// The cache's folder, where it lies on another disk than the staged contents.
    private let otherFolder: String?
    private let measure: @Sendable (String) -> Int64?
    private let state = Mutex(State())

    /// A room for staged contents in one folder and cached ones in another; `measure` gives the free bytes
    /// on a folder's disk.
    init(
        limit: Int64,
        reserve: Int64,
        folder: String,
        cacheFolder: String,
        measure: @escaping @Sendable (String) -> Int64?
    ) {
        self.limit = limit
        self.reserve = reserve
        self.folder = folder
        self.measure = measure
        otherFolder = DiskFile.areOnOneDisk(folder, cacheFolder) ? nil : cacheFolder
    }

    /// Bytes of staged and of cached contents.
    var used: (staged: Int64, cached: Int64) {
        state.withLock { ($0.staged, $0.cached) }
    }

    /// Bytes that each staged content has.
    var ledger: [ContentID: Int64] { state.withLock { $0.ledger } }

    /// Counts what was given back so far.
    var given: Int64 { state.withLock { $0.given } }
    /// The count when a caller last waited in vain for more; nil when none did.
    var givenInVain: Int64? {
        get { state.withLock { $0.givenInVain } }
        set { state.withLock { $0.givenInVain = newValue } }
    }

    /// Reserves room for bytes about to be written to a staged content.
    ///
    /// - Returns: false when the disk has none; cached contents must give way then.
    func take(_ bytes: Int64, for id: ContentID) -> Bool {
        state.withLock { state in
            state.unchecked -= bytes
            if state.unchecked < 0 {
                guard onDisk(folder) - bytes > reserve else { return false }
                state.unchecked = min(8 << 20, reserve / 4)
            }
            state.set(id, to: (state.ledger[id] ?? 0) + bytes)
            return true
        }
    }

    /// Gives back what was taken for bytes that were not written.
    func give(_ bytes: Int64, of id: ContentID) {
        state.withLock { $0.set(id, to: ($0.ledger[id] ?? 0) - bytes) }
    }

    /// Sets how many bytes a staged content has on the disk.
    func set(_ bytes: Int64, of id: ContentID) { state.withLock { $0.set(id, to: bytes) } }

    /// Whether bytes that are to be written would find room.
    func hasRoom(for bytes: Int64) -> Bool { onDisk(folder) - bytes > reserve }

    /// Whether there is room for fetched bytes.
    ///
    /// Cached contents leave the catalog some room, too, but less than written ones do: small files can be
    /// read even on a disk that is nearly full.
    func hasCacheRoom(for bytes: Int64) -> Bool { onDisk(otherFolder ?? folder) - bytes > spare }

    /// Promises a staged content the room for what it lacks of its base revision, for fetching that, and
    /// beside what others were promised: if several shared the room that is enough for one, none would be
    /// completed.
    ///
    /// - Returns: whether there is so much.
    func promise(_ promise: Promise, to id: ContentID) -> Bool {
        state.withLock { state in
            var all = promise
            for (other, promise) in state.promises where other != id {
                all.lacking += promise.lacking
                all.cached += promise.cached
            }
            guard hasRoom(toComplete: all.lacking, cached: all.cached) else { return false }
            state.promises[id] = promise
            return true
        }
    }

    /// Sets how much of a promise to a content is still to be taken; nil once the content is complete, or
    /// is not being completed any more.
    func setPromise(_ promise: Promise?, to id: ContentID) {
        state.withLock { $0.promises[id] = promise }
    }

    /// Whether others are promised room; each of them takes what it needs and gives back the rest.
    func hasPromises(toOthersThan id: ContentID) -> Bool {
        state.withLock { state in state.promises.keys.contains { $0 != id } }
    }

    /// Whether there is room for what a staged content lacks of its base revision and for fetching that: it
    /// may take more than a program's write, since its upload gives all of it back.
    func hasRoom(toComplete lacking: Int64, cached: Int64) -> Bool {
        guard let otherFolder else { return onDisk(folder) - lacking - cached > reserve / 4 }
        return onDisk(folder) - lacking > reserve / 4 && onDisk(otherFolder) - cached > spare
    }

    /// Bytes that staged contents can still take, in place of cached ones if need be.
    var free: Int64 {
        // Contents that are cached on another disk cannot give way.
        let here = otherFolder == nil ? used.cached : 0
        let free = onDisk(folder).addingReportingOverflow(here)
        return max((free.overflow ? .max : free.partialValue) - reserve, 0)
    }

    /// Whether a program that writes much would find no room now.
    var isFull: Bool { free < 8 << 20 }

    /// Whether the cache's own disk takes no more, although all that is cached went from it.
    var isCacheFull: Bool {
        guard let otherFolder else { return false }
        let free = onDisk(otherFolder).addingReportingOverflow(used.cached)
        return !free.overflow && free.partialValue - spare < 8 << 20
    }

    /// Bytes that the cache's disk can still take without any eviction.
    var freeForCache: Int64 {
        let free = onDisk(otherFolder ?? folder)
        return max(free - (otherFolder == nil ? reserve * 2 : spare), 0)
    }

    /// Counts cached bytes (negative: removed).
    func addCached(_ bytes: Int64) {
        state.withLock { state in
            state.cached += bytes
            if bytes < 0 { state.given -= bytes }
        }
    }

    /// Bytes of cached content that must go so that the limit and the reserve are kept with some
    /// more bytes: staged ones, and cached ones.
    func excess(with bytes: Int64, cached more: Int64 = 0) -> Int64 {
        let overLimit = used.cached - limit + more
        let overDisk: Int64
        if let otherFolder {
            overDisk = spare + more - onDisk(otherFolder)
        } else {
            overDisk = (reserve * 2) + bytes + more - onDisk(folder)
        }
        return max(overLimit, overDisk, 0)
    }

    private func onDisk(_ folder: String) -> Int64 { measure(folder) ?? .max }

    /// Bytes that the cache leaves free at the least.
    private let spare: Int64 = 4 << 20
}
