/// When to look again: moments in milliseconds since 1970, each of which somebody waits for.
///
/// A pure value.
struct Moments {
    private var moments: Set<Int64> = []

    /// The next of them; nil while nobody waits.
    var next: Int64? { moments.min() }

    /// One more moment, beside those that others wait for; whether it is the next one now.
    mutating func add(_ moment: Int64) -> Bool {
        let isNext = moments.allSatisfy { $0 > moment }
        return moments.insert(moment).inserted && isNext
    }

    /// Whether there is one after `start`, and not after `end`.
    func has(after start: Int64, through end: Int64) -> Bool {
        moments.contains { start < $0 && $0 <= end }
    }

    /// Those that have come are not waited for any more.
    mutating func came(at now: Int64) { moments = moments.filter { $0 > now } }
}
