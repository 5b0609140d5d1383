public import OortCatalog
import OortModel
import SwiftFUSE
import Synchronization

/// Notifies the kernel of what the feeds changed, in order.
///
/// Called on the thread that wrote to the catalog, it returns at once: changes that do not fit into
/// SwiftFUSE's queue wait here, once for each item, until a task of this object has handed them over. The
/// task ends when none is left.
public final class KernelNotifier: Sendable {
    private struct Backlog {
        var news: [News] = []
        var known: Set<News> = []
        var isDraining = false
    }

    /// The mount's notifier; nil until the kernel is about to send its first request.
    private let connected = Mutex<Notifier?>(nil)
    private let backlog = Mutex(Backlog())

    /// A notifier for one `FileSystemMount`; before it is mounted, no kernel has to be notified.
    public init() {}

    /// Connects the notifier; called before the kernel has an answer to anything.
    func connect(_ notifier: Notifier) { connected.withLock { $0 = notifier } }

    /// Notifies the kernel of changes that are committed.
    ///
    /// From any thread; never waits. When it returns, the kernel trusts no old size: answers from then on
    /// are not cut to one.
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
                // A later change must not overtake those that wait.
                if backlog.news.isEmpty, !backlog.isDraining, notifier.post(news) { continue }
                if backlog.known.insert(news).inserted { backlog.news.append(news) }
            }
            guard !backlog.news.isEmpty, !backlog.isDraining else { return false }
            backlog.isDraining = true
            return true
        }
        guard startsDraining else { return }
        // Owned by the backlog: ends when that is empty, at the latest when the mount ends, since the queue
        // then accepts everything.
        Task { await drain(into: notifier) }
    }

    /// Returns when the kernel was notified of all earlier changes.
    public func finishTelling() async {
        guard let notifier = connected.withLock({ $0 }) else { return }
        // Waiting changes are handed over one by one, so the queue may be empty in between.
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

    /// The notices to the kernel for one change, to be sent in order.
    ///
    /// A name that comes or goes changes the folder's cached listing, too.
    static func news(of change: CatalogChange) -> [News] {
        switch change {
        // A folder whose name is reported as removed is dead to the kernel: nothing can be listed or
        // created in it any more (fs/fuse/dir.c, fuse_reverse_inval_entry). One that moved is not.
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
