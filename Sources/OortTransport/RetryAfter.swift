import Foundation
import OortModel

/// Reads the header field `Retry-After` (RFC 9110, section 10.2.3).
enum RetryAfter {
    /// Seconds or an HTTP date counted from `now`; at most `longestReportedWait`, nil when it is neither.
    static func parse(_ text: String, now: Date = Date()) -> Duration? {
        let text = text.trimmingCharacters(in: .whitespaces)
        if let seconds = Double(text), seconds.isFinite {
            return .seconds(min(max(seconds, 0), longest))
        }
        return HTTPDate.parse(text).map {
            .seconds(min(max($0.timeIntervalSince(now), 0), longest))
        }
    }

    private static let longest = Double(Duration.longestReportedWait.components.seconds)
}

/// Reads times of header fields (RFC 9110, section 5.6.7, in the form that servers must send).
enum HTTPDate {
    static func parse(_ text: String) -> Date? {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(identifier: "GMT")
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss zzz"
        return formatter.date(from: text)
    }
}
