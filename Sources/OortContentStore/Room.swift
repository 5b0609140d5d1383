import Synchronization

/// How much of the disk the contents may take, and how much they do.
///
/// Staged bytes are sure of their place once they have it; cached ones give way to them.
final class Room: Sendable {
    private struct State {
        var staged: Int64 = 0
        var cached: Int64 = 0
        /// Bytes that may be written before the disk itself is asked again.
        var unchecked: Int64 = 0
        /// Counts what was given back, so that who waits sees whether it goes on.
        var given: Int64 = 0
        /// What that was when somebody waited in vain.
        var givenInVain: Int64?
    }

    /// Bytes that staged and cached contents may have together.
    let limit: Int64
    /// Bytes of the disk that are left for the catalog.
    let reserve: Int64
    private let folder: String
    /// The cache's folder, where it lies on another disk than the staged contents.
    private let otherFolder: String?
    private let state = Mutex(State())

    /// A room for staged contents in one folder and cached ones in another.
    init(limit: Int64, reserve: Int64, folder: String, cacheFolder: String) {
        self.limit = limit
        self.reserve = reserve
        self.folder = folder
        otherFolder = DiskFile.areOnOneDisk(folder, cacheFolder) ? nil : cacheFolder
    }

    /// Bytes of staged and of cached contents.
    var used: (staged: Int64, cached: Int64) {
        state.withLock { ($0.staged, $0.cached) }
    }

    /// Counts what was given back so far.
    var given: Int64 { state.withLock { $0.given } }
    /// What had been given back when somebody waited in vain for more; nil when nobody did.
    var givenInVain: Int64? {
        get { state.withLock { $0.givenInVain } }
        set { state.withLock { $0.givenInVain = newValue } }
    }

    /// Takes room for bytes about to be written.
    ///
    /// - Returns: false when there is none, not even in place of cached bytes.
    func takeStaged(_ bytes: Int64) -> Bool {
        state.withLock { state in
            guard state.staged + bytes <= limit else { return false }
            state.unchecked -= bytes
            if state.unchecked < 0 {
                guard (DiskFile.freeBytes(at: folder) ?? .max) - bytes > reserve else {
                    return false
                }
                state.unchecked = min(8 << 20, reserve / 4)
            }
            state.staged += bytes
            return true
        }
    }

    /// Whether bytes that are to be written would find room.
    func hasRoom(for bytes: Int64) -> Bool {
        used.staged + bytes <= limit
            && (DiskFile.freeBytes(at: folder) ?? .max) - bytes > reserve
    }

    /// Bytes that staged contents can still take, in place of cached ones if need be.
    var free: Int64 {
        let (staged, cached) = used
        // What is cached on another disk cannot give way.
        let here = otherFolder == nil ? cached : 0
        let onDisk = (DiskFile.freeBytes(at: folder) ?? .max).addingReportingOverflow(here)
        return max(min(limit - staged, (onDisk.overflow ? .max : onDisk.partialValue) - reserve), 0)
    }

    /// Whether a program that writes much would find no room now.
    var isFull: Bool { free < min(8 << 20, limit / 16) }

    /// Counts staged bytes that were there before.
    func addStaged(_ bytes: Int64) { state.withLock { $0.staged += bytes } }

    /// Gives back what staged bytes took.
    func giveStaged(_ bytes: Int64) {
        guard bytes > 0 else { return }
        state.withLock { state in
            state.staged -= bytes
            state.given += bytes
        }
    }

    /// Counts cached bytes (negative: taken away).
    func addCached(_ bytes: Int64) {
        state.withLock { state in
            state.cached += bytes
            if bytes < 0 { state.given -= bytes }
        }
    }

    /// Bytes of cached content that must go so that the limit and the reserve are kept with some
    /// more bytes: staged ones, and cached ones.
    func excess(with bytes: Int64, cached more: Int64 = 0) -> Int64 {
        let (staged, cached) = used
        let overLimit = staged + cached - limit + bytes + more
        let overDisk: Int64
        if let otherFolder {
            overDisk = spare + more - (DiskFile.freeBytes(at: otherFolder) ?? .max)
        } else {
            overDisk = (reserve * 2) + bytes + more - (DiskFile.freeBytes(at: folder) ?? .max)
        }
        return max(overLimit, overDisk, 0)
    }

    /// Bytes that are left free on a disk that has nothing of ours but the cache.
    private let spare: Int64 = 4 << 20
}
