import OortCatalog
import OortContentStore
import OortModel
import Synchronization

/// A file that is open, by however many handles; they share what is written.
///
/// Lock order: the file's lock before the store's and the catalog's.
final class OpenFile: Sendable {
    struct State {
        /// The file as last seen; what remains of it when the catalog forgets it.
        var node: Node
        var handles: [OpenHandle] = []
        /// What was last written to, until it is recorded.
        var written: StagedContent?
        /// The modified time of what was written, or set by a program since.
        var modified: Timestamp?
        /// Counts changes, so that one that comes while another is recorded is not forgotten.
        var writeCount = 0
        /// A clone that is being made for writers that found the content frozen.
        var thawing: Task<Result<Void, FileSystemError>, Never>?
    }

    let inode: Inode
    let state: Mutex<State>

    init(node: Node) {
        inode = node.inode
        state = Mutex(State(node: node))
    }

    /// Size and time while something written is not recorded yet.
    var live: (size: Int64, modified: Timestamp)? {
        state.withLock { state in
            guard let written = state.written else { return nil }
            return (written.size, state.modified ?? state.node.modified)
        }
    }
}

/// One `open` of a file.
final class OpenHandle: Sendable {
    /// The bytes that a handle shows.
    enum Content: Sendable {
        /// None: the file is empty.
        case empty
        /// A revision; kept until the handle closes, whatever comes from the service.
        case cached(CachedContent)
        /// What programs here wrote.
        case staged(StagedContent)
    }

    let file: OpenFile
    let mode: OpenMode
    let isReadOnlyDocument: Bool
    let readAhead = ReadAhead()
    /// Guarded by the file's lock where it changes for several handles.
    private let current: Mutex<Content>

    init(file: OpenFile, mode: OpenMode, content: Content, isReadOnlyDocument: Bool = false) {
        self.file = file
        self.mode = mode
        self.isReadOnlyDocument = isReadOnlyDocument
        current = Mutex(content)
    }

    var content: Content { current.withLock { $0 } }

    /// Shows other bytes from now on; the answer is what it showed before.
    func show(_ content: Content) -> Content {
        current.withLock { current in
            let old = current
            current = content
            return old
        }
    }

    /// Bytes of what it shows.
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
        var seenYoung: [Inode: NodeContent] = [:]
        var seenOld: [Inode: NodeContent] = [:]
    }

    private let state = Mutex(State())
    /// Inodes whose last opened content is remembered, for the kernel's page cache.
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

    /// Notes what an inode was opened with; whether it was the same the last time.
    func isSameAsLastTime(_ inode: Inode, _ content: NodeContent) -> Bool {
        state.withLock { state in
            let last = state.seenYoung[inode] ?? state.seenOld[inode]
            if state.seenYoung.count >= Self.remembered {
                state.seenOld = state.seenYoung
                state.seenYoung = [:]
            }
            state.seenYoung[inode] = content
            return last == content
        }
    }
}
