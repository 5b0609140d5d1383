import OortModel

/// Waiting with an end: for the service, for room, for another's listing.
struct Waiting: Sendable {
    /// The longest that an operation waits.
    let limit: Duration
    let clock: any Clock<Duration>

    /// An answer that is waited for: `.timedOut` after the limit, `.interrupted` when the calling
    /// task is cancelled.
    func later<T: Sendable>(
        _ body: @escaping @Sendable () async throws(FileSystemError) -> T
    ) -> Outcome<T> {
        .later {
            await withTaskGroup(of: Result<T, FileSystemError>.self) { group in
                group.addTask {
                    await RequestPriority.$current.withValue(.interactive) {
                        do throws(FileSystemError) { return .success(try await body()) } catch {
                            return .failure(error)
                        }
                    }
                }
                group.addTask {
                    let hasPassed = (try? await clock.sleep(for: limit)) != nil
                    return .failure(hasPassed ? .timedOut : .interrupted)
                }
                let first = await group.next() ?? .failure(.interrupted)
                group.cancelAll()
                return first
            }
        }
    }
}
