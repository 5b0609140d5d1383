// Texts that come from outside (names, paths, ids, fields of a protocol) are bytes: services and
// file systems split and compare them byte for byte. Swift's own methods work on characters, to
// which a combining mark belongs that follows: "/\u{301}x" has no "/" for them, does not begin with
// one, and equals what is only canonically equivalent. Everything here works on Unicode scalars or
// bytes.

extension StringProtocol where SubSequence == Substring {
    /// Whether the text's bytes begin with those of another.
    public func begins(with beginning: String) -> Bool { utf8.starts(with: beginning.utf8) }

    /// Whether the text's bytes end with those of another.
    public func ends(with ending: String) -> Bool {
        utf8.count >= ending.utf8.count && utf8.reversed().starts(with: ending.utf8.reversed())
    }

    /// What follows a beginning; nil where the text does not begin so.
    public func dropping(beginning: String) -> Substring? {
        guard begins(with: beginning) else { return nil }
        return self[utf8.index(startIndex, offsetBy: beginning.utf8.count)...]
    }

    /// What precedes an ending; nil where the text does not end so.
    public func dropping(ending: String) -> Substring? {
        guard ends(with: ending) else { return nil }
        return self[..<utf8.index(endIndex, offsetBy: -ending.utf8.count)]
    }

    /// Whether the text has a scalar, whatever combines with it.
    public func has(_ scalar: Unicode.Scalar) -> Bool { unicodeScalars.contains(scalar) }

    /// The parts between the occurrences of a scalar, empty ones too.
    public func parts(between separator: Unicode.Scalar) -> [Substring] {
        var parts: [Substring] = []
        var start = startIndex
        var position = startIndex
        while position < endIndex {
            let next = unicodeScalars.index(after: position)
            if unicodeScalars[position] == separator {
                parts.append(self[start..<position])
                start = next
            }
            position = next
        }
        parts.append(self[start..<endIndex])
        return parts
    }

    /// What precedes the first occurrence of a scalar, and what follows it; nil where there is none.
    public func cut(atFirst separator: Unicode.Scalar) -> (before: Substring, after: Substring)? {
        guard let place = unicodeScalars.firstIndex(of: separator) else { return nil }
        return (self[..<place], self[unicodeScalars.index(after: place)...])
    }

    /// What precedes the last occurrence of a scalar, and what follows it; nil where there is none.
    public func cut(atLast separator: Unicode.Scalar) -> (before: Substring, after: Substring)? {
        guard let place = unicodeScalars.lastIndex(of: separator) else { return nil }
        return (self[..<place], self[unicodeScalars.index(after: place)...])
    }

    /// Whether two texts are the same byte for byte.
    ///
    /// Swift's `==` takes canonically equivalent texts for equal; file systems and most services do
    /// not.
    public func isSameText(as other: some StringProtocol) -> Bool {
        utf8.count == other.utf8.count && utf8.elementsEqual(other.utf8)
    }
}

/// A text that is compared byte for byte, as the key of a dictionary or the element of a set.
public struct ExactText: Hashable, Sendable {
    /// The text.
    public let text: String

    /// A text to be compared byte for byte.
    public init(_ text: String) { self.text = text }

    public static func == (one: ExactText, other: ExactText) -> Bool {
        one.text.isSameText(as: other.text)
    }

    public func hash(into hasher: inout Hasher) {
        for byte in text.utf8 { hasher.combine(byte) }
        hasher.combine(0xFF as UInt8)
    }
}

extension String {
    /// The text without ASCII white space at its ends.
    public var trimmed: String {
        let spaces: Set<UInt8> = [9, 10, 13, 32]
        guard let first = utf8.firstIndex(where: { !spaces.contains($0) }),
            let last = utf8.lastIndex(where: { !spaces.contains($0) })
        else { return "" }
        return String(self[first...last])
    }

    /// The text with U+2400 (␀) for NUL, with which a text of the catalog's database would end.
    public var withoutNUL: String {
        guard utf8.contains(0) else { return self }
        var scalars = UnicodeScalarView()
        scalars.append(contentsOf: unicodeScalars.lazy.map { $0 == "\0" ? "␀" : $0 })
        return String(scalars)
    }
}
