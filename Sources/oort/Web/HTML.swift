/// A piece of a page: what the program writes stands as it is, whatever is put into it is shown as text.
///
/// Names and words from outside are hostile: they are put in by interpolation only, which makes
/// characters of them that have no meaning in HTML, and shows what acts on a screen
/// (`TerminalText`). Attributes always have double quotes.
struct HTML: ExpressibleByStringInterpolation, Hashable, Sendable {
    /// The HTML itself.
    let text: String

    /// Words of the program's own.
    init(stringLiteral value: String) { text = value }

    init(stringInterpolation: StringInterpolation) { text = stringInterpolation.text }

    /// Pieces one after the other.
    init(_ parts: some Sequence<HTML>) {
        text = parts.reduce(into: "") { $0 += $1.text }
    }

    /// Text of many lines, such as a file's or a log's: its line breaks and tabs stay.
    static func lines(_ text: String) -> HTML {
        var result: HTML.StringInterpolation = .init(literalCapacity: 0, interpolationCount: 0)
        result.appendLiteral(escaped(TerminalText.lines(text)))
        return HTML(stringInterpolation: result)
    }

    /// Text whose every character stands for itself, in elements and in quoted attributes.
    private static func escaped(_ text: String) -> String {
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            let words =
                switch scalar {
                case "&": "&amp;"
                case "<": "&lt;"
                case ">": "&gt;"
                case "\"": "&quot;"
                case "'": "&#39;"
                default: ""
                }
            if words.isEmpty {
                result.append(scalar)
            } else {
                result.append(contentsOf: words.unicodeScalars)
            }
        }
        return String(result)
    }

    /// What stands between the quotes of a literal.
    struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var text = ""

        init(literalCapacity: Int, interpolationCount: Int) {
            text.reserveCapacity(literalCapacity + 16 * interpolationCount)
        }

        mutating func appendLiteral(_ literal: String) { text += literal }

        /// Text from anywhere, in one line.
        mutating func appendInterpolation(_ value: String) {
            text += HTML.escaped(TerminalText.line(value))
        }

        /// A number.
        mutating func appendInterpolation(_ value: some BinaryInteger) { text += "\(value)" }

        /// Another piece.
        mutating func appendInterpolation(_ piece: HTML) { text += piece.text }

        /// Another piece, or nothing.
        mutating func appendInterpolation(_ piece: HTML?) { text += piece?.text ?? "" }

        /// Several pieces.
        mutating func appendInterpolation(_ pieces: [HTML]) {
            for piece in pieces { text += piece.text }
        }
    }
}
