import Logging
import OortCatalog
public import OortModel

/// Single items that the engine asks the service for, because what the service reported of them may be old.
extension SyncEngine {
    /// Applies what the service answered to a request that began at this ordinal, as `Catalog.apply` does.
    ///
    /// The items that we changed since are found in the transaction: while an answer waits for it, an operation
    /// may begin and end. What was asked for before the item `missed` was not found does not count for it.
    func store(
        _ observations: Observations,
        askedFor began: UInt64,
        missed: ItemID? = nil
    ) async throws(ProviderError) -> Set<ItemID>? {
        let underWay = queue.itemsUnderWay
        return try await storedAsync { [order] () throws(CatalogError) in
            try await self.catalog.apply(observations, to: self.account) {
                let found = order.suspects(since: began, underWay: underWay)
                if let missed { order.touch(missed) }
                return found
            }
        }
    }

    /// Asks the service for each item of which it reported something that may be old; where that
    /// fails, the catalog keeps them as unsure, over restarts, too.
    ///
    /// Many of one folder cost one listing.
    func lookAtUnsure() async throws(ProviderError) {
        feed.looks()
        let items = try await unsureItems()
        var isAnswered = true
        if !items.isEmpty {
            // Also after a failure: some of them may have been looked at by then.
            defer { needsPlan = true }
            do throws(ProviderError) { isAnswered = try await look(at: items) } catch {
                // A run of the feed is retried until it succeeds, and then asks for all of them; without it
                // they would stay unsure, and items that may be gone would wait, until there is news.
                readFeedSoon()
                throw error
            }
        }
        // Only a run of the feed reports what became of the contents of a folder that may be gone; a run
        // that begins while an operation changes the folder proves nothing.
        let mayBeGone = try await storedAsync { () throws(CatalogError) in
            try await self.catalog.hasAnyThatMayBeGone(self.account)
        }
        let isAnythingOpen = !queue.running.isEmpty || unanswered.mayExist
        let needsRun = feed.needsRun(mayBeGone, isAnythingOpen: isAnythingOpen)
        // A run would leave open again what waits for items of which the service does not say how they are.
        if needsRun, isAnswered { readFeedSoon() }
    }

    /// - Returns: whether the service said of any how it is, or none was to be asked for.
    private func look(at items: [Catalog.UnsureItem]) async throws(ProviderError) -> Bool {
        var counts: [Inode: Int] = [:]
        for item in items where !item.mayLag {
            if let folder = item.folder { counts[folder, default: 0] += 1 }
        }
        let crowded = counts.filter { $0.value > Self.mostLooksInFolder }.map(\.key).sorted()
        var unlisted: Set<ItemID> = []
        for folder in crowded {
            do throws(ProviderError) { try await readListing(folder) } catch {
                guard error.isLastingRefusal else { throw error }
                continue
            }
            for item in items where item.folder == folder && !item.isKnown && !item.mayLag {
                unlisted.insert(item.id)
            }
        }
        var references: [ItemReference] = []
        // An item that a listing did not name may lie elsewhere now.
        for item in crowded.isEmpty ? items : try await unsureItems() {
            if let reference = item.reference, item.isKnown || !unlisted.contains(item.id) {
                references.append(reference)
                continue
            }
            // With a reference: the catalog never had the item, and it is not where the service reported
            // it, so it is gone, or the feed will report where it is. Without one: only the answer to an
            // operation of ours, which has the id, could still bring it.
            guard item.reference != nil || queue.isQuiet && !unanswered.mayExist else {
                continue
            }
            try await storedAsync { () throws(CatalogError) in
                try await self.catalog.forgetUnsure(of: item.id, in: self.account)
            }
        }
        return try await look(atEach: references)
    }

    /// How many items of a folder are asked for one by one; a listing of the folder costs as much as
    /// several of them.
    private static let mostLooksInFolder = 8

    /// How many items are asked for at once.
    private static let looksAtOnce = 4

    /// - Returns: whether the service said of any how it is, or none was to be asked for.
    private func look(atEach references: [ItemReference]) async throws(ProviderError) -> Bool {
        let answers = await withTaskGroup(of: Result<Bool, ProviderError>.self) { group in
            var answers: [Result<Bool, ProviderError>] = []
            var rest = references.makeIterator()
            for _ in 0..<Self.looksAtOnce {
                guard let reference = rest.next() else { break }
                group.addTask { await self.answered(reference) }
            }
            for await answer in group {
                answers.append(answer)
                guard case .success = answer, let reference = rest.next() else { continue }
                group.addTask { await self.answered(reference) }
            }
            return answers
        }
        var isAnswered = references.isEmpty
        for answer in answers where try answer.get() { isAnswered = true }
        return isAnswered
    }

    /// Asks for one item; whether the service said how it is.
    ///
    /// If it refuses to say, the item stays unsure and is asked for with the next news; nothing else waits for it.
    private func answered(_ reference: ItemReference) async -> Result<Bool, ProviderError> {
        do throws(ProviderError) { try await look(at: reference) } catch {
            guard error.isLastingRefusal else { return .failure(error) }
            logger.notice(
                "the service does not say how an item is",
                metadata: ["item": "\(reference.id)", "error": "\(error)"]
            )
            return .success(false)
        }
        return .success(true)
    }

    private func unsureItems() async throws(ProviderError) -> [Catalog.UnsureItem] {
        try await storedAsync { () throws(CatalogError) in
            try await self.catalog.unsureItems(of: self.account)
        }
    }

    /// Asks the service for one item at once: a reader found that its revision is gone.
    ///
    /// - Throws: `ProviderError` when the service did not answer; the item is as it was.
    public func look(at inode: Inode) async throws(ProviderError) {
        // At another person's service nothing of this would be found.
        try await identify()
        let known = try await storedAsync { () throws(CatalogError) in
            try await self.catalog.reference(to: inode)
        }
        guard let known else { return }
        try await look(at: known)
        planSoon()
    }

    /// Asks the service what has a name in a folder that may not be listed.
    ///
    /// - Throws: `ProviderError` when the service did not answer; the folder is as it was.
    public func find(_ name: String, in folder: Inode) async throws(ProviderError) {
        try await identify()
        let known = try await storedAsync { () throws(CatalogError) in
            try await self.catalog.reference(to: folder)
        }
        guard let known else { return }
        while try await !find(name, in: known) {}
    }

    /// Asks for what has a name in a folder, without waiting for the feed.
    ///
    /// - Returns: false when an enumeration began meanwhile, and the name must be asked for again.
    @discardableResult
    func find(_ name: String, in folder: ItemReference) async throws(ProviderError) -> Bool {
        let enumeration = try await enumeration()
        let (began, asked) = (order.next(), now)
        let found = try await provider.items(named: name, in: folder)
        var observations = Observations(changes: found.map { .changed($0) })
        observations.enumeration = enumeration
        observations.asked = asked
        observations.endsRun = false
        return try await store(observations, askedFor: began) != nil
    }

    /// Asks for one item; only a positive answer is "gone".
    func look(at reference: ItemReference) async throws(ProviderError) {
        for _ in 0..<3 {
            let enumeration = try await enumeration()
            let began = order.next()
            let change: Change
            do throws(ProviderError) {
                let item = try await provider.item(reference)
                change = item.isTrashed ? .removed(item.id) : .changed(item)
            } catch {
                guard error.kind == .notFound else { throw error }
                change = .removed(reference.id)
            }
            var observations = Observations(changes: [change])
            // A single item may be half of a move; the feed has the other half.
            observations.endsRun = false
            observations.enumeration = enumeration
            let missed = try missedFolder(change)
            let unsure = try await store(observations, askedFor: began, missed: missed)
            // Only the next run of the feed, which must begin after this, reports what lay in it.
            if missed != nil { readFeedSoon() }
            guard let unsure else { continue }
            guard unsure.contains(reference.id) else { return }
            // An operation of ours is under way on it: it is asked for afterwards.
            let known = try stored { () throws(CatalogError) in
                try catalog.node(remoteID: reference.id, account: account)
            }
            if let known, queue.running[known.inode] != nil { break }
        }
        feed.owesLook(at: reference.id)
    }

    /// The folder that was asked for and not found.
    private func missedFolder(_ change: Change) throws(ProviderError) -> ItemID? {
        guard case .removed(let id) = change else { return nil }
        let known = try stored { () throws(CatalogError) in
            try catalog.node(remoteID: id, account: account)
        }
        return known?.kind == .folder ? id : nil
    }
}
