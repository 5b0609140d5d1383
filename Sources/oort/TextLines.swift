/// The lines of two texts that are to be compared.
enum TextLines {
    /// The lines of both as a person reads them, without their ends (LF, or CR LF); where these are the
    /// same, with their ends, escaped: then it is they that differ.
    static func compared(_ left: String, _ right: String) -> (left: [String], right: [String]) {
        let (ownEnds, otherEnds) = (withEnds(left), withEnds(right))
        let lines = (ownEnds.map(withoutEnd), otherEnds.map(withoutEnd))
        guard lines.0 == lines.1 else { return lines }
        return (
            ownEnds.map { TerminalText.line(String($0)) },
            otherEnds.map { TerminalText.line(String($0)) }
        )
    }

    /// How many lines a text has.
    static func count(_ text: String) -> Int { withEnds(text).count }

    private static func withEnds(_ text: String) -> [Substring] {
        var lines: [Substring] = []
        var rest = text[...]
        while let end = rest.firstIndex(where: isEnd) {
            lines.append(rest[...end])
            rest = rest[rest.index(after: end)...]
        }
        if !rest.isEmpty { lines.append(rest) }
        return lines
    }

    private static func withoutEnd(_ line: Substring) -> String {
        String(line.last.map(isEnd) == true ? line.dropLast() : line)
    }

    /// To Swift a carriage return and a line feed are one character.
    private static func isEnd(_ character: Character) -> Bool {
        character == "\n" || character == "\r\n"
    }
}
