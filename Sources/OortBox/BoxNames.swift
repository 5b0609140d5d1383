import OortModel

extension NameRules {
    /// Box's rules of names: files, folders and web links of one folder share one space of names.
    ///
    /// Source: docs/providers/box.md. What else Box may refuse (`< > : | ? *`) it decides itself.
    static let box = NameRules(comparison: .caseInsensitive, allowsDuplicates: false) {
        name,
        _,
        _ in
        if name.unicodeScalars.count > 255 { return .tooLong }
        if name.isEmpty || name == "." || name == ".." {
            return .refused(reason: "Box takes no such name")
        }
        if name.begins(with: " ") || name.ends(with: " ") {
            return .refused(reason: "Box takes no space at either end of a name")
        }
        for scalar in name.unicodeScalars {
            switch scalar {
            case "/", "\\": return .refused(reason: "Box takes no slash or backslash in a name")
            case _ where scalar.properties.generalCategory == .control:
                return .refused(reason: "Box takes no control characters in a name")
            default: continue
            }
        }
        return nil
    }

    /// Whether an answer's name is the one that was sent, whatever its normal form: Box is said to
    /// leave characters out of names that it does not like.
    static func isKept(_ sent: String, as answered: String) -> Bool { sent == answered }
}
