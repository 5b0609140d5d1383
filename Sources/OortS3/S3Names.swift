import OortModel

/// Keys as paths and back.
///
/// Where a key is no path, its parts are shown by signs that stand for what a file system cannot
/// have: `∅` for nothing between two slashes (and for the bytes of a key that ends in one), `．` and
/// `．．` for the parts of dots, and a `／` at the end for a folder beside which lies a file of its
/// name. A part that looks like one of these by itself has a `‛` before the sign: so each path is of
/// one key, and each key has one path.
///
/// The signs are those of rclone, but for the first and the last.
enum S3Names {
    private static let quote: Unicode.Scalar = "\u{201B}"
    private static let slash: Unicode.Scalar = "\u{FF0F}"
    private static let nothing = "\u{2205}"
    private static let dot = "\u{FF0E}"
    private static let dots = "\u{FF0E}\u{FF0E}"

    /// Bytes of the longest key.
    static let longestKey = 1024

    /// The name by which a part of a key is shown.
    static func name(of part: some StringProtocol) -> String {
        let text = String(part)
        if text.utf8.isEmpty { return nothing }
        if text.isSameText(as: ".") { return dot }
        if text.isSameText(as: "..") { return dots }
        let scalars = Array(text.unicodeScalars)
        // Most names have none of the signs.
        guard scalars.contains(where: { signs.contains($0) }) else { return text }
        if isWhole(scalars.drop { $0 == quote }) { return String(quote) + text }
        guard scalars.last == slash else { return text }
        let quotes = trailingQuotes(scalars.dropLast())
        return string(
            Array(scalars.dropLast()) + Array(repeating: quote, count: quotes + 1) + [slash]
        )
    }

    /// The folder's name where a file has the name of its part, too.
    static func nameBesideFile(of part: some StringProtocol) -> String {
        let scalars = Array(name(of: part).unicodeScalars)
        return string(
            scalars + Array(repeating: quote, count: trailingQuotes(scalars[...])) + [slash]
        )
    }

    /// The part of a key that a name shows, and whether the name is that of a folder beside a file.
    static func part(of name: String) -> (part: String, isBesideFile: Bool) {
        let scalars = Array(name.unicodeScalars)
        guard scalars.contains(where: { signs.contains($0) }) else { return (name, false) }
        guard scalars.last == slash else { return (wholePart(scalars[...]), false) }
        // Before a slash at the end, each quote is written twice, and one more makes it a letter.
        let quotes = trailingQuotes(scalars.dropLast())
        let rest = scalars.dropLast(1 + quotes - quotes / 2)
        guard quotes.isMultiple(of: 2) else { return (string(Array(rest) + [slash]), false) }
        return (Self.part(of: string(rest)).part, true)
    }

    private static func wholePart(_ scalars: ArraySlice<Unicode.Scalar>) -> String {
        let rest = scalars.drop { $0 == quote }
        guard isWhole(rest) else { return string(scalars) }
        if rest.count < scalars.count { return string(scalars.dropFirst()) }
        return scalars.elementsEqual(nothing.unicodeScalars)
            ? "" : String(repeating: ".", count: scalars.count)
    }

    private static func trailingQuotes(_ scalars: ArraySlice<Unicode.Scalar>) -> Int {
        scalars.reversed().prefix { $0 == quote }.count
    }

    /// Why a name is not taken for something new; nil if it is.
    static func refusal(of name: String, prefix: String) -> NameRules.Refusal? {
        if name.isEmpty || name.isSameText(as: ".") || name.isSameText(as: "..") {
            return .refused(reason: "“\(name)” is not a name")
        }
        if name.has("/") || name.has("\u{0}") {
            return .refused(reason: "a name holds no slash and no byte 0")
        }
        if name.isSameText(as: S3Names.keeper) {
            return .refused(reason: "Oort keeps the name \(name) for itself")
        }
        let (part, isBesideFile) = part(of: name)
        guard !isBesideFile, !part.utf8.isEmpty, !part.isSameText(as: "."),
            !part.isSameText(as: "..")
        else {
            return .refused(
                reason: "Oort shows by this name what has none in the bucket"
            )
        }
        if prefix.utf8.count + part.utf8.count >= longestKey { return .tooLong }
        return nil
    }

    /// What stands in an empty folder at stores that do not list folders' own objects.
    static let keeper = ".oort-folder"

    private static let signs: Set<Unicode.Scalar> = [slash, "\u{2205}", "\u{FF0E}"]

    private static func isWhole(_ scalars: ArraySlice<Unicode.Scalar>) -> Bool {
        scalars.elementsEqual(nothing.unicodeScalars) || scalars.elementsEqual(dot.unicodeScalars)
            || scalars.elementsEqual(dots.unicodeScalars)
    }

    private static func string(_ scalars: some Sequence<Unicode.Scalar>) -> String {
        var result = String.UnicodeScalarView()
        result.append(contentsOf: scalars)
        return String(result)
    }
}

/// Where an account lies in its bucket, and what its paths are there.
struct S3KeySpace: Sendable {
    /// What all keys of the account begin with: empty, or ending in a slash.
    let prefix: String

    init(prefix: String) {
        self.prefix = prefix.isEmpty || prefix.ends(with: "/") ? prefix : prefix + "/"
    }

    /// The key of a file.
    ///
    /// - Throws: `.nameTooLong`; `.nameRefused` where a file of this path cannot be in the bucket.
    func key(of file: RemotePath) throws(ProviderError) -> String {
        let parts = file.parts.map { S3Names.part(of: $0) }
        guard let last = parts.last, !last.isBesideFile else {
            throw ProviderError(.nameRefused, detail: "no file can have this name")
        }
        let key = prefix + parts.map(\.part).joined(separator: "/")
        try check(key)
        return key
    }

    /// What the keys of all in a folder begin with.
    ///
    /// - Throws: `.nameTooLong`.
    func prefix(of folder: RemotePath) throws(ProviderError) -> String {
        let key = folder.parts.reduce(into: prefix) { $0 += S3Names.part(of: $1).part + "/" }
        if !folder.parts.isEmpty { try check(key) }
        return key
    }

    private func check(_ key: String) throws(ProviderError) {
        guard key.utf8.count <= S3Names.longestKey else {
            throw ProviderError(
                .nameTooLong,
                detail: "S3 takes keys of \(S3Names.longestKey) bytes, folders included"
            )
        }
    }
}
