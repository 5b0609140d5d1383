import OortModel

/// Text from outside, made fit for a terminal and for a line of a log.
///
/// A name may hold whatever its author likes: escapes that set the title or clear the screen, line
/// breaks that forge a line, marks that turn the reading direction.
enum TerminalText {
    /// A name or a text from outside, in one line.
    static func line(_ text: String) -> String { escaped(text, keeping: []) }

    /// Words of our own, which may have several lines and columns, with whatever is in them.
    static func lines(_ text: String) -> String { escaped(text, keeping: ["\n", "\t"]) }

    /// An address of a server in quotation marks, without what stands before an `@`: it may be a password.
    static func withoutSecret(_ address: String) -> String {
        let server = address.cut(atLast: "@").map { "…@\($0.after)" } ?? address
        return "\"\(line(server))\""
    }

    private static func escaped(_ text: String, keeping kept: Set<Unicode.Scalar>) -> String {
        // Scalars, since to Swift a carriage return and a line feed are one character.
        guard text.unicodeScalars.contains(where: { acts($0) && !kept.contains($0) }) else {
            return text
        }
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            guard acts(scalar), !kept.contains(scalar) else {
                result.append(scalar)
                continue
            }
            let words =
                switch scalar {
                case "\n": "\\n"
                case "\r": "\\r"
                case "\t": "\\t"
                default: "\\u{" + String(scalar.value, radix: 16) + "}"
                }
            result.append(contentsOf: words.unicodeScalars)
        }
        return String(result)
    }

    /// Whether a terminal may do something else than to show it: C0, DEL, C1, what separates lines,
    /// and what sets the direction (UAX #9).
    static func acts(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: true
        default: scalar.properties.isBidiControl
        }
    }
}
