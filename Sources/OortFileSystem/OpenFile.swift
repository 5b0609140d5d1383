import Foundation
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
        /// Whether a program may have got bytes of the file since it was opened.
        var isRead = false
        /// What the kernel knows of sizes, where handles show several contents.
        var sizes: Sizes?

        /// The size that the kernel was given last, and when; nil while it has not asked since a reader
        /// goes on with a shorter content.
        struct Sizes {
            var given: Int64?
            var at: ContinuousClock.Instant
        }
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
    /// How many requests of the kernel for bytes that it caches are under way.
    private let requests = Atomic<Int>(0)
    /// When the last one was answered.
    private let lastAnswer = LastMoment()

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

    /// The size that an answer about the file gives; what the kernel knows from then on.
    ///
    /// The kernel has one size for a file, which it takes from every answer, whoever asked. By that it cuts
    /// what a reader gets whose bytes it caches, even while the reader waits for them: the reader would see
    /// an end that is none. So as long as the kernel asks for bytes of an older revision, and for `rest`
    /// afterwards, who asks by the name is given that one's size, where it is the larger one, or nobody has
    /// the new one open: by a smaller size readers of either would be cut (`copy_file_range`, too).
    /// Who asks through a handle is given the size of what that one shows: programs write at it.
    /// Source: mm/filemap.c, filemap_read; fs/read_write.c, generic_copy_file_checks; fs/fuse/inode.c,
    /// fuse_change_attributes.
    ///
    /// - Parameters:
    ///   - node: the file as it is now.
    ///   - size: the file's own size, in bytes.
    ///   - handle: the handle through which a program asks, as the kernel does for the end of a file
    ///     (SEEK_END) and for a read beyond what it knows; nil for any other way, `fstat` among them.
    ///   - rest: for how long after an answer a program may still copy what it got.
    /// - Returns: bytes.
    func sizeToGive(
        of node: Node,
        _ size: Int64,
        for handle: OpenHandle?,
        rest: Duration
    ) -> Int64 {
        let now = ShownContent(node)
        let isBeingRead = isBeingRead(rest: rest)
        return state.withLock { state in
            let cached = state.handles.filter { !$0.isDirect }
            let older = cached.first { $0.shown != now }
            var given = size
            if let handle, !handle.isReadOnlyDocument, handle.shown != now {
                given = handle.size
                // A reader at what it takes for the end asks for the size, and goes on.
                if !handle.isDirect { lastAnswer.now() }
            } else if handle == nil, let older, isBeingRead {
                let isNewOpen = state.handles.contains { $0.shown == now }
                if older.size > size || !isNewOpen { given = older.size }
            }
            let isOther = state.handles.contains { $0.shown != now }
            state.sizes =
                older != nil || !cached.isEmpty && isOther
                ? State.Sizes(given: given, at: .now) : nil
            return given
        }
    }

    /// Whether the kernel may know another size than that of what a handle shows, as far as a request goes.
    ///
    /// It asks for whole pages. Where it was given a size a while ago, it has settled what it asks for by
    /// that, and cuts an answer at its end by itself.
    ///
    /// - Parameters:
    ///   - wanted: what the kernel asks for, in bytes.
    ///   - size: the size of what the handle shows.
    ///   - rest: as for `sizeToGive`.
    /// - Returns: true where an answer would be cut, or filled up with zeros.
    func mayBeCut(_ wanted: Range<Int64>, size: Int64, rest: Duration) -> Bool {
        guard let sizes = state.withLock(\.sizes) else { return false }
        let page = Self.page
        if wanted.upperBound > (size + page - 1) / page * page { return true }
        guard let given = sizes.given else { return wanted.upperBound > size }
        guard given != size, sizes.at.duration(to: .now) < rest else { return false }
        return given < min(wanted.upperBound, size) || wanted.upperBound > size && given > size
    }

    /// The kernel's page in bytes: 4,096, on some ARM machines up to 65,536.
    private static let page = Int64(max(sysconf(Int32(_SC_PAGESIZE)), 4096))

    /// Notes that the kernel asks for bytes that it caches.
    func beginRequest() { requests.add(1, ordering: .acquiringAndReleasing) }

    /// Notes that it is answered.
    func endRequest() {
        lastAnswer.now()
        requests.subtract(1, ordering: .acquiringAndReleasing)
    }

    private func isBeingRead(rest: Duration) -> Bool {
        requests.load(ordering: .acquiring) > 0 || lastAnswer.isWithin(rest)
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

/// The last time that something happened.
///
/// Isolation: any thread, without waiting.
final class LastMoment: Sendable {
    private static let began = ContinuousClock.now
    /// Nanoseconds since `began`; negative before the first.
    private let value = Atomic<Int64>(-1)

    /// It happens.
    func now() { value.store(Self.elapsed, ordering: .releasing) }

    /// Whether it happened so lately.
    func isWithin(_ time: Duration) -> Bool {
        let last = value.load(ordering: .acquiring)
        return last >= 0 && .nanoseconds(Self.elapsed - last) < time
    }

    private static var elapsed: Int64 {
        let (seconds, attoseconds) = (ContinuousClock.now - began).components
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}
