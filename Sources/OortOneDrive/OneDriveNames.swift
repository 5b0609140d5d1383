import OortModel

/// Which names OneDrive takes.
///
/// Source: support.microsoft.com, "Restrictions and limitations in OneDrive and SharePoint".
enum OneDriveNames {
    /// UTF-16 units of one name.
    static let longestName = 255
    /// UTF-16 units of a whole path, slashes included.
    static let longestPath = 400

    /// The rules for the traits.
    static let rules = NameRules(
        comparison: .caseInsensitive,
        allowsDuplicates: false,
        longestPath: longestPath,
        // Marks of a document that is open in an office program, of a folder in use, and of Windows.
        stayHere: ["~$*"] + [".lock", "desktop.ini"].map(NameRules.anyCase)
    ) {
        refusal(of: $0, kind: $1, depth: $2)
    }

    private static let forbidden: Set<Unicode.Scalar> = [
        "\"", "*", ":", "<", ">", "?", "/", "\\", "|",
    ]
    private static let devices: Set<String> = Set(
        ["con", "prn", "aux", "nul", ".lock", "desktop.ini"]
            + (0...9).flatMap { ["com\($0)", "lpt\($0)"] }
    )

    /// Why OneDrive does not take a name; nil if it does.
    static func refusal(of name: String, kind: ItemKind, depth: Int) -> NameRules.Refusal? {
        if name.isEmpty || name == "." || name == ".." {
            return .refused(reason: "“\(name)” is not a name")
        }
        if name.utf16.count > longestName { return .tooLong }
        if let scalar = name.unicodeScalars.first(where: { forbidden.contains($0) }) {
            return .refused(reason: "OneDrive allows no \(scalar) in a name")
        }
        if name.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F }) {
            return .refused(reason: "OneDrive allows no control characters in a name")
        }
        if name.begins(with: " ") || name.ends(with: " ") {
            return .refused(reason: "OneDrive allows no space at either end of a name")
        }
        if name.ends(with: ".") {
            return .refused(reason: "OneDrive allows no dot at the end of a name")
        }
        if name.begins(with: "~$") {
            return .refused(reason: "OneDrive allows no name that begins with ~$")
        }
        let lower = name.lowercased()
        if devices.contains(lower) {
            return .refused(reason: "OneDrive reserves the name \(name)")
        }
        if lower.contains("_vti_") {
            return .refused(reason: "OneDrive allows no _vti_ in a name")
        }
        if depth == 0, lower == "forms" {
            return .refused(reason: "OneDrive reserves the name \(name) in a drive's root")
        }
        return nil
    }

    /// Checks a name that is about to be sent, with what only the call knows: the path above it and
    /// the kind of drive.
    ///
    /// - Throws: `.nameRefused` or `.nameTooLong`.
    static func check(
        _ name: String,
        kind: ItemKind,
        in parent: ItemReference,
        isPersonal: Bool
    ) throws(ProviderError) {
        switch refusal(of: name, kind: kind, depth: parent.path.parts.count) {
        case .refused(let reason): throw ProviderError(.nameRefused, detail: reason)
        case .tooLong:
            throw ProviderError(
                .nameTooLong,
                detail: "OneDrive takes names of \(longestName) UTF-16 units"
            )
        case nil: break
        }
        if kind == .folder, !isPersonal, name.begins(with: "~") {
            throw ProviderError(
                .nameRefused,
                detail: "OneDrive for business allows no folder that begins with ~"
            )
        }
        let path = parent.path.parts.reduce(name.utf16.count) { $0 + $1.utf16.count + 1 }
        guard path <= longestPath else {
            throw ProviderError(
                .nameTooLong,
                detail: "OneDrive takes paths of \(longestPath) UTF-16 units"
            )
        }
    }
}
