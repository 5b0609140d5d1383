import Foundation
import OortModel

/// The search language of `files.list` (`q`).
///
/// Source: developers.google.com/workspace/drive/api/guides/ref-search-terms.
indirect enum GoogleDriveQuery {
    enum Comparator: String {
        case equal = "="
        case notEqual = "!="
        case less = "<"
        case lessOrEqual = "<="
        case greater = ">"
        case greaterOrEqual = ">="
        case contains
    }

    case and([GoogleDriveQuery])
    case or([GoogleDriveQuery])
    case not(GoogleDriveQuery)
    case inList(value: String, list: String)
    case text(field: String, Comparator, String)
    case time(field: String, Comparator, Timestamp)
    case flag(field: String, Bool)
    case has(list: String, key: String, value: String)

    struct Invalid: Error {}

    init(_ text: String) throws(Invalid) {
        var parser = Parser(tokens: try Self.tokens(of: text))
        self = try parser.disjunction()
        guard parser.isAtEnd else { throw Invalid() }
    }

    // MARK: Reading

    private enum Token: Equatable {
        case word(String)
        case quoted(String)
        case sign(String)
    }

    private static func tokens(of text: String) throws(Invalid) -> [Token] {
        var tokens: [Token] = []
        let scalars = Array(text.unicodeScalars)
        var index = 0
        while index < scalars.count {
            let scalar = scalars[index]
            index += 1
            switch scalar {
            case " ", "\t", "\n", "\r": continue
            case "'":
                var value = String.UnicodeScalarView()
                var isClosed = false
                while index < scalars.count, !isClosed {
                    let next = scalars[index]
                    index += 1
                    if next == "\\" {
                        guard index < scalars.count else { throw Invalid() }
                        value.append(scalars[index])
                        index += 1
                    } else if next == "'" {
                        isClosed = true
                    } else {
                        value.append(next)
                    }
                }
                guard isClosed else { throw Invalid() }
                tokens.append(.quoted(String(value)))
            case "(", ")", "{", "}", "=": tokens.append(.sign(String(scalar)))
            case "!", "<", ">":
                if index < scalars.count, scalars[index] == "=" {
                    index += 1
                    tokens.append(.sign(String(scalar) + "="))
                } else {
                    guard scalar != "!" else { throw Invalid() }
                    tokens.append(.sign(String(scalar)))
                }
            default:
                var word = String(Character(scalar))
                while index < scalars.count,
                    !" \t\n\r'(){}=!<>".unicodeScalars.contains(scalars[index])
                {
                    word.unicodeScalars.append(scalars[index])
                    index += 1
                }
                tokens.append(.word(word))
            }
        }
        return tokens
    }

    private struct Parser {
        let tokens: [Token]
        var index = 0

        init(tokens: [Token]) { self.tokens = tokens }

        var isAtEnd: Bool { index == tokens.count }
        private var next: Token? { index < tokens.count ? tokens[index] : nil }

        mutating func disjunction() throws(Invalid) -> GoogleDriveQuery {
            var terms = [try conjunction()]
            while take(.word("or")) { terms.append(try conjunction()) }
            return terms.count == 1 ? terms[0] : .or(terms)
        }

        mutating func conjunction() throws(Invalid) -> GoogleDriveQuery {
            var terms = [try negation()]
            while take(.word("and")) { terms.append(try negation()) }
            return terms.count == 1 ? terms[0] : .and(terms)
        }

        mutating func negation() throws(Invalid) -> GoogleDriveQuery {
            if take(.word("not")) { return .not(try negation()) }
            if take(.sign("(")) {
                let inner = try disjunction()
                guard take(.sign(")")) else { throw Invalid() }
                return inner
            }
            return try term()
        }

        mutating func term() throws(Invalid) -> GoogleDriveQuery {
            guard let token = next else { throw Invalid() }
            index += 1
            switch token {
            case .quoted(let value):
                guard take(.word("in")), case .word(let list)? = next,
                    ["parents", "owners", "writers", "readers"].contains(list)
                else { throw Invalid() }
                index += 1
                return .inList(value: value, list: list)
            case .word(let field): return try comparison(of: field)
            case .sign: throw Invalid()
            }
        }

        private mutating func comparison(of field: String) throws(Invalid) -> GoogleDriveQuery {
            switch field {
            case "trashed", "starred", "sharedWithMe":
                guard take(.sign("=")) || takeNotEqual() else {
                    guard field == "sharedWithMe" else { throw Invalid() }
                    return .flag(field: field, true)
                }
                let isNegated = tokens[index - 1] == .sign("!=")
                guard case .word(let value)? = next, let flag = Bool(value) else { throw Invalid() }
                index += 1
                return .flag(field: field, flag != isNegated)
            case "properties", "appProperties": return try property(field)
            case "name", "fullText", "mimeType", "visibility", "shortcutDetails.targetId",
                "modifiedTime", "viewedByMeTime", "createdTime", "sharedWithMeTime":
                break
            default: throw Invalid()
            }
            guard let comparator = comparator(), case .quoted(let value)? = next else {
                throw Invalid()
            }
            index += 1
            if field.hasSuffix("Time") {
                guard comparator != .contains, let time = Self.time(value) else { throw Invalid() }
                return .time(field: field, comparator, time)
            }
            guard [.equal, .notEqual, .contains].contains(comparator),
                field != "fullText" || comparator == .contains
            else { throw Invalid() }
            return .text(field: field, comparator, value)
        }

        private mutating func property(_ list: String) throws(Invalid) -> GoogleDriveQuery {
            guard take(.word("has")), take(.sign("{")), take(.word("key")), take(.sign("=")),
                case .quoted(let key)? = next
            else { throw Invalid() }
            index += 1
            guard take(.word("and")), take(.word("value")), take(.sign("=")),
                case .quoted(let value)? = next
            else { throw Invalid() }
            index += 1
            guard take(.sign("}")) else { throw Invalid() }
            return .has(list: list, key: key, value: value)
        }

        private mutating func comparator() -> Comparator? {
            let text: String
            switch next {
            case .sign(let sign)?: text = sign
            case .word(let word)?: text = word
            default: return nil
            }
            guard let comparator = Comparator(rawValue: text) else { return nil }
            index += 1
            return comparator
        }

        private mutating func takeNotEqual() -> Bool { take(.sign("!=")) }

        private mutating func take(_ token: Token) -> Bool {
            guard next == token else { return false }
            index += 1
            return true
        }

        /// A time in UTC unless it says otherwise.
        private static func time(_ text: String) -> Timestamp? {
            if let time = Timestamp(rfc3339: text) { return time }
            if let time = Timestamp(rfc3339: text + "Z") { return time }
            return Timestamp(rfc3339: text + "T00:00:00Z")
        }
    }

    // MARK: Looking

    /// Every folder that a term names as parent.
    var parents: [String] {
        switch self {
        case .and(let terms), .or(let terms): terms.flatMap(\.parents)
        case .not(let term): term.parents
        case .inList(let value, "parents"): [value]
        default: []
        }
    }

    /// Folders of which what matches must be a child; nil when matches may lie anywhere.
    var onlyParents: [String]? {
        switch self {
        case .and(let terms): return terms.lazy.compactMap(\.onlyParents).first
        case .or(let terms):
            let all = terms.map(\.onlyParents)
            return all.contains { $0 == nil } ? nil : all.flatMap { $0 ?? [] }
        case .inList(let value, "parents"): return [value]
        default: return nil
        }
    }

    /// Whether any term searches in the content.
    var hasFullText: Bool {
        switch self {
        case .and(let terms), .or(let terms): terms.contains(where: \.hasFullText)
        case .not(let term): term.hasFullText
        case .text("fullText", _, _): true
        default: false
        }
    }

    /// Whether an item matches, given its facts.
    func matches(_ item: SimulatedItem, _ facts: GoogleDriveFacts) -> Bool {
        switch self {
        case .and(let terms): return terms.allSatisfy { $0.matches(item, facts) }
        case .or(let terms): return terms.contains { $0.matches(item, facts) }
        case .not(let term): return !term.matches(item, facts)
        case .inList(let value, let list):
            if list == "parents" { return item.parentID == value }
            let isOwn = value == "me" || value == facts.email
            return list == "owners" ? isOwn && facts.ownedByMe : isOwn
        case .flag(let field, let value):
            switch field {
            case "trashed": return facts.isTrashed == value
            case "starred": return (item.extra["starred"]?.bool ?? false) == value
            default: return facts.sharedWithMe == value
            }
        case .has(let list, let key, let value): return item.extra[list]?[key]?.text == value
        case .time(let field, let comparator, let wanted):
            let time: Timestamp?
            switch field {
            case "createdTime": time = item.createdTime
            case "modifiedTime": time = item.modifiedTime
            default: time = item.extra[field]?.text.flatMap { Timestamp(rfc3339: $0) }
            }
            return time.map { Self.compare($0, comparator, wanted) } ?? false
        case .text(let field, let comparator, let wanted):
            return Self.matches(item, facts, field, comparator, wanted)
        }
    }

    private static func compare(
        _ time: Timestamp,
        _ comparator: Comparator,
        _ wanted: Timestamp
    ) -> Bool {
        switch comparator {
        case .equal: time == wanted
        case .notEqual: time != wanted
        case .less: time < wanted
        case .lessOrEqual: time <= wanted
        case .greater: time > wanted
        case .greaterOrEqual: time >= wanted
        case .contains: false
        }
    }

    private static func matches(
        _ item: SimulatedItem,
        _ facts: GoogleDriveFacts,
        _ field: String,
        _ comparator: Comparator,
        _ wanted: String
    ) -> Bool {
        switch field {
        case "name":
            // `=` ignores case, and `contains` finds the beginnings of words.
            let folding = NameRules.Comparison.caseInsensitive
            if comparator == .contains {
                let words = words(of: item.name)
                return Self.words(of: wanted).allSatisfy { part in
                    words.contains { $0.hasPrefix(part) }
                }
            }
            let isEqual = folding.key(item.name).utf8.elementsEqual(folding.key(wanted).utf8)
            return isEqual == (comparator == .equal)
        case "fullText":
            let text = facts.searchText
            if wanted.hasPrefix("\""), wanted.hasSuffix("\""), wanted.count > 1 {
                let phrase = words(of: String(wanted.dropFirst().dropLast())).joined(separator: " ")
                return words(of: text).joined(separator: " ").contains(phrase)
            }
            let known = Set(words(of: text))
            return words(of: wanted).allSatisfy { known.contains($0) }
        case "mimeType":
            switch comparator {
            case .contains: return facts.mimeType.hasPrefix(wanted)
            default: return (facts.mimeType == wanted) == (comparator == .equal)
            }
        case "shortcutDetails.targetId":
            guard case .shortcut(let target) = item.kind else { return comparator == .notEqual }
            return (target == wanted) == (comparator == .equal)
        default:
            let visibility = item.extra["isPublic"] != nil ? "anyoneWithLink" : "limited"
            return (visibility == wanted) == (comparator == .equal)
        }
    }

    private static func words(of text: String) -> [String] { SimulatedItem.words(of: text) }
}

/// What a search asks about an item beyond its own fields.
struct GoogleDriveFacts {
    var email: String
    var mimeType: String
    var isTrashed: Bool
    var sharedWithMe: Bool
    var ownedByMe: Bool
    var searchText: String
}
