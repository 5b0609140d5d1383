import OortContentStore
import OortModel
import Synchronization

/// Listings of unknown folders: one at a time for each folder, shared by all callers.
///
/// A listing continues when one of the callers gives up: others, and the next `ls`, need it.
final class SharedListings: Sendable {
    private let running = Mutex<[Inode: Task<Result<Void, ProviderError>, Never>]>([:])

    /// Returns when the folder's children are known.
    func list(
        _ folder: Inode,
        by lister: any FolderLister
    ) async throws(ProviderError) {
        let task = running.withLock { running in
            if let task = running[folder] { return task }
            // Owned by this table; ends with the listing.
            let task = Task { () -> Result<Void, ProviderError> in
                let result: Result<Void, ProviderError>
                do throws(ProviderError) {
                    result = .success(try await lister.list(folder))
                } catch { result = .failure(error) }
                self.running.withLock { $0[folder] = nil }
                return result
            }
            running[folder] = task
            return task
        }
        try await task.value(
            orWhenCancelled: .failure(
                ProviderError(.cancelled, detail: "the caller no longer waits")
            )
        ).get()
    }
}
