import OortCatalog
import OortContentStore
import OortModel
import Synchronization

/// Fetches the next small files of a folder while a program reads one after the other.
///
/// `tar`, `cp -r` and `grep -r` read a folder's files in the order in which it lists them, and would wait a
/// round trip for each. Once some were read in this way, as many of the next ones are fetched as were read,
/// up to a bound: never more is fetched in vain than was read.
actor FolderReadAhead {
    /// One folder that is being read in order.
    private struct Run {
        /// Distinguishes the run from an earlier one of the same folder.
        let number: UInt64
        /// The small file that was read last.
        var last: Node
        /// How many were read in order, and their bytes.
        var count = 1
        var bytes: Int64
        /// The small files that follow, as far as they were looked up.
        var upcoming: [Node] = []
        /// How many of these were fetched, or are being fetched.
        var ahead = 0
        /// How many are being fetched.
        var inFlight = 0
        /// When it was last read, as a count of reads.
        var ordinal: UInt64
    }

    /// Bytes of the largest file that counts as small.
    static let largestFile: Int64 = 1 << 20
    /// How many files are read in order before others are fetched.
    private static let enough = 3
    /// How many files are fetched at once: a quarter of what the strictest service allows.
    private static let atOnce = 6
    /// The most files, and their bytes, that are fetched and not read yet.
    private static let mostFiles = 32
    private static let mostBytes: Int64 = 8 << 20
    /// How many files a program that reads in order may skip.
    private static let mostPassed = 8
    /// How many entries of a folder are looked at for the files that follow.
    private static let page = 64
    /// How many folders are remembered.
    private static let mostRuns = 64

    private let catalog: Catalog
    private let store: ContentStore
    private var runs: [Inode: Run] = [:]
    private var ordinal: UInt64 = 0
    /// The folders that are being read in order: reads from the cache count there, too.
    private let active = ActiveFolders()

    /// For the files of a catalog, fetched by a store.
    init(catalog: Catalog, store: ContentStore) {
        self.catalog = catalog
        self.store = store
    }

    /// Notes that a program reads a small file from its beginning; `isHit` says that its bytes are here.
    ///
    /// Returns at once, from any thread.
    nonisolated func noteRead(of file: Node, isHit: Bool) {
        guard let folder = file.parent, !isHit || active.contains(folder) else { return }
        // Ends by itself; a late one counts as a skipped file.
        Task { await self.read(file, in: folder) }
    }

    private func read(_ file: Node, in folder: Inode) {
        ordinal += 1
        guard var run = runs[folder] else { return begin(file, in: folder) }
        run.ordinal = ordinal
        guard file.inode > run.last.inode else {
            // Another program reads it, or it is read again.
            runs[folder] = run
            return
        }
        fill(&run, in: folder)
        let place = run.upcoming.firstIndex { $0.inode == file.inode }
        guard let place, place <= run.ahead + Self.mostPassed else {
            active.remove(folder)
            return begin(file, in: folder)
        }
        run.last = file
        run.count += 1
        run.bytes += file.size
        run.upcoming.removeFirst(place + 1)
        run.ahead = max(run.ahead - place - 1, 0)
        runs[folder] = run
        guard run.count >= Self.enough else { return }
        active.insert(folder)
        extend(folder)
    }

    private func begin(_ file: Node, in folder: Inode) {
        runs[folder] = Run(
            number: ordinal,
            last: file,
            bytes: file.size,
            ordinal: ordinal
        )
        guard runs.count > Self.mostRuns,
            let oldest = runs.min(by: { $0.value.ordinal < $1.value.ordinal })?.key
        else { return }
        runs[oldest] = nil
        active.remove(oldest)
    }

    /// Looks up the files that follow, when few of them are known.
    private func fill(_ run: inout Run, in folder: Inode) {
        guard run.upcoming.count < Self.mostFiles + Self.mostPassed else { return }
        let last = run.upcoming.last ?? run.last
        do throws(CatalogError) {
            run.upcoming += try catalog.children(of: folder, after: last.inode, limit: Self.page)
                .filter { $0.kind == .file && $0.size <= Self.largestFile }
        } catch {
            // Nothing is fetched ahead.
        }
    }

    /// Begins to fetch as many of the next files as allowed.
    private func extend(_ folder: Inode) {
        guard var run = runs[folder] else { return }
        fill(&run, in: folder)
        let most = min(run.count, Self.mostFiles, run.upcoming.count)
        let mostBytes = min(run.bytes, Self.mostBytes, store.readAheadRoom)
        var bytes = run.upcoming.prefix(run.ahead).reduce(0) { $0 + $1.size }
        while run.ahead < most, run.inFlight < Self.atOnce {
            let next = run.upcoming[run.ahead]
            bytes += next.size
            guard bytes <= mostBytes else { break }
            run.ahead += 1
            guard next.size > 0, next.permissions.contains(.read),
                case .revision(let item, let revision) = next.content
            else { continue }
            run.inFlight += 1
            let key = ContentKey(account: next.account, item: item, revision: revision)
            // Ends by itself, with the file; the store ends it when it stops.
            Task { [number = run.number] in
                let isHere = await fetch(key, size: next.size, hash: next.hash)
                ended(number, in: folder, isHere: isHere)
            }
        }
        runs[folder] = run
    }

    private nonisolated func fetch(_ key: ContentKey, size: Int64, hash: ContentHash?) async -> Bool
    {
        await RequestPriority.$current.withValue(.ahead) {
            do throws(ContentError) {
                try await store.bring(key, size: size, hash: hash, .ahead)
                return true
            } catch { return false }
        }
    }

    private func ended(_ number: UInt64, in folder: Inode, isHere: Bool) {
        guard runs[folder]?.number == number else { return }
        runs[folder]?.inFlight -= 1
        if isHere { return extend(folder) }
        // The next read meets the same failure, and begins a new run.
        runs[folder] = nil
        active.remove(folder)
    }
}

/// Some folders, asked by any thread.
private final class ActiveFolders: Sendable {
    private let folders = Mutex<Set<Inode>>([])

    func contains(_ folder: Inode) -> Bool { folders.withLock { $0.contains(folder) } }
    func insert(_ folder: Inode) { folders.withLock { _ = $0.insert(folder) } }
    func remove(_ folder: Inode) { folders.withLock { _ = $0.remove(folder) } }
}
