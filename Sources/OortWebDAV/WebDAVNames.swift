import Foundation
import OortModel

/// Which names a server takes.
enum WebDAVNames {
    /// The rules of an account; `hasTop` says that it begins where the server's own files of it do.
    static func rules(
        _ dialect: WebDAVDialect,
        _ abilities: WebDAVAbilities,
        hasTop: Bool
    ) -> NameRules {
        let comparison: NameRules.Comparison =
            switch (dialect.heedsConditions || abilities.composesNames, abilities.ignoresCase) {
            case (false, false): .exact
            case (false, true): .caseInsensitive
            case (true, false): .composed
            case (true, true): .composedCaseInsensitive
            }
        return NameRules(
            comparison: comparison,
            allowsDuplicates: false,
            // The names that browsers and file managers give to a file that they are still writing.
            stayHere: dialect.isCloud && dialect != .infinitescale
                ? ["*.part", "*.filepart"].map(NameRules.anyCase) : []
        ) { name, _, depth in
            refusal(of: name, dialect, abilities, isAtTop: hasTop && depth == 0)
        }
    }

    /// The name of content that is on its way; no other program uses such names.
    static func temporary(_ unique: String, _ abilities: WebDAVAbilities) -> String {
        (abilities.listsDotNames ? "." : "") + temporaryMark + unique
    }

    /// What makes such a name unique: a UUID of version 7 (RFC 9562), which says in milliseconds since 1970
    /// when it was made.
    static func unique(at time: Timestamp) -> String {
        let milliseconds = UInt64(clamping: time.seconds).multipliedReportingOverflow(by: 1000)
        let digits = String(milliseconds.partialValue & 0xFFFF_FFFF_FFFF, radix: 16)
        let start = String(repeating: "0", count: 12 - digits.utf8.count) + digits
        let rest = UUID().uuidString.lowercased().suffix(22)
        return "\(start.prefix(8))-\(start.suffix(4))-7\(rest.dropFirst(1))"
    }

    /// When a name was made that `temporary` made, in seconds since 1970; nil where it does not say.
    static func begun(_ name: String) -> Int64? {
        guard isTemporary(name) else { return nil }
        let digits = Array(name.utf8.suffix(36))
        guard digits[14] == UInt8(ascii: "7") else { return nil }
        let start = digits.prefix(13).filter { $0 != UInt8(ascii: "-") }
        return Int64(String(decoding: start, as: UTF8.self), radix: 16).map { $0 / 1000 }
    }

    /// Whether a name is one that `temporary` made.
    static func isTemporary(_ name: String) -> Bool {
        let bare = name.dropping(beginning: ".") ?? name[...]
        guard let unique = bare.dropping(beginning: temporaryMark) else { return false }
        return unique.utf8.count == 36
            && unique.utf8.allSatisfy {
                switch $0 {
                case UInt8(ascii: "0")...UInt8(ascii: "9"),
                    UInt8(ascii: "A")...UInt8(ascii: "F"),
                    UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "-"):
                    true
                default: false
                }
            }
    }

    private static let temporaryMark = "oort-upload-"

    static func refusal(
        of name: String,
        _ dialect: WebDAVDialect,
        _ abilities: WebDAVAbilities,
        isAtTop: Bool = false
    ) -> NameRules.Refusal? {
        if name.isEmpty || name == "." || name == ".." || name.has("/") || name.has("\u{0}") {
            return .refused(reason: "no server takes such a name")
        }
        if isTemporary(name) {
            return .refused(reason: "Oort keeps the name for what is on its way")
        }
        if dialect == .infinitescale { return infiniteScaleRefusal(of: name, isAtTop: isAtTop) }
        guard dialect.isCloud else {
            if name.utf8.count > 255 { return .tooLong }
            if !abilities.listsDotNames, name.begins(with: ".") {
                return .refused(reason: "the server hides names that begin with a dot")
            }
            if abilities.cutsDestinations, isCutInDestinations(name) {
                return .refused(reason: "the server loses what follows a ; or ? in a name")
            }
            return nil
        }
        return cloudRefusal(of: name, abilities.cloud ?? CloudCapabilities())
    }

    /// The server's own rules if its administrator sets none (reva, `config.go` and `validation.go`), and
    /// names that it accepts but hides (`ignore.go`) or takes for another one.
    private static func infiniteScaleRefusal(
        of name: String,
        isAtTop: Bool
    ) -> NameRules.Refusal? {
        if name.utf8.count > 255 { return .tooLong }
        if name.trimmed.isEmpty {
            return .refused(reason: "the server takes no name of spaces alone")
        }
        if name.unicodeScalars.contains(where: { ["\u{C}", "\r", "\n", "\\"].contains($0) }) {
            return .refused(reason: "the server takes no backslash or line break in a name")
        }
        if isChunk(name) {
            return .refused(reason: "the server takes such a name for a part of another file")
        }
        if name.ends(with: ".flock") || name.ends(with: ".mlock") {
            return .refused(reason: "the server hides names that end in .flock or .mlock")
        }
        if isAtTop, [".Trash", ".oc-nodes", ".oc-tmp"].contains(where: { name.isSameText(as: $0) })
        {
            return .refused(reason: "the server hides the name at the top of a space")
        }
        return nil
    }

    /// Whether a name is one of the first protocol for uploads in parts, `NAME-chunking-ID-COUNT-INDEX`: what
    /// is written to it lands in the file NAME (reva, `chunking.go`).
    private static func isChunk(_ name: String) -> Bool {
        let parts = name.parts(between: "-").suffix(5).map { Array($0.utf8) }
        func isNumber(_ part: [UInt8]) -> Bool {
            !part.isEmpty
                && part.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        }
        func isWord(_ byte: UInt8) -> Bool {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "_"):
                true
            default: false
            }
        }
        return parts.count == 5 && parts[1] == Array("chunking".utf8) && !parts[2].isEmpty
            && parts[2].allSatisfy(isWord) && isNumber(parts[3]) && isNumber(parts[4])
    }

    /// Whether a server that cuts destinations would take another name for this one.
    static func isCutInDestinations(_ name: String) -> Bool { name.has(";") || name.has("?") }

    private static func cloudRefusal(
        of name: String,
        _ capabilities: CloudCapabilities
    ) -> NameRules.Refusal? {
        if name.utf8.count > 250 { return .tooLong }
        let lower = name.lowercased()
        if name.unicodeScalars.contains(where: { $0.value < 32 || $0 == "\\" }) {
            return .refused(reason: "the server takes no backslash or control character in a name")
        }
        if lower.ends(with: ".part") || lower.ends(with: ".filepart") || lower == ".htaccess" {
            return .refused(reason: "the server keeps such names for itself")
        }
        let base = base(of: lower)
        if capabilities.refusedNames.contains(where: { $0.isSameText(as: lower) })
            || capabilities.refusedBaseNames.contains(where: { $0.isSameText(as: base) })
        {
            return .refused(reason: "the server's administrator forbids this name")
        }
        for character in capabilities.refusedCharacters where !character.isEmpty {
            if name.firstRange(of: character) != nil {
                return .refused(reason: "the server's administrator forbids \(character) in a name")
            }
        }
        for ending in capabilities.refusedEndings where !ending.isEmpty {
            if lower.ends(with: ending) {
                return .refused(reason: "the server's administrator forbids names in \(ending)")
            }
        }
        return nil
    }

    /// A name up to its first dot after the first character.
    private static func base(of name: String) -> String {
        let scalars = name.unicodeScalars
        guard let first = scalars.indices.first,
            let dot = scalars[scalars.index(after: first)...].firstIndex(of: ".")
        else { return name }
        return String(name[..<dot])
    }
}
