import Foundation

/// Names as they are searched: without case and diacritics, in words.
///
/// Letters, digits and their marks stay; white space, punctuation and control characters part words.
/// A symbol, and a letter of a script that puts no spaces between words, is a word of its own: so one
/// letter of those finds as well as a whole word of the others.
enum SearchText {
    /// Stands before, between and after words, and is in none.
    static let gap = UInt8(ascii: "_")

    /// The form of today's index: one that was made with another is made anew.
    static let version = 2

    /// The words with one gap between each two; empty where there is none.
    static func folded(_ text: String) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(text.utf8.count + 4)
        if text.utf8.allSatisfy({ $0 < 0x80 }) {
            foldASCII(text.utf8, into: &result)
        } else {
            foldAny(text, into: &result)
        }
        if result.last == gap { result.removeLast() }
        return result
    }

    /// A name as the index has it: two gaps before the first word, one after the last; empty where
    /// there is no word.
    static func framed(_ text: String) -> [UInt8] {
        let words = folded(text)
        return words.isEmpty ? [] : [gap, gap] + words + [gap]
    }

    /// The different runs of three scalars of a framed or folded text, each as a word of the index.
    static func trigrams(_ text: [UInt8]) -> Set<ArraySlice<UInt8>> {
        var starts: [Int] = []
        for index in text.indices where text[index] & 0xC0 != 0x80 { starts.append(index) }
        guard starts.count >= 3 else { return [] }
        starts.append(text.count)
        var found: Set<ArraySlice<UInt8>> = []
        for index in 0..<starts.count - 3 {
            found.insert(text[starts[index]..<starts[index + 3]])
        }
        return found
    }

    /// How many scalars a folded text has.
    static func count(_ text: [UInt8]) -> Int { text.lazy.filter { $0 & 0xC0 != 0x80 }.count }

    private static func foldASCII(_ bytes: String.UTF8View, into result: inout [UInt8]) {
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): result.append(byte | 0x20)
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"):
                result.append(byte)
            case UInt8(ascii: "$"), UInt8(ascii: "+"), UInt8(ascii: "<"), UInt8(ascii: "="),
                UInt8(ascii: ">"), UInt8(ascii: "^"), UInt8(ascii: "`"), UInt8(ascii: "|"),
                UInt8(ascii: "~"):
                if let last = result.last, last != gap { result.append(gap) }
                result.append(byte)
                result.append(gap)
            default: if let last = result.last, last != gap { result.append(gap) }
            }
        }
    }

    /// By compatible decomposition, so that what only looks different is one letter; composed again
    /// without diacritics, so that marks that make another letter (が of か) keep making it.
    private static func foldAny(_ text: String, into result: inout [UInt8]) {
        var plain = String.UnicodeScalarView()
        for scalar in text.decomposedStringWithCompatibilityMapping.unicodeScalars
        where !isDiacritic(scalar) {
            plain.append(contentsOf: unfamiliar[scalar]?.unicodeScalars ?? lowercase(scalar))
        }
        for scalar in String(plain).precomposedStringWithCanonicalMapping.unicodeScalars {
            switch kind(of: scalar) {
            case .letter: result.append(contentsOf: UTF8.encode(scalar).map(Array.init) ?? [])
            case .word:
                if let last = result.last, last != gap { result.append(gap) }
                result.append(contentsOf: UTF8.encode(scalar).map(Array.init) ?? [])
                result.append(gap)
            case .gap: if let last = result.last, last != gap { result.append(gap) }
            case .nothing: continue
            }
        }
    }

    private static func lowercase(_ scalar: Unicode.Scalar) -> String.UnicodeScalarView {
        scalar.properties.lowercaseMapping.unicodeScalars
    }

    /// Letters of Latin and Greek that are no letter with a mark to Unicode, and are to people.
    private static let unfamiliar: [Unicode.Scalar: String] = [
        "ß": "ss", "ẞ": "ss", "æ": "ae", "Æ": "ae", "œ": "oe", "Œ": "oe", "ø": "o", "Ø": "o",
        "đ": "d", "Đ": "d", "ð": "d", "Ð": "d", "ł": "l", "Ł": "l", "þ": "th", "Þ": "th",
        "ı": "i", "ħ": "h", "Ħ": "h", "ŧ": "t", "Ŧ": "t", "ς": "σ",
    ]

    /// Marks that people leave out when they type: accents, Hebrew points, Arabic vowels, variation
    /// selectors of pictures.
    private static func isDiacritic(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x0300...0x036F, 0x0591...0x05BD, 0x05BF, 0x05C1...0x05C2, 0x05C4...0x05C5, 0x05C7,
            0x064B...0x065F, 0x0670, 0x1AB0...0x1AFF, 0x1DC0...0x1DFF, 0x20D0...0x20FF,
            0xFE00...0xFE0F, 0xFE20...0xFE2F:
            true
        default: false
        }
    }

    private enum Kind { case letter, word, gap, nothing }

    private static func kind(of scalar: Unicode.Scalar) -> Kind {
        switch scalar.properties.generalCategory {
        case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter,
            .decimalNumber, .letterNumber, .otherNumber, .nonspacingMark, .spacingMark,
            .enclosingMark:
            return isSpaceless(scalar.value) ? .word : .letter
        case .mathSymbol, .currencySymbol, .modifierSymbol, .otherSymbol, .unassigned, .privateUse:
            return .word
        case .format: return .nothing
        default: return .gap
        }
    }

    /// Thai to Myanmar, Khmer, Hangul, kana and Han.
    private static func isSpaceless(_ value: UInt32) -> Bool {
        switch value {
        case 0x0E00...0x109F, 0x1100...0x11FF, 0x1780...0x17FF, 0x2E80...0xA4CF, 0xA960...0xA97F,
            0xAC00...0xD7FF, 0xF900...0xFAFF, 0x1_6FE0...0x1_B2FF, 0x2_0000...0x3_FFFF:
            true
        default: false
        }
    }
}

/// One word of a search; what a person typed as one may be several to the index (`report.pdf`).
struct SearchTerm: Hashable, Sendable {
    /// Folded, without gaps at its ends; never empty.
    let text: [UInt8]
    /// Whether it is found inside of words, too; a shorter one only where a word begins.
    let isFoundInside: Bool

    /// The term of a word; nil where nothing of it is searched for.
    init?(_ word: String) {
        text = SearchText.folded(word)
        guard !text.isEmpty else { return nil }
        isFoundInside = SearchText.count(text) >= 3
    }

    /// How well a term fits a name, the best first.
    enum Fit: Int, Comparable {
        case no, inside, word, beginning, whole

        static func < (left: Fit, right: Fit) -> Bool { left.rawValue < right.rawValue }
    }

    /// How well it fits a framed text.
    func fit(in framed: [UInt8]) -> Fit {
        let gap = SearchText.gap
        guard framed.count >= text.count + 3 else { return .no }
        var best = Fit.no
        let last = framed.count - text.count
        var start = 2
        while start < last {
            if framed[start] == text[0], framed[start..<start + text.count].elementsEqual(text) {
                if start == 2 {
                    let end = start + text.count
                    return end == framed.count - 1 ? .whole : .beginning
                }
                if framed[start - 1] == gap { return .word }
                if isFoundInside { best = .inside }
            }
            start += 1
        }
        return best
    }

    /// What the index is asked for to find all that fits at least so, and little else; nil where
    /// nothing can fit so.
    func query(_ fit: Fit) -> String? {
        let gap = SearchText.gap
        let framed: [UInt8]
        switch fit {
        case .no: return nil
        case .inside:
            guard isFoundInside else { return nil }
            framed = text
        case .word: framed = [gap] + text
        case .beginning, .whole: framed = [gap, gap] + text
        }
        let trigrams = SearchText.trigrams(framed)
        // One scalar with a gap before it: the beginning of a word of the index.
        guard !trigrams.isEmpty else { return Self.quoted(framed[...]) + "*" }
        return trigrams.map(Self.quoted).sorted().joined(separator: " AND ")
    }

    private static func quoted(_ token: ArraySlice<UInt8>) -> String {
        "\"" + String(decoding: token, as: UTF8.self) + "\""
    }
}

extension SearchKind {
    /// The word of the index that what is of this kind has: no run of three scalars.
    var mark: String {
        switch self {
        case .folder: "$0"
        case .document: "$1"
        case .image: "$2"
        case .video: "$3"
        case .audio: "$4"
        case .archive: "$5"
        case .code: "$6"
        }
    }
}

extension SearchText {
    /// A description as the index has it: as much of it as somebody may look for.
    static func framedDescription(_ text: String) -> [UInt8] { framed(String(text.prefix(1000))) }
}
