import Logging
public import OortCatalog
import OortContentStore
public import OortModel
import Synchronization

/// What the trash of the desktop needs of the accounts' services.
public struct TrashService: Sendable {
    /// Whether an account's service keeps deleted items; for a given item, whether it keeps that one.
    public var keepsDeleted: @Sendable (AccountID, ItemID?) -> Bool
    /// What tells an item's entry in its account's trash from every other; nil where its id does, or nothing.
    public var mark: @Sendable (AccountID, ItemID) -> String?
    /// Restores an item under a name into a folder of its account, and returns when it is there.
    public var restore: @Sendable (TrashedNode, String, Node) async throws(FileSystemError) -> Void
    /// Whether such a restore is under way or stopped in the middle, so that a part of the item is there.
    public var isInPart: @Sendable (TrashedNode, String, Node) -> Bool

    /// A service with all of its parts.
    public init(
        keepsDeleted: @escaping @Sendable (AccountID, ItemID?) -> Bool,
        mark: @escaping @Sendable (AccountID, ItemID) -> String?,
        restore:
            @escaping @Sendable (TrashedNode, String, Node) async throws(FileSystemError) -> Void,
        isInPart: @escaping @Sendable (TrashedNode, String, Node) -> Bool
    ) {
        self.keepsDeleted = keepsDeleted
        self.mark = mark
        self.restore = restore
        self.isInPart = isInPart
    }
}

/// The mount with the trash folder that desktops look for at a mount's root, `.Trash-UID` of the
/// freedesktop.org trash specification: an item that is moved into its `files` is deleted, and so goes to
/// the service's trash; one that is moved out of it is restored.
///
/// The folder is never listed, like `.search`. `files` and `info` show what was deleted in this way. The
/// contents of these items cannot be read; one that is deleted there is no longer shown, and stays in the
/// service's trash. Everything else is the file system's below.
///
/// Isolation: as `FileSystem` says.
public final class TrashFileSystem: FileSystem {
    /// How files of `info` end.
    static let infoEnding = ".trashinfo"
    /// The longest wait for a restore: the kernel locks both folders meanwhile.
    private static let patience = Duration.seconds(45)

    let files: CloudFileSystem
    let service: TrashService
    let notes = TrashNotes()
    private let name: String
    private let restoring: Waiting
    private let restores = Mutex<
        [RestorePlace: Task<Result<Void, FileSystemError>, Never>]
    >([:])
    private let shown = Mutex<(state: [Int64], changed: Timestamp)>(([], .now))

    /// A trash of the person who owns the mount.
    public init(
        _ files: CloudFileSystem,
        service: TrashService,
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.files = files
        self.service = service
        name = ".Trash-\(files.settings.owner)"
        restoring = Waiting(limit: min(Self.patience, files.settings.waitLimit), clock: clock)
    }

    /// Which item comes back where.
    private struct RestorePlace: Hashable {
        let item: Int64
        let folder: Inode
        let name: ExactText
    }

    // MARK: What the operations share

    func trashed(_ id: Int64) throws(FileSystemError) -> TrashedNode {
        let found = try FileSystemError.translating { () throws(CatalogError) in
            try files.catalog.trashed(id)
        }
        guard let found else { throw .notFound }
        return found
    }

    private func trashed(named name: String) throws(FileSystemError) -> TrashedNode? {
        try FileSystemError.translating { () throws(CatalogError) in
            try files.catalog.trashed(named: name)
        }
    }

    /// What a file of `info` holds.
    func bytes(of place: TrashPlace) throws(FileSystemError) -> [UInt8] {
        switch place {
        case .infoOfItem(let id): return try trashed(id).info
        case .note(let number):
            guard let note = notes[number] else { throw .revisionGone }
            return note.bytes
        case .top, .files, .info, .expunged: throw .isAFolder
        case .item: throw .noPermission
        }
    }

    /// When what the folders show last changed.
    private func changed() throws(FileSystemError) -> Timestamp {
        let state = try FileSystemError.translating { () throws(CatalogError) in
            try files.catalog.trashedState()
        }
        let mine = state + notes.all.map(\.number)
        return shown.withLock { shown in
            if shown.state != mine { shown = (mine, max(.now, shown.changed.later)) }
            return shown.changed
        }
    }

    func entry(_ place: TrashPlace) throws(FileSystemError) -> Entry {
        switch place {
        case .top, .files, .info, .expunged:
            return entry(place, .folder, size: 0, modified: try changed(), mode: 0o700)
        case .item(let id): return entry(try trashed(id))
        case .infoOfItem(let id): return infoEntry(try trashed(id))
        case .note(let number):
            guard let note = notes[number] else { throw .notFound }
            return entry(note)
        }
    }

    private func entry(_ item: TrashedNode) -> Entry {
        entry(
            .item(item.id),
            item.kind == .folder ? .folder : .file,
            size: item.kind == .folder ? 0 : item.size,
            modified: item.modified,
            // A folder that is to move must be writable (`man 2 rename`, EACCES).
            mode: item.kind == .folder ? 0o700 : 0o400
        )
    }

    private func infoEntry(_ item: TrashedNode) -> Entry {
        entry(
            .infoOfItem(item.id),
            .file,
            size: Int64(item.info.count),
            modified: item.deleted,
            mode: 0o400
        )
    }

    func entry(_ note: TrashNotes.Note) -> Entry {
        entry(
            .note(note.number),
            .file,
            size: Int64(note.bytes.count),
            modified: note.modified,
            mode: 0o600
        )
    }

    private func entry(
        _ place: TrashPlace,
        _ kind: FileKind,
        size: Int64,
        modified: Timestamp,
        mode: UInt16
    ) -> Entry {
        Entry(
            attributes: FileAttributes(
                inode: place.inode,
                kind: kind,
                size: size,
                blocks: FileAttributes.blocks(ofSize: size),
                modified: modified,
                changed: modified,
                accessed: modified,
                mode: mode,
                owner: files.settings.owner,
                group: files.settings.group,
                linkCount: 1
            ),
            // What it shows changes without a notice to the kernel.
            validity: Validity(entry: .zero, attributes: .zero)
        )
    }

    // MARK: Names

    public func lookup(_ name: String, in folder: Inode) -> Outcome<Entry> {
        if folder == .root, name.isSameText(as: self.name), !files.settings.isReadOnly {
            return .now { () throws(FileSystemError) in try entry(.top) }
        }
        guard let place = TrashPlace(folder) else { return files.lookup(name, in: folder) }
        return .now { () throws(FileSystemError) in
            switch place {
            case .top:
                switch name {
                case "files": return try entry(.files)
                case "info": return try entry(.info)
                case "expunged": return try entry(.expunged)
                default: throw .notFound
                }
            case .files:
                guard let item = try trashed(named: name) else { throw .notFound }
                return entry(item)
            case .info:
                if let note = notes.note(named: name) { return entry(note) }
                guard let item = try itemOfInfo(name) else { throw .notFound }
                return infoEntry(item)
            case .expunged: throw .notFound
            case .item, .infoOfItem, .note: throw .notAFolder
            }
        }
    }

    private func itemOfInfo(_ name: String) throws(FileSystemError) -> TrashedNode? {
        guard name.utf8.count > Self.infoEnding.utf8.count,
            name.utf8.suffix(Self.infoEnding.utf8.count).elementsEqual(Self.infoEnding.utf8)
        else { return nil }
        return try trashed(named: String(name.dropLast(Self.infoEnding.count)))
    }

    public func list(
        _ folder: Inode,
        after cookie: UInt64,
        limit: Int
    ) -> Outcome<[FolderEntry]> {
        guard let place = TrashPlace(folder) else {
            return files.list(folder, after: cookie, limit: limit)
        }
        return .now { () throws(FileSystemError) in
            switch place {
            case .top:
                return try ["files", "info"].enumerated().dropFirst(Int(clamping: cookie)).map {
                    index,
                    name throws(FileSystemError) in
                    FolderEntry(
                        name: name,
                        cookie: UInt64(index) + 1,
                        entry: try entry(index == 0 ? .files : .info)
                    )
                }
            case .files:
                return try page(after: cookie, limit).map {
                    FolderEntry(name: $0.name, cookie: UInt64($0.id), entry: entry($0))
                }
            case .info: return try infos(after: cookie, limit)
            case .expunged: return []
            case .item, .infoOfItem, .note: throw .noPermission
            }
        }
    }

    public func listingBegins(_ folder: Inode, thread: Int32) {
        if TrashPlace(folder) == nil { files.listingBegins(folder, thread: thread) }
    }

    private func page(after id: UInt64, _ limit: Int) throws(FileSystemError) -> [TrashedNode] {
        try FileSystemError.translating { () throws(CatalogError) in
            try files.catalog.trashed(after: Int64(clamping: id), limit: limit)
        }
    }

    /// What lies beside something first, then the rest.
    private func infos(
        after cookie: UInt64,
        _ limit: Int
    ) throws(FileSystemError) -> [FolderEntry] {
        let ofNotes: UInt64 = 1 << 48
        if cookie < ofNotes {
            let items = try page(after: cookie, limit).map {
                FolderEntry(
                    name: $0.name + Self.infoEnding,
                    cookie: UInt64($0.id),
                    entry: infoEntry($0)
                )
            }
            if !items.isEmpty { return items }
        }
        return notes.all.lazy
            .filter { ofNotes + UInt64($0.number) > cookie }
            .prefix(limit)
            .map { note in
                FolderEntry(
                    name: note.name,
                    cookie: ofNotes + UInt64(note.number),
                    entry: entry(note)
                )
            }
    }

    public func rename(
        _ name: String,
        in folder: Inode,
        to newName: String,
        in newFolder: Inode,
        mode: RenameMode
    ) -> Outcome<Void> {
        switch (TrashPlace(folder), TrashPlace(newFolder)) {
        case (nil, nil):
            return files.rename(name, in: folder, to: newName, in: newFolder, mode: mode)
        case (nil, .files):
            guard mode != .exchange else { return .failure(.invalid) }
            return trash(name, in: folder, as: newName)
        case (.files, nil):
            guard mode != .exchange else { return .failure(.invalid) }
            return restore(name, to: newName, in: newFolder)
        case (.files, .expunged):
            guard mode != .exchange else { return .failure(.invalid) }
            return .now { () throws(FileSystemError) in try hide(name, isFolder: nil) }
        case (.info, .info):
            return .now { () throws(FileSystemError) in
                guard mode != .exchange else { throw .invalid }
                if mode == .noReplace, notes.note(named: newName) != nil { throw .exists }
                guard try itemOfInfo(newName) == nil else { throw .exists }
                guard notes.rename(name, to: newName) else { throw .notFound }
            }
        default: return .failure(.notPermitted)
        }
    }

    // MARK: Deleting and bringing back

    private func trash(_ name: String, in folder: Inode, as newName: String) -> Outcome<Void> {
        do throws(FileSystemError) {
            guard newName.utf8.count <= 255 - Self.infoEnding.utf8.count else {
                throw .nameTooLong
            }
            let parent = try files.removableFolder(folder)
            // Without a trash, the deletion would be for good, which desktops then offer.
            guard service.keepsDeleted(parent.account, nil) else { throw .notInTrash }
            guard let note = notes.note(named: newName + Self.infoEnding) else { throw .invalid }
            return files.whenKnown([parent]) { () throws(FileSystemError) in
                guard let node = try self.files.child(name, of: parent) else { throw .notFound }
                let hasLeftOut = try FileSystemError.translating { () throws(CatalogError) in
                    try self.files.catalog.hasLeftOut(below: node)
                }
                // Nothing that the person does not see must be deleted.
                guard !hasLeftOut else { throw .notPermitted }
                guard self.service.keepsDeleted(parent.account, node.remoteID) else {
                    throw .notInTrash
                }
                let mark = node.remoteID.flatMap { id in
                    self.service.mark(parent.account, id).map { (item: id, mark: $0) }
                }
                let outcome = try FileSystemError.translating { () throws(CatalogError) in
                    try self.files.catalog.trash(
                        name,
                        in: folder,
                        as: newName,
                        info: note.bytes,
                        mark: mark,
                        isOpen: { self.files.table.openFile($0) != nil }
                    )
                }
                switch outcome {
                case .trashed(let item, let open):
                    for node in open {
                        self.files.table.openFile(node.inode)?.state.withLock { $0.node = node }
                    }
                    _ = self.notes.remove(newName + Self.infoEnding)
                    // The kernel would take it for the same item under another name for a day.
                    self.files.catalog.announce([
                        .entryLeft(
                            parent: TrashPlace.files.inode,
                            name: item.name,
                            isFolder: item.kind == .folder
                        )
                    ])
                case .notAllAtService: throw .notInTrash
                case .notKnown: throw .locked
                case .notAllowed: throw .noPermission
                }
            }
        } catch { return .failure(error) }
    }

    /// Stops showing an item that the person deletes for good: the service's trash has it for as long as it
    /// keeps things.
    func hide(_ name: String, isFolder: Bool?) throws(FileSystemError) {
        guard let item = try trashed(named: name) else { throw .notFound }
        if let isFolder, isFolder != (item.kind == .folder) {
            throw isFolder ? .notAFolder : .isAFolder
        }
        try FileSystemError.translating { () throws(CatalogError) in
            try files.catalog.hideTrashed(item.id)
        }
    }

    private func restore(_ name: String, to newName: String, in folder: Inode) -> Outcome<Void> {
        do throws(FileSystemError) {
            guard let item = try trashed(named: name) else { throw .notFound }
            let parent = try files.writableFolder(folder)
            guard parent.account == item.account else { throw .otherAccount }
            try files.check(newName, kind: item.kind, in: parent)
            guard
                try files.child(newName, of: parent) == nil
                    || service.isInPart(item, newName, parent)
            else { throw .exists }
            return restoring.later { () async throws(FileSystemError) in
                try await self.awaitRestore(of: item, as: newName, in: parent)
                // The program that restored it removes this file next.
                let note = name + Self.infoEnding
                if self.notes.note(named: note) == nil {
                    _ = self.notes.make(note, bytes: item.info)
                }
            }
        } catch { return .failure(error) }
    }

    /// Returns when an item is back; the restore goes on when nobody waits, and a repeat waits for the same.
    private func awaitRestore(
        of item: TrashedNode,
        as newName: String,
        in folder: Node
    ) async throws(FileSystemError) {
        let place = RestorePlace(item: item.id, folder: folder.inode, name: ExactText(newName))
        let task = restores.withLock { restores in
            if let task = restores[place] { return task }
            // Owned by this table; the service's restore ends it, at the latest with the mount.
            let task = Task { () -> Result<Void, FileSystemError> in
                let result: Result<Void, FileSystemError>
                do throws(FileSystemError) {
                    result = .success(try await bringBack(item, as: newName, in: folder))
                } catch { result = .failure(error) }
                self.restores.withLock { $0[place] = nil }
                return result
            }
            restores[place] = task
            return task
        }
        try await task.value(orWhenCancelled: .failure(.interrupted)).get()
    }

    private func bringBack(
        _ item: TrashedNode,
        as newName: String,
        in folder: Node
    ) async throws(FileSystemError) {
        try await service.restore(item, newName, folder)
        do throws(CatalogError) {
            try await files.catalog.forgetTrashed(item.id)
        } catch { throw FileSystemError(error) }
        // The kernel would take the restored item for the one that was in the trash.
        files.catalog.announce([
            .entryLeft(parent: folder.inode, name: newName, isFolder: item.kind == .folder)
        ])
    }
}
