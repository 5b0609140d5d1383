/// Patterns of names that stay on this machine, in the grammar of `.gitignore`.
///
/// The grammar is that of gitignore(5) at the top of a repository, as the manual has it, with one
/// difference: `?` and `[...]` stand for one Unicode scalar, not for one byte. Of several patterns that match a path the last one
/// decides; what lies in a folder that stays here stays here, too, whatever patterns say of it.
public struct IgnoreRules: Hashable, Sendable {
    /// The lines that they were made of.
    public let lines: [String]
    private let patterns: [IgnorePattern]

    /// Rules of the lines of such a file, in their order; empty ones and comments mean nothing.
    public init(_ lines: [String] = []) {
        self.lines = lines
        patterns = lines.compactMap { IgnorePattern($0) }
    }

    /// Whether nothing stays here by them.
    public var isEmpty: Bool { patterns.isEmpty }

    /// The lines as one text.
    public var text: String { lines.joined(separator: "\n") }

    /// Whether what a folder is called, or where it lies, may matter to what lies in it, beside
    /// whether the folder stays here itself.
    public var dependOnFolders: Bool { patterns.contains { $0.isAnchored } }

    /// What the last pattern that matches says of one path by itself; nil where none matches.
    ///
    /// `names` are those from the account's top down, the item's own last.
    public func decision(_ names: [String], isFolder: Bool) -> Bool? {
        patterns.last { $0.matches(names, isFolder: isFolder) }.map { !$0.isNegated }
    }

    /// Whether an item stays here, by its own path or by a folder above.
    public func ignore(_ names: [String], isFolder: Bool) -> Bool {
        guard !patterns.isEmpty else { return false }
        return names.indices.contains { index in
            let isLast = index == names.count - 1
            return decision(Array(names[...index]), isFolder: !isLast || isFolder) == true
        }
    }
}

/// One line of such rules.
private struct IgnorePattern: Hashable, Sendable {
    /// A part of a pattern between slashes.
    private enum Part: Hashable {
        /// `**`: any number of folders.
        case folders
        case name(NamePattern)
    }

    let isNegated: Bool
    private let isForFolders: Bool
    /// Whether it is compared with the whole path, and not with the last name alone.
    let isAnchored: Bool
    private let parts: [Part]

    /// Nil for an empty line, a comment, and what can match nothing.
    init?(_ line: String) {
        var text = Self.withoutSpacesAtEnd(Array(line.unicodeScalars))[...]
        guard let first = text.first, first != "#" else { return nil }
        isNegated = first == "!"
        if isNegated { text = text.dropFirst() }
        isForFolders = text.last == "/"
        if isForFolders { text = text.dropLast() }
        let begins = text.first == "/"
        isAnchored = text.contains("/")
        if begins { text = text.dropFirst() }
        guard !text.isEmpty else { return nil }
        var parts: [Part] = []
        for part in text.split(separator: "/", omittingEmptySubsequences: false) {
            if isAnchored, part.elementsEqual(["*", "*"]) {
                parts.append(.folders)
            } else {
                guard let name = NamePattern(part) else { return nil }
                parts.append(.name(name))
            }
        }
        self.parts = parts
    }

    /// A space at the end counts only behind a backslash.
    private static func withoutSpacesAtEnd(_ text: [Unicode.Scalar]) -> [Unicode.Scalar] {
        var end = 0
        var index = 0
        while index < text.count {
            if text[index] == "\\" { index += 1 }
            if index < text.count, text[index] != " " || index > 0 && text[index - 1] == "\\" {
                end = index + 1
            }
            index += 1
        }
        // A backslash with nothing behind it is there all the same.
        return index > text.count ? text : Array(text[..<end])
    }

    func matches(_ names: [String], isFolder: Bool) -> Bool {
        guard isFolder || !isForFolders, let last = names.last else { return false }
        guard isAnchored else {
            guard case .name(let pattern)? = parts.first else { return false }
            return pattern.matches(last)
        }
        // By which of the names each part can be reached.
        var reached = [Bool](repeating: false, count: names.count + 1)
        reached[0] = true
        for (index, part) in parts.enumerated() {
            var next = [Bool](repeating: false, count: names.count + 1)
            switch part {
            case .name(let pattern):
                for position in names.indices where reached[position] {
                    next[position + 1] = pattern.matches(names[position])
                }
            case .folders:
                // At the end it stands for what lies in the folder, not for the folder.
                let isLast = index == parts.count - 1
                var isReached = false
                for position in 0...names.count {
                    if isLast { next[position] = isReached }
                    isReached = isReached || reached[position]
                    if !isLast { next[position] = isReached }
                }
            }
            reached = next
        }
        return reached[names.count]
    }
}

/// A pattern of one name.
private struct NamePattern: Hashable, Sendable {
    private enum Token: Hashable {
        case one(Unicode.Scalar)
        case any
        case many
        case among([ClosedRange<Unicode.Scalar>], isNegated: Bool)
    }

    private var tokens: [Token] = []

    /// Nil for what can match nothing: a bracket that is not closed, a backslash at the end.
    init?(_ text: some Collection<Unicode.Scalar>) {
        let text = Array(text)
        var index = 0
        while index < text.count {
            let scalar = text[index]
            index += 1
            switch scalar {
            case "*": if tokens.last != .many { tokens.append(.many) }
            case "?": tokens.append(.any)
            case "\\":
                guard index < text.count else { return nil }
                tokens.append(.one(text[index]))
                index += 1
            case "[":
                guard let token = Self.bracket(text, &index) else { return nil }
                tokens.append(token)
            default: tokens.append(.one(scalar))
            }
        }
    }

    /// Reads what stands between brackets, from behind the first one to behind the last one.
    private static func bracket(_ text: [Unicode.Scalar], _ index: inout Int) -> Token? {
        var isNegated = false
        if index < text.count, text[index] == "!" || text[index] == "^" {
            isNegated = true
            index += 1
        }
        var ranges: [ClosedRange<Unicode.Scalar>] = []
        var isFirst = true
        while index < text.count {
            if text[index] == "]", !isFirst {
                index += 1
                return .among(ranges, isNegated: isNegated)
            }
            isFirst = false
            if text[index] == "[", index + 1 < text.count, text[index + 1] == ":" {
                guard let end = closing(text, from: index + 2) else { return nil }
                let name = String(String.UnicodeScalarView(text[(index + 2)..<end]))
                guard let known = classes[name] else { return nil }
                ranges += known
                index = end + 2
                continue
            }
            guard let low = scalar(text, &index) else { return nil }
            guard index + 1 < text.count, text[index] == "-", text[index + 1] != "]" else {
                ranges.append(low...low)
                continue
            }
            index += 1
            guard let high = scalar(text, &index) else { return nil }
            if low <= high { ranges.append(low...high) }
        }
        return nil
    }

    /// The place of the next `:]`.
    private static func closing(_ text: [Unicode.Scalar], from start: Int) -> Int? {
        (start..<max(start, text.count - 1)).first { text[$0] == ":" && text[$0 + 1] == "]" }
    }

    private static func scalar(_ text: [Unicode.Scalar], _ index: inout Int) -> Unicode.Scalar? {
        if text[index] == "\\" { index += 1 }
        guard index < text.count else { return nil }
        defer { index += 1 }
        return text[index]
    }

    /// The classes of POSIX, of ASCII.
    private static let classes: [String: [ClosedRange<Unicode.Scalar>]] = [
        "alnum": ["0"..."9", "A"..."Z", "a"..."z"], "alpha": ["A"..."Z", "a"..."z"],
        "blank": [" "..." ", "\t"..."\t"], "cntrl": ["\u{0}"..."\u{1F}", "\u{7F}"..."\u{7F}"],
        "digit": ["0"..."9"], "graph": ["!"..."~"], "lower": ["a"..."z"], "print": [" "..."~"],
        "punct": ["!"..."/", ":"..."@", "["..."`", "{"..."~"],
        "space": [" "..." ", "\t"..."\r"], "upper": ["A"..."Z"],
        "xdigit": ["0"..."9", "A"..."F", "a"..."f"],
    ]

    func matches(_ name: String) -> Bool {
        let name = Array(name.unicodeScalars)
        var (position, token) = (0, 0)
        // Where to go on when what follows the last star does not fit.
        var star: (token: Int, position: Int)?
        while position < name.count {
            if token < tokens.count, tokens[token] == .many {
                star = (token, position)
                token += 1
            } else if token < tokens.count, fits(tokens[token], name[position]) {
                (position, token) = (position + 1, token + 1)
            } else if let last = star {
                star = (last.token, last.position + 1)
                (position, token) = (last.position + 1, last.token + 1)
            } else {
                return false
            }
        }
        return tokens[token...].allSatisfy { $0 == .many }
    }

    private func fits(_ token: Token, _ scalar: Unicode.Scalar) -> Bool {
        switch token {
        case .one(let one): one == scalar
        case .any, .many: true
        case .among(let ranges, let isNegated): ranges.contains { $0.contains(scalar) } != isNegated
        }
    }
}
