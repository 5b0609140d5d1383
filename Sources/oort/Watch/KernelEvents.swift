import Dispatch
import Foundation
import Logging
import OortCatalog
import OortFUSE
import OortModel
import SwiftFUSE
import Synchronization

/// Has the kernel report to programs that watch a folder of the mount what changed in it elsewhere.
///
/// On a thread of its own, since it waits for the helper process; the thread holds no lock meanwhile, and
/// no caller waits for it. The helper is started when a folder is first watched, and never by a mount that
/// is not.
final class KernelEvents: Sendable {
    private struct State {
        var news: [CatalogChange] = []
        var isRunning = false
        var hasEnded = false
    }

    /// How much news may wait; what comes beyond that within one pause is not reported.
    static let mostWaiting = 4000
    /// The shortest time between two looks for watchers; longer where a look takes long.
    private static let pause = 0.5
    /// How often an event is tried that the kernel's cache contradicts, because a program looked meanwhile.
    private static let mostTries = 3

    /// What the mount takes for done already.
    let announcements = Announcements(sign: ".oort-\(UUID().uuidString)")

    private let catalog: Catalog
    private let logger: Logger
    private let state = Mutex(State())
    private let waiting = DispatchSemaphore(value: 0)

    /// Nothing is reported until `begin`.
    init(_ catalog: Catalog, logger: Logger) {
        self.catalog = catalog
        self.logger = logger
    }

    /// Reports from now on, as long as the mount lasts.
    ///
    /// - Parameters:
    ///   - mountPoint: where it is mounted, without symbolic links.
    ///   - notifier: has the kernel drop what it caches of a name.
    func begin(at mountPoint: String, _ notifier: KernelNotifier) {
        guard let device = try? MountTable.current().mount(at: mountPoint)?.device else { return }
        let isFirst = state.withLock { state in
            defer { state.isRunning = true }
            return !state.isRunning && !state.hasEnded
        }
        guard isFirst else { return }
        let thread = Thread { [self] in
            var teller = KernelEventTeller(
                mountPoint: mountPoint,
                device: device,
                announcements: announcements,
                logger: logger
            )
            while let batch = nextBatch() {
                let begun = ContinuousClock.now
                let watched = KernelWatchers.inodes(on: device)
                let taken = begun.duration(to: .now) / .seconds(1)
                if !watched.isEmpty {
                    Self.settle(notifier)
                    for change in batch where !hasEnded {
                        tell(change, to: watched, notifier, &teller)
                    }
                }
                // A look takes two parts in a hundred of the time at most.
                Thread.sleep(forTimeInterval: max(Self.pause, taken * 50))
            }
            teller.end()
            announcements.end()
        }
        thread.name = "oort-events"
        thread.start()
    }

    /// Notes news of which the kernel's caches have been, or will be, notified.
    func hear(_ news: [CatalogChange]) {
        let wakes = state.withLock { state in
            guard state.isRunning, !state.hasEnded else { return false }
            let room = Self.mostWaiting - state.news.count
            guard room > 0 else { return false }
            let wasEmpty = state.news.isEmpty
            state.news += news.prefix(room)
            return wasEmpty
        }
        if wakes { waiting.signal() }
    }

    /// Ends the helper; waits for nothing.
    func end() {
        state.withLock { $0.hasEnded = true }
        waiting.signal()
    }

    private var hasEnded: Bool { state.withLock { $0.hasEnded } }

    /// Blocks until there is news; nil at the end.
    private func nextBatch() -> [CatalogChange]? {
        while true {
            let batch: [CatalogChange]? = state.withLock { state in
                if state.hasEnded { return nil }
                defer { state.news = [] }
                return state.news
            }
            guard let batch else { return nil }
            if !batch.isEmpty { return batch }
            waiting.wait()
        }
    }

    /// Blocks until the kernel has dropped its outdated caches, or for some seconds.
    private static func settle(_ notifier: KernelNotifier) {
        let told = DispatchSemaphore(value: 0)
        // Owned by nothing: ends with what is queued, or with the mount.
        Task {
            await notifier.finishTelling()
            told.signal()
        }
        _ = told.wait(timeout: .now() + 10)
    }

    private func tell(
        _ change: CatalogChange,
        to watched: Set<UInt64>,
        _ notifier: KernelNotifier,
        _ teller: inout KernelEventTeller
    ) {
        for _ in 0..<Self.mostTries {
            guard let event = try? event(change, for: watched) else { return }
            switch teller.tell(event) {
            case EEXIST, ENOENT:
                // A program asked for the name meanwhile, and the kernel caches the answer.
                notifier.hear([.entryAdded(parent: event.parent, name: event.name)])
                Self.settle(notifier)
            default: return
            }
        }
    }

    /// What to do about a change; nil for one that is not watched, or no longer true.
    private func event(
        _ change: CatalogChange,
        for watched: Set<UInt64>
    ) throws(CatalogError) -> KernelEvent? {
        func isWatched(_ inode: Inode) -> Bool { watched.contains(inode.rawValue) }
        switch change {
        case .entryAdded(let parent, let name):
            guard isWatched(parent), let folder = try catalog.knownNode(parent),
                let node = try catalog.lookup(name, in: folder), node.name.isSameText(as: name),
                let path = try names(of: parent)
            else { return nil }
            let action: KernelEventOrder.Action
            switch node.kind {
            case .folder: action = .makeFolder
            case .file, .nativeDocument: action = .makeFile
            case .symlink, .shortcut: action = .makeLink
            case .fifo, .socket: return nil
            }
            return KernelEvent(
                announced: .came(name, in: parent),
                action: action,
                parent: parent,
                folder: path,
                name: name
            )
        case .entryLeft(let parent, let name, let isFolder),
            .entryRemoved(let parent, let name, _, let isFolder):
            guard isWatched(parent), let folder = try catalog.knownNode(parent),
                try catalog.lookup(name, in: folder) == nil,
                try !catalog.leavesOut(name, in: folder), let path = try names(of: parent)
            else { return nil }
            return KernelEvent(
                announced: .went(name, from: parent, isFolder: isFolder),
                action: isFolder ? .removeFolder : .removeFile,
                parent: parent,
                folder: path,
                name: name
            )
        case .content(let inode):
            guard let node = try catalog.knownNode(inode), let parent = node.parent,
                isWatched(parent) || isWatched(inode),
                node.kind == .file || node.kind == .nativeDocument,
                let path = try names(of: parent)
            else { return nil }
            return KernelEvent(
                announced: .changed(inode),
                action: .touch,
                parent: parent,
                folder: path,
                name: node.name,
                modified: node.modified
            )
        case .attributes: return nil
        }
    }

    /// The names from the mount's top down to a folder; nil when it is not in the tree.
    private func names(of folder: Inode) throws(CatalogError) -> [String]? {
        var names: [String] = []
        var next = folder
        while next != .root {
            guard names.count < 10_000, let node = try catalog.knownNode(next),
                let parent = node.parent
            else { return nil }
            names.append(node.name)
            next = parent
        }
        return names.reversed()
    }
}
