import OortCatalog
public import OortModel

/// An item in which the service found all words of a search.
public struct FoundContent: Hashable, Sendable {
    /// The item as the service has it.
    public var item: Item
    /// Its node; nil while the tree does not have it.
    public var inode: Inode?
    /// The names from the account's root down, as they are shown or will be.
    public var path: [String]
}

/// How a search inside files ended.
public enum ContentSearchOutcome: Hashable, Sendable {
    /// The service was asked; this many results are outside the account's tree.
    case done(outside: Int)
    /// The service does not search inside files.
    case impossible
}

extension SyncEngine {
    /// Pages that are read of one search, and items of those that are asked for by themselves.
    private static let mostPages = 20
    private static let mostUnknown = 200
    /// Folders above an item that are asked for.
    private static let deepest = 100

    /// Has the service search inside files, too; `found` hears of each page's results as they arrive, an
    /// item once, and says whether to go on.
    ///
    /// What the service still finds although it was trashed or is gone is left out.
    ///
    /// - Throws: what asking the service threw; results of pages before were handed on.
    public nonisolated func searchContents(
        for words: [String],
        found: @Sendable ([FoundContent]) async -> Bool
    ) async throws(ProviderError) -> ContentSearchOutcome {
        guard let search = provider.contentSearch else { return .impossible }
        var page: PageToken?
        var walk = PageWalk()
        var seen: Set<ItemID> = []
        var (outside, unknown) = (0, 0)
        for _ in 0..<Self.mostPages {
            if let page { try walk.goOn(to: page.rawValue) }
            let answer = try await search.search(for: words, page: page)
            var results: [FoundContent] = []
            for item in answer.items where seen.insert(item.id).inserted && !item.isTrashed {
                if let node = try node(item.id) {
                    // A removed item must not be found again.
                    guard let path = try path(of: node) else { continue }
                    results.append(FoundContent(item: item, inode: node.inode, path: path))
                } else if unknown < Self.mostUnknown {
                    unknown += 1
                    if let placed = try await placed(item) {
                        results.append(placed)
                    } else {
                        outside += 1
                    }
                }
            }
            guard await found(results), let next = answer.next else { break }
            page = next
        }
        return .done(outside: outside)
    }

    private nonisolated func node(_ id: ItemID) throws(ProviderError) -> Node? {
        try reading { () throws(CatalogError) in
            try catalog.node(remoteID: id, account: account)
        }
    }

    private nonisolated func path(of node: Node) throws(ProviderError) -> [String]? {
        try reading { () throws(CatalogError) in try catalog.shownPath(of: node.inode) }
    }

    /// Where an item that the feed has not reported yet will appear; nil when it is outside the account, or
    /// gone.
    private nonisolated func placed(_ found: Item) async throws(ProviderError) -> FoundContent? {
        guard let item = try await current(ItemReference(id: found.id, path: found.path ?? .root))
        else {
            return nil
        }
        var names = [ShownName.shown(item)]
        if item.parentID == nil {
            guard let path = item.path?.parent else { return nil }
            names =
                path.parts.map { part in
                    ShownName.shown(Item(id: item.id, kind: .folder, fileName: part))
                } + names
            return FoundContent(item: item, inode: nil, path: names)
        }
        var next = item.parentID
        for _ in 0..<Self.deepest {
            guard let id = next else { return nil }
            if let folder = try node(id) {
                guard let above = try path(of: folder) else { return nil }
                return FoundContent(item: item, inode: nil, path: above + names)
            }
            guard let folder = try await current(ItemReference(id: id, path: .root)) else {
                return nil
            }
            names.insert(ShownName.shown(folder), at: 0)
            next = folder.parentID
        }
        return nil
    }

    /// An item as it is now; nil where it is gone, trashed or not to be seen.
    private nonisolated func current(
        _ reference: ItemReference
    ) async throws(ProviderError) -> Item? {
        do throws(ProviderError) {
            let item = try await provider.item(reference)
            return item.isTrashed ? nil : item
        } catch {
            switch error.kind {
            case .notFound, .noPermission, .parentNotFound: return nil
            default: throw error
            }
        }
    }

    private nonisolated func reading<Value>(
        _ body: () throws(CatalogError) -> Value
    ) throws(ProviderError) -> Value {
        do throws(CatalogError) { return try body() } catch {
            throw ProviderError(.localContent, detail: "the catalog: \(error)")
        }
    }
}
