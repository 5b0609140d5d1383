import GRDB
public import OortModel

/// All that is pending, in groups of one kind each.
public struct PendingSurvey<Kind: Hashable & Sendable>: Sendable {
    /// What one group has.
    public struct Group: Sendable {
        /// How many items.
        public var count = 0
        /// Bytes of content that have to travel.
        public var bytes: Int64 = 0
        /// The first few of them, oldest change first, with their paths.
        public var examples: [PendingItem] = []
    }

    /// The groups.
    public var groups: [Kind: Group] = [:]
}

extension Catalog {
    /// Looks at everything that is pending, however much, and keeps only sums and a few examples.
    ///
    /// `examples` of each group are kept. `isRefused` says whether a folder that is not at the service
    /// keeps back what lies in it. `kind` gives the group of an item, which has no path yet, and of the
    /// refused folder that it lies in.
    public func surveyPending<Kind: Hashable & Sendable>(
        _ account: AccountID,
        examples: Int,
        isRefused: @escaping @Sendable (PendingItem) -> Bool,
        kind: @escaping @Sendable (PendingItem, Inode?) -> Kind
    ) async throws(CatalogError) -> PendingSurvey<Kind> {
        try await readAsync { database in
            let refused = try Self.refusedFolders(account, isRefused, database)
            // For folders that were looked at: the refused folder that they are, or lie in.
            var obstacles: [Inode: Inode?] = [:]
            func obstacle(_ folder: Inode?) throws -> Inode? {
                var passed: [Inode] = []
                var next = folder
                var found: Inode?
                while !refused.isEmpty, let above = next, above != .root, passed.count < 10_000 {
                    if let known = obstacles[above] {
                        found = known
                        break
                    }
                    passed.append(above)
                    if refused.contains(above) {
                        found = above
                        break
                    }
                    next = try Self.fetch(above, database)?.parent
                }
                for inode in passed { obstacles[inode] = .some(found) }
                return found
            }
            var survey = PendingSurvey<Kind>()
            let rows = try Self.pendingRows(account, database)
            while let row = try rows.next() {
                var item = Self.pendingItem(row)
                let kind = kind(item, try obstacle(Self.pendingParent(row)))
                if survey.groups[kind, default: .init()].examples.count < examples {
                    (item.path, item.folders) = try Self.pendingPlace(row, database)
                    survey.groups[kind, default: .init()].examples.append(item)
                }
                survey.groups[kind, default: .init()].count += 1
                survey.groups[kind, default: .init()].bytes += item.size
            }
            return survey
        }
    }

    /// The folders into which nothing can go before they are at the service themselves.
    private static func refusedFolders(
        _ account: AccountID,
        _ isRefused: (PendingItem) -> Bool,
        _ database: Database
    ) throws -> Set<Inode> {
        guard
            try database.number(
                "SELECT count(*) FROM motion WHERE account = ? AND error_kind IS NOT NULL",
                [account.rawValue]
            ) ?? 0 > 0
        else { return [] }
        var folders: Set<Inode> = []
        let rows = try pendingRows(account, database)
        while let row = try rows.next() {
            let item = pendingItem(row)
            if item.kind == .folder, !item.isAtService, isRefused(item) {
                folders.insert(item.inode)
            }
        }
        return folders
    }
}
