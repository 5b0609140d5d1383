import OortCatalog
import OortContentStore
public import OortModel

extension CloudFileSystem {
    public func lookup(_ name: String, in folder: Inode) -> Outcome<Entry> {
        guard name.utf8.count <= 255 else { return .failure(.nameTooLong) }
        if let outcome = lookupOfSearch(name, in: folder) { return outcome }
        do throws(FileSystemError) {
            let parent = try self.folder(folder)
            if let node = try child(name, of: parent) {
                return .now(.success(try entry(node, foundAs: name)))
            }
            if try isKnown(parent) { return .failure(.notFound) }
            return waiting.later { () async throws(FileSystemError) in
                try await self.find(name, in: parent)
                guard let node = try self.child(name, of: parent) else { throw .notFound }
                return try self.entry(node, foundAs: name)
            }
        } catch { return .failure(error) }
    }

    /// A name that differs in case from the item's own must not be cached: the kernel does not know that
    /// both go when the item goes.
    private func entry(
        _ node: Node,
        foundAs name: String
    ) throws(FileSystemError) -> Entry {
        var entry = try entry(node)
        if !node.name.isSameText(as: name) { entry.validity.entry = .zero }
        return entry
    }

    public func absenceValidity(in folder: Inode) -> Duration {
        // Where `a` and `A` are one name, creating one creates the other.
        guard folder != .root else { return Validity.day.entry }
        do throws(FileSystemError) {
            let folder = try node(folder)
            guard traits(of: folder.account)?.names.comparison == .exact else { return .zero }
            // The feed brings nothing of a folder that may not be listed.
            return folder.permissions.contains(.read) ? Validity.day.entry : .zero
        } catch {
            // Nothing is cached for a folder that cannot be read.
            return .zero
        }
    }

    func child(_ name: String, of folder: Node) throws(FileSystemError) -> Node? {
        try FileSystemError.translating { () throws(CatalogError) in
            try catalog.lookup(name, in: folder)
        }
    }

    public func attributes(of inode: Inode, handle: FileHandle?) -> Outcome<Entry> {
        if let outcome = attributesOfSearch(inode) { return outcome }
        return .now { () throws(FileSystemError) in
            let node = try node(inode)
            return try entry(node, for: handle.flatMap { table[$0] })
        }
    }

    public func list(
        _ folder: Inode,
        after cookie: UInt64,
        limit: Int
    ) -> Outcome<[FolderEntry]> {
        if let outcome = listOfSearch(folder, after: cookie, limit: limit) { return outcome }
        do throws(FileSystemError) {
            let parent = try self.folder(folder)
            let entries = { @Sendable () throws(FileSystemError) -> [FolderEntry] in
                let nodes = try FileSystemError.translating { () throws(CatalogError) in
                    try self.catalog.children(
                        of: folder,
                        after: cookie == 0 ? nil : Inode(cookie),
                        limit: limit
                    )
                }
                return try nodes.map { node throws(FileSystemError) in
                    FolderEntry(
                        name: node.name,
                        cookie: node.inode.rawValue,
                        entry: try self.entry(node)
                    )
                }
            }
            if try isKnown(parent) { return .now(entries) }
            return waiting.later { () async throws(FileSystemError) in
                do throws(FileSystemError) { try await self.list(parent) } catch {
                    // What is known of a folder that may not be listed shows.
                    let isKnownInPart = try FileSystemError.translating {
                        () throws(CatalogError) in try self.catalog.hasChildren(folder)
                    }
                    guard isKnownInPart, !parent.permissions.contains(.read) else { throw error }
                }
                return try entries()
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
            try checkChangeable(inode)
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
            case .shortcut:
                if let path = try shortcutPath(node) { return .now(.success(path)) }
                if try isEnumerated(node.account) {
                    // Looked for once more: the enumeration may just have brought it.
                    return .now(.success(try shortcutPath(node) ?? Self.noTarget(node)))
                }
                guard isConnected(node.account) else { throw .offline }
                return waiting.later { () async throws(FileSystemError) in
                    try await self.awaitTarget(of: node)
                }
            case .symlink:
                if let target = node.target { return .now(.success(try shown(target, of: node))) }
                return waiting.later { () async throws(FileSystemError) in
                    try await self.fetchTarget(of: node)
                }
            default: throw .invalid
            }
        } catch { return .failure(error) }
    }

    /// Waits until the enumeration reports a shortcut's target, or ends.
    private func awaitTarget(of node: Node) async throws(FileSystemError) -> String {
        let step = Duration.milliseconds(200)
        var waited = Duration.zero
        // A program that only lists a folder must not wait as long as a large account takes.
        while waited < Self.patienceForTargets {
            if let path = try shortcutPath(node) { return path }
            if try isEnumerated(node.account) {
                return try shortcutPath(node) ?? Self.noTarget(node)
            }
            do { try await waiting.clock.sleep(for: step) } catch { throw .interrupted }
            waited += step
        }
        throw .timedOut
    }

    private static let patienceForTargets = Duration.seconds(10)

    private func isEnumerated(_ account: AccountID) throws(FileSystemError) -> Bool {
        try FileSystemError.translating { () throws(CatalogError) in
            try catalog.isEnumerated(account)
        }
    }

    /// What a shortcut shows whose target is outside the account, or in the trash: a link that leads
    /// nowhere and says so, since `ls` has no other way to show it.
    private static func noTarget(_ node: Node) -> String {
        "not in this account: \(node.target ?? "?")".replacing("/", with: "∕")
    }

    /// The path from a shortcut to its target, both in the same account; nil when the target is not there
    /// (yet).
    func shortcutPath(_ node: Node) throws(FileSystemError) -> String? {
        try FileSystemError.translating { () throws(CatalogError) in
            guard let parent = node.parent, let id = node.target,
                let target = try catalog.node(remoteID: ItemID(id), account: node.account),
                let there = try catalog.shownPath(of: target.inode),
                let here = try catalog.shownPath(of: parent)
            else { return nil }
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
            bytes = try await content.bytes(0..<min(content.size, Self.longestTarget + 1))
        } catch { throw FileSystemError(error) }
        let target = String(validating: bytes, as: UTF8.self) ?? ""
        guard (1...Self.longestTarget).contains(Int64(bytes.count)), !bytes.contains(0),
            !target.isEmpty
        else { throw try refuseLink(node) }
        let shown = try shown(target, of: node)
        try FileSystemError.translating { () throws(CatalogError) in
            try catalog.learn(size: nil, target: target, of: node.inode)
        }
        return shown
    }

    /// The longest target of a symbolic link, in bytes: `PATH_MAX` with its end.
    private static let longestTarget: Int64 = 4095

    /// A link's target, if the link may be followed.
    private func shown(_ target: String, of node: Node) throws(FileSystemError) -> String {
        guard node.isStrangers else { return target }
        switch settings.links {
        case .all: return target
        case .inside where try staysInside(target, of: node): return target
        case .inside, .own, .off: throw try refuseLink(node)
        }
    }

    /// Shows a link from now on as the file that it is at the service; returns the error that `readlink`
    /// gives for a file.
    private func refuseLink(_ node: Node) throws(FileSystemError) -> FileSystemError {
        try FileSystemError.translating { () throws(CatalogError) in
            try catalog.showAsFile(node.inode)
        }
        return .invalid
    }

    /// Whether a target is relative and, by its text alone, stays inside the account.
    private func staysInside(_ target: String, of node: Node) throws(FileSystemError) -> Bool {
        guard target.utf8.first != UInt8(ascii: "/"), let parent = node.parent else { return false }
        let here = try FileSystemError.translating { () throws(CatalogError) in
            try catalog.shownPath(of: parent)
        }
        guard var depth = here?.count else { return false }
        for part in target.utf8.split(separator: UInt8(ascii: "/")) {
            if part.elementsEqual("..".utf8) {
                depth -= 1
            } else if !part.elementsEqual(".".utf8) {
                depth += 1
            }
            guard depth >= 0 else { return false }
        }
        return true
    }

    // MARK: Room

    public func room(of inode: Inode) -> Outcome<FileSystemRoom> {
        .now { () throws(FileSystemError) in
            let node = try node(inode)
            let accounts = try FileSystemError.translating { () throws(CatalogError) in
                inode == .root
                    ? try catalog.accounts() : try catalog.account(node.account).map { [$0] } ?? []
            }
            var room = FileSystemRoom(total: 0, free: 0, longestName: 255)
            // If no quota is known yet, or there is no limit, the room is what can certainly be written
            // here at once. It is one disk, so it counts once.
            var isBoundless = accounts.isEmpty
            for account in accounts {
                roomIsShown(of: account.id)
                room.total = room.total.addingSaturating(
                    account.quota.map { $0.total ?? $0.used } ?? 0
                )
                if let free = account.quota?.free {
                    room.free = room.free.addingSaturating(free)
                } else {
                    isBoundless = true
                }
            }
            if isBoundless {
                let local = store.freeBytes
                room.total = room.total.addingSaturating(local)
                room.free = room.free.addingSaturating(local)
            }
            return room
        }
    }
}
