import OortCatalog
public import OortModel

/// The folder `.search` at the mount's root: it is never listed, `.search/WORDS` holds links to the results
/// of a search for the words, and nothing in it can be changed.
extension CloudFileSystem {
    /// The kernel takes back so many lookups of an inode.
    public func forget(_ inode: Inode, lookups: UInt64) {
        guard case .folder(let number) = SearchPlace(inode) else { return }
        searches.forget(number, lookups: lookups)
    }

    // MARK: Nodes

    /// The node for an inode of the searches.
    ///
    /// - Throws: `.notFound` for a link whose item is gone, and a folder that was forgotten.
    func node(of place: SearchPlace) throws(FileSystemError) -> Node {
        var node = try catalogNode(.root)
        node.inode = place.inode
        node.parent = .root
        node.permissions = .read
        // Results are for this user alone: they name items in folders that others may not enter.
        node.mode = 0o500
        switch place {
        case .top: node.name = SearchFolders.name
        case .folder(let number):
            guard let folder = searches[number] else { throw .notFound }
            node.parent = SearchPlace.top.inode
            node.name = folder.words
            (node.modified, node.changed) = (folder.changed, folder.changed)
        case .link(let item):
            let target = try catalogNode(item)
            node.parent = SearchPlace.top.inode
            node.kind = .symlink
            node.name = target.name
            node.target = try linkTarget(to: target)
            (node.modified, node.changed) = (target.modified, target.changed)
        }
        return node
    }

    /// How long the kernel may cache an answer about an inode of the searches.
    func validity(of place: SearchPlace) -> Validity {
        switch place {
        case .top: .day
        case .folder, .link:
            Validity(entry: SearchFolders.freshness, attributes: SearchFolders.freshness)
        }
    }

    private func catalogNode(_ inode: Inode) throws(FileSystemError) -> Node {
        try FileSystemError.translating { () throws(CatalogError) in try catalog.node(inode) }
    }

    /// The path from a folder of results, which all have the same depth, to an item: valid wherever the
    /// mount is.
    private func linkTarget(to item: Node) throws(FileSystemError) -> String {
        try FileSystemError.translating { () throws(CatalogError) in
            var names: [String] = []
            var next = item
            while next.inode != .root {
                guard let parent = next.parent, names.count < 10_000 else { throw .notFound }
                names.append(next.name)
                next = try catalog.node(parent)
            }
            return (["..", ".."] + names.reversed()).joined(separator: "/")
        }
    }

    // MARK: Operations

    /// A name in the mount's top or in a folder of the searches; nil for any other.
    func lookupOfSearch(_ name: String, in folder: Inode) -> Outcome<Entry>? {
        if folder == .root {
            guard name.isSameText(as: SearchFolders.name) else { return nil }
            return .now { () throws(FileSystemError) in try entry(node(SearchPlace.top.inode)) }
        }
        switch SearchPlace(folder) {
        case nil: return nil
        case .link: return .failure(.notAFolder)
        case .top:
            // Names that desktops and shells look for in every folder are not searches.
            guard !name.begins(with: "."), SearchQuery(words: Self.words(name)).hasWords else {
                return .failure(.notFound)
            }
            return refreshing(name) { number throws(FileSystemError) in
                try self.entry(self.node(SearchPlace.folder(number).inode))
            }
        case .folder(let number):
            guard let known = searches[number] else { return .failure(.notFound) }
            return refreshed(number, known.words) { folder throws(FileSystemError) in
                guard let result = folder.results.first(where: { $0.name.isSameText(as: name) })
                else { throw .notFound }
                return try self.entry(self.node(SearchPlace.link(result.item).inode))
            }
        }
    }

    /// The results of a folder of the searches after a cookie; nil for any other folder.
    func listOfSearch(_ folder: Inode, after cookie: UInt64, limit: Int) -> Outcome<[FolderEntry]>?
    {
        switch SearchPlace(folder) {
        case nil: return nil
        case .top: return .now(.success([]))
        case .link: return .failure(.notAFolder)
        case .folder(let number):
            guard let known = searches[number] else { return .failure(.notFound) }
            @Sendable func entries(
                _ folder: SearchFolders.Folder
            ) throws(FileSystemError) -> [FolderEntry] {
                let start = Int(min(cookie, UInt64(folder.results.count)))
                var entries: [FolderEntry] = []
                for (index, result) in folder.results.enumerated().dropFirst(start).prefix(limit) {
                    do throws(FileSystemError) {
                        let entry = try self.entry(self.node(of: .link(result.item)))
                        entries.append(
                            FolderEntry(name: result.name, cookie: UInt64(index) + 1, entry: entry)
                        )
                    } catch {
                        // An item that has just vanished is left out.
                        guard error == .notFound else { throw error }
                    }
                }
                return entries
            }
            // A listing that goes on uses the results that it began with.
            guard cookie == 0 else {
                return .now { () throws(FileSystemError) in try entries(known) }
            }
            return refreshed(number, known.words) { folder throws(FileSystemError) in
                try entries(folder)
            }
        }
    }

    /// The attributes of a folder of the searches, whose time shows whether its results changed; nil for
    /// any other inode.
    func attributesOfSearch(_ inode: Inode) -> Outcome<Entry>? {
        guard case .folder(let number) = SearchPlace(inode) else { return nil }
        guard let known = searches[number] else { return .failure(.notFound) }
        return refreshed(number, known.words) { _ throws(FileSystemError) in
            try self.entry(self.node(inode))
        }
    }

    // MARK: Searching

    private static func words(_ name: String) -> [String] {
        name.split(separator: " ").map(String.init)
    }

    /// Looks a folder up, repeats its search if the last one is too long ago, and then answers.
    private func refreshing<Value: Sendable>(
        _ words: String,
        _ answer: @escaping @Sendable (UInt64) throws(FileSystemError) -> Value
    ) -> Outcome<Value> {
        let number = searches.lookUp(words)
        let outcome = refreshed(number, words) { _ throws(FileSystemError) in try answer(number) }
        switch outcome {
        case .now(let result):
            if case .failure = result { searches.forget(number, lookups: 1) }
            return outcome
        case .later(let body):
            return .later {
                let result = await body()
                if case .failure = result { self.searches.forget(number, lookups: 1) }
                return result
            }
        }
    }

    private func refreshed<Value: Sendable>(
        _ number: UInt64,
        _ words: String,
        _ answer: @escaping @Sendable (SearchFolders.Folder) throws(FileSystemError) -> Value
    ) -> Outcome<Value> {
        if let folder = searches[number], folder.isFresh {
            return .now { () throws(FileSystemError) in try answer(folder) }
        }
        return waiting.later { () async throws(FileSystemError) in
            self.searches.keep(try await self.results(of: words), of: number)
            guard let folder = self.searches[number] else { throw .notFound }
            return try answer(folder)
        }
    }

    /// The results of a search; of several with one name, all but the first get a number.
    private func results(of words: String) async throws(FileSystemError) -> [SearchFolders.Result] {
        let query = SearchQuery(words: Self.words(words), limit: SearchFolders.mostResults)
        let hits: [SearchHit]
        do throws(CatalogError) { hits = try await catalog.search(query).hits } catch {
            throw FileSystemError(error)
        }
        var names: Set<[UInt8]> = []
        var results: [SearchFolders.Result] = []
        for hit in hits {
            guard let plain = hit.path.last else { continue }
            var name = plain
            var number = 1
            while !names.insert(Array(name.utf8)).inserted {
                number += 1
                name = ShownName.numbered(plain, number)
            }
            results.append(SearchFolders.Result(name: name, item: hit.inode))
        }
        return results
    }
}
