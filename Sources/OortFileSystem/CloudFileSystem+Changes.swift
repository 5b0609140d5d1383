public import OortCatalog
import OortContentStore
public import OortModel
import Synchronization

extension CloudFileSystem {
    public func makeFolder(
        _ name: String, in folder: Inode, permissions: UInt16, caller: Caller
    ) -> Outcome<Entry> {
        make(
            NewNode(
                kind: .folder, mode: permissions, owner: caller.owner, group: caller.group),
            named: name, in: folder)
    }

    public func makeSpecial(
        _ name: String, kind: SpecialKind, in folder: Inode, permissions: UInt16, caller: Caller
    ) -> Outcome<Entry> {
        let nodeKind: NodeKind
        switch kind {
        case .file: nodeKind = .file
        case .fifo: nodeKind = .fifo
        case .socket: nodeKind = .socket
        case .device: return .failure(.notPermitted)
        }
        return make(
            NewNode(
                kind: nodeKind, mode: permissions, owner: caller.owner, group: caller.group),
            named: name, in: folder)
    }

    public func makeLink(
        _ name: String, to target: String, in folder: Inode, caller: Caller
    ) -> Outcome<Entry> {
        guard !target.isEmpty else { return .failure(.notFound) }
        guard target.utf8.count < 4096 else { return .failure(.nameTooLong) }
        return make(
            NewNode(
                kind: .symlink, mode: 0o777, owner: caller.owner, group: caller.group,
                target: target),
            named: name, in: folder)
    }

    private func make(_ new: NewNode, named name: String, in folder: Inode) -> Outcome<Entry> {
        do throws(FileSystemError) {
            let parent = try writableFolder(folder)
            try check(name, kind: new.kind, in: parent)
            return whenKnown([parent]) { () throws(FileSystemError) in
                self.entry(
                    try FileSystemError.translating { () throws(CatalogError) in
                        try self.catalog.create(new, named: name, in: folder)
                    })
            }
        } catch { return .failure(error) }
    }

    public func unlink(_ name: String, in folder: Inode) -> Outcome<Void> {
        remove(name, in: folder) { () throws(CatalogError) in
            let node = try self.catalog.unlink(name, in: folder)
            self.table.openFile(node.inode)?.state.withLock { $0.node = node }
        }
    }

    public func removeFolder(_ name: String, in folder: Inode) -> Outcome<Void> {
        remove(name, in: folder) { () throws(CatalogError) in
            _ = try self.catalog.removeFolder(name, in: folder)
        }
    }

    private func remove(
        _ name: String, in folder: Inode,
        _ body: @escaping @Sendable () throws(CatalogError) -> Void
    ) -> Outcome<Void> {
        do throws(FileSystemError) {
            let parent = try removableFolder(folder)
            var unknown = [parent]
            if let node = try child(name, of: parent) {
                try checkRemoval(of: node)
                if node.kind == .folder { unknown.append(node) }
            }
            return whenKnown(unknown) { () throws(FileSystemError) in
                try FileSystemError.translating(body)
            }
        } catch { return .failure(error) }
    }

    public func rename(
        _ name: String, in folder: Inode, to newName: String, in newFolder: Inode,
        mode: RenameMode
    ) -> Outcome<Void> {
        do throws(FileSystemError) {
            let source = try removableFolder(folder)
            let target = try removableFolder(newFolder)
            guard source.account == target.account else { throw .otherAccount }
            var unknown = [source, target]
            let node = try child(name, of: source)
            let other = try child(newName, of: target)
            if let node {
                guard node.kind.isLocalOnly || node.permissions.contains(.write) else {
                    throw .noPermission
                }
                if folder != newFolder || !name.isSameText(as: newName) {
                    try check(newName, kind: node.kind, in: target)
                }
                if folder != newFolder, !target.permissions.contains(.write) {
                    throw .noPermission
                }
            }
            if let other, other.inode != node?.inode {
                if mode == .replace { try checkRemoval(of: other) }
                if mode == .exchange { try check(name, kind: other.kind, in: source) }
                if other.kind == .folder { unknown.append(other) }
            }
            return whenKnown(unknown) { () throws(FileSystemError) in
                _ = try FileSystemError.translating { () throws(CatalogError) in
                    try self.catalog.rename(
                        name, in: folder, to: newName, in: newFolder, mode: mode)
                }
            }
        } catch { return .failure(error) }
    }

    /// A folder out of which something is to go.
    private func removableFolder(_ inode: Inode) throws(FileSystemError) -> Node {
        guard !settings.isReadOnly, inode != .root else { throw .readOnly }
        return try folder(inode)
    }

    private func checkRemoval(of node: Node) throws(FileSystemError) {
        guard node.kind.isLocalOnly || node.permissions.contains(.delete) else {
            throw .noPermission
        }
    }

    // MARK: Attributes

    public func setAttributes(
        _ setting: AttributeSetting, of inode: Inode, handle: FileHandle?
    ) -> Outcome<Entry> {
        do throws(FileSystemError) {
            guard !settings.isReadOnly, inode != .root else { throw .readOnly }
            let node = try node(inode)
            guard let size = setting.size else {
                return .now { () throws(FileSystemError) in
                    try self.apply(setting, to: node)
                }
            }
            guard node.kind != .folder else { throw .isAFolder }
            guard node.kind == .file else { throw .noPermission }
            guard size >= 0 else { throw .invalid }
            return resize(node, to: size, handle: handle) { () throws(FileSystemError) in
                try self.apply(setting, to: try self.node(inode))
            }
        } catch { return .failure(error) }
    }

    private func apply(
        _ setting: AttributeSetting, to node: Node
    ) throws(FileSystemError) -> Entry {
        let now = Timestamp.now
        func time(_ time: AttributeSetting.Time?) -> Timestamp? {
            switch time {
            case nil: nil
            case .now: now
            case .at(let time): time
            }
        }
        var change = NodeAttributes()
        change.mode = setting.mode.map { $0 & 0o7777 }
        change.owner = setting.owner
        change.group = setting.group
        change.modified = time(setting.modified)
        change.accessed = time(setting.accessed)
        guard change != NodeAttributes() else { return entry(node) }
        var changed = node
        do throws(CatalogError) {
            changed = try catalog.setAttributes(change, of: node.inode)
        } catch {
            // Unlinked and forgotten: what is open keeps what was set while it is open.
            guard error == .notFound, table.openFile(node.inode) != nil else {
                throw FileSystemError(error)
            }
            changed.mode = change.mode ?? node.mode
            changed.modified = change.modified ?? node.modified
        }
        if let file = table.openFile(node.inode) {
            file.state.withLock { state in
                state.node = changed
                if let modified = change.modified { state.modified = modified }
            }
        }
        return entry(changed)
    }
}
