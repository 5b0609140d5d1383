public import Foundation

extension Timestamp {
    /// Reads an RFC 3339 time such as `2026-11-21T14:03:00.250Z`; nil when it is not one.
    public init?(rfc3339 text: String) {
        if let date = try? Date(text, strategy: .iso8601) {
            self.init(date)
        } else if let date = try? Date(
            text,
            strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: true)
        ) {
            self.init(date)
        } else {
            return nil
        }
    }

    /// The time to the nearest microsecond, which is what `Date` keeps.
    public init(_ date: Date) {
        let seconds = date.timeIntervalSince1970
        guard seconds.isFinite, abs(seconds) < 1e15 else {
            self.init(seconds: 0)
            return
        }
        let microseconds = (seconds * 1_000_000).rounded()
        let whole = (microseconds / 1_000_000).rounded(.down)
        self.init(
            seconds: Int64(whole),
            nanoseconds: Int32(microseconds - whole * 1_000_000) * 1000
        )
    }

    /// The time now by the system's clock.
    public static var now: Timestamp { SystemInputs.given?.time() ?? Timestamp(Date()) }

    /// The same point in time for Foundation.
    public var date: Date {
        Date(timeIntervalSince1970: Double(seconds) + Double(nanoseconds) / 1_000_000_000)
    }

    /// The time as RFC 3339 in UTC, with the digits that `resolution` keeps (nanoseconds are
    /// written as milliseconds); a time outside of the years 1 to 9999 is written as their nearest end.
    public func rfc3339(_ resolution: TimeResolution) -> String {
        switch resolution {
        case .seconds: truncated(to: .seconds).date.formatted(.iso8601)
        case .milliseconds, .nanoseconds:
            truncated(to: .milliseconds).date.addingTimeInterval(0.0002)
                .formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
        }
    }
}
