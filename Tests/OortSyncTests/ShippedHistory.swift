import OortCatalog
import OortContentStore
import OortModel
import OortSync
import OortTesting
import Synchronization

/// A history of one machine or two, and of somebody else at the service, run by what ships: catalog,
/// content store, engine, and the map of places where the service has no ids.
///
/// Programs make, write, rename, replace, copy and remove; answers get lost; machines die. In the end
/// all machines show what the service has, and of what was written nothing is missing that nobody who
/// saw it removed or overwrote. With one machine and nobody else, the tree is as its programs left it.
///
/// All of it runs on one thread, in an order that the seed chooses too (`SeededExecutor`): a seed repeats its
/// history, and so do some of a history's steps, since each has random numbers of its own.
final class ShippedHistory {
    private static let names = ["a", "b", "c", "B", "a~"]

    private let kind: HistoryServiceKind
    private let seed: UInt64
    private let time: SeededTime
    private var numbers: SeededNumbers
    private let service: any HistoryService
    private var machines: [Machine] = []
    private let hasOthers: Bool
    /// What happened, in words.
    private let story = Story()
    /// What must be there in the end.
    private var owed: Set<String> = []
    /// What may be there twice.
    private var copied: Set<String> = []
    private var failure: String?
    private var texts = 0

    /// How many steps a history has.
    static let length = 40

    private init(_ kind: HistoryServiceKind, seed: UInt64, time: SeededTime) {
        (self.kind, self.seed, self.time) = (kind, seed, time)
        numbers = SeededNumbers(seed: seed)
        service = kind.service
        hasOthers = numbers.next() % 2 == 0
        let story = story
        service.listen { story.note("    service: " + $0) }
        if kind.lags {
            let lag = [0, 0, 2, 5][Int(numbers.next() % 4)]
            story.note("answers lag by up to \(lag) changes")
            service.lag(upTo: lag)
        }
    }

    private func below(_ bound: Int) -> Int { Int(numbers.next() % UInt64(bound)) }
    private func oneIn(_ bound: Int) -> Bool { below(bound) == 0 }

    /// Runs some steps of a seed's history, all of them unless said otherwise, on the calling thread.
    static func run(
        _ kind: HistoryServiceKind,
        seed: UInt64,
        steps: [Int] = Array(0..<length)
    ) -> HistoryOutcome {
        HistoryOutcome.ofRun(seed: seed) { time in
            let history = ShippedHistory(kind, seed: seed, time: time)
            do { try await history.run(steps) } catch { history.fail("it throws \(error)") }
            return HistoryOutcome(failure: history.failure, story: history.story.words)
        }
    }

    private func run(_ steps: [Int]) async throws {
        let count = hasOthers ? [1, 1, 2, 2, 2, 3][below(6)] : 1
        for number in 0..<count {
            machines.append(try Machine(number, service, time))
        }
        for machine in machines {
            machine.world.start()
            _ = await machine.world.engine.sync(timeout: .seconds(60))
        }
        for number in steps {
            numbers = SeededNumbers(seed: seed, step: number)
            do { try await step() } catch let error as CatalogError {
                // Another machine's news came before it, or it makes no sense.
                guard
                    [.exists, .notFound, .moveIntoItself, .notEmpty, .isAFolder, .notAFolder]
                        .contains(error)
                else { throw error }
                story.note("  that fails: \(error)")
            }
        }
        try await finish()
        for machine in machines { await machine.end() }
    }

    // MARK: What happens

    private func step() async throws {
        switch below(hasOthers ? 32 : 26) {
        case 0, 1: try await dieOrStart()
        case 2: faults()
        case 3 where kind != .twins:
            story.note("the service loses its cursors")
            service.forgetCursors()
        case 3..<6: await push()
        case 26...: somebodyElse()
        default:
            let machine = machines[below(machines.count)]
            try await act(at: machine)
        }
        // Engines go on meanwhile, by nothing or by a few of their steps.
        if oneIn(3) { try await time.sleep(for: .milliseconds(below(25))) }
    }

    private func dieOrStart() async throws {
        let machine = machines[below(machines.count)]
        if machine.isUp {
            if !oneIn(3) {
                for _ in 0..<below(4) { try await act(at: machine) }
                try await machine.crash(after: below(300))
                let world = machine.world
                let count = try await world.catalog.openIntents(of: world.account.id).count
                story.note("\(machine.number) is killed, with \(count) operations under way")
            } else {
                story.note("\(machine.number) ends")
                await machine.stop()
            }
            if oneIn(2) { return }
        }
        story.note("\(machine.number) starts")
        await machine.start { self.fail($0) }
    }

    private func faults() {
        let number = [0, 0, 3, 6, 1][below(5)]
        story.note(
            ["calls hold", "every call fails"].dropFirst(number).first
                ?? "one call in \(number) fails"
        )
        service.fail(oneIn: number, seed: numbers.next())
    }

    private func push() async {
        let machine = machines[below(machines.count)]
        guard machine.isUp else { return }
        let wait = below(60)
        story.note("\(machine.number) syncs for \(wait) ms")
        _ = await machine.world.engine.sync(timeout: .milliseconds(wait))
    }

    private func fail(_ words: String) {
        if failure == nil { failure = words }
    }

    // MARK: What programs do

    private func act(at machine: Machine) async throws {
        let world = machine.world
        let items = try machine.items()
        let folders =
            [("", world.account.root)]
            + items.filter { $0.node.kind == .folder }.map { ($0.path + "/", $0.node.inode) }
        let (place, folder) = folders[below(folders.count)]
        let name = Self.names[below(Self.names.count)]
        let picked = items.isEmpty ? nil : items[below(items.count)]
        let other = items.isEmpty ? nil : items[below(items.count)]
        switch below(19) {
        case 0, 1:
            say(machine, "mkdir \(place + name)")
            _ = try world.catalog.create(Self.newFolder, named: name, in: folder)
        case 2..<5:
            try write(newText(), as: name, in: folder, at: machine, place + name)
        case 5..<8:
            guard let picked, picked.node.kind == .file else { return }
            try rewrite(picked, at: machine)
        case 8:
            guard let picked else { return }
            say(machine, "mv -n \(picked.path) \(place + name)")
            try rename(picked, to: name, in: folder, .noReplace, machine)
        case 9:
            guard let picked else { return }
            say(machine, "mv \(picked.path) \(place + name)")
            try rename(picked, to: name, in: folder, .replace, machine)
        case 10:
            guard let picked, let other, let parent = other.node.parent else { return }
            say(machine, "\(picked.path) and \(other.path) change places")
            try rename(picked, to: other.node.name, in: parent, .exchange, machine)
        case 16, 17:
            guard let picked, picked.node.kind == .file else { return }
            try hold(picked, at: machine)
        case 18: machine.closeAll { say(machine, "closes \($0) files") }
        case 11:
            guard let picked else { return }
            say(machine, "rm -r \(picked.path)")
            try remove(picked.node, machine)
        case 12, 13:
            guard let picked, picked.node.kind == .file, let parent = picked.node.parent else {
                return
            }
            // An editor's save: a new file takes the old one's name, which may be kept beside it.
            let isBackup = oneIn(2)
            let text = newText()
            say(machine, "save \(picked.path), \(isBackup ? "old aside" : "by rename"): \(text)")
            // What is written first may go out under its first name.
            if !isBackup, oneIn(2) {
                let made = try world.catalog.create(Self.newFile, named: ".save", in: parent)
                try machine.write(text, to: made)
                if machine.isUp { _ = await machine.world.engine.sync(timeout: .milliseconds(40)) }
                guard try world.catalog.node(picked.node.inode).parent == parent else {
                    owed.insert(text)
                    return
                }
                let item = Machine.Item(path: ".save", node: made)
                try rename(item, to: picked.node.name, in: parent, .replace, machine)
            } else if isBackup {
                try rename(picked, to: picked.node.name + "~", in: parent, .replace, machine)
                let made = try world.catalog.create(
                    Self.newFile,
                    named: picked.node.name,
                    in: parent
                )
                try machine.write(text, to: made)
            } else {
                let made = try world.catalog.create(Self.newFile, named: ".save", in: parent)
                try machine.write(text, to: made)
                let item = Machine.Item(path: ".save", node: made)
                try rename(item, to: picked.node.name, in: parent, .replace, machine)
            }
            owed.insert(text)
        case 14:
            // The bytes of an original that somebody overwrites before the copy is sent are nowhere.
            // A file that took over another one's identity may have its content from a third item.
            guard !hasOthers, let picked, picked.node.kind == .file,
                case .revision(let item, let revision) = picked.node.content
            else { return }
            say(machine, "cp \(picked.path) \(place + name)")
            let copy = try world.catalog.create(Self.newFile, named: name, in: folder)
            _ = try world.catalog.setCopiedContent(
                item: item,
                revision: revision,
                hash: picked.node.hash,
                size: picked.node.size,
                modified: .now,
                of: copy.inode,
                from: picked.node.inode
            )
            if let text = service.text(of: revision) { copied.insert(text) }
        default:
            guard let picked else { return }
            say(machine, "touch \(picked.path)")
            var change = NodeAttributes()
            change.modified = Timestamp(seconds: 1_600_000_000 + Int64(below(1000)))
            _ = try world.catalog.setAttributes(change, of: picked.node.inode)
        }
    }

    private static let newFolder = NewNode(kind: .folder, mode: 0o755, owner: 0, group: 0)
    private static let newFile = NewNode(kind: .file, mode: 0o644, owner: 0, group: 0)

    private func say(_ machine: Machine, _ words: String) {
        story.note("\(machine.number) \(words)")
    }

    /// Texts are of one size, so that only hashes and revisions differ.
    private func newText() -> String {
        texts += 1
        return "text \(1000 + texts)"
    }

    private func write(
        _ text: String,
        as name: String,
        in folder: Inode,
        at machine: Machine,
        _ path: String
    ) throws {
        say(machine, "write \(path): \(text)")
        let file = try machine.world.catalog.create(Self.newFile, named: name, in: folder)
        try machine.write(text, to: file)
        owed.insert(text)
    }

    private func rewrite(_ item: Machine.Item, at machine: Machine) throws {
        let text = newText()
        say(machine, "write over \(item.path): \(text)")
        forget(try machine.rewrite(item.node.inode, text))
        owed.insert(text)
    }

    /// A program writes over a file and keeps it open.
    private func hold(_ item: Machine.Item, at machine: Machine) throws {
        let text = newText()
        say(machine, "write over \(item.path), which stays open: \(text)")
        forget(try machine.rewrite(item.node.inode, text, staysOpen: true))
        owed.insert(text)
    }

    /// Who saw a text has overwritten or removed it.
    private func forget(_ text: String?) {
        guard let text else { return }
        story.note("  gone by that: \(text)")
        owed.remove(text)
    }

    private func rename(
        _ item: Machine.Item,
        to name: String,
        in folder: Inode,
        _ mode: RenameMode,
        _ machine: Machine
    ) throws {
        guard let parent = item.node.parent else { return }
        let outcome = try machine.world.catalog.rename(
            item.node.name,
            in: parent,
            to: name,
            in: folder,
            mode: mode
        )
        guard mode == .replace, let other = outcome.other else { return }
        forget(machine.text(of: other))
    }

    private func remove(_ node: Node, _ machine: Machine) throws {
        let catalog = machine.world.catalog
        guard let parent = node.parent else { return }
        guard node.kind == .folder else {
            forget(machine.text(of: try catalog.unlink(node.name, in: parent)))
            return
        }
        for child in try catalog.children(of: node.inode, after: nil, limit: 1000) {
            try remove(child, machine)
        }
        _ = try catalog.removeFolder(node.name, in: parent)
    }

    // MARK: What somebody else does

    private func somebodyElse() {
        let tree = service.tree
        let folders = [""] + tree.keys.filter { $0.hasSuffix("/") }.sorted()
        let place = folders[below(folders.count)] + Self.names[below(Self.names.count)]
        let paths = tree.keys.sorted()
        let picked = paths.isEmpty ? nil : paths[below(paths.count)]
        let bare = picked.map { $0.hasSuffix("/") ? String($0.dropLast()) : $0 }
        switch below(7) {
        case 0, 1: put(newText(), place)
        case 6:
            // Something else has the place at once.
            guard let bare else { return }
            story.note("somebody: rm -r \(bare)")
            for text in service.take(bare) { forget(text) }
            if oneIn(2) { return put(newText(), bare) }
            story.note("somebody: mkdir \(bare)")
            service.addFolder(bare)
        case 2:
            if let picked, !picked.hasSuffix("/") { put(newText(), picked) }
        case 3:
            story.note("somebody: mkdir \(place)")
            service.addFolder(place)
        case 4:
            guard let bare else { return }
            story.note("somebody: rm -r \(bare)")
            for text in service.take(bare) { forget(text) }
        default:
            guard let bare else { return }
            story.note("somebody: mv \(bare) \(place)")
            service.relocate(bare, to: place)
        }
    }

    private func put(_ text: String, _ path: String) {
        story.note("somebody: write \(path): \(text)")
        let (isDone, before) = service.write(text, to: path)
        if isDone { owed.insert(text) }
        forget(before)
    }

    // MARK: What must hold

    private func finish() async throws {
        service.fail(oneIn: 0, seed: 0)
        for machine in machines { machine.closeAll { say(machine, "closes \($0) files") } }
        for machine in machines where !machine.isUp { await machine.start { self.fail($0) } }
        var before: [String: String]?
        // What an upload takes while the tree is read is looked for anew.
        let end = time.now.advanced(by: .seconds(60))
        while !hasOthers, before == nil, failure == nil, time.now < end {
            before = try? await machines[0].world.tree()
        }
        if !hasOthers, before == nil { return fail("what programs wrote cannot be read") }
        var difference = ""
        repeat {
            for machine in machines {
                _ = await machine.world.engine.sync(timeout: .milliseconds(300))
            }
            try await time.sleep(for: .milliseconds(300))
            difference = try await self.difference(before)
        } while !difference.isEmpty && time.now < end && failure == nil
        if !difference.isEmpty { fail(difference) }
    }

    /// What is not as it must be in the end; nothing where all is.
    private func difference(_ before: [String: String]?) async throws -> String {
        var trees: [[String: String]] = []
        for machine in machines {
            let world = machine.world
            let pending = try await world.catalog.pending(world.account.id, limit: 5)
            // The former bytes of a file that somebody else overwrote before they were read are nowhere: a
            // backup of it waits for a person.
            let waits = hasOthers && pending.allSatisfy { $0.errorKind == "localContent" }
            if !pending.isEmpty, waits {
                let lost = owed.subtracting(service.tree.values).subtracting(service.trashed)
                return lost.isEmpty ? "" : "lost: \(lost.sorted()) of \(service.tree)"
            }
            guard pending.isEmpty else { return "pending: \(pending)" }
            do { trees.append(try await world.tree()) } catch {
                return "a file of machine \(machine.number) cannot be read: \(error)"
            }
        }
        let tree = trees[0]
        guard trees.allSatisfy({ $0 == tree }) else { return "machines differ: \(trees)" }
        guard tree.count == service.count, service.hasTwins || tree == service.tree else {
            return "here is \(tree), and at the service \(service.tree)"
        }
        let files = tree.filter { !$0.key.hasSuffix("/") }.values
        let lost = owed.subtracting(files).subtracting(service.trashed)
        guard lost.isEmpty else { return "lost: \(lost.sorted()) of \(tree)" }
        // What one replaced or uploaded while somebody else moved it may be there twice.
        guard !hasOthers else { return "" }
        var seen: Set<String> = []
        for text in files where !text.isEmpty && !copied.contains(text) {
            guard seen.insert(text).inserted else { return "\(text) is there twice: \(tree)" }
        }
        guard let before, before != tree else { return "" }
        // What was removed while a move by pieces had no answer may come back.
        let isKept = before.allSatisfy { tree[$0.key] == $0.value }
        return kind.movesByPieces && isKept ? "" : "the tree was \(before), and is \(tree)"
    }
}

/// What happens in a history, by the history itself and by the service, in order.
private final class Story: Sendable {
    private let lines = Mutex<[String]>([])

    var words: String { lines.withLock { $0.joined(separator: "\n  ") } }

    func note(_ words: String) { lines.withLock { $0.append(words) } }
}

/// One machine of a history, and what its programs wrote.
private final class Machine {
    struct Item {
        let path: String
        let node: Node
    }

    let number: Int
    let world: World
    private(set) var isUp = true
    private let service: any HistoryService
    private let connection: any HistoryConnection
    private var staged: [ContentID: String] = [:]
    /// The files that programs keep open for writing.
    private var open: [Inode] = []

    init(_ number: Int, _ service: any HistoryService, _ time: SeededTime) throws {
        self.number = number
        self.service = service
        connection = try service.makeConnection()
        var settings = SyncSettings()
        settings.settle = .milliseconds(10)
        settings.longestBackoff = .milliseconds(20)
        settings.longestOfflineWait = .milliseconds(20)
        settings.refusalInterval = .milliseconds(50)
        world = try World(
            provider: connection.provider(),
            settings: settings,
            clock: TaskClock(time: time)
        )
    }

    func stop() async {
        closeAll { _ in }
        await world.stop()
        connection.close()
        isUp = false
    }

    func crash(after turns: Int) async throws {
        // Files that programs have open are closed by nobody.
        open = []
        try await world.crash(after: turns)
        isUp = false
    }

    func start(_ complain: (String) -> Void) async {
        do {
            await world.restart(with: try connection.provider())
            isUp = true
        } catch { complain("machine \(number) does not start: \(error)") }
    }

    func end() async {
        await world.end()
        connection.end()
    }

    /// Everything that is shown, in an order that a seed repeats.
    func items() throws -> [Item] {
        var found: [Item] = []
        var queue = [("", world.account.root)]
        while let (path, folder) = queue.popLast() {
            for node in try world.catalog.children(of: folder, after: nil, limit: 1000) {
                found.append(Item(path: path + node.name, node: node))
                if node.kind == .folder { queue.append((path + node.name + "/", node.inode)) }
            }
        }
        return found.sorted { $0.path < $1.path }
    }

    func write(_ text: String, to file: Node, over base: CachedContent? = nil) throws {
        defer { if let base { world.store.close(base) } }
        let bytes = [UInt8](text.utf8)
        var outcome = StagedContent.WriteOutcome.frozen
        // An upload may hold still what nothing was written to yet.
        while outcome == .frozen {
            let (content, _) = try world.store.stage(
                over: nil,
                origin: base,
                of: file.inode,
                account: world.account.id,
                modified: .now
            )
            staged[content.id] = text
            outcome = unsafe try content.write(bytes.span.bytes, at: 0)
            let size = content.size
            world.store.close(content)
            let node = try world.catalog.recordStaged(
                content.id,
                size: size,
                modified: .now,
                isOpen: false
            )
            // Somebody else removed the file since the program looked for it.
            if node == nil { throw CatalogError.notFound }
        }
    }

    /// A program opens a file that it empties, and writes.
    ///
    /// - Returns: what the file held when it was opened, which stays until it is closed.
    func rewrite(_ inode: Inode, _ text: String, staysOpen: Bool = false) throws -> String? {
        world.catalog.opened(forWriting: inode)
        world.store.writers.beganWriting(inode)
        defer {
            if staysOpen {
                open.append(inode)
            } else {
                world.store.writers.closed(inode, hasWritten: true)
            }
        }
        let node = try world.catalog.node(inode)
        // Somebody else removed the file since the program looked for it.
        guard node.parent != nil else { throw CatalogError.notFound }
        guard case .revision(let item, let revision) = node.content else {
            try write(text, to: node)
            return self.text(of: node)
        }
        let base = try world.store.open(
            ContentKey(account: world.account.id, item: item, revision: revision),
            size: node.size,
            hash: node.hash
        )
        try write(text, to: node, over: base)
        return self.text(of: node)
    }

    /// Programs close what they kept open.
    func closeAll(_ note: (Int) -> Void) {
        guard !open.isEmpty else { return }
        note(open.count)
        for inode in open { world.store.writers.closed(inode, hasWritten: true) }
        open = []
    }

    /// What a file's node says that it holds; nil where that is nothing.
    func text(of node: Node) -> String? {
        switch node.content {
        case .none: nil
        case .staged(let id, _): staged[id]
        case .revision(_, let revision): service.text(of: revision)
        }
    }
}
