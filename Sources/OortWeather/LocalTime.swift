import Foundation

/// A moment by the clocks of a place.
struct LocalTime: Hashable, Sendable {
    /// The days from 1970-01-01 to the date.
    let day: Int64
    let year: Int64
    let month: Int
    let dayOfMonth: Int
    let hour: Int
    let minute: Int

    /// A moment, in seconds since 1970 in UTC, in a time zone.
    init(_ time: Int64, in zone: TimeZone) {
        let offset = zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(time)))
        let local = time + Int64(offset)
        day = local.flooredQuotient(by: 86_400)
        let second = Int(local - day * 86_400)
        hour = second / 3600
        minute = second % 3600 / 60
        // Days to a date of the Gregorian calendar, years beginning in March.
        let shifted = day + 719_468
        let era = shifted.flooredQuotient(by: 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra =
            (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        dayOfMonth = Int(dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
        month = Int(shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9)
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }

    /// The date, as in `2026-11-23`.
    var date: String { "\(year)-\(Self.two(month))-\(Self.two(dayOfMonth))" }

    /// The time, as in `14:05`.
    var clock: String { "\(Self.two(hour)):\(Self.two(minute))" }

    /// The day's name, as in `Monday`.
    var weekday: String {
        let names = [
            "Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday",
        ]
        return names[Int(day - day.flooredQuotient(by: 7) * 7)]
    }

    /// The date for people, as in `Mon 23 Nov`.
    var short: String {
        let months = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ]
        return "\(weekday.prefix(3)) \(dayOfMonth) \(months[month - 1])"
    }

    private static func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
}

extension Int64 {
    /// The largest whole number that is no larger than the quotient; `divisor` is above nothing.
    func flooredQuotient(by divisor: Int64) -> Int64 {
        let (quotient, rest) = quotientAndRemainder(dividingBy: divisor)
        return rest < 0 ? quotient - 1 : quotient
    }
}
