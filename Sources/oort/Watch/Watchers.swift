import Foundation
import OortCatalog
import OortModel
import Synchronization

/// Those who watch a mount, each with a queue that is bounded.
///
/// The catalog compares its transactions only while there are some.
final class Watchers: Sendable {
    /// One watcher.
    private struct Watcher {
        /// The shown names from the mount's top down to where it watches.
        var folder: [String]
        var queue: [WatchEvent] = [WatchEvent(.ready)]
        var hasLost = false
        var wake: AsyncStream<Void>.Continuation

        /// Drops the waiting events: a watcher that must look anew no longer needs them.
        mutating func lose() {
            queue = queue.filter { $0.event == .ready || $0.event == .end }
            hasLost = true
        }
    }

    private struct State {
        var watchers: [UInt64: Watcher] = [:]
        var next: UInt64 = 0
        var hasEnded = false
        /// The path of the mount.
        var top = ""
    }

    /// How many may watch at a time: each has one of the control socket's 64 connections.
    static let most = 24
    /// How many events wait for a watcher; beyond that they are lost, which is reported.
    private let longestQueue: Int

    private let state = Mutex(State())
    private let hasChanged = Atomic(false)
    private let (begun, beginning) = AsyncStream<Void>.makeStream(
        bufferingPolicy: .bufferingNewest(1)
    )

    /// No watcher yet.
    init(longestQueue: Int = 10_000) { self.longestQueue = longestQueue }

    /// Whether anybody watches.
    var isEmpty: Bool { state.withLock { $0.watchers.isEmpty } }

    /// Adds a watcher of the mount at `top` below some names.
    ///
    /// - Parameters:
    ///   - folder: the names.
    ///   - top: the mount point.
    ///   - catalog: the catalog, which compares changes while there is any watcher.
    ///   - settle: returns when the kernel knows what happened, so that a watcher that looks finds it.
    /// - Returns: the events, to be read by one reader.
    /// - Throws: `Failure` when there are too many.
    func add(
        below folder: [String],
        of top: String,
        _ catalog: Catalog,
        settle: @escaping @Sendable () async -> Void
    ) throws(Failure) -> AsyncStream<WatchEvent> {
        let (wakes, wake) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let number: UInt64? = state.withLock { state in
            guard !state.hasEnded, state.watchers.count < Self.most else { return nil }
            state.next += 1
            state.top = top
            state.watchers[state.next] = Watcher(folder: folder, wake: wake)
            // Under the lock, so that the last one's leaving cannot come between.
            if state.watchers.count == 1 { catalog.setTreeObserver(observer) }
            return state.next
        }
        guard let number else {
            throw Failure(
                "\(Self.most) programs watch the mount already.",
                advice: "End one of them."
            )
        }
        beginning.yield()
        let watched = WatchedEvents(
            wakes,
            settle: settle,
            take: { [weak self] in self?.take(number) },
            leave: { [weak self, catalog] in self?.remove(number, catalog) }
        )
        return AsyncStream { await watched.next() }
    }

    /// Reports the end to all watchers, and allows no more.
    func end() {
        let waking = state.withLock { state in
            state.hasEnded = true
            for number in state.watchers.keys {
                state.watchers[number]?.queue.append(WatchEvent(.end))
            }
            return state.watchers.values.map(\.wake)
        }
        beginning.finish()
        for wake in waking { wake.yield() }
    }

    private func tell(_ events: [WatchEvent]) {
        guard !events.isEmpty else { return }
        state.withLock { state in
            for number in state.watchers.keys {
                for event in events {
                    let isOf = state.watchers[number]?.folder.first.map { $0 == event.account }
                    if isOf ?? true { add(event, to: &state.watchers[number]) }
                }
            }
        }
        wake()
    }

    /// Reports a name that a program wanted in vain, by the names from the mount's top down to it.
    func tell(refused path: [String], _ reason: String) {
        let time = Date()
        state.withLock { state in
            for (number, watcher) in state.watchers {
                let event = WatchEvent(
                    refused: path,
                    reason,
                    below: watcher.folder,
                    top: state.top,
                    time: time
                )
                if let event { add(event, to: &state.watchers[number]) }
            }
        }
        wake()
    }

    /// Tells watchers for which no event waits that the mount is alive.
    private func beat() {
        state.withLock { state in
            for number in state.watchers.keys where state.watchers[number]?.queue.isEmpty == true {
                state.watchers[number]?.queue.append(WatchEvent(.alive))
            }
        }
        wake()
    }

    /// Reports on accounts, and now and then that the mount is alive, while there is any watcher; until the
    /// task is cancelled.
    ///
    /// - Parameter look: the state of each account, by its name.
    func keepInformed(look: @Sendable () async -> [String: String]) async {
        for await _ in begun {
            var known: [String: String]?
            var pauses = 0
            while !isEmpty {
                if known == nil || pauses % 5 == 0 || hasChanged.load(ordering: .relaxed) {
                    hasChanged.store(false, ordering: .relaxed)
                    let states = await look()
                    if let known { tell(Self.events(from: known, to: states)) }
                    known = states
                }
                pauses += 1
                if pauses % 10 == 0 { beat() }
                guard (try? await Task.sleep(for: .seconds(2))) != nil else { return }
            }
        }
    }

    private static func events(
        from before: [String: String],
        to now: [String: String]
    ) -> [WatchEvent] {
        let names = Set(before.keys).union(now.keys).filter { before[$0] != now[$0] }
        return names.sorted().map { name in
            var event = WatchEvent(.account)
            event.account = name
            event.state = now[name] ?? "gone"
            return event
        }
    }

    private var observer: TreeObserver {
        TreeObserver(
            changed: { [weak self] in self?.note($0) },
            told: { [weak self] in self?.wake() }
        )
    }

    private func note(_ changes: TreeChanges) {
        hasChanged.store(true, ordering: .relaxed)
        let time = Date()
        state.withLock { state in
            for number in state.watchers.keys {
                guard let folder = state.watchers[number]?.folder else { continue }
                switch changes {
                case .tooMany: state.watchers[number]?.lose()
                case .these(let changes):
                    for change in changes {
                        let event = WatchEvent(change, below: folder, top: state.top, time: time)
                        if let event { add(event, to: &state.watchers[number]) }
                    }
                }
            }
        }
    }

    private func add(_ event: WatchEvent, to watcher: inout Watcher?) {
        guard let count = watcher?.queue.count else { return }
        if count < longestQueue { watcher?.queue.append(event) } else { watcher?.lose() }
    }

    private func wake() {
        let all = state.withLock { $0.watchers.values.map(\.wake) }
        for wake in all { wake.yield() }
    }

    /// All events that wait for a watcher; nil when it no longer watches.
    private func take(_ number: UInt64) -> [WatchEvent]? {
        state.withLock { state in
            guard let watcher = state.watchers[number] else { return nil }
            state.watchers[number]?.queue = []
            state.watchers[number]?.hasLost = false
            if watcher.queue.last?.event == .end { state.watchers[number] = nil }
            guard watcher.hasLost else { return watcher.queue }
            let isNew = watcher.queue.first?.event == .ready
            return watcher.queue.prefix(isNew ? 1 : 0) + [WatchEvent(.overflow)]
                + watcher.queue.dropFirst(isNew ? 1 : 0)
        }
    }

    private func remove(_ number: UInt64, _ catalog: Catalog) {
        state.withLock { state in
            state.watchers[number] = nil
            if state.watchers.isEmpty { catalog.setTreeObserver(nil) }
        }
    }
}

/// The events of one watcher, which it reads as fast as it likes.
///
/// Its place is free again when they are no longer read.
private final class WatchedEvents: Sendable {
    private let wakes: AsyncStream<Void>
    private let settle: @Sendable () async -> Void
    private let take: @Sendable () -> [WatchEvent]?
    private let leave: @Sendable () -> Void
    private let taken = Mutex<ArraySlice<WatchEvent>>([])

    init(
        _ wakes: AsyncStream<Void>,
        settle: @escaping @Sendable () async -> Void,
        take: @escaping @Sendable () -> [WatchEvent]?,
        leave: @escaping @Sendable () -> Void
    ) {
        self.wakes = wakes
        self.settle = settle
        self.take = take
        self.leave = leave
    }

    deinit { leave() }

    /// The next event; nil when the mount has ended.
    func next() async -> WatchEvent? {
        while !Task.isCancelled {
            if let event = taken.withLock({ $0.popFirst() }) { return event }
            guard let events = take() else { return nil }
            if events.isEmpty {
                for await _ in wakes { break }
            } else {
                // Of all that was taken, and so before any of it is handed on.
                await settle()
                taken.withLock { $0 = events[...] }
            }
        }
        return nil
    }
}
