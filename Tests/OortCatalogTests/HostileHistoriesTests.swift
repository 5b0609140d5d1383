import Foundation
import OortCatalog
import OortModel
import OortPlanner
import Testing

/// A service may report anything: one item's id for another, a file where a folder was, a parent that is
/// a file, a removal of what is being changed here.
///
/// Programs and the push go on meanwhile. After every transaction all invariants of the catalog must hold,
/// and all that was written here and not sent shows; once the service is honest again, all that it has does.
@Suite("histories with a hostile service", .timeLimit(.minutes(15)))
struct HostileHistoriesTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let count = environment["OORT_HOSTILE"].flatMap { Int($0) } ?? 25
    private static let seed =
        environment["OORT_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0..<1 << 40)

    @Test("whatever a service reports, the catalog stays whole", arguments: HostileService.all)
    private func whole(_ service: HostileService) async throws {
        print("catalog: \(Self.count) histories at \(service) from OORT_SEED=\(Self.seed)")
        for number in 0..<Self.count {
            let own = Self.seed &+ UInt64(number)
            let history = try HostileHistory(seed: own, service)
            do { try await history.run() } catch {
                let story = (history.story.suffix(25) + [history.nodesInWords])
                    .joined(separator: "\n  ")
                Issue.record("OORT_SEED=\(own) OORT_HOSTILE=1: \(service): \(error):\n  \(story)")
                return
            }
        }
    }
}

/// How a service places its items.
private enum HostileService: CaseIterable, CustomStringConvertible {
    case byPath, byID, byIDWithDuplicates

    static var all: [HostileService] { allCases }

    var names: NameRules {
        switch self {
        case .byPath, .byID: Rules.folding
        case .byIDWithDuplicates: Rules.exact
        }
    }

    var description: String {
        switch self {
        case .byPath: "a service of paths"
        case .byID: "a service of ids"
        case .byIDWithDuplicates: "a service of ids where a folder holds a name twice"
        }
    }
}

/// What went wrong.
private struct HostileFailure: Error, CustomStringConvertible {
    var description: String
}

/// One history: pages of anything, programs, and a push whose answers are anything.
private final class HostileHistory {
    private static let ids = (0..<9).map { "i\($0)" }
    private static let names = ["a", "b", "A", "c.rclonelink", "b (2)"]

    /// What happened, in words.
    private(set) var story: [String] = []
    private var numbers: RandomNumbers
    private let service: HostileService
    private let fixture: TemporaryAccount
    private var catalog: Catalog { fixture.catalog }
    private var account: AccountID { fixture.account.id }
    private var open: [Inode] = []
    /// Staged contents that no program removed and that were not sent.
    private var written: Set<ContentID> = []
    private var made = 0

    init(seed: UInt64, _ service: HostileService) throws {
        numbers = RandomNumbers(state: seed)
        self.service = service
        fixture = try TemporaryAccount(
            service: service == .byPath ? "dropbox" : "drive",
            names: service.names
        )
    }

    private func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &numbers) }
    private func oneIn(_ bound: Int) -> Bool { below(bound) == 0 }
    private func any<T>(_ choices: [T]) -> T { choices[below(choices.count)] }

    func run() async throws {
        // Without programs it must come to show just what a fresh machine shows.
        let hasPrograms = !oneIn(3)
        for _ in 0..<100 {
            switch below(20) {
            case 0..<8: try await page()
            case 8..<14 where hasPrograms: try await change()
            case 8..<18: try await push()
            case 18: try await answerOpenIntent()
            default: try await enumerate()
            }
            try keepsWhatIsWritten()
        }
        try await heal(isAlone: !hasPrograms)
    }

    // MARK: What must hold

    /// Staged contents that programs see.
    private func shownContents() throws -> Set<ContentID> {
        Set(try nodes().compactMap(\.staged))
    }

    private func keepsWhatIsWritten() throws {
        let lost = written.subtracting(try shownContents())
        guard lost.isEmpty else { throw HostileFailure(description: "\(lost) do not show") }
    }

    /// The service tells the truth from now on, and is asked for all that is not known.
    private func heal(isAlone: Bool) async throws {
        for inode in open { catalog.writers.closed(inode, hasWritten: false) }
        for inode in try await catalog.openIntents(of: account).map(\.inode) {
            try await catalog.failed(inode, nil, isUnknown: false)
        }
        // What is not hashed keeps a file of its name waiting.
        for content in try shownContents() {
            let hash = hash("mine \(content.rawValue)")
            _ = try await catalog.setHash(hash, size: 7, ofStaged: content)
        }
        let truth = honestTree()
        story.append("the truth: \(truth.values.map(describe).sorted())")
        for _ in 0..<4 {
            try await catalog.beginEnumeration(of: account)
            var items = truth.values.sorted { $0.id.rawValue < $1.id.rawValue }
            items.shuffle(using: &numbers)
            let half = items.count / 2
            try await fixture.page(items[..<half].map { .changed($0) }, endsRun: false)
            try await fixture.page(items[half...].map { .changed($0) }) {
                $0.endsEnumeration = true
            }
            try await fixture.plan()
            for unsure in try await catalog.unsureItems(of: account) {
                guard let reference = unsure.reference else {
                    try await catalog.forgetUnsure(of: unsure.id, in: account)
                    continue
                }
                let change = truth[reference.id].map { Change.changed($0) }
                var observations = Observations(changes: [change ?? .removed(reference.id)])
                observations.endsRun = false
                _ = try await catalog.apply(observations, to: account)
            }
            try await fixture.plan()
        }
        try keepsWhatIsWritten()
        let removed = try await catalog.pending(account).filter { $0.isDeleted && !$0.isNews }
        for item in truth.values {
            guard let node = try catalog.node(remoteID: item.id, account: account) else {
                throw HostileFailure(description: "\(item.id.rawValue) is not known")
            }
            guard node.parent == nil, !removed.contains(where: { $0.inode == node.inode }) else {
                continue
            }
            throw HostileFailure(description: "\(item.id.rawValue) does not show")
        }
        guard isAlone else { return }
        let fresh = try HostileHistory(seed: 0, service)
        try await fresh.fixture.page(
            truth.values.sorted { $0.id.rawValue < $1.id.rawValue }.map { .changed($0) }
        )
        try await fresh.fixture.plan()
        let (mine, expected) = (try shownPaths(), try fresh.shownPaths())
        guard mine == expected else {
            throw HostileFailure(
                description: "\(mine) is not what a fresh machine shows: \(expected)"
            )
        }
    }

    /// Where each item shows.
    private func shownPaths() throws -> [String: [String]] {
        var paths: [String: [String]] = [:]
        for node in try nodes() {
            paths[node.remoteID?.rawValue ?? "none"] = try catalog.shownPath(of: node.inode)
        }
        return paths
    }

    /// Items in a tree that a service may have.
    private func honestTree() -> [ItemID: Item] {
        var truth: [ItemID: Item] = [:]
        var folders = [(id: "root", path: RemotePath.root)]
        for id in Self.ids where !oneIn(4) {
            let folder = any(folders)
            var item = item()
            item.id = ItemID(id)
            item.kind = Int(id.dropFirst()).map { $0 < 5 } ?? true ? .folder : .file
            if service != .byIDWithDuplicates { item.fileName = id }
            item.isTrashed = false
            let path = folder.path.appending(item.fileName)
            item.path = service == .byPath ? path : nil
            item.parentID = service == .byPath ? nil : ItemID(folder.id)
            item.rev = item.kind == .file ? Revision("last") : nil
            item.size = item.kind == .file ? 1 : nil
            truth[item.id] = item
            if item.kind == .folder { folders.append((id, path)) }
        }
        return truth
    }

    /// What programs see, for whoever looks for the cause of a failure.
    var nodesInWords: String {
        let nodes = (try? nodes()) ?? []
        return nodes.map { node in
            let above = node.parent.map { "\($0)" } ?? "nowhere"
            return "\(node.kind) \(node.inode) '\(node.name)' in \(above)"
                + (node.remoteID.map { " is \($0.rawValue)" } ?? "")
        }.joined(separator: ", ")
    }

    // MARK: What the service reports

    private func page(endsRun: Bool? = nil, endsEnumeration: Bool = false) async throws {
        var observations = Observations(changes: (0...below(4)).map { _ in report() })
        if !oneIn(4) {
            observations.cursor = OortModel.Cursor("c")
            observations.endsRun = endsRun ?? !oneIn(3)
            observations.endsEnumeration = endsEnumeration
        } else {
            observations.endsRun = false
            if oneIn(3) {
                observations.folder = try folders().randomElement(using: &numbers)?.inode
            }
        }
        if oneIn(4) { observations.suspects = [ItemID(any(Self.ids))] }
        story.append("report: \(words(observations))")
        _ = try await catalog.apply(observations, to: account)
    }

    private func words(_ observations: Observations) -> String {
        var words = observations.changes.map { change in
            switch change {
            case .changed(let item): describe(item)
            case .removed(let id): "no \(id.rawValue)"
            case .removedPath(let path): "nothing at \(path.parts)"
            }
        }
        if let folder = observations.folder { words.append("all of folder \(folder)") }
        words += observations.suspects.map { "suspect \($0.rawValue)" }
        if observations.cursor == nil { words.append("not of the feed") }
        if !observations.endsRun { words.append("more") }
        if observations.endsEnumeration { words.append("end of the enumeration") }
        return words.joined(separator: ", ")
    }

    private func describe(_ item: Item) -> String {
        let place = item.parentID?.rawValue ?? item.path.map { "\($0.parts)" } ?? "nowhere"
        return "\(item.kind) \(item.id.rawValue) '\(item.fileName)' in \(place)"
            + (item.isTrashed ? " trashed" : "")
    }

    private func report() -> Change {
        if oneIn(6) { return .removed(ItemID(any(Self.ids))) }
        if service == .byPath, oneIn(6) { return .removedPath(path()) }
        return .changed(item())
    }

    private func path() -> RemotePath {
        RemotePath((0...below(3)).map { _ in any(Self.names) })
    }

    /// Mostly what the id is, where that is known, with anything about it.
    private func item() -> Item {
        let id = oneIn(40) ? "root" : any(Self.ids)
        let isFolder = Int(id.dropFirst()).map { $0 < 5 } ?? true
        var kind: ItemKind = isFolder ? .folder : .file
        if oneIn(8) { kind = any([.folder, .file, .shortcut, .nativeDocument]) }
        var item = Item(id: ItemID(id), kind: kind, fileName: any(Self.names))
        if service == .byPath, !oneIn(20) {
            let path = path()
            item.path = path
            item.fileName = path.name ?? ""
        } else if !oneIn(30) {
            item.parentID = ItemID(any(Self.ids.prefix(oneIn(8) ? 9 : 5) + ["root", "root", "x"]))
        }
        if kind == .file {
            item.rev = Revision("\(below(3))")
            item.size = Int64(below(3))
            if !oneIn(3) { item.contentHash = hash("theirs \(below(3))") }
        }
        if oneIn(2) { item.createdTime = Timestamp(seconds: Int64(below(3))) }
        item.isTrashed = oneIn(20)
        return item
    }

    private func enumerate() async throws {
        story.append("an enumeration begins")
        try await catalog.beginEnumeration(of: account)
        for _ in 0..<below(3) { try await page(endsRun: false) }
        if !oneIn(3) { try await page(endsRun: true, endsEnumeration: true) }
    }

    private func hash(_ content: String) -> ContentHash {
        ContentHash(algorithm: .md5, value: content)
    }

    // MARK: What the engine does

    private func push() async throws {
        story.append("plan")
        for operation in try await fixture.plan() where !oneIn(3) {
            let start = try await catalog.begin(operation, account: account, reservedID: nil)
            guard let start else { continue }
            story.append("begun: \(operation)")
            if oneIn(4) { continue }
            try await answer(start.intent, of: operation.inode)
        }
    }

    private func answerOpenIntent() async throws {
        for inode in try await catalog.openIntents(of: account).map(\.inode) where !oneIn(3) {
            guard let (intent, _) = try await catalog.intent(of: inode) else { continue }
            try await answer(intent, of: inode)
        }
    }

    private func answer(_ intent: Intent, of inode: Inode) async throws {
        if oneIn(4) {
            let isUnknown = oneIn(2)
            story.append("failed: \(inode)\(isUnknown ? ", perhaps" : "")")
            try await catalog.failed(inode, nil, isUnknown: isUnknown)
            return
        }
        guard intent.kind != .delete else {
            story.append("deleted: \(inode)")
            _ = try await catalog.succeeded(intent, of: inode, item: nil, sentModified: nil)
            return
        }
        var answered = item()
        if !oneIn(4), let name = intent.name, let folder = intent.folderID {
            answered.fileName = name
            answered.parentID = service == .byPath ? nil : ItemID(folder)
        }
        if !oneIn(4) {
            let known = try catalog.knownNode(inode)
            answered.kind = known?.kind == .folder ? .folder : .file
            made += known?.remoteID == nil ? 1 : 0
            if !oneIn(4) { answered.id = known?.remoteID ?? ItemID("made \(made)") }
            answered.size = intent.size
            answered.contentHash = intent.hash.flatMap { ContentHash(description: $0) }
            answered.rev = answered.kind == .file ? Revision("made \(below(100))") : nil
        }
        story.append("answer to \(intent.kind) of \(inode): \(describe(answered))")
        // Equal hashes are equal bytes, whoever has them.
        let sent = try catalog.knownNode(inode)?.staged
        if let sent, intent.hash != nil, answered.contentHash?.description == intent.hash {
            written.remove(sent)
        }
        _ = try await catalog.succeeded(
            intent,
            of: inode,
            item: answered,
            sentModified: nil,
            isOlder: oneIn(10),
            answersUpload: intent.kind == .upload && oneIn(2)
        )
    }

    // MARK: What programs do

    private func folders() throws -> [Node] {
        try nodes().filter { $0.kind == .folder }
    }

    /// All that a program sees, the account's root first.
    private func nodes() throws -> [Node] {
        var found = [try catalog.node(fixture.account.root)]
        var next = 0
        while next < found.count {
            let node = found[next]
            next += 1
            guard node.kind == .folder else { continue }
            found += try catalog.children(of: node.inode, after: nil, limit: 1000)
        }
        return found
    }

    /// A system call on anything that shows; an error of the caller's is none of the catalog's.
    private func change() async throws {
        let before = try shownContents()
        do throws(CatalogError) {
            try await changeAnything()
        } catch {
            switch error {
            case .corrupt, .storage, .diskFull: throw error
            default: return
            }
        }
        written = written.subtracting(before).union(try shownContents())
    }

    private func changeAnything() async throws(CatalogError) {
        let all: [Node]
        do { all = try nodes() } catch { throw .storage(detail: "\(error)") }
        let folder = any(all.filter { $0.kind == .folder })
        let name = any(Self.names)
        let node = any(all)
        switch below(10) {
        case 0, 1:
            story.append("mkdir '\(name)' in \(folder.inode)")
            _ = try catalog.create(.folder, named: name, in: folder.inode)
        case 2, 3:
            story.append("write '\(name)' in \(folder.inode)")
            let file = try catalog.create(.file, named: name, in: folder.inode) { _, _ in }
            if let content = file.staged { try await close(content, oneIn(2)) }
        case 4, 5:
            guard let parent = node.parent else { return }
            let mode = any([RenameMode.replace, .replace, .noReplace, .exchange])
            story.append("rename \(node.inode) to '\(name)' in \(folder.inode), \(mode)")
            _ = try catalog.rename(node.name, in: parent, to: name, in: folder.inode, mode: mode)
        case 6:
            guard let parent = node.parent, node.kind != .folder else { return }
            story.append("rm \(node.inode)")
            _ = try catalog.unlink(node.name, in: parent)
        case 7:
            let empty = all.filter { one in
                one.kind == .folder && !all.contains { $0.parent == one.inode }
            }
            guard let node = empty.randomElement(using: &numbers), let parent = node.parent else {
                return
            }
            story.append("rmdir \(node.inode)")
            _ = try catalog.removeFolder(node.name, in: parent)
        case 8:
            guard node.kind == .file else { return }
            story.append("change \(node.inode)")
            let (content, _) = try catalog.stage(
                NewStagedContent(baseItem: node.remoteID, baseRevision: node.revision, size: 1),
                account: account,
                modified: .now,
                of: node.inode
            ) { _ in }
            try await close(content, !oneIn(4))
        default:
            if let inode = open.popLast() {
                story.append("close \(inode)")
                catalog.writers.closed(inode, hasWritten: false)
            } else if node.kind == .file {
                story.append("open \(node.inode)")
                catalog.opened(forWriting: node.inode)
                open.append(node.inode)
            }
        }
    }

    private func close(_ content: ContentID, _ isHashed: Bool) async throws(CatalogError) {
        _ = try catalog.recordStaged(content, size: 7, modified: .now, isOpen: false)
        guard isHashed else { return }
        _ = try await catalog.setHash(
            hash("mine \(content.rawValue)"),
            size: 7,
            ofStaged: content
        )
    }
}
