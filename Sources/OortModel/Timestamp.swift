/// A point in time: seconds since 1970-01-01T00:00:00Z and nanoseconds, as file systems count it.
public struct Timestamp: Hashable, Sendable, Comparable {
    /// Whole seconds since 1970, negative before.
    public let seconds: Int64
    /// Nanoseconds after `seconds`, 0 ..< 1,000,000,000.
    public let nanoseconds: Int32

    /// A point in time; `nanoseconds` outside 0 ..< 1,000,000,000 is brought into range.
    public init(seconds: Int64, nanoseconds: Int32 = 0) {
        self.seconds = seconds
        self.nanoseconds = min(max(nanoseconds, 0), 999_999_999)
    }

    /// Earlier before later.
    public static func < (left: Timestamp, right: Timestamp) -> Bool {
        (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
    }

    /// The first second of the year 1.
    public static let earliestSent = Timestamp(seconds: -62_135_596_800)
    /// The last second of the year 9999.
    public static let latestSent = Timestamp(seconds: 253_402_300_799)

    /// The time cut to what a service keeps, so that both sides can be compared: to its resolution,
    /// and to the years 1 to 9999, which are all that RFC 3339 can write.
    public func truncated(to resolution: TimeResolution) -> Timestamp {
        let time = min(max(self, Self.earliestSent), Self.latestSent)
        return switch resolution {
        case .nanoseconds: self
        case .milliseconds:
            Timestamp(seconds: time.seconds, nanoseconds: time.nanoseconds / 1_000_000 * 1_000_000)
        case .seconds: Timestamp(seconds: time.seconds)
        }
    }

    /// Milliseconds since 1970; the nearest end of the range where there are too many for an `Int64`.
    public var inMilliseconds: Int64 {
        seconds.multipliedSaturating(by: 1000).addingSaturating(Int64(nanoseconds) / 1_000_000)
    }
}

/// How finely a service keeps a modified time.
public enum TimeResolution: Sendable, Hashable {
    /// Nothing is lost.
    case nanoseconds
    /// Three digits of a second.
    case milliseconds
    /// Whole seconds.
    case seconds
}
