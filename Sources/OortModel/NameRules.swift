import Foundation

/// Which names a service takes, and how it compares them.
public struct NameRules: Sendable {
    /// How two names are compared.
    public enum Comparison: Sendable, Hashable {
        /// Code unit by code unit.
        case exact
        /// With case, after composition (NFC), which is also how names are stored, as Nextcloud does.
        case composed
        /// Without case, by simple folding of each character; normal forms differ.
        case caseInsensitive
        /// Without case, after composition (NFC), which is also how names are stored, as Dropbox does.
        case composedCaseInsensitive
    }

    /// Why a name is not taken.
    public enum Refusal: Hashable, Sendable {
        /// The service forbids the name or a character in it; `reason` says which, for people.
        case refused(reason: String)
        /// The name is too long.
        case tooLong
    }

    /// How two names are compared.
    public var comparison: Comparison
    /// The service's own check of a file's or folder's name; nil means the service takes it.
    public var refusal: @Sendable (_ name: String, _ kind: ItemKind, _ depth: Int) -> Refusal?
    /// Whether one folder may hold two items of one name.
    public var allowsDuplicates: Bool
    /// Whether a name may hold `/`, as only a service without paths can have it; `refusal` refuses it elsewhere.
    public let allowsSlash: Bool
    /// UTF-16 units of the longest path from the account's root, the slashes between names included;
    /// nil where there is no such limit.
    public var longestPath: Int?
    /// Patterns of names that the service refuses and that mean something on one machine only.
    ///
    /// In the grammar of gitignore(5): files that a program is still writing, or that a system leaves in
    /// any folder. An item of such a name stays here, as by the person's own rules, which are applied after
    /// these.
    public var stayHere: [String]

    /// Rules with all of their parts; `refusal` is given the name, the kind and how many folders lie
    /// above (0 in the account's root).
    public init(
        comparison: Comparison,
        allowsDuplicates: Bool,
        allowsSlash: Bool = false,
        longestPath: Int? = nil,
        stayHere: [String] = [],
        refusal: @escaping @Sendable (_ name: String, _ kind: ItemKind, _ depth: Int) -> Refusal?
    ) {
        self.comparison = comparison
        self.allowsDuplicates = allowsDuplicates
        self.allowsSlash = allowsSlash
        self.longestPath = longestPath
        self.stayHere = stayHere
        self.refusal = { name, kind, depth in
            if let refusal = refusal(name, kind, depth) { return refusal }
            return !allowsSlash && name.has("/")
                ? .refused(reason: "a slash stands between the names of a path") : nil
        }
    }

    /// The key under which two names of one folder are the same name.
    public func key(_ name: String) -> String { comparison.key(name) }
}

extension NameRules {
    /// A pattern that matches whatever the case of its ASCII letters.
    public static func anyCase(_ pattern: String) -> String {
        pattern.map { letter in
            letter.isASCII && letter.isLetter
                ? "[\(letter.lowercased())\(letter.uppercased())]" : String(letter)
        }
        .joined()
    }
}

extension NameRules.Comparison {
    /// The key under which two names of one folder are the same name.
    public func key(_ name: String) -> String {
        switch self {
        case .exact: name
        case .composed: Self.composed(name)
        case .caseInsensitive: Self.folded(name)
        case .composedCaseInsensitive: Self.folded(Self.composed(name))
        }
    }

    /// The form in which a service that compares so stores the name that it is given.
    public func stored(_ name: String) -> String {
        switch self {
        case .exact, .caseInsensitive: name
        case .composed, .composedCaseInsensitive: Self.composed(name)
        }
    }

    private static func composed(_ name: String) -> String {
        name.utf8.allSatisfy { $0 < 0x80 } ? name : name.precomposedStringWithCanonicalMapping
    }

    /// Scalar by scalar and without context, as both Dropbox and OneDrive fold: "ΣΣΣ" becomes "σσσ".
    private static func folded(_ name: String) -> String {
        var result = String.UnicodeScalarView()
        for scalar in name.unicodeScalars {
            let lower = scalar.properties.lowercaseMapping.unicodeScalars
            if lower.count == 1, let only = lower.first {
                result.append(only)
            } else {
                result.append(scalar)
            }
        }
        return String(result)
    }
}
