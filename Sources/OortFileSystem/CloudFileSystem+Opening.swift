import Logging
import OortCatalog
import OortContentStore
public import OortModel
import Synchronization

extension CloudFileSystem {
    public func create(
        _ name: String,
        in folder: Inode,
        permissions: UInt16,
        caller: Caller,
        mode: OpenMode,
        isExclusive: Bool
    ) -> Outcome<(Entry, Opened)> {
        do throws(FileSystemError) {
            let parent = try writableFolder(folder)
            try check(name, kind: .file, in: parent)
            let new = NewNode(
                kind: .file,
                mode: permissions,
                owner: caller.owner,
                group: caller.group
            )
            return whenKnown([parent]) { () throws(FileSystemError) in
                let node: Node
                var content: StagedContent?
                do throws(CatalogError) {
                    if mode.writes {
                        (node, content) = try self.store.create(new, named: name, in: folder)
                    } else {
                        node = try self.catalog.create(new, named: name, in: folder)
                    }
                } catch {
                    guard error == .exists, !isExclusive,
                        let there = try self.child(name, of: parent)
                    else { throw FileSystemError(error) }
                    let opened = try self.openLocal(there, mode: mode)
                    return (try self.entry(try self.node(there.inode)), opened)
                }
                guard let content else {
                    return (try self.entry(node), try self.openLocal(node, mode: mode))
                }
                return (try self.entry(node), self.openNew(node, content, mode: mode))
            }
        } catch { return .failure(error) }
    }

    public func open(_ inode: Inode, mode: OpenMode) -> Outcome<Opened> {
        do throws(FileSystemError) {
            let node = try node(inode)
            if try isRefused(node, mode) { return refuse(node, mode) }
            guard node.kind == .nativeDocument else {
                return .now { () throws(FileSystemError) in try openLocal(node, mode: mode) }
            }
            guard !mode.writes else { throw isReadOnly(node.account) ? .readOnly : .noPermission }
            return waiting.later { () async throws(FileSystemError) in
                try await self.openDocument(node)
            }
        } catch { return .failure(error) }
    }

    /// The handle of a file that was made for it.
    private func openNew(_ node: Node, _ content: StagedContent, mode: OpenMode) -> Opened {
        let file = table.file(node)
        let handle = OpenHandle(file: file, mode: mode, content: .staged(content))
        beginWriting(handle)
        file.state.withLock { state in
            state.node = node
            state.handles.append(handle)
            // Recorded when the handle is closed, even if nothing is written.
            state.written = content
            state.modified = node.modified
            state.writeCount += 1
        }
        return Opened(handle: table.add(handle), keepsCache: false, isDirect: false)
    }

    /// Opens a file whose bytes need not be here.
    private func openLocal(_ node: Node, mode: OpenMode) throws(FileSystemError) -> Opened {
        switch node.kind {
        case .file: break
        case .folder: throw .isAFolder
        case .nativeDocument, .symlink, .shortcut, .fifo, .socket: throw .invalid
        }
        guard node.permissions.contains(.read) else { throw .noPermission }
        if mode.writes {
            guard !isReadOnly(node.account) else { throw .readOnly }
            guard node.permissions.contains(.write) else { throw .noPermission }
        }
        let handle = try join(node, mode: mode)
        if mode.writes, mode.truncates {
            do throws(FileSystemError) { try empty(handle) } catch {
                leave(handle)
                throw error
            }
        }
        return Opened(
            handle: table.add(handle),
            keepsCache: handle.keepsCache && !mode.truncates,
            isDirect: handle.isDirect
        )
    }

    /// A native document is exported when it is opened: only then is its size known.
    private func openDocument(_ node: Node) async throws(FileSystemError) -> Opened {
        guard let item = node.remoteID else { throw .notFound }
        let key = ContentKey(account: node.account, item: item, revision: node.exportRevision)
        let content: CachedContent
        do throws(ContentError) { content = try await store.export(key) } catch {
            throw FileSystemError(error)
        }
        if content.size != node.size {
            do throws(CatalogError) {
                try catalog.learn(size: content.size, target: nil, of: node.inode)
            } catch {
                store.close(content)
                throw FileSystemError(error)
            }
        }
        let file = table.file(node)
        let handle = OpenHandle(
            file: file,
            mode: OpenMode(),
            content: .cached(content),
            isReadOnlyDocument: true,
            isDirect: true
        )
        file.state.withLock { $0.handles.append(handle) }
        return Opened(handle: table.add(handle), keepsCache: false, isDirect: true)
    }

    /// The node as the catalog has it, in the local tree or not; nil when it has none.
    func known(_ inode: Inode) throws(FileSystemError) -> Node? {
        try FileSystemError.translating { () throws(CatalogError) in try catalog.knownNode(inode) }
    }

    /// A handle on a file as it is now, not yet in the table.
    func join(_ node: Node, mode: OpenMode) throws(FileSystemError) -> OpenHandle {
        let file = table.file(node)
        // First, so that the file does not count as unused after it was looked up.
        if mode.writes { catalog.opened(forWriting: file.inode) }
        do throws(FileSystemError) {
            // Under the file's lock: a writer that stages content meanwhile is either seen in the catalog,
            // or sees this handle.
            return try locked(file) { state throws(FileSystemError) in
                // Not `self.node`, which takes the lock of a forgotten file.
                let now = try self.known(node.inode)
                // The file is gone since it was looked up: a write would be in no file. The kernel looks
                // the name up again.
                if mode.writes, now == nil, node.parent != nil { throw .revisionGone }
                var fresh = now ?? node
                let content: OpenHandle.Content
                do throws(FileSystemError) { content = try self.content(of: &fresh) } catch {
                    // A program that empties a file needs none of its old bytes: so a damaged file can be
                    // written anew.
                    guard mode.writes, mode.truncates, case .contentDamaged = error else {
                        throw error
                    }
                    content = .empty
                }
                let shown = ShownContent(content)
                // Emptying a file changes what all of its handles show.
                let cached = state.handles.filter { !$0.isDirect }
                let isDirect = !mode.truncates && cached.contains { $0.shown != shown }
                let isSeen = !isDirect && table.seen(file.inode)?.isOf(fresh) == true
                if cached.isEmpty { state.isInKernel = false }
                if isSeen { state.isInKernel = true }
                if !isDirect, case .staged = content {
                    table.see(file.inode, SeenContent(fresh.content, nil))
                }
                let handle = OpenHandle(
                    file: file,
                    mode: mode,
                    content: content,
                    isDirect: isDirect,
                    keepsCache: isSeen
                )
                state.node = fresh
                state.handles.append(handle)
                return handle
            }
        } catch {
            table.leave(file)
            if mode.writes { store.writers.closed(file.inode, hasWritten: false) }
            throw error
        }
    }

    /// Ends a handle that `join` or `openDocument` made.
    func leave(_ handle: OpenHandle) {
        let file = handle.file
        if handle.mode.writes {
            do throws(FileSystemError) { try record(file) } catch {
                // Nothing is lost: the bytes are on the disk and will be found at the next start.
                logger.error(
                    "a closed file was not recorded",
                    metadata: ["inode": "\(file.inode)", "cause": "\(error)"]
                )
            }
        }
        file.state.withLock { state in state.handles.removeAll { $0 === handle } }
        let last = handle.show(.empty)
        close(last)
        table.leave(file)
        if handle.mode.writes {
            store.writers.closed(file.inode, hasWritten: handle.hasWritten)
        }
    }

    /// A file's present content, and the file at that moment; the caller must close it.
    private func content(of node: inout Node) throws(FileSystemError) -> OpenHandle.Content {
        while true {
            do throws(FileSystemError) { return try content(of: node) } catch {
                // The file was uploaded since it was looked up: its staged content is gone.
                guard case .contentDamaged = error, let now = try known(node.inode),
                    now.content != node.content
                else { throw error }
                node = now
            }
        }
    }

    /// A file's content; the caller must close it.
    func content(of node: Node) throws(FileSystemError) -> OpenHandle.Content {
        try FileSystemError.translatingContent { () throws(ContentError) in
            switch node.content {
            case .none: return .empty
            case .staged(let id, _): return .staged(try store.open(staged: id))
            case .revision(let item, let revision):
                return .cached(
                    try store.open(
                        ContentKey(account: node.account, item: item, revision: revision),
                        size: node.size,
                        hash: node.hash
                    )
                )
            }
        }
    }

    func close(_ content: OpenHandle.Content) {
        switch content {
        case .empty: break
        case .cached(let content): store.close(content)
        case .staged(let content): store.close(content)
        }
    }

    public func flush(_ handle: FileHandle) -> Outcome<Void> {
        .now { () throws(FileSystemError) in
            guard let open = table[handle] else { throw .badHandle }
            if open.mode.writes { try record(open.file) }
        }
    }

    public func synchronise(_ handle: FileHandle) -> Outcome<Void> {
        .now { () throws(FileSystemError) in
            guard let open = table[handle] else { throw .badHandle }
            guard open.mode.writes else { return }
            while case .staged(let content) = open.content {
                try FileSystemError.translatingContent { () throws(ContentError) in
                    try content.synchronise()
                }
                // A clone that was begun before does not include it.
                let isShown = open.file.state.withLock { _ in
                    if case .staged(let shown) = open.content { shown === content } else { true }
                }
                if isShown { break }
            }
            try record(open.file)
            try FileSystemError.translating { () throws(CatalogError) in
                try catalog.persist()
            }
        }
    }

    public func synchroniseFolder(_ folder: Inode) -> Outcome<Void> {
        .now { () throws(FileSystemError) in
            try FileSystemError.translating { () throws(CatalogError) in
                try catalog.persist()
            }
        }
    }

    public func release(_ handle: FileHandle) {
        guard let open = table.remove(handle) else { return }
        leave(open)
    }

    /// Records what was written to a file: its size and time, to be pushed.
    func record(_ file: OpenFile) throws(FileSystemError) {
        let (written, modified, count) = file.state.withLock {
            ($0.written, $0.modified, $0.writeCount)
        }
        guard let written else { return }
        let node = try FileSystemError.translatingContent { () throws(ContentError) in
            try written.record(modified: modified ?? .now)
        }
        file.state.withLock { state in
            // What is left when another file takes the name and the catalog forgets this one.
            if let node, node.inode == file.inode {
                state.node = node
            } else {
                // That happened already, or a conflict copy has the content: here only the handles show it.
                state.node.size = written.size
                state.node.modified = modified ?? state.node.modified
            }
            if state.writeCount == count, state.written === written { state.written = nil }
        }
    }

    /// Runs `body` under a file's lock.
    func locked<T: Sendable>(
        _ file: OpenFile,
        _ body: (inout OpenFile.State) throws(FileSystemError) -> T
    ) throws(FileSystemError) -> T {
        let result: Result<T, FileSystemError> = file.state.withLock { state in
            do throws(FileSystemError) { return .success(try body(&state)) } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }
}
