import Foundation
import OortCatalog
import OortContentStore
import OortModel
import OortSync
import Synchronization

extension CloudMount {
    func pin(_ wish: PinRequest) async throws(Failure) -> PinReport {
        let now = Timestamp.now.inMilliseconds
        let until = wish.until.map { Int64(($0.timeIntervalSince1970 * 1000).rounded()) }
        if let until, let end = wish.until, until <= now {
            throw Failure(
                "\(StatusText.moment(end)) is over already.",
                advice: "A pin ends in the future, or when somebody ends it."
            )
        }
        let node = try item(at: wish.path)
        let path = TerminalText.line(wish.path)
        switch node.kind {
        case .file, .folder, .nativeDocument: break
        case .symlink, .shortcut:
            throw Failure("\(path) is a link.", advice: "Pin what it leads to.")
        case .fifo, .socket:
            throw Failure("\(path) has no content.", advice: "Pin a file or a folder.")
        }
        let sums: Pin.Sums
        do throws(CatalogError) {
            sums = try await catalog.keepSums(with: node.inode, at: now)
        } catch { throw CatalogTrouble.failure(error, path: options.folders.catalogFile) }
        try fits(sums, path)
        do throws(CatalogError) { try await catalog.pin(node.inode, until: until) } catch {
            throw CatalogTrouble.failure(error, path: options.folders.catalogFile)
        }
        await pinsChanged()
        let reports = try await pins()
        // The path as it is shown, which the request may have in another case.
        guard let shown = try paths(of: [node.inode.rawValue])[String(node.inode.rawValue)],
            let report = reports.first(where: { $0.path == shown })
        else { throw Failure("\(path) was removed meanwhile.") }
        return report
    }

    func unpin(_ wish: UnpinRequest) async throws(Failure) {
        let node = try item(at: wish.path)
        let path = TerminalText.line(wish.path)
        let nearest: Inode?
        do throws(CatalogError) {
            if try await catalog.unpin(node.inode) {
                await pinsChanged()
                return
            }
            nearest = try catalog.nearestPin(of: node.inode, at: Timestamp.now.inMilliseconds)
        } catch {
            throw CatalogTrouble.failure(error, path: options.folders.catalogFile)
        }
        let above = try nearest.flatMap { nearest throws(Failure) in
            try paths(of: [nearest.rawValue])[String(nearest.rawValue)]
        }
        throw Failure(
            "\(path) is not pinned" + (above == nil ? "." : " by itself."),
            advice: above.map {
                "It is kept because of a folder above it: oort unpin "
                    + TerminalText.line(Shell.quoted($0))
            } ?? "`oort pins` lists what is."
        )
    }

    func pins() async throws(Failure) -> [PinReport] {
        var progress: [AccountID: PinKeeper.Progress] = [:]
        for account in accounts.withLock({ Array($0.values) }) {
            progress[account.id] = await account.keeper.report()
        }
        do throws(CatalogError) {
            var withoutRoom: [(path: String, bytes: Int64)] = []
            for (inode, bytes) in progress.values.flatMap(\.withoutRoom) {
                if let path = try path(of: inode) { withoutRoom.append((path, bytes)) }
            }
            var reports: [PinReport] = []
            for pin in try await catalog.pins(at: Timestamp.now.inMilliseconds) {
                guard let path = try path(of: pin.inode) else { continue }
                // The mount's top folder is kept by the keepers of all accounts.
                let kept =
                    pin.inode == .root
                    ? Self.merged(Array(progress.values)) : progress[pin.account]
                var report = PinReport(
                    pin,
                    path: path,
                    sums: try await catalog.keepSums(of: pin.inode)
                )
                report.progress.refused = try refusals(kept, in: path)
                if !report.progress.isComplete {
                    report.progress.waits =
                        kept.map { PinProgress.words($0.obstacle) }
                        ?? "the account is not connected"
                    let here = withoutRoom.filter {
                        $0.path == path || $0.path.hasPrefix(path + "/")
                    }
                    report.progress.note(withoutRoom: here.map(\.bytes))
                }
                reports.append(report)
            }
            return reports
        } catch {
            throw CatalogTrouble.failure(error, path: options.folders.catalogFile)
        }
    }

    /// How far several accounts are together; nil where none is connected.
    private static func merged(_ all: [PinKeeper.Progress]) -> PinKeeper.Progress? {
        guard var merged = all.first else { return nil }
        let unfinished = all.filter { $0.sums.filesMissing > 0 }
        // As long as one gets on, nothing hinders.
        merged.obstacle =
            unfinished.contains { $0.obstacle == nil } ? nil : unfinished.first?.obstacle
        for other in all.dropFirst() {
            merged.refusals += other.refusals
        }
        return merged
    }

    /// What of an account is to be kept, for `oort status`; nil where nothing is.
    func keeping(of account: MountedAccount) async throws(CatalogError) -> PinProgress? {
        let kept = await account.keeper.report()
        guard kept.sums.files > 0 else { return nil }
        var progress = PinProgress(kept.sums)
        progress.waits = PinProgress.words(kept.obstacle)
        progress.refused = try refusals(kept, in: mountPoint)
        progress.note(withoutRoom: Array(kept.withoutRoom.values))
        return progress
    }

    func free(_ wish: FreeRequest) async throws(Failure) -> FreeReport {
        let moment = wish.unusedSeconds.map {
            Timestamp.now.inMilliseconds - Int64(min($0, 1e10) * 1000)
        }
        let (places, unreachable) = try await freeable(wish.path)
        var freed = FreedRoom()
        do throws(ContentError) {
            for place in places {
                freed.add(try await store.free(below: place, unusedSince: moment))
            }
        } catch { throw Failure("No room was given back: \(error).") }
        return FreeReport(
            freed: FreeReport.Sum(freed.freed),
            pinned: FreeReport.Sum(freed.kept),
            open: FreeReport.Sum(freed.inUse),
            unsent: FreeReport.Sum(freed.needed),
            unreachable: unreachable.isEmpty ? nil : unreachable.sorted()
        )
    }

    /// What of a path can be fetched again, nil for all that is cached, and the accounts of which nothing can.
    private func freeable(
        _ path: String?
    ) async throws(Failure) -> (places: [Inode?], unreachable: [String]) {
        let node = try path.map { path throws(Failure) in try item(at: path) }
        var places: [Inode?] = []
        var unreachable: [String] = []
        for target in try targets(of: path) {
            if let account = target.account, await account.engine.trouble?.needsPerson != true {
                do throws(CatalogError) {
                    if let root = try catalog.account(account.id)?.root { places.append(root) }
                } catch {
                    throw CatalogTrouble.failure(error, path: options.folders.catalogFile)
                }
            } else if let name = target.account?.name ?? target.detached?.kept.name {
                unreachable.append(name)
            }
        }
        if let node, node.inode != .root {
            return (unreachable.isEmpty ? [node.inode] : [], unreachable)
        }
        // All that is cached: also what no file has any longer.
        return (unreachable.isEmpty ? [nil] : places, unreachable)
    }

    // MARK: What they share

    /// What lies at a path of the mount.
    ///
    /// - Throws: `Failure` naming the path when it is not in the mount, or nothing lies there.
    private func item(at path: String) throws(Failure) -> Node {
        let targets = try targets(of: path)
        do throws(CatalogError) {
            guard path != mountPoint, let target = targets.first else {
                return try catalog.node(.root)
            }
            if let inode = target.inode { return try catalog.node(inode) }
            guard let id = target.account?.id ?? target.detached?.id,
                let root = try catalog.account(id)?.root
            else { throw .noAccount }
            return try catalog.node(root)
        } catch { throw CatalogTrouble.failure(error, path: options.folders.catalogFile) }
    }

    /// Refuses what would not fit.
    ///
    /// - Throws: `Failure` with the figures.
    private func fits(_ sums: Pin.Sums, _ path: String) throws(Failure) {
        let capacity = store.keepCapacity
        if sums.cachedBytes > capacity {
            let staged = store.usage.staged
            let limit = options.settings.cacheSize
            throw Failure(
                "\(path) does not fit: with it \(ByteSize(bytes: sums.cachedBytes)) would be kept "
                    + "here, and there is room for \(ByteSize(bytes: capacity)) (cache_size is "
                    + "\(limit)"
                    + (staged > 0
                        ? ", of which \(ByteSize(bytes: staged)) wait to be uploaded)." : ")."),
                advice: "Pin less, unpin something (`oort pins`), or raise cache_size."
            )
        }
        // What is cached and not kept gives way.
        let room = store.diskRoom + store.usage.cached
        if sums.cachedBytes > room {
            throw Failure(
                "\(path) does not fit: with it \(ByteSize(bytes: sums.cachedBytes)) would be kept "
                    + "here, and the disk of \(options.folders.cache) has room for "
                    + "\(ByteSize(bytes: room)).",
                advice: "Pin less, or make room on the disk."
            )
        }
    }

    /// The keepers look at what is to be kept now.
    private func pinsChanged() async {
        await store.evict()
        for account in accounts.withLock({ Array($0.values) }) {
            await account.keeper.pinsChanged()
        }
    }

    private func refusals(
        _ kept: PinKeeper.Progress?,
        in path: String
    ) throws(CatalogError) -> [PendingExample] {
        var found: [PendingExample] = []
        for refusal in kept?.refusals ?? [] where found.count < 100 {
            guard let place = try self.path(of: refusal.inode),
                place == path || place.hasPrefix(path + "/")
            else { continue }
            found.append(PendingExample(path: place, detail: refusal.reason))
        }
        return found
    }
}

extension PinReport {
    /// A pin of an item at a path that has these sums.
    init(_ pin: Pin, path: String, sums: Pin.Sums) {
        self.init(
            path: path,
            made: Date(timeIntervalSince1970: Double(pin.made) / 1000),
            until: pin.until.map { Date(timeIntervalSince1970: Double($0) / 1000) },
            progress: PinProgress(sums)
        )
    }
}

extension PinProgress {
    /// What is here, as the catalog knows.
    init(_ sums: Pin.Sums) {
        self.init(
            files: sums.files,
            bytes: sums.bytes,
            filesHere: sums.filesHere,
            bytesHere: sums.bytesHere,
            refused: []
        )
    }

    /// Notes the files for which there is no room, by the bytes of each.
    mutating func note(withoutRoom bytes: [Int64]) {
        guard !bytes.isEmpty else { return }
        filesWithoutRoom = bytes.count
        bytesWithoutRoom = bytes.reduce(0) { $0.addingSaturating($1) }
    }

    /// Why nothing comes, in words.
    static func words(_ obstacle: PinKeeper.Progress.Obstacle?) -> String? {
        switch obstacle {
        case nil: nil
        case .paused: "waits for the end of the pause"
        case .offline: "waits for the network"
        case .signedOut: "waits until you sign in again"
        case .disk(let detail): "the disk fails: \(detail)"
        }
    }
}

extension FreeReport.Sum {
    fileprivate init(_ sum: ContentSum) { self.init(count: sum.count, bytes: sum.bytes) }
}
