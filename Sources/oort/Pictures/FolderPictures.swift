import Foundation
import Logging
import OortCatalog
import OortFileSystem
import OortModel

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
        /// Whether a file's bytes would have to be fetched for whoever makes a thumbnail of it.
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
    }

    private static let atOnce = 2
    /// The most files of one folder that are looked at for one listing, and that wait in all.
    private static let mostInFolder = 2000
    private static let mostWaiting = 4000
    /// The longest that a program waits for a picture.
    private static let patience = Duration.seconds(10)
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
    private var waiters: [Inode: [CheckedContinuation<Void, Never>]] = [:]
    /// What the service has no picture of, by when the file was modified.
    private var without: [Inode: Timestamp] = [:]
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
        // Owned by nobody: looks at one folder, and ends.
        Task {
            guard viewers.include(thread: thread) else { return }
            await look(into: folder)
        }
    }

    func bring(_ file: Inode) async {
        guard !hasEnded, let node = node(file), isWanted(node) else { return }
        let alarm = Task {
            guard (try? await Task.sleep(for: Self.patience)) != nil else { return }
            release(file)
        }
        await withCheckedContinuation { continuation in
            waiters[file, default: []].append(continuation)
            if underWay[file] == nil {
                // Somebody looks at it just now.
                waiting.removeAll { $0.inode == file }
                waiting.insert(Wish(inode: file, account: node.account), at: 0)
            }
            work()
        }
        alarm.cancel()
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

    /// Whether a file can have a picture, and nobody would make it without the service.
    private func isWanted(_ node: Node) -> Bool {
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
        guard mayHavePicture, mount.isElsewhere(node), let addresses = addresses(of: node) else {
            return false
        }
        return !addresses.allSatisfy { thumbnails.has($0, modified: node.modified) }
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
        while !hasEnded, underWay.count < Self.atOnce, !waiting.isEmpty {
            let wish = waiting.removeFirst()
            underWay[wish.inode] = Task {
                await RequestPriority.$current.withValue(.background) { await make(wish) }
                underWay[wish.inode] = nil
                release(wish.inode)
                work()
            }
        }
    }

    private func release(_ file: Inode) {
        for waiter in waiters.removeValue(forKey: file) ?? [] { waiter.resume() }
    }

    private func make(_ wish: Wish) async {
        guard let node = node(wish.inode), isWanted(node),
            let addresses = addresses(of: node)
        else { return }
        let picture: Data?
        do throws(ProviderError) { picture = try await fetch(node) } catch {
            failed(wish, node, error)
            return
        }
        failures[wish.account] = nil
        guard let picture else { return remember(node) }
        let place = "\(workshop)/\(UUID().uuidString)"
        defer { _ = unsafe unlink(place) }
        guard
            FileManager.default.createFile(
                atPath: place,
                contents: picture,
                attributes: [.posixPermissions: 0o600]
            )
        else { return }
        for size in ThumbnailFolder.Size.allCases {
            guard let png = await scaler.scaled(place, edge: size.edge, by: place + ".png") else {
                return remember(node)
            }
            // Of another content by now.
            guard let now = self.node(wish.inode), now.revision == node.revision,
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
        mount.touch(wish.inode)
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
        for dropped in waiting where dropped.account == wish.account { release(dropped.inode) }
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
        for task in underWay.values { task.cancel() }
        for file in Array(waiters.keys) { release(file) }
    }
}
