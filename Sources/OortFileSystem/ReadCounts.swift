import Synchronization

/// How programs' reads of files at a service were answered.
public final class ReadCounts: Sendable {
    private let fromCache = Atomic<Int64>(0)
    private let fetched = Atomic<Int64>(0)

    /// Reads of which all bytes were here.
    public var hits: Int64 { fromCache.load(ordering: .relaxed) }
    /// Reads that waited for the service.
    public var misses: Int64 { fetched.load(ordering: .relaxed) }

    func add(isHit: Bool) {
        if isHit {
            fromCache.wrappingAdd(1, ordering: .relaxed)
        } else {
            fetched.wrappingAdd(1, ordering: .relaxed)
        }
    }
}
