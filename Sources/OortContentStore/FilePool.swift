import Synchronization

/// The files that are open on the local disk: bounded, the least recently used closed first.
///
/// A file in use stays open even after the pool has let it go.
final class FilePool: Sendable {
    private struct State {
        var young: [String: DiskFile] = [:]
        var old: [String: DiskFile] = [:]
    }

    private let state = Mutex(State())
    private let halfCapacity: Int

    /// A pool of at most `capacity` open files.
    init(capacity: Int) { halfCapacity = max(capacity / 2, 1) }

    /// The file at a path, opened if it is not.
    func file(_ path: String) throws(ContentError) -> DiskFile {
        if let file = known(path) { return file }
        return keep(try DiskFile.open(path), path)
    }

    /// The file at a path, opened if it is not; nil when there is none.
    func fileIfPresent(_ path: String) throws(ContentError) -> DiskFile? {
        if let file = known(path) { return file }
        return try DiskFile.openIfPresent(path).map { keep($0, path) }
    }

    private func keep(_ file: DiskFile, _ path: String) -> DiskFile {
        state.withLock { state in
            // Another thread may have been quicker: all use the same file.
            if let other = state.young[path] ?? state.old[path] { return other }
            insert(file, path, &state)
            return file
        }
    }

    /// Makes an empty file at a path, in place of one that may be there.
    func create(_ path: String) throws(ContentError) -> DiskFile {
        forget(path)
        DiskFile.remove(path)
        let file = try DiskFile.open(path, creates: true)
        state.withLock { insert(file, path, &$0) }
        return file
    }

    /// Lets a file go that was moved or deleted.
    func forget(_ path: String) {
        state.withLock { state in
            state.young[path] = nil
            state.old[path] = nil
        }
    }

    private func known(_ path: String) -> DiskFile? {
        state.withLock { state in
            if let file = state.young[path] { return file }
            guard let file = state.old.removeValue(forKey: path) else { return nil }
            insert(file, path, &state)
            return file
        }
    }

    private func insert(_ file: DiskFile, _ path: String, _ state: inout State) {
        if state.young.count >= halfCapacity {
            state.old = state.young
            state.young = [:]
        }
        state.young[path] = file
    }
}
