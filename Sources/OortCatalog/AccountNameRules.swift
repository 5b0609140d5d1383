import OortModel

/// What the catalog must know of a service's names; kept with the account, so that the tree can be used
/// before the provider is there.
struct AccountNameRules: Hashable, Sendable {
    /// How two names are compared.
    var comparison: NameRules.Comparison
    /// Whether the service may hold two items of one name in a folder.
    var allowsDuplicates: Bool
    /// Whether the service takes `/` in a name, so that U+2215 stands for it here.
    var allowsSlash: Bool
    /// Which link files show as links.
    var links = LinkPolicy.own
    /// Whether nothing may be changed at the service: folders that two machines made are not merged then.
    var isReadOnly = false
    /// For how many milliseconds answers about many items may not show a change that was answered.
    var lag: Int64 = 0

    /// For the mount's root: account names.
    static let root = AccountNameRules(
        comparison: .exact,
        allowsDuplicates: false,
        allowsSlash: false
    )
}

extension NameRules.Comparison {
    /// The comparison's name in the catalog.
    var column: String {
        switch self {
        case .exact: "exact"
        case .composed: "composed"
        case .caseInsensitive: "case-insensitive"
        case .composedCaseInsensitive: "composed-case-insensitive"
        }
    }

    /// Reads back `column`; anything unknown compares exactly.
    init(column: String) {
        self =
            switch column {
            case "composed": .composed
            case "case-insensitive": .caseInsensitive
            case "composed-case-insensitive": .composedCaseInsensitive
            default: .exact
            }
    }
}
