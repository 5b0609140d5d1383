/// Which bytes of a file are asked for (RFC 9110, section 14).
enum ByteRange: Hashable, Sendable {
    /// All of them.
    case whole
    /// These, which are within the file and at least one.
    case part(Range<Int64>)
    /// Some that the file does not have.
    case unsatisfiable

    /// What a `Range` field asks of a file of `size` bytes.
    ///
    /// Several ranges, another unit and what is not
    /// understood ask for the whole file, as the standard lets a server take them.
    init(field: String?, size: Int64) {
        guard let field, field.lowercased().hasPrefix("bytes=") else {
            self = .whole
            return
        }
        let text = field.dropFirst(6).filter { $0 != " " && $0 != "\t" }
        let ends = text.split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, !text.contains(",") else {
            self = .whole
            return
        }
        let (first, last) = (Self.number(ends[0]), Self.number(ends[1]))
        switch (ends[0].isEmpty, first, ends[1].isEmpty, last) {
        case (true, _, false, let count?):
            let count = min(count, size)
            self = count > 0 ? .part((size - count)..<size) : .unsatisfiable
        case (false, let first?, true, _):
            self = first < size ? .part(first..<size) : .unsatisfiable
        case (false, let first?, false, let last?) where first <= last:
            self = first < size ? .part(first..<(min(last, size - 1) + 1)) : .unsatisfiable
        default: self = .whole
        }
    }

    /// Digits alone; what is too long for a number is more than any file has.
    private static func number(_ text: Substring) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
        return Int64(text) ?? .max
    }
}
