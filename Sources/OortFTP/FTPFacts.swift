import OortModel

/// What one line of `MLSD` or `MLST` says of a file or folder (RFC 3659, 7).
struct FTPFacts: Hashable, Sendable {
    /// What something is.
    enum Kind: Hashable, Sendable {
        case file
        case folder
        /// The listed folder itself, or the one above.
        case listed
        /// A link, a device, or what else a server has.
        case other
    }

    /// The name's bytes, or with `MLST` the path's, as the server writes them.
    var name: [UInt8]
    /// What it is.
    var kind: Kind
    /// Bytes of a file; nil where the server does not say, or says what no size is.
    var size: Int64?
    /// The modified time as the server writes it, digits and a dot only; nil where it is missing.
    var modified: String?
    /// What identifies the item over renames.
    var unique: String?
    /// The mode's twelve bits, where a server has such.
    var mode: Int?
    /// Whether this login may go into a folder (`perm` with `e`); nil where the server does not say.
    var mayEnter: Bool?

    /// The modified time.
    var time: Timestamp? { modified.flatMap { FTPTime.parse($0) } }

    /// Reads a line without its end; nil where it is none of this form.
    init?(_ line: some Collection<UInt8>) {
        let line = Array(line)
        // The first space ends the facts, and all that follows is the name, further spaces too.
        guard let space = line.firstIndex(of: 0x20), space + 1 < line.count else { return nil }
        name = Array(line[(space + 1)...])
        var type: String?
        for fact in line[..<space].split(separator: UInt8(ascii: ";")) {
            guard let equals = fact.firstIndex(of: UInt8(ascii: "=")) else { return nil }
            let value = fact[(equals + 1)...]
            switch Self.lowercased(fact[..<equals]) {
            case "type": type = Self.lowercased(value)
            case "size": size = Self.number(value)
            case "modify": modified = Self.digits(value)
            case "unique": if !value.isEmpty { unique = String(decoding: value, as: UTF8.self) }
            case "unix.mode": mode = Self.octal(value)
            case "perm": mayEnter = Self.lowercased(value).utf8.contains(UInt8(ascii: "e"))
            default: break
            }
        }
        switch type {
        case "file": kind = .file
        case "dir": kind = .folder
        case "cdir", "pdir": kind = .listed
        default: kind = .other
        }
        // Some servers name both without saying what they are.
        if name == [0x2E] || name == [0x2E, 0x2E] { kind = .listed }
    }

    private static func lowercased(_ bytes: ArraySlice<UInt8>) -> String {
        String(decoding: bytes.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
    }

    /// A size in decimal digits; nil for what no size is, 2^63 and more too.
    private static func number(_ bytes: ArraySlice<UInt8>) -> Int64? {
        guard !bytes.isEmpty, bytes.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int64(String(decoding: bytes, as: UTF8.self))
            .flatMap { ReportedSize(bytes: $0)?.bytes }
    }

    private static func digits(_ bytes: ArraySlice<UInt8>) -> String? {
        guard bytes.count >= 14, bytes.count <= 40,
            bytes.allSatisfy({ (0x30...0x39).contains($0) || $0 == 0x2E })
        else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func octal(_ bytes: ArraySlice<UInt8>) -> Int? {
        guard !bytes.isEmpty, bytes.count <= 8, bytes.allSatisfy({ (0x30...0x37).contains($0) })
        else { return nil }
        return Int(String(decoding: bytes, as: UTF8.self), radix: 8).map { $0 & 0o7777 }
    }

    // MARK: Listings

    /// The lines of a whole listing.
    ///
    /// A line break in a name tears its line in two: what such a line names is nowhere, so the line
    /// before one that is none of this form is left out with it.
    ///
    /// - Returns: nil where the listing does not end with a line's end, as one that broke off.
    static func listing(_ bytes: [UInt8]) -> [FTPFacts]? {
        guard bytes.isEmpty || bytes.last == 0x0A else { return nil }
        var all: [FTPFacts] = []
        for var line in bytes.split(separator: 0x0A) {
            if line.last == 0x0D { line.removeLast() }
            if line.isEmpty { continue }
            if let facts = FTPFacts(line) {
                all.append(facts)
            } else if !all.isEmpty {
                all.removeLast()
            }
        }
        return all
    }

    /// The facts in the answer to `MLST`; nil where it is another.
    init?(_ reply: FTPReply) {
        guard reply.code == 250 else { return nil }
        // Some servers leave out the space before the facts.
        let lines = reply.lines.dropFirst().dropLast()
        let found = lines.lazy.compactMap { FTPFacts($0.first == 0x20 ? $0.dropFirst() : $0[...]) }
        guard let facts = found.first else { return nil }
        self = facts
    }
}

/// Times as FTP writes them: `YYYYMMDDHHMMSS` and perhaps parts of a second, in UTC.
enum FTPTime {
    /// Reads a time; nil where there is no such day or second.
    static func parse(_ text: String) -> Timestamp? {
        let digits = Array(text.utf8)
        guard digits.count >= 14, digits.prefix(14).allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        func number(_ range: Range<Int>) -> Int64 {
            digits[range].reduce(0) { $0 * 10 + Int64($1 - 0x30) }
        }
        let (year, month, day) = (number(0..<4), number(4..<6), number(6..<8))
        let (hour, minute, second) = (number(8..<10), number(10..<12), number(12..<14))
        guard (1...12).contains(month), (1...31).contains(day), hour < 24, minute < 60,
            second <= 60,
            year >= 1
        else { return nil }
        var nanoseconds: Int32 = 0
        if digits.count > 15, digits[14] == 0x2E {
            var unit: Int32 = 100_000_000
            for digit in digits[15...].prefix(9) {
                guard (0x30...0x39).contains(digit) else { return nil }
                nanoseconds += Int32(digit - 0x30) * unit
                unit /= 10
            }
        }
        let days = days(year: year, month: month, day: day)
        return Timestamp(
            seconds: days * 86_400 + hour * 3600 + minute * 60 + second,
            nanoseconds: nanoseconds
        )
    }

    /// Writes the second of a time; one outside of the years 1 to 9999 is written as their nearest end.
    static func text(_ time: Timestamp) -> String {
        let seconds = time.truncated(to: .seconds).seconds
        var (days, rest) = seconds.quotientAndRemainder(dividingBy: 86_400)
        if rest < 0 {
            days -= 1
            rest += 86_400
        }
        // Years that begin in March, so that the day that leap years have comes last.
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra =
            (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        let parts = [(month, 2), (day, 2), (rest / 3600, 2), (rest / 60 % 60, 2), (rest % 60, 2)]
        return parts.reduce(padded(year, 4)) { $0 + padded($1.0, $1.1) }
    }

    private static func padded(_ number: Int64, _ count: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
    }

    /// Days since 1970-01-01 of the Gregorian calendar.
    private static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = shifted / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
            - 719_468
    }
}
