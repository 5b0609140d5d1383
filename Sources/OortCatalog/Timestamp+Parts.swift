import OortModel

/// A time as the catalog keeps it: in columns, and in the JSON of items and intents.
extension Timestamp {
    /// Seconds since 1970, and nanoseconds of the next one.
    var parts: [Int64] { [seconds, Int64(nanoseconds)] }

    /// A time from its `parts`; nil where they are none.
    init?(parts: [Int64]?) {
        guard let parts, parts.count == 2 else { return nil }
        self.init(seconds: parts[0], nanoseconds: parts[1])
    }

    /// A time from two columns that are both null or both not.
    init?(seconds: Int64?, nanoseconds: Int64?) {
        guard let seconds else { return nil }
        self.init(seconds: seconds, nanoseconds: Int32(truncatingIfNeeded: nanoseconds ?? 0))
    }
}
