import Foundation
import Logging
import OortCatalog
import OortModel
import OortSync
import Synchronization

extension CloudMount {
    func search(_ request: SearchRequest) throws(Failure) -> AsyncStream<SearchLine> {
        let place = try folder(of: request.in)
        let query = try request.query(in: place?.folder)
        return AsyncStream { continuation in
            // Owned by the stream, which ends it.
            let task = Task {
                await self.search(
                    query,
                    insideFiles: request.content == true,
                    ofAccountNamed: place?.account
                ) {
                    continuation.yield($0)
                }
                continuation.finish()
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }

    /// The folder at an absolute path under the mount point, and its account's name; nil for all accounts.
    private func folder(
        of path: String?
    ) throws(Failure) -> (folder: Inode, account: String)? {
        guard let path, path != mountPoint else { return nil }
        let shown = TerminalText.line(path)
        guard let below = path.dropping(beginning: mountPoint + "/") else {
            throw Failure(
                "\(shown) does not lie in the mount \(mountPoint).",
                advice: "Name a folder below it."
            )
        }
        let names = below.parts(between: "/").filter { !$0.isEmpty }.map(String.init)
        let node: Node?
        do throws(CatalogError) { node = try catalog.node(atPath: names) } catch {
            throw CatalogTrouble.failure(error, path: options.folders.catalogFile)
        }
        guard let node, let account = names.first else { throw SearchWords.notThere(path) }
        guard node.kind == .folder else { throw SearchWords.notAFolder(path) }
        return (node.inode, account)
    }

    private func search(
        _ query: SearchQuery,
        insideFiles: Bool,
        ofAccountNamed account: String?,
        tell: @escaping @Sendable (SearchLine) -> Void
    ) async {
        let results = FoundResults(limit: query.limit, tell: tell)
        await withTaskGroup { group in
            group.addTask {
                do throws(CatalogError) {
                    let answer = try await self.catalog.search(query)
                    for hit in answer.hits {
                        results.add(SearchResult(hit, below: self.mountPoint), hit.inode)
                    }
                    if answer.isCut { results.cut() }
                    if let note = SearchResult.note(unindexed: answer.unindexed) {
                        tell(SearchLine(note: note))
                    }
                } catch {
                    let failure = CatalogTrouble.failure(
                        error,
                        path: self.options.folders.catalogFile
                    )
                    tell(SearchLine(note: failure.message))
                }
            }
            if insideFiles {
                let isMeant = { (name: String) in account.map { $0.isSameText(as: name) } ?? true }
                for account in accounts.withLock({ Array($0.values) }) where isMeant(account.name) {
                    group.addTask { await self.searchContents(of: account, query, results, tell) }
                }
                for account in detached.withLock({ Array($0.values) })
                where isMeant(account.kept.name) {
                    let name = TerminalText.line(account.kept.name)
                    tell(SearchLine(note: "\(name) is not asked: \(account.obstacle)"))
                }
            }
        }
        tell(SearchLine(end: results.end))
    }

    /// Has an account's service search, and says so where it cannot.
    private func searchContents(
        of account: MountedAccount,
        _ query: SearchQuery,
        _ results: FoundResults,
        _ tell: @Sendable (SearchLine) -> Void
    ) async {
        let title = Services.named(account.service)?.title ?? account.service
        let name = TerminalText.line(account.name)
        do throws(ProviderError) {
            let outcome = try await account.engine.searchContents(for: query.words) { found in
                for content in found {
                    if let result = await self.result(content, of: account, query) {
                        results.add(result, content.inode)
                    }
                }
                return !results.isFull
            }
            switch outcome {
            case .done(outside: 0): return
            case .done(let outside):
                let them = outside == 1 ? "1 result lies" : "\(outside) results lie"
                tell(SearchLine(note: "\(name): \(them) in no folder of the account."))
            case .impossible:
                let words = "\(title) does not search inside files."
                tell(SearchLine(note: "\(name) cannot be asked: \(words)"))
            }
        } catch {
            if error.kind == .cancelled { return }
            let kind = "\(error.kind)"
            let words = SyncWords.errorWords(kind) ?? kind
            tell(SearchLine(note: "\(name) was not searched to the end: \(words)."))
            logger.info(
                "a search inside files failed",
                metadata: ["account": "\(account.name)", "error": "\(error)"]
            )
        }
    }

    /// What the service found, where it is what is looked for.
    private func result(
        _ found: FoundContent,
        of account: MountedAccount,
        _ query: SearchQuery
    ) async -> SearchResult? {
        if let inode = found.inode {
            do throws(CatalogError) {
                return try await catalog.searchHit(of: inode, in: query).map {
                    SearchResult($0, below: mountPoint, found: .content)
                }
            } catch { return nil }
        }
        // The feed has not reported it yet, so it is not known whether it lies in the given folder.
        guard query.folder == nil, query.fits(found.item), let name = found.path.last else {
            return nil
        }
        let node: NodeKind = found.item.kind == .folder ? .folder : .file
        return SearchResult(
            path: ([mountPoint, account.name] + found.path).joined(separator: "/"),
            account: account.name,
            kind: SearchKind.of(node, name: name, type: found.item.mimeType),
            isFolder: node == .folder,
            size: found.item.size ?? 0,
            modified: (found.item.clientModifiedTime ?? found.item.serverModifiedTime)?.date
                ?? Date(),
            found: .content
        )
    }
}

/// The results of one search so far, each once, wherever it was found.
private final class FoundResults: Sendable {
    private struct State {
        var paths: Set<String> = []
        var inodes: Set<Inode> = []
        var isCut = false
    }

    private let limit: Int
    private let tell: @Sendable (SearchLine) -> Void
    private let state = Mutex(State())

    init(limit: Int, tell: @escaping @Sendable (SearchLine) -> Void) {
        self.limit = limit
        self.tell = tell
    }

    /// Hands a result on, unless it was before or there are as many as are wanted.
    func add(_ result: SearchResult, _ inode: Inode?) {
        let isNew = state.withLock { state in
            guard !state.paths.contains(result.path),
                inode.map({ state.inodes.contains($0) }) != true
            else { return false }
            guard state.paths.count < limit else {
                state.isCut = true
                return false
            }
            state.paths.insert(result.path)
            if let inode { state.inodes.insert(inode) }
            return true
        }
        if isNew { tell(SearchLine(result: result)) }
    }

    /// There may be more.
    func cut() { state.withLock { $0.isCut = true } }

    /// Whether there are as many as are wanted.
    var isFull: Bool { state.withLock { $0.paths.count >= limit } }

    /// How it ended.
    var end: SearchEnd {
        state.withLock { SearchEnd(count: $0.paths.count, isCut: $0.isCut) }
    }
}

extension SearchQuery {
    /// Whether an item is what is looked for, wherever it lies.
    fileprivate func fits(_ item: Item) -> Bool {
        let node: NodeKind =
            switch item.kind {
            case .folder: .folder
            case .nativeDocument: .nativeDocument
            case .file, .shortcut: .file
            }
        if let kind, SearchKind.of(node, name: item.fileName, type: item.mimeType) != kind {
            return false
        }
        let modified = item.clientModifiedTime ?? item.serverModifiedTime
        if let modifiedSince, modified.map({ $0 < modifiedSince }) ?? true { return false }
        if let largerThan, node == .folder || (item.size ?? 0) <= largerThan { return false }
        return true
    }
}
