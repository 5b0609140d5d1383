import OortCatalog
import OortContentStore
public import OortModel

extension CloudFileSystem {
    public func lookup(_ name: String, in folder: Inode) -> Outcome<Entry> {
        guard name.utf8.count <= 255 else { return .failure(.nameTooLong) }
        do throws(FileSystemError) {
            let parent = try self.folder(folder)
            if let node = try child(name, of: parent) { return .now(.success(entry(node))) }
            return whenKnown([parent]) { () throws(FileSystemError) in
                guard let node = try self.child(name, of: parent) else { throw .notFound }
                return self.entry(node)
            }
        } catch { return .failure(error) }
    }

    func child(_ name: String, of folder: Node) throws(FileSystemError) -> Node? {
        try FileSystemError.translating { () throws(CatalogError) in
            try catalog.lookup(name, in: folder)
        }
    }

    public func attributes(of inode: Inode, handle: FileHandle?) -> Outcome<Entry> {
        .now { () throws(FileSystemError) in entry(try node(inode)) }
    }

    public func list(
        _ folder: Inode, after cookie: UInt64, limit: Int
    ) -> Outcome<[FolderEntry]> {
        do throws(FileSystemError) {
            let parent = try self.folder(folder)
            return whenKnown([parent]) { () throws(FileSystemError) in
                let nodes = try FileSystemError.translating { () throws(CatalogError) in
                    try self.catalog.children(
                        of: folder, after: cookie == 0 ? nil : Inode(cookie), limit: limit)
                }
                return nodes.map { node in
                    FolderEntry(
                        name: node.name, cookie: node.inode.rawValue, entry: self.entry(node))
                }
            }
        } catch { return .failure(error) }
    }

    public func parent(of folder: Inode) -> Outcome<Inode> {
        .now { () throws(FileSystemError) in try node(folder).parent ?? .root }
    }

    public func checkAccess(of inode: Inode, writes: Bool) -> Outcome<Void> {
        .now { () throws(FileSystemError) in
            let node = try node(inode)
            guard writes else { return }
            guard !settings.isReadOnly, inode != .root else { throw .readOnly }
            guard node.kind != .nativeDocument, node.permissions.contains(.write) else {
                throw .noPermission
            }
        }
    }

    // MARK: Links

    public func readLink(_ inode: Inode) -> Outcome<String> {
        do throws(FileSystemError) {
            let node = try node(inode)
            switch node.kind {
            case .shortcut: return .now(.success(try shortcutPath(node)))
            case .symlink:
                if let target = node.target { return .now(.success(target)) }
                return waiting.later { () async throws(FileSystemError) in
                    try await self.fetchTarget(of: node)
                }
            default: throw .invalid
            }
        } catch { return .failure(error) }
    }

    /// The way from a shortcut to its target, both in the same account.
    func shortcutPath(_ node: Node) throws(FileSystemError) -> String {
        try FileSystemError.translating { () throws(CatalogError) in
            guard let parent = node.parent, let id = node.target,
                let target = try catalog.node(remoteID: ItemID(id), account: node.account),
                let there = try catalog.shownPath(of: target.inode),
                let here = try catalog.shownPath(of: parent)
            else { throw .notFound }
            let shared = zip(here, there).prefix { $0.isSameText(as: $1) }.count
            let parts =
                Array(repeating: "..", count: here.count - shared) + there.dropFirst(shared)
            return parts.isEmpty ? "." : parts.joined(separator: "/")
        }
    }

    private func fetchTarget(of node: Node) async throws(FileSystemError) -> String {
        guard case .revision(let item, let revision) = node.content else { throw .revisionGone }
        let key = ContentKey(account: node.account, item: item, revision: revision)
        let bytes: [UInt8]
        do throws(ContentError) {
            let content = try store.open(key, size: node.size, hash: node.hash)
            defer { store.close(content) }
            bytes = try await content.bytes(0..<min(content.size, 4096))
        } catch { throw FileSystemError(error) }
        guard let target = String(validating: bytes, as: UTF8.self), !target.isEmpty else {
            throw .contentDamaged(detail: "the link file is no text")
        }
        try FileSystemError.translating { () throws(CatalogError) in
            try catalog.learn(size: nil, target: target, of: node.inode)
        }
        return target
    }

    // MARK: Room

    public func room(of inode: Inode) -> Outcome<FileSystemRoom> {
        .now { () throws(FileSystemError) in
            let node = try node(inode)
            let quotas = try FileSystemError.translating { () throws(CatalogError) in
                inode == .root
                    ? try catalog.accounts().compactMap(\.quota)
                    : try catalog.account(node.account)?.quota.map { [$0] } ?? []
            }
            // Nothing heard yet, or no limit: as large as can be shown without surprises.
            let boundless: Int64 = 1 << 50
            var room = FileSystemRoom(total: 0, free: 0, longestName: 255)
            for quota in quotas {
                let total = quota.total ?? quota.used + boundless
                room.total += total
                room.free += max(total - quota.used, 0)
            }
            if quotas.isEmpty { (room.total, room.free) = (boundless, boundless) }
            return room
        }
    }
}
