import Foundation
import OortModel

/// Reads the header field `Retry-After` (RFC 9110, section 10.2.3).
enum RetryAfter {
    /// Seconds or an HTTP date counted from `now`; at most `longestReportedWait`, nil when it is neither.
    static func parse(_ text: String, now: Date = Date()) -> Duration? {
        let text = text.trimmed
        if let seconds = Double(text), seconds.isFinite {
            return .seconds(min(max(seconds, 0), longest))
        }
        return HTTPDate.parse(text).map {
            .seconds(min(max($0.date.timeIntervalSince(now), 0), longest))
        }
    }

    private static let longest = Double(Duration.longestReportedWait.components.seconds)
}
