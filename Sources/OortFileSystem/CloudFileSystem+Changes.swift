import Logging
public import OortCatalog
import OortContentStore
public import OortModel
import Synchronization

extension CloudFileSystem {
    public func makeFolder(
        _ name: String,
        in folder: Inode,
        permissions: UInt16,
        caller: Caller
    ) -> Outcome<Entry> {
        if let outcome = makeFolderAtService(name, in: folder) { return outcome }
        return make(
            NewNode(
                kind: .folder,
                mode: permissions,
                owner: caller.owner,
                group: caller.group
            ),
            named: name,
            in: folder
        )
    }

    public func makeSpecial(
        _ name: String,
        kind: SpecialKind,
        in folder: Inode,
        permissions: UInt16,
        caller: Caller
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
                kind: nodeKind,
                mode: permissions,
                owner: caller.owner,
                group: caller.group
            ),
            named: name,
            in: folder
        )
    }

    public func makeLink(
        _ name: String,
        to target: String,
        in folder: Inode,
        caller: Caller
    ) -> Outcome<Entry> {
        guard settings.links != .off else { return .failure(.notPermitted) }
        guard !target.isEmpty else { return .failure(.notFound) }
        guard target.utf8.count < 4096 else { return .failure(.nameTooLong) }
        return make(
            NewNode(
                kind: .symlink,
                mode: 0o777,
                owner: caller.owner,
                group: caller.group,
                target: target
            ),
            named: name,
            in: folder
        )
    }

    private func make(_ new: NewNode, named name: String, in folder: Inode) -> Outcome<Entry> {
        do throws(FileSystemError) {
            let parent = try writableFolder(folder)
            try check(name, kind: new.kind, in: parent)
            return whenKnown([parent]) { () throws(FileSystemError) in
                try self.entry(
                    try FileSystemError.translating { () throws(CatalogError) in
                        try self.catalog.create(new, named: name, in: folder)
                    }
                )
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
            try self.emptyFilledFolder(name, in: folder)
            _ = try self.catalog.removeFolder(name, in: folder)
        }
    }

    private func remove(
        _ name: String,
        in folder: Inode,
        _ body: @escaping @Sendable () throws(CatalogError) -> Void
    ) -> Outcome<Void> {
        do throws(FileSystemError) {
            let parent = try removableFolder(folder)
            return whenKnown([parent]) { () throws(FileSystemError) in
                guard let node = try self.child(name, of: parent) else { throw .notFound }
                try self.checkRemoval(of: node)
                return node.kind == .folder ? [node] : []
            } then: { () throws(FileSystemError) in
                try FileSystemError.translating(body)
            }
        } catch { return .failure(error) }
    }

    public func rename(
        _ name: String,
        in folder: Inode,
        to newName: String,
        in newFolder: Inode,
        mode: RenameMode
    ) -> Outcome<Void> {
        do throws(FileSystemError) {
            let source = try removableFolder(folder)
            let target = try removableFolder(newFolder)
            guard source.account == target.account else { throw .otherAccount }
            return whenKnown([source, target]) { () throws(FileSystemError) in
                try self.checkRename(name, in: source, to: newName, in: target, mode: mode)
            } then: { () throws(FileSystemError) in
                _ = try FileSystemError.translating { () throws(CatalogError) in
                    try self.catalog.rename(
                        name,
                        in: folder,
                        to: newName,
                        in: newFolder,
                        mode: mode
                    )
                }
            }
        } catch { return .failure(error) }
    }

    /// Refuses a rename that the service would refuse; returns the folder to be replaced, whose children
    /// must be known, too.
    ///
    /// A missing old name is reported first, as `rename` does: only then is the new name checked.
    private func checkRename(
        _ name: String,
        in source: Node,
        to newName: String,
        in target: Node,
        mode: RenameMode
    ) throws(FileSystemError) -> [Node] {
        guard let node = try child(name, of: source) else { throw .notFound }
        guard node.kind.isLocalOnly || node.permissions.contains(.write) else {
            throw .noPermission
        }
        let isMoved = source.inode != target.inode
        if isMoved || !name.isSameText(as: newName) {
            try check(newName, kind: node.kind, in: target, isAtService: node.remoteID != nil)
        }
        if isMoved, !target.permissions.contains(.write) { throw .noPermission }
        try checkStays(node, newName: newName, in: target)
        guard let other = try child(newName, of: target), other.inode != node.inode else {
            return []
        }
        if mode == .replace { try checkRemoval(of: other) }
        if mode == .exchange {
            try check(name, kind: other.kind, in: source, isAtService: other.remoteID != nil)
            try checkStays(other, newName: name, in: source)
        }
        return other.kind == .folder ? [other] : []
    }

    /// Refuses to rename a folder if something that is not shown lies below its old or its new place.
    ///
    /// Items are hidden by path: they would be shown at another one, or others would be hidden.
    func checkStays(
        _ node: Node,
        newName: String,
        in target: Node
    ) throws(FileSystemError) {
        guard node.kind == .folder else { return }
        let isBound = try FileSystemError.translating { () throws(CatalogError) in
            if try catalog.hasLeftOut(below: node) { return true }
            return try catalog.wouldLeaveOut(below: newName, in: target)
        }
        guard !isBound else { throw .notPermitted }
    }

    /// A folder from which something is to be removed.
    func removableFolder(_ inode: Inode) throws(FileSystemError) -> Node {
        try checkChangeable(inode)
        return try folder(inode)
    }

    private func checkRemoval(of node: Node) throws(FileSystemError) {
        guard node.kind.isLocalOnly || node.permissions.contains(.delete) else {
            throw .noPermission
        }
        // Items with which a service fills its folders can be removed only with the folder.
        guard node.kind != .nativeDocument || traits(of: node.account)?.fillsFolders != true else {
            throw .noPermission
        }
    }

    // MARK: Attributes

    public func setAttributes(
        _ setting: AttributeSetting,
        of inode: Inode,
        handle: FileHandle?
    ) -> Outcome<Entry> {
        do throws(FileSystemError) {
            try checkChangeable(inode)
            let node = try node(inode)
            guard let size = setting.size else {
                return .now { () throws(FileSystemError) in
                    try self.apply(setting, to: node)
                }
            }
            guard node.kind != .folder else { throw .isAFolder }
            guard node.kind == .file else { throw .noPermission }
            guard size >= 0 else { throw .invalid }
            var rest = setting
            // Cutting a file to its own size modifies it, too.
            if size > 0, size == table.openFile(inode)?.live(node)?.size ?? node.size {
                rest.modified = rest.modified ?? .now
            }
            return resize(node, to: size, handle: handle) {
                [rest] () throws(FileSystemError) in
                try self.apply(rest, to: try self.node(inode))
            }
        } catch { return .failure(error) }
    }

    func apply(
        _ setting: AttributeSetting,
        to node: Node
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
        if setting.owner != nil || setting.group != nil || setting.size != nil {
            change.mode = node.modeWithoutPrivileges(change.mode) ?? change.mode
        }
        change.owner = setting.owner
        change.group = setting.group
        change.modified = time(setting.modified)
        change.accessed = time(setting.accessed)
        guard change != NodeAttributes() else { return try entry(node) }
        var changed = node
        do throws(CatalogError) {
            changed = try catalog.setAttributes(change, of: node.inode)
        } catch {
            // The file is unlinked and forgotten: its attributes live as long as it is open.
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
        return try entry(changed)
    }
}

/// Any change of content or owner removes the right to act as the file's owner or group; the kernel leaves
/// that to us (HANDLE_KILLPRIV_V2).
extension CloudFileSystem {
    /// Clears the bits of a file that was just changed.
    func clearPrivileges(of file: OpenFile) {
        let node = file.state.withLock { $0.node }
        guard let mode = node.modeWithoutPrivileges() else { return }
        var change = NodeAttributes()
        change.mode = mode
        do throws(CatalogError) {
            // The kernel caches the mode apart from what it knows to change with a write.
            let changed = try catalog.setAttributes(change, of: file.inode, tellsKernel: true)
            file.state.withLock { $0.node = changed }
        } catch {
            // The file is unlinked and forgotten: it cannot be run by a name.
            guard error != .notFound else { return }
            logger.error(
                "set-user-ID bits of a changed file were not cleared",
                metadata: ["inode": "\(file.inode)", "cause": "\(error)"]
            )
        }
    }
}

extension Node {
    /// The file's mode without set-user-ID, and without set-group-ID where it means that; nil when
    /// it has neither.
    func modeWithoutPrivileges(_ given: UInt16? = nil) -> UInt16? {
        guard kind == .file, let mode = given ?? mode else { return nil }
        var cleared = mode & ~0o4000
        // Without the group's execute bit, set-group-ID stands for mandatory locking.
        if mode & 0o010 != 0 { cleared &= ~0o2000 }
        return cleared == mode ? nil : cleared
    }
}
