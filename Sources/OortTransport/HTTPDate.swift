public import OortModel

/// Reads times of header fields and of WebDAV's properties, in all forms that servers write them in.
public enum HTTPDate {
    /// RFC 1123 with `GMT` or an offset, one-digit days, RFC 850, asctime, RFC 3339; nil for anything
    /// else: a wrong time is worse than none.
    public static func parse(_ text: String) -> Timestamp? {
        let text = text.trimmed
        guard let first = text.utf8.first else { return nil }
        if (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first) {
            return Timestamp(rfc3339: text)
        }
        // "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
        // "Sun Nov  6 08:49:37 1994"
        let fields = text.split { $0 == " " || $0 == "," || $0 == "-" && !text.has(",") }
            .map(String.init)
        guard text.has(",") else {
            guard fields.count == 5 else { return nil }
            return time(day: fields[2], month: fields[1], year: fields[4], clock: fields[3])
        }
        let rest = fields.dropFirst().flatMap { field in
            // Of RFC 850 the day, month and year are one field; an offset keeps its sign.
            field.has("-") && field.utf8.count > 5
                ? field.split(separator: "-").map(String.init) : [field]
        }
        guard rest.count >= 4 else { return nil }
        guard let time = time(day: rest[0], month: rest[1], year: rest[2], clock: rest[3]) else {
            return nil
        }
        guard rest.count > 4, let offset = offset(rest[4]) else { return time }
        return Timestamp(seconds: time.seconds - offset)
    }

    private static let months = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ]

    private static func time(
        day: String,
        month: String,
        year: String,
        clock: String
    ) -> Timestamp? {
        let parts = clock.split(separator: ":").map { Int64($0) }
        guard let day = Int64(day), (1...31).contains(day),
            let month = months.firstIndex(of: month.lowercased()),
            var year = Int64(year), (0...9999).contains(year),
            parts.count == 3, let hour = parts[0], let minute = parts[1], let second = parts[2],
            (0..<24).contains(hour), (0..<60).contains(minute), (0...60).contains(second)
        else { return nil }
        if year < 100 { year += year < 70 ? 2000 : 1900 }
        let days = days(year: year, month: Int64(month) + 1, day: day)
        return Timestamp(seconds: days * 86400 + hour * 3600 + minute * 60 + second)
    }

    /// Days since 1970-01-01 of the Gregorian calendar.
    private static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719468
    }

    /// Seconds of `+0130`.
    private static func offset(_ text: String) -> Int64? {
        guard text.utf8.count == 5, let number = Int64(text), text.has("+") || text.has("-") else {
            return nil
        }
        return (number / 100) * 3600 + (number % 100) * 60
    }
}
