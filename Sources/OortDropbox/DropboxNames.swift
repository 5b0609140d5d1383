import OortModel

extension NameRules {
    /// Dropbox's rules of names.
    ///
    /// Source: docs/providers/dropbox.md.
    static let dropbox = NameRules(
        comparison: .composedCaseInsensitive,
        allowsDuplicates: false,
        // What Windows and macOS leave in any folder.
        stayHere: ["desktop.ini", "thumbs.db", ".ds_store", "icon\r"].map(anyCase)
    ) { name, _, _ in
        if name.utf16.count > 255 { return .tooLong }
        if name.isEmpty || name == "." || name == ".." {
            return .refused(reason: "Dropbox takes no such name")
        }
        if name.last?.isWhitespace == true {
            return .refused(reason: "Dropbox takes no name that ends in a space")
        }
        for scalar in name.unicodeScalars {
            switch scalar {
            case "/", "\\", "\u{0}", "\u{7F}":
                return .refused(reason: "Dropbox takes no slash or backslash in a name")
            default: continue
            }
        }
        let reserved: Set<String> = [
            "desktop.ini", "thumbs.db", ".ds_store", "icon\r", ".dropbox", ".dropbox.attr",
        ]
        guard !reserved.contains(name.lowercased()) else {
            return .refused(reason: "Dropbox keeps the name \(name) for itself")
        }
        return nil
    }
}
