/// Moments at which to look again, in milliseconds since 1970.
///
/// A pure value.
struct Moments {
    private var moments: Set<Int64> = []

    /// The next of them; nil when there is none.
    var next: Int64? { moments.min() }

    /// Adds a moment beside those that there are; returns whether it is the next one now.
    mutating func add(_ moment: Int64) -> Bool {
        let isNext = moments.allSatisfy { $0 > moment }
        return moments.insert(moment).inserted && isNext
    }

    /// Whether there is one after `start`, and not after `end`.
    func has(after start: Int64, through end: Int64) -> Bool {
        moments.contains { start < $0 && $0 <= end }
    }

    /// Removes the moments that have come.
    mutating func came(at now: Int64) { moments = moments.filter { $0 > now } }
}
