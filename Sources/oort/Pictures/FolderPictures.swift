import Foundation
import Logging
import OortCatalog
import OortFileSystem
import OortModel
import OortSignIn

/// Brings the services' small pictures to the person's folder of thumbnails, of what file managers show.
///
/// Holds what waits, and nothing of what was done: that lies in the folder. Few at a time, behind all that
/// anybody waits for.
actor FolderPictures: PictureBringer {
    /// What of the mount it works with.
    struct Mount: Sendable {
        /// The paths under which programs may know the mount.
        var tops: [String]
        var catalog: Catalog
        /// Whether a thumbnail maker would have a file's bytes fetched.
        var isElsewhere: @Sendable (Node) -> Bool
        /// The service's picture; nil where it has none.
        var picture: @Sendable (Node) async throws(ProviderError) -> Data?
        /// Has programs look at a file again.
        var touch: @Sendable (Inode) -> Void
    }

    /// A file whose thumbnail is to be made.
    private struct Wish: Hashable {
        var inode: Inode
        var account: AccountID
        /// Whether a maker of thumbnails was refused it.
        var wasRefused = false
    }

    private static let atOnce = 2
    /// The most files of one folder that are looked at for one listing, and that wait in all.
    private static let mostInFolder = 2000
    private static let mostWaiting = 4000
    /// How long after it was refused a file a program may still throw away what it finds of that: Xfce's
    /// `tumblerd` does when it reports that it failed (tumbler-service.c).
    private static let wake = Duration.seconds(2)
    /// How many times open windows are had to look again at one content of a file.
    private static let mostTouches = 3
    /// The longest that a picture may take before the next one has its turn.
    private static let timeLimit = Duration.seconds(60)
    /// How many failures in a row end what is wanted of an account.
    private static let mostFailures = 3

    private let mount: Mount
    private let viewers: PictureViewers
    private let thumbnails: ThumbnailFolder
    private let scaler: PictureScaler
    /// A folder for what is being made.
    private let workshop: String
    private let logger: Logger

    private var waiting: [Wish] = []
    /// What a thumbnail is being made of; the tasks are this actor's, and `end` cancels them.
    private var underWay: [Inode: Task<Void, Never>] = [:]
    /// When makers of thumbnails were last refused a file, for as long as that matters.
    private var refusals: [Inode: ContinuousClock.Instant] = [:]
    /// Wakes the work for what was refused lately; this actor's, and `end` cancels it.
    private var alarm: Task<Void, Never>?
    /// What the service has no picture of, by when the file was modified.
    private var without: [Inode: Timestamp] = [:]
    /// Of what open windows were had to look again: when the file was modified, and how many times.
    private var touched: [Inode: (modified: Timestamp, times: Int)] = [:]
    private var failures: [AccountID: Int] = [:]
    private var hasEnded = false

    init(
        _ mount: Mount,
        for viewers: PictureViewers,
        to thumbnails: ThumbnailFolder,
        by scaler: PictureScaler,
        workshop: String,
        logger: Logger
    ) {
        self.mount = mount
        self.viewers = viewers
        self.thumbnails = thumbnails
        self.scaler = scaler
        self.workshop = workshop
        self.logger = logger
    }

    // MARK: What is wanted

    nonisolated func isListed(_ folder: Inode, by thread: Int32) {
        // Owned by nothing: looks at one folder, and ends.
        Task {
            guard viewers.include(thread: thread) else { return }
            await look(into: folder)
        }
    }

    nonisolated func isRefused(_ file: Inode) {
        // Owned by nothing: notes one wish, and ends.
        Task { await note(refused: file) }
    }

    private func note(refused file: Inode) {
        guard !hasEnded, let node = node(file), mayHavePicture(node) else { return }
        if refusals.count >= Self.mostWaiting { refusals = [:] }
        refusals[file] = .now
        // A program looks at it just now.
        waiting.removeAll { $0.inode == file }
        if waiting.count < Self.mostWaiting {
            waiting.insert(Wish(inode: file, account: node.account, wasRefused: true), at: 0)
        }
        work()
    }

    private func look(into folder: Inode) async {
        var last: Inode?
        var known = Set(waiting.map(\.inode))
        var seen = 0
        while seen < Self.mostInFolder, waiting.count < Self.mostWaiting, !hasEnded {
            let page = read { () throws(CatalogError) in
                try mount.catalog.children(of: folder, after: last, limit: 100)
            }
            guard let nodes = page, !nodes.isEmpty else { return }
            for node in nodes where underWay[node.inode] == nil && isWanted(node) {
                seen += 1
                if known.insert(node.inode).inserted {
                    waiting.append(Wish(inode: node.inode, account: node.account))
                }
            }
            last = nodes.last?.inode
            work()
            await Task.yield()
        }
    }

    /// Whether a file can have a picture, only the service can make it, and it has none here.
    private func isWanted(_ node: Node) -> Bool {
        guard mayHavePicture(node), let addresses = addresses(of: node) else { return false }
        return !addresses.allSatisfy { thumbnails.has($0, modified: node.modified) }
    }

    private func mayHavePicture(_ node: Node) -> Bool {
        guard node.kind == .file || node.kind == .nativeDocument, node.remoteID != nil,
            node.permissions.contains(.read), node.mode.map({ $0 & 0o400 != 0 }) ?? true,
            node.name.utf8.first != UInt8(ascii: "."), without[node.inode] != node.modified
        else { return false }
        let details = read { () throws(CatalogError) in
            try mount.catalog.details(of: node.inode)
        }
        guard let details else { return false }
        let mayHavePicture =
            details.thumbnail ?? (MediaKind.of(Array(node.name.utf8)).form == .picture)
        return mayHavePicture && mount.isElsewhere(node)
    }

    /// A file's addresses; nil for what is not in the tree, or in a folder that is hidden.
    private func addresses(of node: Node) -> [String]? {
        var names: [String] = []
        var next = node
        while next.inode != .root {
            guard names.count < 10_000, next.name.utf8.first != UInt8(ascii: "."),
                let parent = next.parent, let above = self.node(parent)
            else { return nil }
            names.append(next.name)
            next = above
        }
        return mount.tops.map { top in
            ThumbnailFolder.address(of: ([top] + names.reversed()).joined(separator: "/"))
        }
    }

    private func node(_ inode: Inode) -> Node? {
        read { () throws(CatalogError) in try mount.catalog.knownNode(inode) }
    }

    /// What the catalog says; nil, too, where it could not be read: then there is no picture.
    private func read<Value>(_ body: () throws(CatalogError) -> Value?) -> Value? {
        do throws(CatalogError) { return try body() } catch {
            logger.warning("no thumbnails are made", metadata: ["cause": "\(error)"])
            return nil
        }
    }

    // MARK: What is done

    private func work() {
        while !hasEnded, underWay.count < Self.atOnce,
            let next = waiting.firstIndex(where: { isDue($0.inode) })
        {
            let wish = waiting.remove(at: next)
            underWay[wish.inode] = Task {
                await RequestPriority.$current.withValue(.background) { await make(wish) }
                underWay[wish.inode] = nil
                work()
            }
        }
        guard !hasEnded, !waiting.isEmpty, alarm == nil, underWay.count < Self.atOnce else {
            return
        }
        alarm = Task {
            guard (try? await Task.sleep(for: Self.wake)) != nil else { return }
            alarm = nil
            work()
        }
    }

    /// Whether no work is under way for a file, and its thumbnail is not about to be discarded by a
    /// program.
    private func isDue(_ file: Inode) -> Bool {
        guard underWay[file] == nil else { return false }
        guard let refused = refusals[file] else { return true }
        guard refused.duration(to: .now) >= Self.wake else { return false }
        refusals[file] = nil
        return true
    }

    private func make(_ wish: Wish) async {
        guard let node = node(wish.inode), let addresses = addresses(of: node) else { return }
        guard isWanted(node) else {
            // It came while a maker of thumbnails was on its way to say that there is none: so windows were
            // told, after they had looked.
            if wish.wasRefused, mayHavePicture(node) { touch(node) }
            return
        }
        let picture: Data?
        do throws(ProviderError) { picture = try await fetch(node) } catch {
            failed(wish, node, error)
            return
        }
        failures[wish.account] = nil
        guard let picture else { return remember(node) }
        let place = "\(workshop)/\(UUID().uuidString)"
        do { try PrivateFile.make(place, picture) } catch {
            logger.notice("a thumbnail has no room", metadata: ["error": "\(error)"])
            return
        }
        defer { _ = unsafe unlink(place) }
        for size in ThumbnailFolder.Size.allCases {
            guard let png = await scaler.scaled(place, edge: size.edge, by: place + ".png") else {
                return remember(node)
            }
            // Refused again meanwhile: the wish of that waits. Or of another content by now.
            guard refusals[wish.inode] == nil, let now = self.node(wish.inode),
                now.revision == node.revision,
                now.modified == node.modified
            else { return }
            do {
                for address in addresses {
                    try thumbnails.put(png, size, of: address, modified: node.modified)
                }
            } catch {
                logger.notice("a thumbnail was not kept", metadata: ["error": "\(error)"])
                waiting = []
                return
            }
        }
        for address in addresses { thumbnails.forgetFailures(of: address) }
        touch(node)
    }

    /// Has open windows look again; not without end, since who looks may be refused the file again.
    private func touch(_ node: Node) {
        if touched.count >= Self.mostWaiting { touched = [:] }
        var now = touched[node.inode] ?? (node.modified, 0)
        if now.modified != node.modified { now = (node.modified, 0) }
        guard now.times < Self.mostTouches else { return }
        touched[node.inode] = (now.modified, now.times + 1)
        mount.touch(node.inode)
    }

    /// The service's picture, or an error when it takes too long.
    private func fetch(_ node: Node) async throws(ProviderError) -> Data? {
        let result = await withTaskGroup(of: Result<Data?, ProviderError>.self) { group in
            group.addTask { [mount] in
                do throws(ProviderError) {
                    return .success(try await mount.picture(node))
                } catch { return .failure(error) }
            }
            group.addTask {
                try? await Task.sleep(for: Self.timeLimit)
                return .failure(ProviderError(.offline, detail: "no picture within a minute"))
            }
            let first = await group.next()
            group.cancelAll()
            return first ?? .failure(ProviderError(.cancelled, detail: ""))
        }
        return try result.get()
    }

    private func failed(_ wish: Wish, _ node: Node, _ error: ProviderError) {
        if error.kind == .unsupported || error.kind == .notFound {
            remember(node)
            return
        }
        logger.info(
            "a small picture did not come",
            metadata: ["inode": "\(wish.inode)", "error": "\(error)"]
        )
        failures[wish.account, default: 0] += 1
        guard failures[wish.account, default: 0] >= Self.mostFailures else { return }
        // What file managers show next is tried again.
        failures[wish.account] = nil
        waiting.removeAll { $0.account == wish.account }
    }

    /// Keeps in mind that there is no picture of a file as it is.
    private func remember(_ node: Node) {
        if without.count >= Self.mostWaiting { without = [:] }
        without[node.inode] = node.modified
    }

    /// Ends all work.
    func end() {
        hasEnded = true
        waiting = []
        alarm?.cancel()
        for task in underWay.values { task.cancel() }
    }
}
