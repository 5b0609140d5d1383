import Foundation
import Logging
import OortCatalog
import OortModel
import OortSync
import Synchronization

/// What was deleted: listed, and brought back.
extension CloudMount {
    /// The most entries that are listed of one account.
    private static let mostEntries = 2000

    func trash(_ request: TrashRequest) async throws(Failure) -> TrashReport {
        var report = TrashReport(entries: [], notes: [], isCut: false)
        if let path = request.path, path != mountPoint {
            let place = try mounted(path)
            try await read(below: place, into: &report)
        } else {
            let all = accounts.withLock { $0.values.sorted { $0.name < $1.name } }
            for account in all {
                do throws(Failure) {
                    let place = try mounted("\(mountPoint)/\(account.name)")
                    try await read(below: place, into: &report)
                } catch { report.notes.append(error.message) }
            }
        }
        report.entries.sort { one, other in
            (one.deleted ?? .distantPast, other.path ?? other.name)
                > (other.deleted ?? .distantPast, one.path ?? one.name)
        }
        return report
    }

    private func read(
        below place: MountedPath,
        into report: inout TrashReport
    ) async throws(Failure) {
        let trash = try self.trash(of: place.account)
        let found = try await entries(trash, below: place, atMost: Self.mostEntries) {
            Self.lies($0, atOrBelow: place.names)
        }
        report.listed = (report.listed ?? 0) + 1
        report.isCut = report.isCut || found.isCut
        for entry in found.entries {
            report.entries.append(
                TrashedItem(
                    id: "\(place.account.name):\(entry.entry.id)",
                    account: place.account.name,
                    name: entry.entry.name,
                    path: entry.names.map { path(place.account, $0) },
                    kind: entry.entry.kind.map { Self.word($0) },
                    size: entry.entry.size,
                    deleted: entry.entry.deletedTime?.date
                )
            )
        }
    }

    private static func word(_ kind: ItemKind) -> String {
        switch kind {
        case .file: "file"
        case .folder: "folder"
        case .shortcut: "shortcut"
        case .nativeDocument: "document"
        }
    }

    /// - Throws: `Failure` where the account has no trash.
    func trash(of account: MountedAccount) throws(Failure) -> any Trash {
        guard let trash = account.engine.trash else {
            let service = Services.named(account.service)
            throw Failure(
                "\(account.name): \(service?.noTrash ?? "\(title(of: account)) has no trash.")",
                advice: "What is deleted there cannot be brought back by Oort."
            )
        }
        return trash
    }

    /// An entry with the shown names of where it lay; nil where that is not known.
    struct Placed {
        var entry: TrashEntry
        var names: [String]?
        /// Whether it is a small file that shows as a symbolic link.
        var isLink = false
    }

    /// The entries of a trash that a caller wants, as far as they are not part of others.
    ///
    /// - Parameters:
    ///   - trash: the account's.
    ///   - place: what the service is asked about; it may list more than lay there.
    ///   - limit: how many wanted ones are read.
    ///   - isWanted: which count.
    /// - Returns: the entries, and whether there may be more.
    /// - Throws: `Failure` when the trash cannot be read.
    func entries(
        _ trash: any Trash,
        below place: MountedPath,
        atMost limit: Int = .max,
        where isWanted: (Placed) -> Bool = { _ in true }
    ) async throws(Failure) -> (entries: [Placed], isCut: Bool) {
        let folder = try await folderReference(place)
        var found: [Placed] = []
        // With what lies in them they may come back, wanted or not.
        var folders: Set<[String]> = []
        var page: PageToken?
        var walk = PageWalk()
        do throws(ProviderError) {
            try await place.account.engine.checkPerson()
            repeat {
                if let page { try walk.goOn(to: page.rawValue) }
                let answer = try await trash.entries(below: folder, page: page)
                for entry in answer.entries {
                    guard try !isInTree(entry, of: place.account) else { continue }
                    let placed = try placed(entry, place.account)
                    if entry.kind == nil, let names = placed.names { folders.insert(names) }
                    if isWanted(placed) { found.append(placed) }
                }
                page = answer.next
            } while page != nil && found.count < limit
        } catch {
            throw failure(error, "The trash of \(place.account.name) cannot be read", place.account)
        }
        return (Self.tops(of: found, folders), page != nil)
    }

    /// Whether an entry lay at a place or below it.
    private static func lies(_ entry: Placed, atOrBelow place: [String]) -> Bool {
        entry.names?.starts(with: place) ?? place.isEmpty
    }

    /// Those that lie in no entry of which the service does not say what it is: such a one may be a
    /// folder, with which they come back.
    private static func tops(of entries: [Placed], _ folders: Set<[String]>) -> [Placed] {
        guard !folders.isEmpty else { return entries }
        return entries.filter { entry in
            guard var above = entry.names else { return true }
            while above.count > 1 {
                above.removeLast()
                if folders.contains(above) { return false }
            }
            return true
        }
    }

    /// How the service is asked for the nearest folder of a path that it has.
    private func folderReference(_ place: MountedPath) async throws(Failure) -> ItemReference {
        do throws(CatalogError) {
            var folder = place.folder
            while true {
                if let known = try await catalog.reference(to: folder.inode) { return known }
                guard let parent = folder.parent, parent != .root else { throw .noAccount }
                folder = try catalog.node(parent)
            }
        } catch {
            throw CatalogTrouble.failure(error, path: options.folders.catalogFile)
        }
    }

    /// Whether it is in the tree after all: the trash's list may be older than the tree.
    private func isInTree(
        _ entry: TrashEntry,
        of account: MountedAccount
    ) throws(ProviderError) -> Bool {
        guard let item = entry.item else { return false }
        return try node(item, of: account)?.parent != nil
    }

    func node(
        _ item: ItemID,
        of account: MountedAccount
    ) throws(ProviderError) -> Node? {
        do throws(CatalogError) {
            return try catalog.node(remoteID: item, account: account.id)
        } catch { throw ProviderError(.localContent, detail: "catalog: \(error)") }
    }

    private func placed(
        _ entry: TrashEntry,
        _ account: MountedAccount
    ) throws(ProviderError) -> Placed {
        let isLink = try isLink(entry, account)
        let names = try names(of: entry, isLink: isLink, account)
        return Placed(entry: entry, names: names, isLink: isLink)
    }

    private func isLink(
        _ entry: TrashEntry,
        _ account: MountedAccount
    ) throws(ProviderError) -> Bool {
        guard options.settings.links != .off, entry.kind == .file,
            LinkName.mayBeLink(entry.name, size: entry.size)
        else { return false }
        guard let item = entry.item, let node = try node(item, of: account) else { return true }
        return node.kind == .symlink
    }

    private func names(
        of entry: TrashEntry,
        isLink: Bool,
        _ account: MountedAccount
    ) throws(ProviderError) -> [String]? {
        let own = Self.shownName(entry.name, isLink: isLink)
        if let path = entry.path {
            return path.parts.dropLast().map { Self.shownName($0) } + [own]
        }
        guard let folder = entry.folder, let node = try node(folder, of: account) else {
            return nil
        }
        do throws(CatalogError) {
            let above = node.isAccountRoot ? [] : try catalog.shownPath(of: node.inode)
            return above.map { $0 + [own] }
        } catch { throw ProviderError(.localContent, detail: "catalog: \(error)") }
    }

    // MARK: Bringing back

    func restore(_ request: RestoreRequest) async throws(Failure) -> RestoreReport {
        if let begun = begunRestore(request) {
            try refuseReadOnly(begun.account)
            return try await report(begun, request, others: 0)
        }
        let (place, found, others) = try await wanted(request)
        try refuseReadOnly(place.account)
        _ = try trash(of: place.account)
        let target = try destination(of: found, request.to, place)
        let restore = Restore(account: place.account, found: found, target: target)
        return try await report(restore, request, others: others)
    }

    private func report(
        _ restore: Restore,
        _ request: RestoreRequest,
        others: Int
    ) async throws(Failure) -> RestoreReport {
        let isShown = try await restores.run(restore) { progress throws(Failure) in
            guard let trash = restore.account.engine.trash else {
                throw Failure("\(restore.account.name) has no trash.")
            }
            return try await self.bringBack(restore, progress) {
                place throws(ProviderError) in
                try await trash.restore(restore.found.entry, to: place, progress)
            }
        }
        await forgetTrashed(restore.found, restore.account)
        await finishTelling()
        return RestoreReport(
            path: restore.target.path,
            isShown: isShown,
            others: others,
            isByFiles: restore.found.entry.kind == nil ? true : nil
        )
    }

    /// The restore of the same thing to the same place that is under way, or stopped in the middle.
    private func begunRestore(_ request: RestoreRequest) -> Restore? {
        restores.begun { restore in
            guard let name = restore.target.path.parts(between: "/").last else { return false }
            let names = restore.found.names
            let isIt =
                "\(restore.account.name):\(restore.found.entry.id)".isSameText(as: request.target)
                || names.map { path(restore.account, $0).isSameText(as: request.path) } ?? false
            let wished = request.to ?? names.map { path(restore.account, $0) }
            guard isIt, let wished else { return false }
            return restore.target.path.isSameText(as: wished)
                || request.to != nil && restore.target.path.isSameText(as: "\(wished)/\(name)")
        }
    }

    /// Has a service give something back, and the mount show it.
    ///
    /// - Returns: whether the mount shows it.
    func bringBack(
        _ restore: Restore,
        _ progress: RestoreProgress,
        _ act: (Placement) async throws(ProviderError) -> Void
    ) async throws(Failure) -> Bool {
        let (entry, target, account) = (restore.found.entry, restore.target, restore.account)
        let parent = try await reference(to: target.folder, at: target.place)
        do throws(ProviderError) {
            try await account.engine.checkPerson()
            let isTaken = try await account.engine.hasItem(named: target.name, in: parent)
            guard progress.hasBegun || !isTaken else {
                throw ProviderError(.nameTaken, detail: "")
            }
            try await act(Placement(folder: parent, name: target.name))
        } catch {
            await showNews(in: target.folder, account)
            guard !progress.hasBegun else { throw inPart(restore, progress, error) }
            if error.kind == .nameTaken { throw taken(restore) }
            // It may have been done although no answer came.
            guard error.isOutcomeUnknown, shown(entry, target, account) != nil else {
                throw failure(
                    error,
                    "\(TerminalText.line(entry.name)) was not restored",
                    account,
                    advice: error.isOutcomeUnknown
                        ? "Look whether it came back: oort trash, or the folder itself." : nil
                )
            }
        }
        let isShown = await waitUntilShown(entry, target, account)
        if isShown, entry.kind == .folder { await showAll(in: target, entry, account) }
        return isShown
    }

    private func taken(_ restore: Restore) -> Failure {
        let source = Shell.quoted(source(of: restore))
        return Failure(
            "\(TerminalText.line(restore.target.path)) is taken: nothing was restored.",
            advice: "Name another place: oort restore \(source) --to PATH"
        )
    }

    /// By what `oort restore` takes what is to come back.
    private func source(of restore: Restore) -> String {
        restore.found.names.map { path(restore.account, $0) }
            ?? "\(restore.account.name):\(restore.found.entry.id)"
    }

    /// What a person hears of a folder of which only a part is back.
    private func inPart(
        _ restore: Restore,
        _ progress: RestoreProgress,
        _ error: ProviderError
    ) -> Failure {
        let (back, all) = progress.files
        let (source, target) = (source(of: restore), restore.target.path)
        let to = source.isSameText(as: target) ? "" : " --to \(Shell.quoted(target))"
        return failure(
            error,
            "\(TerminalText.line(target)) is not whole, \(back) of \(all) files are back",
            restore.account,
            advice: "Go on with the rest: oort restore \(Shell.quoted(source))\(to)"
        )
    }

    /// Lists all folders in one that came back: not every feed names what lies in such a one.
    func showAll(
        in target: Destination,
        _ entry: TrashEntry,
        _ account: MountedAccount
    ) async {
        var folders = [shown(entry, target, account)].compactMap(\.self)
        while let folder = folders.popLast() {
            guard folder.kind == .folder else { continue }
            do {
                try await account.engine.list(folder.inode)
                var children = try catalog.children(of: folder.inode, after: nil, limit: 1000)
                while let last = children.last {
                    folders += children.filter { $0.kind == .folder }
                    children = try catalog.children(
                        of: folder.inode,
                        after: last.inode,
                        limit: 1000
                    )
                }
            } catch {
                logger.info("what came back shows later", metadata: ["cause": "\(error)"])
            }
        }
    }

    /// Which entry is meant, by its id or by the path where it lay; of several, the newest.
    private func wanted(
        _ request: RestoreRequest
    ) async throws(Failure) -> (MountedPath, Placed, others: Int) {
        if let (name, id) = request.target.cut(atFirst: ":"),
            accounts.withLock({ $0[String(name)] }) != nil
        {
            let place = try mounted("\(mountPoint)/\(name)")
            let all = try await entries(
                try trash(of: place.account),
                below: place
            ).entries
            guard let found = all.first(where: { $0.entry.id.isSameText(as: id) }) else {
                throw Failure(
                    "The trash of \(name) has no \(TerminalText.line(String(id))).",
                    advice: "`oort trash` lists what it has."
                )
            }
            return (place, found, 0)
        }
        let place = try mounted(request.path)
        guard !place.names.isEmpty else {
            throw Failure("\(place.shown) is an account, not something that was deleted.")
        }
        if place.node != nil, request.to == nil {
            let isFolder = place.node?.kind == .folder
            let inside =
                isFolder
                ? "What was deleted in it: oort trash" : "Earlier contents of it: oort versions"
            throw Failure(
                "\(place.shown) is there; nothing is restored over it.",
                advice: "\(inside) \(Shell.quoted(place.path))\n"
                    + "Something else that was deleted there: oort restore "
                    + "\(Shell.quoted(place.path)) --to PATH"
            )
        }
        let trash = try trash(of: place.account)
        try await refuseUnsentDeletion(place)
        let below = try await entries(trash, below: place).entries
        let all =
            below
            .filter { Self.lay($0, at: place.names) }
            .sorted {
                ($0.entry.deletedTime?.date ?? .distantPast)
                    > ($1.entry.deletedTime?.date ?? .distantPast)
            }
        guard let found = all.first else {
            let parts = below.filter { $0.names?.starts(with: place.names) == true }.count
            guard parts == 0 else {
                throw Failure(
                    "The trash of \(place.account.name) has no folder \(place.shown), but \(parts) of "
                        + "what lay in it: it comes back one by one.",
                    advice: "List it: oort trash \(Shell.quoted(place.path))\n"
                        + "Bring each back: oort restore PATH"
                )
            }
            throw Failure(
                "The trash of \(place.account.name) has nothing that lay at \(place.shown).",
                advice: "`oort trash` lists what it has."
            )
        }
        return (place, found, all.count - 1)
    }

    /// Whether an entry was shown at a path.
    ///
    /// A document was shown with an ending of its own; a link is also found by the name of the file that
    /// holds it.
    static func lay(_ entry: Placed, at names: [String]) -> Bool {
        guard let own = entry.names, own.count == names.count, own.dropLast() == names.dropLast(),
            let one = own.last, let other = names.last
        else { return false }
        if one.isSameText(as: other) { return true }
        if entry.isLink, other.isSameText(as: entry.entry.name) { return true }
        return entry.entry.kind == .nativeDocument
            && other.cut(atLast: ".").map { one.isSameText(as: $0.before) } ?? false
    }

    /// - Throws: `Failure` when the service does not know of the deletion yet.
    private func refuseUnsentDeletion(_ place: MountedPath) async throws(Failure) {
        let pending: [PendingItem]
        do throws(CatalogError) { pending = try await catalog.pending(place.account.id) } catch {
            throw CatalogTrouble.failure(error, path: options.folders.catalogFile)
        }
        guard pending.contains(where: { $0.isDeleted && place.names.starts(with: $0.path) }) else {
            return
        }
        throw Failure(
            "The cloud has not heard yet that \(place.shown) was deleted.",
            advice: "Wait for it, then restore: oort sync \(Shell.quoted(path(place.account, [])))"
        )
    }

    struct Destination {
        var place: MountedPath
        var folder: Node
        /// Its name there at the service.
        var name: String
        var path: String
        /// Whether it shows as a symbolic link.
        var isLink = false
    }

    /// Where something is to be: where it lay, or where the person says.
    private func destination(
        of found: Placed,
        _ to: String?,
        _ place: MountedPath
    ) throws(Failure) -> Destination {
        guard let to else {
            guard let names = found.names else {
                throw Failure(
                    "It is not known where \(TerminalText.line(found.entry.name)) lay, or its folder "
                        + "is deleted, too.",
                    advice: "Name a place in the account: --to PATH"
                )
            }
            let above = try mounted(path(place.account, names.dropLast()))
            guard let folder = above.node, folder.kind == .folder else {
                throw Failure(
                    "The folder \(above.shown) is not there any more.",
                    advice: "Restore it or make it first, or name another place: --to PATH"
                )
            }
            let target = path(place.account, names)
            try refuseTaken(names.last ?? "", in: folder, target)
            return Destination(
                place: above,
                folder: folder,
                name: found.entry.name,
                path: target,
                isLink: found.isLink
            )
        }
        var target = try mounted(to)
        guard target.account.name == place.account.name else {
            throw Failure(
                "\(target.shown) lies in another account; the trash gives back within "
                    + "\(place.account.name) only.",
                advice: "Restore it there, then move it."
            )
        }
        if let folder = target.node, folder.kind == .folder {
            let name = Self.shownName(found.entry.name, isLink: found.isLink)
            let whole = path(target.account, target.names + [name])
            try refuseTaken(name, in: folder, whole)
            return Destination(
                place: target,
                folder: folder,
                name: found.entry.name,
                path: whole,
                isLink: found.isLink
            )
        }
        guard target.node == nil, let name = target.names.last else {
            throw Failure("\(target.shown) is taken: nothing was restored.")
        }
        let above = try mounted(path(target.account, target.names.dropLast()))
        guard let folder = above.node, folder.kind == .folder else {
            throw Failure(
                "The folder \(above.shown) is not there.",
                advice: "Make it first, or name another place."
            )
        }
        target.folder = folder
        return Destination(
            place: above,
            folder: folder,
            name: Self.serviceName(name, isLink: found.isLink),
            path: to,
            isLink: found.isLink
        )
    }

    private func refuseTaken(
        _ name: String,
        in folder: Node,
        _ path: String
    ) throws(Failure) {
        do throws(CatalogError) {
            guard try catalog.lookup(name, in: folder) != nil else { return }
        } catch { throw CatalogTrouble.failure(error, path: options.folders.catalogFile) }
        throw Failure(
            "\(TerminalText.line(path)) is taken: nothing was restored.",
            advice: "Name another place: --to PATH"
        )
    }

    /// What came back, once it is in the tree.
    func shown(
        _ entry: TrashEntry,
        _ target: Destination,
        _ account: MountedAccount
    ) -> Node? {
        do {
            if let item = entry.item, let node = try node(item, of: account), node.parent != nil {
                return node
            }
            let name = Self.shownName(target.name, isLink: target.isLink)
            return try catalog.lookup(name, in: target.folder)
        } catch {
            logger.warning("what came back was not looked up", metadata: ["cause": "\(error)"])
            return nil
        }
    }

    /// Has the mount show what is new in a folder; where that fails, it shows with the feed.
    func showNews(in folder: Node, _ account: MountedAccount) async {
        do throws(ProviderError) { try await account.engine.show(newIn: folder.inode) } catch {
            logger.info("what came back shows later", metadata: ["cause": "\(error)"])
        }
    }

    /// Reads news until the mount shows what came back; a service's lists may lag.
    ///
    /// - Returns: whether it does.
    func waitUntilShown(
        _ entry: TrashEntry,
        _ target: Destination,
        _ account: MountedAccount
    ) async -> Bool {
        for _ in 0..<20 {
            await showNews(in: target.folder, account)
            if shown(entry, target, account) != nil { return true }
            guard (try? await Task.sleep(for: .milliseconds(500))) != nil else { break }
        }
        return false
    }
}
