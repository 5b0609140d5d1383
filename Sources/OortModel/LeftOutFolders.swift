/// Folders of an account that this machine does not show, by their paths.
///
/// Paths are compared as the account's service compares names. What lies in such a folder is left out with it.
public struct LeftOutFolders: Hashable, Sendable {
    private let comparison: NameRules.Comparison
    /// The keys of the names from the account's top down.
    private let paths: Set<[String]>
    private let lastKeys: Set<String>

    /// The folders at some paths, each the names from the account's top down; an empty one means nothing.
    public init(_ paths: [[String]], comparedBy comparison: NameRules.Comparison) {
        self.comparison = comparison
        self.paths = Set(paths.filter { !$0.isEmpty }.map { $0.map(comparison.key) })
        lastKeys = Set(self.paths.compactMap(\.last))
    }

    /// Whether nothing is left out.
    public var isEmpty: Bool { paths.isEmpty }

    /// The keys of each one's names, from the account's top down.
    public var keys: Set<[String]> { paths }

    /// Whether one of them may have this name; where none has, no path needs to be looked at.
    public func mayInclude(named name: String) -> Bool {
        !paths.isEmpty && lastKeys.contains(comparison.key(name))
    }

    /// Whether what is at a path is one of them, or lies in one.
    public func include(_ names: [String]) -> Bool {
        guard !paths.isEmpty else { return false }
        let keys = names.map(comparison.key)
        return keys.indices.contains { paths.contains(Array(keys[...$0])) }
    }

    /// Those that lie below a folder, itself not counted.
    public func below(_ names: [String]) -> Set<[String]> {
        guard !paths.isEmpty else { return [] }
        let keys = names.map(comparison.key)
        return paths.filter { $0.count > keys.count && $0.starts(with: keys) }
    }
}
