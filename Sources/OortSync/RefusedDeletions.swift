/// What the service refused to delete lately, for a person to read; forgotten with the process.
///
/// A pure value; moments are milliseconds since 1970.
struct RefusedDeletions {
    private var found: [(path: String, reason: String, time: Int64)] = []

    private static let most = 20
    private static let longestAge: Int64 = 3_600_000

    /// What lies at this path, from the account's folder, was not deleted.
    mutating func add(_ path: String, reason: String, at now: Int64) {
        found.append((path, reason, now))
        found.removeFirst(max(0, found.count - Self.most))
    }

    /// What was not deleted in the last hour, and why, in words; the newest first.
    func words(at now: Int64) -> [String] {
        found.reversed().filter { now - $0.time < Self.longestAge }.map {
            "\($0.path) was not deleted and is shown again: \($0.reason)"
        }
    }
}
