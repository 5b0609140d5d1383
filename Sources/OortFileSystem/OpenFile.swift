import OortCatalog
import OortContentStore
import OortModel
import Synchronization

/// A file that is open, by however many handles; they share what is written.
///
/// Lock order: the file's lock before the handle table's, the store's and the catalog's.
final class OpenFile: Sendable {
    struct State {
        /// The file as last seen; all that is left of it when the catalog forgets it.
        var node: Node
        var handles: [OpenHandle] = []
        /// What was last written to, until it is recorded.
        var written: StagedContent?
        /// The modified time of what was written, or set by a program since.
        var modified: Timestamp?
        /// Counts changes, so that one that comes while another is recorded is not forgotten.
        var writeCount = 0
        /// Whether the kernel's cache may have bytes of what the handles show.
        var isInKernel = false
        /// A clone that is being made for writers that found the content frozen.
        var thawing: Task<Result<Void, FileSystemError>, Never>?

        /// How many handles show a staged content.
        func count(showing content: StagedContent) -> Int {
            handles.count { handle in
                if case .staged(let shown) = handle.content { shown === content } else { false }
            }
        }
    }

    let inode: Inode
    let account: AccountID
    let state: Mutex<State>

    init(node: Node) {
        inode = node.inode
        account = node.account
        state = Mutex(State(node: node))
    }

    /// Size and time while a write is not recorded yet; nil, too, when another file has the written content
    /// by now (a conflict copy).
    func live(_ node: Node) -> (size: Int64, modified: Timestamp)? {
        state.withLock { state in
            guard let written = state.written, node.parent == nil || node.staged == written.id
            else { return nil }
            return (written.size, state.modified ?? state.node.modified)
        }
    }

    /// Whether a handle shows other bytes than the file has now: as a rule an older revision.
    ///
    /// The kernel has one size for both, so it must not cache it for long.
    func differs(from node: Node) -> Bool {
        let now = ShownContent(node)
        return state.withLock { state in
            state.handles.contains { !$0.isReadOnlyDocument && $0.shown != now }
        }
    }
}

/// Identifies the bytes that a handle shows or a file has; empty for a file that was never written.
struct ShownContent: Hashable, Sendable {
    var staged: ContentID?
    /// The revision; for staged content that the service took, the one that it became.
    var item: ItemID?
    var revision: Revision?

    init(_ node: Node) {
        switch node.content {
        case .none: break
        case .staged(let id, _): staged = id
        case .revision(let item, let revision): (self.item, self.revision) = (item, revision)
        }
    }

    init(_ content: OpenHandle.Content) {
        switch content {
        case .empty: break
        case .cached(let content): (item, revision) = (content.key.item, content.key.revision)
        case .staged(let content):
            guard let successor = content.successor else {
                staged = content.id
                return
            }
            (item, revision) = (successor.key.item, successor.key.revision)
        }
    }
}

/// One `open` of a file.
final class OpenHandle: Sendable {
    /// The bytes that a handle shows.
    enum Content: Sendable {
        /// None: the file was never written, or its bytes are lost.
        case empty
        /// A revision; kept until the handle closes, whatever the service reports.
        case cached(CachedContent)
        /// Bytes that programs wrote here.
        case staged(StagedContent)
    }

    let file: OpenFile
    let mode: OpenMode
    let isReadOnlyDocument: Bool
    /// Whether the kernel caches none of its bytes.
    ///
    /// The kernel has one cache for all handles of a file: those that use it must show the same.
    let isDirect: Bool
    /// Whether the kernel has pages of an earlier open that are right for it.
    let keepsCache: Bool
    let readAhead = ReadAhead()
    /// Whether a program may have got bytes of its content.
    private let isOut = Atomic<Bool>(false)
    /// Whether a program wrote through it.
    private let isWriter = Atomic<Bool>(false)
    /// Guarded by the file's lock where it changes for several handles.
    private let current: Mutex<Content>

    init(
        file: OpenFile,
        mode: OpenMode,
        content: Content,
        isReadOnlyDocument: Bool = false,
        isDirect: Bool = false,
        keepsCache: Bool = false
    ) {
        self.file = file
        self.mode = mode
        self.isReadOnlyDocument = isReadOnlyDocument
        self.isDirect = isDirect
        self.keepsCache = keepsCache
        current = Mutex(content)
    }

    var content: Content { current.withLock { $0 } }

    var shown: ShownContent { ShownContent(content) }

    var hasDelivered: Bool {
        get { isOut.load(ordering: .acquiring) }
        set { isOut.store(newValue, ordering: .releasing) }
    }

    var hasWritten: Bool { isWriter.load(ordering: .acquiring) }

    /// Notes that a program is about to write through it; true the first time.
    func beginWriting() -> Bool { !isWriter.exchange(true, ordering: .acquiringAndReleasing) }

    /// Shows another content from now on; returns the former one.
    func show(_ content: Content) -> Content {
        current.withLock { current in
            let old = current
            current = content
            return old
        }
    }

    /// The size of its content, in bytes.
    var size: Int64 {
        switch content {
        case .empty: 0
        case .cached(let content): content.size
        case .staged(let content): content.size
        }
    }
}

/// The open handles of a mount, by number, and the open files, by inode.
final class HandleTable: Sendable {
    private struct State {
        var handles: [FileHandle: OpenHandle] = [:]
        var files: [Inode: (file: OpenFile, users: Int)] = [:]
        var last: UInt64 = 0
        var seenYoung: [Inode: SeenContent] = [:]
        var seenOld: [Inode: SeenContent] = [:]
    }

    private let state = Mutex(State())
    /// Inodes whose last read content is remembered, for the kernel's page cache.
    private static let remembered = 32_768

    /// The open file of an inode, used once more.
    func file(_ node: Node) -> OpenFile {
        state.withLock { state in
            let known = state.files[node.inode] ?? (OpenFile(node: node), 0)
            state.files[node.inode] = (known.file, known.users + 1)
            return known.file
        }
    }

    /// The open file of an inode, if it is open.
    func openFile(_ inode: Inode) -> OpenFile? { state.withLock { $0.files[inode]?.file } }

    /// Lets a file go that `file` gave.
    func leave(_ file: OpenFile) {
        state.withLock { state in
            guard let known = state.files[file.inode] else { return }
            state.files[file.inode] = known.users > 1 ? (known.file, known.users - 1) : nil
        }
    }

    func add(_ handle: OpenHandle) -> FileHandle {
        state.withLock { state in
            state.last += 1
            let number = FileHandle(state.last)
            state.handles[number] = handle
            return number
        }
    }

    subscript(_ number: FileHandle) -> OpenHandle? { state.withLock { $0.handles[number] } }

    func remove(_ number: FileHandle) -> OpenHandle? {
        state.withLock { $0.handles.removeValue(forKey: number) }
    }

    /// The content whose bytes the kernel was last given, as far as is remembered.
    func seen(_ inode: Inode) -> SeenContent? {
        state.withLock { $0.seenYoung[inode] ?? $0.seenOld[inode] }
    }

    /// Notes the content whose bytes the kernel is given.
    func see(_ inode: Inode, _ content: SeenContent) {
        state.withLock { state in
            if state.seenYoung.count >= Self.remembered {
                state.seenOld = state.seenYoung
                state.seenYoung = [:]
            }
            state.seenYoung[inode] = content
        }
    }
}

/// A content whose bytes the kernel was given.
struct SeenContent: Sendable {
    private let content: NodeContent
    private let hash: ContentHash?

    init(_ content: NodeContent, _ hash: ContentHash?) {
        (self.content, self.hash) = (content, hash)
    }

    /// Whether it is the file's present content.
    ///
    /// Where a revision is a size and a second, two contents may have had the same one.
    func isOf(_ node: Node) -> Bool {
        content == node.content && hash?.contradicts(node.hash) != true
    }
}
