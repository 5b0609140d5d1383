public import OortModel

/// The client's trash, versions and links; the map says where each item lies now.
extension PlaceProvider {
    public var trash: (any Trash)? {
        client.trash.map { PlaceTrash(provider: self, trash: $0) }
    }

    public var versions: (any VersionHistory)? {
        client.versions.map { PlaceVersions(provider: self, history: $0) }
    }

    public var links: (any LinkSharing)? {
        client.links.map { PlaceLinks(provider: self, links: $0) }
    }

    public var webPages: (any WebPages)? {
        client.webPages.map { PlaceWebPages(provider: self, pages: $0) }
    }

    /// Runs a request about an item, by a path that holds until the request ends.
    fileprivate func placed<Value>(
        _ reference: ItemReference,
        _ manner: PlaceTask.Manner = .look,
        _ body: (ItemReference) async throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        let id = try await row(of: reference).id
        return try await moves.operate(on: .entry(id, manner)) { ground throws(ProviderError) in
            try await body(ItemReference(id: reference.id, path: ground.rowPaths[0]))
        }
    }
}

private struct PlaceTrash: Trash {
    let provider: PlaceProvider
    let trash: any Trash

    func entries(
        below folder: ItemReference,
        page: PageToken?
    ) async throws(ProviderError) -> TrashPage {
        try await provider.placed(folder) { folder throws(ProviderError) in
            try await trash.entries(below: folder, page: page)
        }
    }

    func entry(marked mark: String) async throws(ProviderError) -> TrashEntry? {
        try await trash.entry(marked: mark)
    }

    func restore(_ entry: TrashEntry, to place: Placement) async throws(ProviderError) {
        let parent = try await provider.folder(place.folder)
        let task = PlaceTask.name(place.name, in: parent, .change)
        try await provider.moves.operate(on: task) { ground throws(ProviderError) in
            let folder = ItemReference(
                id: place.folder.id,
                path: ground.namePaths[0].parent ?? .root
            )
            try await trash.restore(entry, to: Placement(folder: folder, name: place.name))
        }
    }
}

private struct PlaceVersions: VersionHistory {
    let provider: PlaceProvider
    let history: any VersionHistory

    var restoresAtService: Bool { history.restoresAtService }
    var readingCost: String? { history.readingCost }

    func versions(
        of item: ItemReference,
        page: PageToken?
    ) async throws(ProviderError) -> VersionPage {
        try await provider.placed(item) { item throws(ProviderError) in
            try await history.versions(of: item, page: page)
        }
    }

    func read(
        _ version: ItemVersion,
        of item: ItemReference
    ) async throws(ProviderError) -> ByteStream {
        try await provider.placed(item) { item throws(ProviderError) in
            try await history.read(version, of: item)
        }
    }

    func restore(
        _ version: ItemVersion,
        of item: ItemReference,
        current: Revision?
    ) async throws(ProviderError) {
        let current = try provider.clientRevision(current, of: try await provider.row(of: item))
        try await provider.placed(item, .change) { item throws(ProviderError) in
            try await history.restore(version, of: item, current: current)
        }
    }
}

private struct PlaceLinks: LinkSharing {
    let provider: PlaceProvider
    let links: any LinkSharing

    var abilities: LinkAbilities { links.abilities }

    func share(_ wish: LinkWish) async throws(ProviderError) -> SharedLink {
        try await provider.placed(wish.item) { item throws(ProviderError) in
            var placed = wish
            placed.item = item
            return try await links.share(placed)
        }
    }

    func links(
        of item: ItemReference?,
        page: PageToken?
    ) async throws(ProviderError) -> LinkPage {
        guard let item else { return try await links.links(of: nil, page: page) }
        return try await provider.placed(item) { item throws(ProviderError) in
            try await links.links(of: item, page: page)
        }
    }

    func withdraw(_ link: SharedLink) async throws(ProviderError) {
        try await links.withdraw(link)
    }
}

private struct PlaceWebPages: WebPages {
    let provider: PlaceProvider
    let pages: any WebPages

    func page(of item: ItemReference, isFolder: Bool) async throws(ProviderError) -> String {
        try await provider.placed(item) { item throws(ProviderError) in
            try await pages.page(of: item, isFolder: isFolder)
        }
    }
}
