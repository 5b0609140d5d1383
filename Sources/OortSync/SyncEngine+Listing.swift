import OortCatalog
public import OortModel

/// Folders that are listed by themselves.
extension SyncEngine {
    /// Lists a folder that is opened before the enumeration got there; callers for one folder share
    /// one listing.
    ///
    /// - Throws: `ProviderError` when the service did not list it; the folder is as it was.
    public func list(_ folder: Inode) async throws(ProviderError) {
        if let known = listings[folder] { return try await known.value.get() }
        // Owned by `listings`; it ends by itself, not when a caller goes.
        let task = Task { () -> Result<Void, ProviderError> in
            do throws(ProviderError) {
                try await self.readListingAlone(folder)
                return .success(())
            } catch { return .failure(error) }
        }
        listings[folder] = task
        let result = await task.value
        listings[folder] = nil
        try result.get()
    }

    private func readListingAlone(_ folder: Inode) async throws(ProviderError) {
        try await identify()
        if try await isToldByEnumeration() { return }
        let began = uptime()
        patience.listed.start(at: began)
        defer {
            patience.listed.stop(at: uptime())
        }
        try await readListing(folder)
        patience.last = uptime() - began
        try await lookAtUnsure()
        planSoon()
    }

    /// Waits for the enumeration under way, in all as long as listings have taken beside it so far.
    ///
    /// A program that walks the whole tree lists it folder by folder, beside an enumeration that reports
    /// all of it in fewer calls, and takes bandwidth from it. Nobody knows how long that goes on; so
    /// callers never wait longer in all than listings took, and a walk takes at most twice as long as
    /// without waits.
    ///
    /// - Returns: whether the enumeration ended, and everything is known now.
    private func isToldByEnumeration() async throws(ProviderError) -> Bool {
        let left = patience.left(at: uptime())
        guard feed.isReading, left > .zero, try !isEnumerated() else { return false }
        let (ends, end) = AsyncStream<Void>.makeStream()
        let number = patience.waits.add(end)
        patience.waited.start(at: uptime())
        let clock = clock
        // Cancelled below.
        let timer = Task {
            try? await clock.sleep(for: left)
            end.finish()
        }
        for await _ in ends {}
        timer.cancel()
        patience.waits.remove(number)
        patience.waited.stop(at: uptime())
        return try isEnumerated()
    }

    private func isEnumerated() throws(ProviderError) -> Bool {
        try stored { () throws(CatalogError) in try catalog.isEnumerated(account) }
    }

    /// Ends the waits for the enumeration: it is over, or does not go on now.
    func endWaitsForEnumeration() {
        for wait in patience.waits.all { wait.finish() }
    }

    func readListing(_ folder: Inode) async throws(ProviderError) {
        let reference = try await storedAsync { () throws(CatalogError) in
            try await self.catalog.reference(to: folder)
        }
        guard let reference else { return }
        while try await !readListing(folder, by: reference) {}
        isReachable()
    }

    /// - Returns: false when an enumeration began meanwhile, and the folder must be listed again.
    private func readListing(
        _ folder: Inode,
        by reference: ItemReference
    ) async throws(ProviderError) -> Bool {
        let enumeration = try await enumeration()
        let (began, asked) = (order.next(), now)
        var items: [Item] = []
        var token: PageToken?
        var walk = PageWalk()
        repeat {
            if let token { try walk.goOn(to: token.rawValue) }
            let page = try await provider.children(of: reference, page: token)
            items += page.items
            token = page.next
        } while token != nil
        var observations = Observations(changes: items.map { .changed($0) })
        observations.folder = folder
        observations.endsRun = false
        observations.enumeration = enumeration
        observations.asked = asked
        return try await store(observations, askedFor: began) != nil
    }
}
