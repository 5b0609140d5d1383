import ArgumentParser
import Foundation

/// A moment as people write it: `2027-01-31`, which is all of that day here, `2027-01-31T18:00`, or a
/// whole RFC 3339 time.
struct DateArgument: Hashable, Sendable, ExpressibleByArgument {
    /// Where it begins.
    let start: Date
    /// Where it ends: the first second that is no part of a day, the moment itself else.
    let end: Date

    /// Its last second.
    var last: Date { start == end ? end : end.addingTimeInterval(-1) }

    /// Reads a date or a time; nil when it is none.
    init?(argument text: String) {
        if let moment = try? Date(text, strategy: .iso8601) {
            (start, end) = (moment, moment)
            return
        }
        let day = Date.ISO8601FormatStyle(timeZone: .current).year().month().day()
        if text.utf8.count == 10, let date = try? Date(text, strategy: day) {
            // 30 February would be taken for a day of March.
            guard date.formatted(day) == text else { return nil }
            // A day may have 23 hours, or 25.
            let next = Calendar(identifier: .gregorian).date(byAdding: .day, value: 1, to: date)
            (start, end) = (date, next ?? date.addingTimeInterval(86_400))
            return
        }
        let minute = text.utf8.count == 16 ? text.replacing(" ", with: "T") + ":00" : text
        let time = day.time(includingFractionalSeconds: false)
        let whole = minute.replacing(" ", with: "T")
        guard let moment = try? Date(whole, strategy: time), moment.formatted(time) == whole else {
            return nil
        }
        (start, end) = (moment, moment)
    }
}
