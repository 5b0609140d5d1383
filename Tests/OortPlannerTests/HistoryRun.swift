import OortModel
import OortPlanner

/// A client and a service while a history happens to them.
struct HistoryRun {
    var client: SimulatedClient
    private var stalePage: SimulatedClient.Page?
    /// What somebody else made under a temporary name of ours.
    private var namedAsOurs: Set<Int> = []

    init(_ service: SimulatedService.Kind, planning: @escaping Planning) {
        client = SimulatedClient(kind: service, planning: planning)
    }

    mutating func take(_ step: HistoryStep) {
        let items = client.localItems
        let folders = client.localFolders
        let name = History.names[step.three % History.names.count]
        let folder = folders[step.two % folders.count]
        let picked = items.isEmpty ? nil : items[step.one % items.count]
        switch step.kind {
        case .localCreate: client.create(name, in: folder, isFolder: false)
        case .localFolder: client.create(name, in: folder, isFolder: true)
        case .localWrite: if let picked { client.write(picked.state.inode) }
        case .localRename: if let picked { client.rename(picked.state.inode, to: folder, name) }
        case .localDelete: if let picked { client.unlink(picked.state.inode) }
        case .localExchange:
            if let picked {
                client.exchange(picked.state.inode, items[step.two % items.count].state.inode)
            }
        case .localOpen: if let picked { client.open(picked.state.inode) }
        case .localClose: client.closeAll()
        case .localCopy: if let picked { client.copy(picked.state.inode, to: name, in: folder) }
        case .saveDance: if let picked { saveDance(picked, keepsBackup: false) }
        case .backupDance: if let picked { saveDance(picked, keepsBackup: true) }
        case .sentDance: if let picked { sentDance(picked, keepsBackup: false) }
        case .sentBackupDance: if let picked { sentDance(picked, keepsBackup: true) }
        case .remoteCreate, .remoteFolder, .remoteWrite, .remoteMove, .remoteDelete,
            .remoteReplace:
            somebodyElse(step, name)
        case .settle: client.settle()
        case .feed, .staleFeed, .halfRun, .lostCursor: readFeed(step)
        case .look: client.look()
        case .plan: client.makePlan()
        case .start: _ = client.start(step.one)
        case .perform: client.perform(step.one, failing: false)
        case .performFailing: client.perform(step.one, failing: true)
        case .answer: client.answer(step.one, isLost: false)
        case .answerLost: client.answer(step.one, isLost: true)
        case .restart:
            client.restart()
            stalePage = nil
        case .retry: client.retryAll()
        case .goOn:
            client.settle()
            client.makePlan()
            for _ in 0...(step.one % 4) {
                _ = client.start(step.two)
                client.perform(step.two, failing: false)
                if step.three % 3 != 0 { client.answer(step.two, isLost: false) }
            }
        }
    }

    /// Whatever is read of the feed while an enumeration goes on is its next page.
    private mutating func readFeed(_ step: HistoryStep) {
        let count = 1 + step.two % 3
        switch step.kind {
        case .lostCursor where client.enumerating == nil || step.one % 8 == 7:
            applyStalePage()
            client.beginEnumeration()
            client.enumerate(count)
        case _ where client.enumerating != nil: client.enumerate(count)
        case .feed:
            applyStalePage()
            client.apply(client.fetchPage())
        case .staleFeed:
            if stalePage == nil { stalePage = client.fetchPage() } else { applyStalePage() }
        case .halfRun:
            applyStalePage()
            client.applyHalfRun(step.one)
        default: break
        }
    }

    /// The page that was read a while ago; pages are applied in the order in which they were read.
    private mutating func applyStalePage() {
        guard let page = stalePage else { return }
        stalePage = nil
        client.apply(page)
    }

    private mutating func saveDance(_ item: SimulatedClient.Row, keepsBackup: Bool) {
        guard !item.state.isFolder, let place = item.state.local?.place else { return }
        if keepsBackup {
            let backup = place.name + "~"
            client.rename(item.state.inode, to: place.parent, backup)
            client.create(place.name, in: place.parent, isFolder: false)
        } else if let made = client.create(".tmp", in: place.parent, isFolder: false) {
            client.rename(made, to: place.parent, place.name)
        }
    }

    /// The temporary file is at the service before it is renamed over the original.
    private mutating func sentDance(_ item: SimulatedClient.Row, keepsBackup: Bool) {
        let inode = item.state.inode
        guard !item.state.isFolder, let folder = item.state.local?.place.parent,
            let made = client.create(".tmp", in: folder, isFolder: false)
        else { return }
        client.settle()
        client.makePlan()
        while client.start(0) {
            client.perform(0, failing: false)
            client.answer(0, isLost: false)
        }
        guard let place = client.rows[inode]?.state.local?.place else { return }
        if keepsBackup { client.rename(inode, to: place.parent, place.name + "~") }
        client.rename(made, to: place.parent, place.name)
    }

    private mutating func somebodyElse(_ step: HistoryStep, _ name: String) {
        // Not what we sent without an answer: that could not be distinguished from our own work.
        let unheard = client.rows.values.contains { $0.attempt != nil }
        let items = client.service.items.values.sorted { $0.id < $1.id }
        let folders = [SimulatedService.root] + items.filter(\.isFolder).map(\.id)
        let folder = folders[step.two % folders.count]
        let picked = items.isEmpty ? nil : items[step.one % items.count]
        switch step.kind {
        case .remoteCreate: makeRemotely(name, in: folder)
        case .remoteFolder:
            _ = try? client.service.create(in: folder, name: name, isFolder: true, content: 0)
        case .remoteWrite:
            if let picked, !picked.isFolder {
                let content = client.newContent()
                _ = try? client.service.replace(picked.id, revision: nil, content: content)
                client.owedToOthers.remove(picked.content)
                client.owedToOthers.insert(content)
            }
        case .remoteMove:
            if let picked, !unheard {
                _ = try? client.service.move(picked.id, to: folder, name: name)
            }
        case .remoteDelete:
            if let picked, !unheard {
                client.owedToOthers.subtract(client.service.contents(below: picked.id))
                try? client.service.delete(picked.id, revision: nil)
            }
        case .remoteReplace:
            guard let picked, !unheard else { return }
            if step.three % 2 == 0 {
                client.owedToOthers.subtract(client.service.contents(below: picked.id))
                try? client.service.delete(picked.id, revision: nil)
            } else {
                _ = try? client.service.move(picked.id, to: folder, name: name)
            }
            if picked.isFolder {
                _ = try? client.service.create(
                    in: picked.parent,
                    name: picked.name,
                    isFolder: true,
                    content: 0
                )
            } else {
                makeRemotely(picked.name, in: picked.parent)
            }
            if picked.name.hasPrefix(".oort"),
                let made = client.service.item(named: picked.name, in: picked.parent),
                made.id != picked.id
            {
                namedAsOurs.insert(made.id)
            }
        default: break
        }
    }

    private mutating func makeRemotely(_ name: String, in folder: Int) {
        let content = client.newContent()
        let made = try? client.service.create(
            in: folder,
            name: name,
            isFolder: false,
            content: content
        )
        if made != nil { client.owedToOthers.insert(content) }
    }

    // MARK: Quiescence

    mutating func finish(isAlone: Bool) -> String? {
        let before = isAlone ? localTree() : nil
        var isQuiet = false
        for _ in 0..<40 {
            applyStalePage()
            client.closeAll()
            client.settle()
            client.retryAll()
            while !client.running.isEmpty {
                client.perform(0, failing: false)
                client.answer(0, isLost: false)
            }
            client.look()
            while client.enumerating != nil { client.enumerate(2) }
            client.apply(client.fetchPage())
            client.look()
            client.makePlan()
            if let failure = client.failure { return failure }
            var didSomething = false
            while client.start(0) {
                didSomething = true
                client.perform(0, failing: false)
                client.answer(0, isLost: false)
            }
            let isSettled = client.rows.values.allSatisfy { row in
                !row.mustLook && row.missedAt == nil && row.state.local != nil
                    && isEqual(row.state.local, row.state.remote)
                    && isEqual(row.state.synced, row.state.remote)
            }
            if !didSomething && isSettled {
                isQuiet = true
                break
            }
        }
        if !isQuiet { return "does not come to rest: \(client.rows.values.map(\.state))" }
        return difference() ?? loss(isAlone: isAlone)
            ?? before.flatMap { before in
                let after = localTree()
                return after == before ? nil : "the user's tree changed: \(before) became \(after)"
            }
    }

    private func isEqual(_ one: Entry?, _ other: Entry?) -> Bool {
        guard let one, let other else { return one == nil && other == nil }
        guard one.place == other.place else { return false }
        switch (one.content, other.content) {
        case (nil, nil): return true
        case (let mine?, let others?): return mine.isSame(as: others)
        default: return false
        }
    }

    private func difference() -> String? {
        let rows = client.rows.values
        guard rows.count == client.service.items.count else {
            return "\(rows.count) items here, \(client.service.items.count) there"
        }
        for row in rows {
            guard let id = row.id, let item = client.service.items[id], let local = row.state.local
            else { return "an item that is not there" }
            let parent = local.place.parent
            let parentID = parent == .root ? SimulatedService.root : client.rows[parent]?.id
            guard parentID == item.parent, local.place.name == item.name,
                item.isFolder || local.content?.size == Int64(item.content)
            else { return "unequal: \(item) and \(local)" }
            if item.name.hasPrefix(".oort"), !namedAsOurs.contains(id) {
                return "a temporary name stayed: \(item.name)"
            }
        }
        return nil
    }

    private func loss(isAlone: Bool) -> String? {
        let lost = client.owed.subtracting(client.service.history)
        if !lost.isEmpty { return "lost contents \(lost.sorted())" }
        let there = Set(client.service.items.values.map(\.content))
        let overwritten = client.owedToOthers.subtracting(there)
        if !overwritten.isEmpty { return "lost somebody else's \(overwritten.sorted())" }
        var seen: Set<Int> = []
        for item in client.service.items.values where !item.isFolder {
            // A backup's original, or a sent temporary file, that somebody else moved away
            // meanwhile is a second item.
            if !isAlone, client.copied.contains(item.content) { continue }
            if client.copiedByUser.contains(item.content) { continue }
            if !seen.insert(item.content).inserted {
                return "content \(item.content) is there twice"
            }
        }
        return nil
    }

    private func localTree() -> [String: Int64] {
        var tree: [String: Int64] = [:]
        for row in client.localItems {
            var path = ""
            var next = row.state.inode
            while next != .root, let place = client.rows[next]?.state.local?.place {
                path = "/" + place.name + path
                next = place.parent
            }
            tree[path] = row.state.local?.content?.size ?? -1
        }
        return tree
    }
}
