public import OortCatalog
import OortModel
import SwiftFUSE
import Synchronization

/// Tells the kernel what the feeds have changed, in order.
///
/// Hears of it on the thread that wrote to the catalog, and returns at once: what does not fit into
/// SwiftFUSE's queue waits here, once for each item, until a task of this object's own has handed it
/// over. The task ends with what waits.
public final class KernelNotifier: Sendable {
    private struct Backlog {
        var news: [News] = []
        var known: Set<News> = []
        var isDraining = false
    }

    /// Where the kernel hears; nil until it is about to ask for the first time.
    private let connected = Mutex<Notifier?>(nil)
    private let backlog = Mutex(Backlog())

    /// A notifier for one `FileSystemMount`; until that is mounted, there is nobody to tell.
    public init() {}

    /// Tells the kernel from now on; called before the kernel has an answer to anything.
    func connect(_ notifier: Notifier) { connected.withLock { $0 = notifier } }

    /// Tells of changes that are committed.
    ///
    /// From any thread; never waits. When it returns, the kernel believes no old size any longer: what
    /// is answered from then on is cut to none.
    public func hear(_ changes: [CatalogChange]) {
        guard let notifier = connected.withLock({ $0 }) else { return }
        var news: [News] = []
        for change in changes {
            switch change {
            case .attributes(let inode): notifier.expireAttributes(of: InodeNumber(inode))
            case .content(let inode):
                notifier.expireAttributes(of: InodeNumber(inode))
                fallthrough
            case .entryAdded, .entryLeft, .entryRemoved: news += Self.news(of: change)
            }
        }
        let startsDraining = backlog.withLock { [news] backlog in
            for news in news {
                // What comes later must not overtake what waits.
                if backlog.news.isEmpty, !backlog.isDraining, notifier.post(news) { continue }
                if backlog.known.insert(news).inserted { backlog.news.append(news) }
            }
            guard !backlog.news.isEmpty, !backlog.isDraining else { return false }
            backlog.isDraining = true
            return true
        }
        guard startsDraining else { return }
        // Owned by the backlog: ends when that is empty, at the latest when the mount ends, since the
        // queue then takes everything.
        Task { await drain(into: notifier) }
    }

    /// Returns when the kernel knows all that was heard before.
    public func finishTelling() async {
        guard let notifier = connected.withLock({ $0 }) else { return }
        // What waits here is handed over one by one, so the queue may be empty in between.
        while backlog.withLock({ $0.isDraining }) { await notifier.finishTelling() }
        await notifier.finishTelling()
    }

    private func drain(into notifier: Notifier) async {
        while let news = nextInBacklog() {
            for one in news { await notifier.send(one) }
        }
    }

    private func nextInBacklog() -> [News]? {
        backlog.withLock { backlog in
            guard !backlog.news.isEmpty else {
                backlog.isDraining = false
                return nil
            }
            defer {
                backlog.news = []
                backlog.known = []
            }
            return News.inTellingOrder(backlog.news)
        }
    }

    /// What the kernel must hear of one change, by and by.
    ///
    /// A name's coming or going changes the folder's cached listing, too.
    static func news(of change: CatalogChange) -> [News] {
        switch change {
        // A folder of which a name is told as removed is dead to the kernel: nothing can be listed or
        // made in it any more (fs/fuse/dir.c, fuse_reverse_inval_entry). One that moved is not.
        case .entryAdded(let parent, let name), .entryLeft(let parent, let name, _):
            [
                .name(name, in: InodeNumber(parent)),
                .content(InodeNumber(parent), offset: 0, length: 0),
            ]
        case .entryRemoved(let parent, let name, let child, _):
            [
                .removed(name, in: InodeNumber(parent), inode: InodeNumber(child)),
                .content(InodeNumber(parent), offset: 0, length: 0),
            ]
        case .content(let inode): [.content(InodeNumber(inode), offset: 0, length: 0)]
        case .attributes: []
        }
    }
}
