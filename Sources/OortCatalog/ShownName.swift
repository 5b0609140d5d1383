public import OortModel

/// How a service's name is shown in the file system, and back.
public enum ShownName {
    /// `/` as it is shown: division slash.
    static let shownSlash: Unicode.Scalar = "\u{2215}"

    /// The name under which an item is shown, before duplicates are numbered: `/` becomes U+2215, `.`
    /// and `..` and the empty name get full-width or visible forms, a file that shows as a link loses
    /// its ending, a native document gets the extension of its first export.
    public static func shown(_ item: Item, isLink: Bool = false) -> String {
        var name = item.fileName
        switch item.kind {
        case .file where isLink:
            if let plain = LinkName.link(name) { name = plain }
        case .nativeDocument:
            if let format = item.exports.first { name += "." + format.fileExtension }
        default: break
        }
        return escaped(name)
    }

    /// A name as a file system can hold it, at most 255 bytes of UTF-8.
    static func escaped(_ name: String) -> String {
        var result = name
        if name.utf8.contains(UInt8(ascii: "/")) {
            result = replacing(["/": shownSlash], in: name)
        }
        result = shortened(result, toBytes: 255)
        switch result {
        case "": return "␀"
        case ".": return "．"
        case "..": return "．．"
        default: return result
        }
    }

    /// By scalars: a slash with a combining mark behind it is a character that equals no slash.
    private static func replacing(
        _ replacements: [Unicode.Scalar: Unicode.Scalar],
        in name: String
    ) -> String {
        var scalars = String.UnicodeScalarView()
        scalars.append(contentsOf: name.unicodeScalars.lazy.map { replacements[$0] ?? $0 })
        return String(scalars)
    }

    /// The name that the service is to have for what the user typed.
    static func service(
        shown: String,
        kind: NodeKind,
        exportExtension: String?,
        rules: AccountNameRules
    ) -> String {
        var name = shown
        if rules.allowsSlash, name.unicodeScalars.contains(shownSlash) {
            name = replacing([shownSlash: "/"], in: name)
        }
        if kind == .symlink { name = LinkName.file(name) }
        if kind == .nativeDocument, let exportExtension,
            let plain = name.dropping(ending: "." + exportExtension), !plain.isEmpty
        {
            name = String(plain)
        }
        // Else what the service answers would look like a rename by somebody else, or like one of
        // ours that is still to be done.
        return rules.comparison.stored(name)
    }

    /// `name (2).ext` and so on: the name with a number before its extension.
    public static func numbered(_ name: String, _ number: Int) -> String {
        inserting(" (\(number))", into: name)
    }

    /// `name (conflicted copy 2026-11-21 hostname).ext`.
    public static func conflictCopy(_ name: String, date: String, host: String) -> String {
        inserting(" (conflicted copy \(date) \(host))", into: name)
    }

    /// The name with `text` before its extension, at most 255 bytes.
    private static func inserting(_ text: String, into name: String) -> String {
        var stem = Substring(name)
        var ending = Substring()
        if let dot = name.unicodeScalars.lastIndex(of: "."), dot != name.startIndex,
            name.utf8.distance(from: dot, to: name.endIndex) <= 16
        {
            stem = name[..<dot]
            ending = name[dot...]
        }
        let room = 255 - text.utf8.count - ending.utf8.count
        return shortened(String(stem), toBytes: max(room, 1)) + text + ending
    }

    /// The longest beginning of whole characters that fits, the extension kept for over-long names.
    private static func shortened(_ name: String, toBytes limit: Int) -> String {
        guard name.utf8.count > limit else { return name }
        var bytes = 0
        var end = name.startIndex
        while end < name.endIndex {
            let next = name.index(after: end)
            let width = name.utf8.distance(from: end, to: next)
            guard bytes + width <= limit else { break }
            bytes += width
            end = next
        }
        if end == name.startIndex {
            // One character of many combining marks.
            for scalar in name.unicodeScalars {
                bytes += scalar.utf8.count
                guard bytes <= limit else { break }
                name.unicodeScalars.formIndex(after: &end)
            }
        }
        return String(name[..<end])
    }
}
