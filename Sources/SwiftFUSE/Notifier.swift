import Synchronization

/// What changed behind the kernel's back.
public enum News: Hashable, Sendable {
    /// A file's bytes in a range (length 0: to the end) and its attributes; for a folder, its listing.
    case content(InodeNumber, offset: Int64, length: Int64)
    /// A file's attributes only.
    case attributes(InodeNumber)
    /// What a name in a folder stands for, or whether it exists.
    case name(String, in: InodeNumber)
    /// As `.name`, but what is in use under it stays; the next access asks. Where the kernel or libfuse
    /// cannot, the name is dropped.
    case expired(String, in: InodeNumber)
    /// A name is gone that stood for `inode`; programs that watch it by inotify are notified.
    case removed(String, in: InodeNumber, inode: InodeNumber)

    private var isOfName: Bool {
        switch self {
        case .name, .expired, .removed: true
        case .content, .attributes: false
        }
    }

    /// News of names before news of contents, each in its order.
    ///
    /// The kernel takes news of a name only when no listing of the folder is under way, and then the
    /// folder's cached listing may be dropped. The other way round a listing that was answered before
    /// the change, and arrives between the two, would stay in the cache for good.
    /// Source: fs/fuse/dir.c, fuse_reverse_inval_entry, which takes the folder's lock.
    public static func inTellingOrder(_ news: [News]) -> [News] {
        news.filter(\.isOfName) + news.filter { !$0.isOfName }
    }
}

/// Notifies the kernel of changes, on threads of its own.
///
/// A notification from inside a request on the same folder would deadlock the mount, and one for a file
/// waits for its reads in flight: hence the queue, and hence the threads, which hold no lock while they
/// notify the kernel. News that is still queued is not queued again.
/// Source: fuse_lowlevel.h, fuse_lowlevel_notify_inval_entry.
public final class Notifier: Sendable {
    private struct State {
        var queue: [News] = []
        var queued: Set<News> = []
        var isTelling = false
        var hasEnded = false
        /// What notifies the kernel, while the mount lasts.
        var core: SessionCore?
        var waitingForRoom: [CheckedContinuation<Void, Never>] = []
        var waitingForSilence: [CheckedContinuation<Void, Never>] = []
    }

    /// The most pieces of news that wait at a time.
    public let limit: Int
    private let state: Monitor<State>

    init(limit: Int) {
        self.limit = limit
        state = Monitor(State())
    }

    /// Queues news and returns at once; may be called from anywhere, inside a request too.
    ///
    /// - Returns: false if the queue is full and nothing was queued. After the mount's end it is true
    ///   and means nothing.
    public func post(_ news: News) -> Bool { state.update { add(news, to: &$0) } }

    /// Queues news, waiting while the queue is full.
    ///
    /// Suspends; never holds a thread. A caller that the answer to a request depends on must use `post`.
    public func send(_ news: News) async {
        while !post(news) {
            await withCheckedContinuation { continuation in
                let hasRoom = state.update { state in
                    guard state.queue.count >= limit, !state.hasEnded else { return true }
                    state.waitingForRoom.append(continuation)
                    return false
                }
                if hasRoom { continuation.resume() }
            }
        }
    }

    /// Has the kernel ask for an inode's attributes again, from now on; when it returns, that is so.
    ///
    /// May be called from anywhere, inside a request for the same file too: unlike news of content
    /// this waits for no page, and so for no read in flight.
    /// Source: fs/fuse/inode.c, fuse_reverse_inval_inode.
    public func expireAttributes(of inode: InodeNumber) {
        let core = state.update { $0.core }
        _ = core?.tell(.attributes(inode))
    }

    /// Returns when all news that was queued before has been passed on.
    public func finishTelling() async {
        await withCheckedContinuation { continuation in
            let isSilent = state.update { state in
                if state.hasEnded || (state.queue.isEmpty && !state.isTelling) { return true }
                state.waitingForSilence.append(continuation)
                return false
            }
            if isSilent { continuation.resume() }
        }
    }

    private func add(_ news: News, to state: inout State) -> Bool {
        if state.hasEnded || state.queued.contains(news) { return true }
        guard state.queue.count < limit else { return false }
        state.queue.append(news)
        state.queued.insert(news)
        return true
    }

    // MARK: - The notifier's thread

    /// Hands news to the teller until `end` is called, which ends the teller, too.
    func run(_ core: SessionCore, _ teller: Teller) {
        state.update { $0.core = $0.hasEnded ? nil : core }
        while let batch = nextBatch() { teller.tell(batch) }
        teller.end()
    }

    private typealias Batch = (news: [News]?, waiting: [CheckedContinuation<Void, Never>])

    /// Takes all that is queued; from here on the same news is queued again.
    private func nextBatch() -> [News]? {
        let silent = state.update { state in
            state.isTelling = false
            guard state.queue.isEmpty else { return [CheckedContinuation<Void, Never>]() }
            defer { state.waitingForSilence = [] }
            return state.waitingForSilence
        }
        for continuation in silent { continuation.resume() }
        let (batch, waiting) = state.wait { state -> Batch? in
            if state.hasEnded { return (nil, []) }
            guard !state.queue.isEmpty else { return nil }
            let batch = News.inTellingOrder(state.queue)
            let waiting = state.waitingForRoom
            state.queue = []
            state.queued = []
            state.waitingForRoom = []
            state.isTelling = true
            return (batch, waiting)
        }
        for continuation in waiting { continuation.resume() }
        return batch
    }

    /// Drops what is queued and lets all who wait go.
    func end() {
        let waiting = state.update { state in
            state.hasEnded = true
            state.core = nil
            state.queue = []
            state.queued = []
            defer {
                state.waitingForRoom = []
                state.waitingForSilence = []
            }
            return state.waitingForRoom + state.waitingForSilence
        }
        for continuation in waiting { continuation.resume() }
    }
}
