/// Short texts that a service reports of one item, such as its tags, as the one text that shows them:
/// `urgent; tax 2026`.
///
/// None comes twice, none has a semicolon, and none has a character that would break a line, ring a bell or
/// turn the direction of what follows. Where there are more than can be shown, the last says so.
public struct TextList: Hashable, Sendable {
    /// The most texts that are kept.
    public static let most = 100
    /// The most bytes of one text.
    public static let longestText = 200
    /// The most bytes of all texts, but for the last one that says how many more there are.
    public static let longest = 4_000

    private static let separator = "; "
    private let content: ExactText

    /// The texts in one; empty where there is none.
    public var joined: String { content.text }

    /// Whether there is none.
    public var isEmpty: Bool { joined.isEmpty }

    /// A list without texts.
    public init() { content = ExactText("") }

    /// The texts as they can be shown, in their order.
    public init(_ texts: some Sequence<String>) {
        var seen: Set<ExactText> = []
        var kept: [String] = []
        var bytes = 0
        for text in texts {
            let text = Self.shown(text)
            guard !text.isEmpty, seen.insert(ExactText(text)).inserted else { continue }
            bytes += text.utf8.count + Self.separator.utf8.count
            if kept.count < Self.most, bytes <= Self.longest { kept.append(text) }
        }
        let left = seen.count - kept.count
        if left > 0 { kept.append("and \(left) more") }
        content = ExactText(kept.joined(separator: Self.separator))
    }

    /// A list as `joined` gave it.
    public init(joined: String) { content = ExactText(joined) }

    private static func shown(_ text: String) -> String {
        var kept = String.UnicodeScalarView()
        var bytes = 0
        var isAfterSpace = true
        for scalar in text.unicodeScalars {
            guard let scalar = replacement(of: scalar) else { continue }
            let isSpace = scalar == " "
            if isSpace, isAfterSpace { continue }
            bytes += scalar.utf8.count
            guard bytes <= longestText else {
                if isAfterSpace, !kept.isEmpty { kept.removeLast() }
                return String(kept) + "…"
            }
            kept.append(scalar)
            isAfterSpace = isSpace
        }
        if isAfterSpace, !kept.isEmpty { kept.removeLast() }
        return String(kept)
    }

    /// The scalar that the list has in place of one of a service's text; nil where it has none.
    private static func replacement(of scalar: Unicode.Scalar) -> Unicode.Scalar? {
        switch scalar.properties.generalCategory {
        case .control, .spaceSeparator, .lineSeparator, .paragraphSeparator: " "
        default:
            switch scalar.value {
            case 0x3B: ","
            // What turns the direction of a line, and marks of byte order.
            case 0x061C, 0x200E...0x200F, 0x202A...0x202E, 0x2066...0x2069, 0xFEFF: nil
            default: scalar
            }
        }
    }
}
