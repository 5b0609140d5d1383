public import Logging
public import OortCatalog
public import OortContentStore
public import OortModel
import Synchronization

/// How the file system behaves.
public struct FileSystemSettings: Sendable {
    /// Whether nothing may be changed.
    public var isReadOnly = false
    /// The owner of what has none of its own.
    public var owner: UInt32 = 0
    /// The group of what has none of its own.
    public var group: UInt32 = 0
    /// The permissions that neither items from a service nor the top folder give, 0777.
    public var umask: UInt16 = 0o022
    /// Which link files of the services show as links.
    public var links = LinkPolicy.own
    /// Programs that look at files which no person asked them to open.
    public var onlookers = Onlookers()
    /// Programs that show small pictures of files.
    public var pictureViewers = PictureViewers()
    /// The longest that one operation waits for a service, or for room.
    public var waitLimit = Duration.seconds(120)
    /// For how long after a read the kernel may still hand its bytes on to the program.
    public var readersRest = Duration.seconds(2)

    /// Writable, owned by root, waiting at most two minutes.
    public init() {}
}

/// The mount of all accounts: names and attributes from the catalog, bytes from the content store.
///
/// Isolation: as `FileSystem` says. Nothing is locked while a network is waited for.
public final class CloudFileSystem: FileSystem {
    private struct Connection {
        var traits: ProviderTraits
        var lister: any FolderLister
    }

    let catalog: Catalog
    let store: ContentStore
    let settings: FileSystemSettings
    let waiting: Waiting
    let logger: Logger
    let table = HandleTable()
    let searches = SearchFolders()
    /// How programs' reads were answered.
    public let reads = ReadCounts()
    let folderReads: FolderReadAhead
    private let refusals = NameRefusals()
    private let listings = SharedListings()
    let shares = AskedShares()
    /// The date of the top folder, which has no other.
    private let began = Timestamp.now
    private let connections = Mutex<[AccountID: Connection]>([:])
    let pictures = Mutex<(any PictureBringer)?>(nil)
    /// The accounts in which nothing may be changed.
    private let readOnlyAccounts = Mutex<Set<AccountID>>([])

    /// A file system over a catalog and a content store.
    public init(
        catalog: Catalog,
        store: ContentStore,
        settings: FileSystemSettings = FileSystemSettings(),
        clock: any Clock<Duration> = ContinuousClock(),
        logger: Logger
    ) {
        self.catalog = catalog
        self.store = store
        self.settings = settings
        self.logger = logger
        folderReads = FolderReadAhead(catalog: catalog, store: store)
        waiting = Waiting(limit: settings.waitLimit, clock: clock)
    }

    /// Sets what an account's service accepts and how its folders are listed.
    ///
    /// Before that, its names are not checked, and its unknown folders are offline.
    public func connect(
        _ account: AccountID,
        traits: ProviderTraits,
        lister: any FolderLister
    ) {
        connections.withLock { $0[account] = Connection(traits: traits, lister: lister) }
    }

    /// Removes an account's connection.
    public func disconnect(_ account: AccountID) {
        connections.withLock { $0[account] = nil }
    }

    /// Sets whether nothing may be changed in an account.
    public func setReadOnly(_ isReadOnly: Bool, _ account: AccountID) {
        readOnlyAccounts.withLock { accounts in
            if isReadOnly { accounts.insert(account) } else { accounts.remove(account) }
        }
    }

    /// The names that programs wanted and services refused, the newest last; only a few.
    public var refusedNames: [RefusedName] { refusals.names }

    /// Sets the listener to refused names, which gets each once while it is remembered.
    ///
    /// Called on the thread of the program's request: it must not wait.
    public func setRefusalListener(_ listener: @escaping @Sendable (RefusedName) -> Void) {
        refusals.setListener(listener)
    }

    // MARK: What the operations share

    /// Whether nothing may be changed in an account.
    func isReadOnly(_ account: AccountID) -> Bool {
        settings.isReadOnly || readOnlyAccounts.withLock { $0.contains(account) }
    }

    /// Refuses a change of what is read-only: all of the mount, its own folders, or an account.
    func checkChangeable(_ inode: Inode) throws(FileSystemError) {
        guard !settings.isReadOnly, !inode.isOfMount else { throw .readOnly }
        guard readOnlyAccounts.withLock({ !$0.isEmpty }) else { return }
        guard try !isReadOnly(node(inode).account) else { throw .readOnly }
    }

    func traits(of account: AccountID) -> ProviderTraits? {
        connections.withLock { $0[account]?.traits }
    }

    /// Lists an account's folders at its service; nil while that is not connected.
    func lister(of account: AccountID) -> (any FolderLister)? {
        connections.withLock { $0[account]?.lister }
    }

    func roomIsShown(of account: AccountID) {
        let lister = connections.withLock { $0[account]?.lister }
        lister?.roomIsShown()
    }

    /// The largest file of an account, in bytes: what its service accepts, or what every service accepts
    /// while it is not connected.
    func largestFile(of account: AccountID) -> Int64 {
        min(traits(of: account)?.largestFile ?? .max, ReportedSize.largest)
    }

    func node(_ inode: Inode) throws(FileSystemError) -> Node {
        if let place = SearchPlace(inode) { return try node(of: place) }
        do throws(CatalogError) { return try catalog.node(inode) } catch {
            // A file that was unlinked and is forgotten by now lives on while it is open.
            if error == .notFound, let file = table.openFile(inode) {
                var node = file.state.withLock { $0.node }
                node.parent = nil
                return node
            }
            throw FileSystemError(error)
        }
    }

    func folder(_ inode: Inode) throws(FileSystemError) -> Node {
        let node = try node(inode)
        guard node.kind == .folder else { throw .notAFolder }
        return node
    }

    /// A folder in which an item is to be changed.
    func writableFolder(_ inode: Inode) throws(FileSystemError) -> Node {
        try checkChangeable(inode)
        let folder = try folder(inode)
        guard folder.permissions.contains(.write) else { throw .noPermission }
        return folder
    }

    /// Runs `body` at once when all folders' children are known, else after they were listed; a folder that
    /// may not be listed is not: of the names that matter the kernel has asked by then.
    func whenKnown<T: Sendable>(
        _ folders: [Node],
        _ body: @escaping @Sendable () throws(FileSystemError) -> T
    ) -> Outcome<T> {
        whenKnown(folders, { [] }, then: body)
    }

    /// Runs `check` once the children of these folders are known, or cannot be, then `body` once those of
    /// the folders that it returns are, whatever may be listed.
    func whenKnown<T: Sendable>(
        _ folders: [Node],
        _ check: @escaping @Sendable () throws(FileSystemError) -> [Node],
        then body: @escaping @Sendable () throws(FileSystemError) -> T
    ) -> Outcome<T> {
        do throws(FileSystemError) {
            if try unlisted(folders).isEmpty, try unknown(check()).isEmpty { return .now(body) }
        } catch { return .failure(error) }
        return waiting.later { () async throws(FileSystemError) in
            for folder in try self.unlisted(folders) {
                do throws(FileSystemError) { try await self.list(folder) } catch {
                    guard error == .noPermission else { throw error }
                }
            }
            for folder in try self.unknown(check()) { try await self.list(folder) }
            // Much may have changed meanwhile.
            _ = try check()
            return try body()
        }
    }

    /// The folders that are to be listed before single names in them count.
    private func unlisted(_ folders: [Node]) throws(FileSystemError) -> [Node] {
        try unknown(folders).filter { $0.permissions.contains(.read) }
    }

    private func unknown(_ folders: [Node]) throws(FileSystemError) -> [Node] {
        var found: [Node] = []
        for folder in folders where try !isKnown(folder) { found.append(folder) }
        return found
    }

    /// Whether an account's service can be asked.
    func isConnected(_ account: AccountID) -> Bool {
        connections.withLock { $0[account] != nil }
    }

    func isKnown(_ folder: Node) throws(FileSystemError) -> Bool {
        guard folder.kind == .folder, folder.inode != .root else { return true }
        return try FileSystemError.translating { () throws(CatalogError) in
            try catalog.isKnown(folder: folder)
        }
    }

    /// Lists an unknown folder; shared by all who need it.
    func list(_ folder: Node) async throws(FileSystemError) {
        guard let lister = connections.withLock({ $0[folder.account]?.lister }) else {
            throw .offline
        }
        do throws(ProviderError) { try await listings.list(folder.inode, by: lister) } catch {
            throw FileSystemError(error)
        }
    }

    /// Makes known what has a name in an unknown folder: by listing that or, where it may not be listed, by
    /// asking for the name alone.
    func find(_ name: String, in folder: Node) async throws(FileSystemError) {
        if folder.permissions.contains(.read) {
            do throws(FileSystemError) { return try await list(folder) } catch {
                guard error == .noPermission else { throw error }
            }
        }
        guard let lister = lister(of: folder.account) else { throw .offline }
        do throws(ProviderError) { try await lister.find(name, in: folder.inode) } catch {
            throw FileSystemError(error)
        }
    }

    /// Has the news of one item applied at once; if that fails, the feed brings them.
    func look(at inode: Inode) async {
        func notAsked(_ error: any Error) {
            logger.info(
                "an item was not asked for",
                metadata: ["inode": "\(inode)", "error": "\(error)"]
            )
        }
        let account: AccountID
        do throws(CatalogError) { account = try catalog.node(inode).account } catch {
            return notAsked(error)
        }
        guard let lister = connections.withLock({ $0[account]?.lister }) else { return }
        do throws(ProviderError) { try await lister.look(at: inode) } catch { notAsked(error) }
    }

    /// Refuses a name that the file system or the account's service does not accept.
    ///
    /// `isAtService` says whether the service has an existing item; one that it does not have, and that
    /// stays here under its new name, can have any.
    func check(
        _ name: String,
        kind: NodeKind,
        in folder: Node,
        isAtService: Bool = false
    ) throws(FileSystemError) {
        guard name.utf8.count <= 255 else { throw .nameTooLong }
        guard !name.isEmpty, !name.utf8.contains(where: { $0 == 0 || $0 == 0x2F }) else {
            throw .invalid
        }
        let isLeftOut = try FileSystemError.translating { () throws(CatalogError) in
            try catalog.leavesOut(name, in: folder)
        }
        guard !isLeftOut else { throw .notPermitted }
        guard !kind.isLocalOnly, let traits = traits(of: folder.account) else { return }
        if !isAtService {
            let staysHere = try FileSystemError.translating { () throws(CatalogError) in
                try catalog.staysHere(name, kind: kind, in: folder)
            }
            if staysHere { return }
        }
        let place = try place(of: folder)
        let stored = kind == .symlink ? LinkName.file(name) : name
        if let longest = traits.names.longestPath, place.length + stored.utf16.count > longest {
            throw .nameTooLong
        }
        let refusal = traits.names.refusal(
            stored,
            kind == .folder ? .folder : .file,
            place.depth
        )
        switch refusal {
        case .refused(let reason): throw refuse(name, in: folder, reason)
        case .tooLong: throw .nameTooLong
        case nil: return
        }
    }

    /// The error for a name that the service does not take, of which `status` and `watch` say why.
    func refuse(_ name: String, in folder: Node, _ reason: String) -> FileSystemError {
        let refused = RefusedName(
            account: folder.account,
            folder: folder.inode,
            name: name,
            reason: reason,
            time: .now
        )
        if refusals.note(refused) {
            logger.notice(
                "a name was refused",
                metadata: ["name": "\(name)", "inode": "\(folder.inode)", "reason": "\(reason)"]
            )
        }
        return .nameRefused(reason: reason)
    }

    /// How many folders there are from an account's root down to this one, itself included, and how many
    /// UTF-16 units their names have at the service, each with a slash.
    private func place(of folder: Node) throws(FileSystemError) -> (depth: Int, length: Int) {
        var (depth, length) = (0, 0)
        var next = folder
        while !next.isAccountRoot, let parent = next.parent, parent != .root, depth < 10_000 {
            depth += 1
            length += next.serviceName.utf16.count + 1
            next = try node(parent)
        }
        return (depth, length)
    }

    // MARK: Attributes

    /// What `stat` says of a document that was never exported.
    private static let sizeBeforeExport: Int64 = 4096

    /// What the mount answers when the kernel asks about a file; `handle` is the one that it asks through.
    func entry(_ node: Node, for handle: OpenHandle? = nil) throws(FileSystemError) -> Entry {
        let isFixed =
            node.kind != .nativeDocument && node.kind != .shortcut
            && table.openFile(node.inode)?.differs(from: node) != true
        return Entry(
            attributes: try attributes(of: node, for: handle),
            generation: node.generation,
            validity: SearchPlace(node.inode).map { validity(of: $0) }
                ?? (isFixed ? .day : .sizeUnknown)
        )
    }

    func attributes(
        of node: Node,
        for handle: OpenHandle? = nil
    ) throws(FileSystemError) -> FileAttributes {
        var size = node.kind == .folder ? 0 : node.size
        var modified = node.modified
        if let open = table.openFile(node.inode) {
            if let live = open.live(node) { (size, modified) = live }
            if node.kind == .file {
                let rest = settings.readersRest
                size = open.sizeToGive(of: node, size, for: handle, rest: rest)
            }
        }
        let kind: FileKind
        var mode: UInt16
        switch node.kind {
        case .folder: (kind, mode) = (.folder, 0o777 & ~settings.umask)
        case .file: (kind, mode) = (.file, 0o666 & ~settings.umask)
        case .nativeDocument:
            (kind, mode) = (.file, 0o444 & ~settings.umask)
            // The length of an export is not known before it is made. `tar`, `find -empty` and others do
            // not even open an empty file, and so would lose it.
            if size == 0 { size = Self.sizeBeforeExport }
        case .symlink:
            (kind, mode) = (.symlink, 0o777)
            if let target = node.target { size = Int64(target.utf8.count) }
        case .shortcut:
            (kind, mode) = (.symlink, 0o777)
            size = Int64(try shortcutPath(node)?.utf8.count ?? 0)
        case .fifo: (kind, mode) = (.fifo, 0o666 & ~settings.umask)
        case .socket: (kind, mode) = (.socket, 0o666 & ~settings.umask)
        }
        if let own = node.mode, kind != .symlink { mode = own }
        if kind != .symlink, node.kind == .nativeDocument || !node.permissions.contains(.write) {
            mode &= ~0o222
        }
        var changed = max(node.changed, node.modified)
        if node.inode == .root {
            (mode, modified, changed) = (0o555 & ~settings.umask, began, began)
        }
        let isLinked = node.parent != nil || node.inode == .root
        return FileAttributes(
            inode: node.inode,
            kind: kind,
            size: size,
            blocks: FileAttributes.blocks(ofSize: size),
            modified: modified,
            changed: changed,
            accessed: node.accessed ?? modified,
            mode: mode,
            owner: node.owner ?? settings.owner,
            group: node.group ?? settings.group,
            linkCount: kind == .folder || isLinked ? 1 : 0
        )
    }
}
