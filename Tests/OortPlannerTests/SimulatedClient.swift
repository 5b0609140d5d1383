import OortModel
import OortPlanner

/// A catalog and an engine in memory, as plain as can be: what `OortCatalog` and `OortSync` do with
/// plans, without SQLite, time or tasks.
struct SimulatedClient {
    /// A revision of an item at the service.
    struct RevisionID: Hashable {
        var item: Int
        var revision: Int
    }

    /// What the content of another item is made of while that was not sent.
    struct Loan: Hashable {
        var source: RevisionID
        /// Whether the client has the bytes, too: a temporary file's, that it sent a while ago.
        var isHere: Bool
    }

    struct Row {
        var state: ItemState
        var id: Int?
        var mustLook = false
        /// When the service reported that it does not have it, which a run of the feed that begins later
        /// has to confirm; nil while nothing says so.
        var missedAt: Int?
        /// Whether we created it at the service.
        var isOurs = false
        /// The last enumeration in which the service had its item.
        var enumeration = 0
        var changedAt = -1
        /// What was sent and never answered.
        var attempt: RemoteOperation.Action?
        /// The path of the folder at that moment, where the service goes by paths.
        var attemptPath: [String]?
        /// What its content is made of while that was not sent.
        var loan: Loan?
    }

    struct Running {
        var operation: Int
        var action: RemoteOperation.Action
        var inode: Inode
        /// The service's answer; nil while it has not done it yet.
        var answer: SimulatedService.Item??
        var failed = false
        /// What the client knew of at the service when it asked.
        var known: Set<Int> = []
        /// The files in a folder that it deletes, as far as the client knows.
        var knownItems: Set<Int> = []
        /// What the content was made of that was sent.
        var loan: Loan?
    }

    var rows: [Inode: Row] = [:]
    var service: SimulatedService
    let planner: Planner
    let planning: Planning
    var cursor = 0
    /// The number of the enumeration that runs or ran last.
    var enumeration = 0
    var enumerating: Enumeration?
    var lastInode: UInt64 = 1
    var clock = 0
    /// Contents that the user made and did not take back himself.
    var owed: Set<Int> = []
    /// Contents that another client made and that no one who knew them took away.
    var owedToOthers: Set<Int> = []
    var lastContent = 0
    /// Contents of backups, and of temporary files that were sent: there once more while the
    /// original is on its way, or until the temporary file is deleted.
    var copied: Set<Int> = []
    /// Contents of which the user made copies.
    var copiedByUser: Set<Int> = []
    /// What our own operations took away at the service.
    var taken: Set<RevisionID> = []
    /// What we deleted, and when: a page that was read before may still name it.
    var deletedAt: [Int: Int] = [:]
    var plan: [RemoteOperation] = []
    var done: [Bool] = []
    var started: [Bool] = []
    var running: [Running] = []
    var failure: String?
    var calls: [String] = []
    var recordsCalls = false

    init(kind: SimulatedService.Kind, planning: @escaping Planning) {
        service = SimulatedService(kind: kind)
        self.planning = planning
        planner = Planner(
            traits: PlannerTraits(
                comparison: kind == .duplicateNames ? .exact : .caseInsensitive,
                allowsDuplicates: kind == .duplicateNames
            )
        )
    }

    static let hashes: [ContentHash] = (0..<400).map {
        ContentHash(algorithm: .md5, value: String($0))
    }

    static func identity(_ content: Int, revision: Int?) -> ContentIdentity {
        ContentIdentity(
            revision: revision.map { Revision(String($0)) },
            staged: revision == nil ? Int64(content) : nil,
            hash: hashes[content % 400],
            size: Int64(content)
        )
    }

    mutating func newContent() -> Int {
        lastContent += 1
        return lastContent
    }

    // MARK: The local file system

    func localChildren(_ folder: Inode) -> [Row] {
        rows.values.filter { $0.state.local?.place.parent == folder }
            .sorted { $0.state.inode < $1.state.inode }
    }

    var localItems: [Row] {
        rows.values.filter { $0.state.local != nil }.sorted { $0.state.inode < $1.state.inode }
    }

    var localFolders: [Inode] { [.root] + localItems.filter(\.state.isFolder).map(\.state.inode) }

    func localItem(_ name: String, in folder: Inode) -> Row? {
        let key = planner.traits.comparison.key(name)
        return rows.values.first {
            guard let place = $0.state.local?.place, place.parent == folder else { return false }
            return planner.traits.comparison.key(place.name) == key
        }
    }

    mutating func touch(_ inode: Inode) { rows[inode]?.state.isSettled = false }

    @discardableResult
    mutating func create(_ name: String, in folder: Inode, isFolder: Bool) -> Inode? {
        guard localItem(name, in: folder) == nil else { return nil }
        lastInode += 1
        let inode = Inode(lastInode)
        var content: ContentIdentity?
        if !isFolder {
            let bytes = newContent()
            owed.insert(bytes)
            content = Self.identity(bytes, revision: nil)
        }
        rows[inode] = Row(
            state: ItemState(
                inode: inode,
                isFolder: isFolder,
                local: Entry(place: Place(parent: folder, name: name), content: content),
                synced: nil,
                remote: nil
            )
        )
        touch(inode)
        return inode
    }

    /// The user copies a file that the service has, and the copy is left to the service.
    mutating func copy(_ source: Inode, to name: String, in folder: Inode) {
        guard let row = rows[source], let content = row.state.local?.content, !row.state.isOpen,
            let loan = loan(of: row, isHere: false), localItem(name, in: folder) == nil
        else { return }
        lastInode += 1
        let inode = Inode(lastInode)
        copiedByUser.insert(Int(content.size))
        let entry = Entry(
            place: Place(parent: folder, name: name),
            content: Self.identity(Int(content.size), revision: nil)
        )
        rows[inode] = Row(
            state: ItemState(inode: inode, isFolder: false, local: entry, synced: nil, remote: nil),
            loan: loan
        )
        touch(inode)
    }

    /// The item by whose bytes at the service a file's content can be had; nil where only we have it.
    func loan(of row: Row, isHere: Bool) -> Loan? {
        if let loan = row.loan { return loan }
        guard let id = row.id, let revision = row.state.local?.content?.revision,
            let number = Int(revision.rawValue)
        else { return nil }
        return Loan(source: RevisionID(item: id, revision: number), isHere: isHere)
    }

    mutating func write(_ inode: Inode) {
        guard let local = rows[inode]?.state.local, let old = local.content else { return }
        giveUp(old)
        let bytes = newContent()
        owed.insert(bytes)
        rows[inode]?.state.local?.content = Self.identity(bytes, revision: nil)
        rows[inode]?.loan = nil
        if rows[inode]?.state.isOpen == true { rows[inode]?.state.isBeingWritten = true }
        touch(inode)
    }

    /// The user overwrites or deletes a content that he sees.
    private mutating func giveUp(_ content: ContentIdentity) {
        if content.staged != nil { owed.remove(Int(content.size)) }
        owedToOthers.remove(Int(content.size))
    }

    mutating func unlink(_ inode: Inode) {
        guard let row = rows[inode], let local = row.state.local else { return }
        for child in row.state.isFolder ? localChildren(inode) : [] { unlink(child.state.inode) }
        if let content = local.content { giveUp(content) }
        rows[inode]?.state.local = nil
        rows[inode]?.loan = nil
        rows[inode]?.state.formerName = local.place.name
        touch(inode)
        if row.id == nil, row.state.synced == nil, !row.state.isBusy, !row.mustLook {
            rows[inode] = nil
        }
    }

    func isLocallyBelow(_ inode: Inode, _ ancestor: Inode) -> Bool {
        var next = inode
        while next != .root, let place = rows[next]?.state.local?.place {
            if next == ancestor { return true }
            next = place.parent
        }
        return false
    }

    mutating func rename(_ inode: Inode, to folder: Inode, _ name: String) {
        guard let row = rows[inode], row.state.local != nil, !isLocallyBelow(folder, inode)
        else { return }
        if let there = localItem(name, in: folder), there.state.inode != inode {
            guard there.state.isFolder == row.state.isFolder,
                !there.state.isFolder || localChildren(there.state.inode).isEmpty
            else { return }
            unlink(there.state.inode)
        }
        rows[inode]?.state.local?.place = Place(parent: folder, name: name)
        touch(inode)
    }

    mutating func exchange(_ one: Inode, _ other: Inode) {
        guard let first = rows[one]?.state.local?.place,
            let second = rows[other]?.state.local?.place,
            one != other, !isLocallyBelow(first.parent, other), !isLocallyBelow(second.parent, one)
        else { return }
        rows[one]?.state.local?.place = second
        rows[other]?.state.local?.place = first
        touch(one)
        touch(other)
    }

    /// A program opens a file for writing.
    mutating func open(_ inode: Inode) {
        guard rows[inode]?.state.isFolder == false else { return }
        rows[inode]?.state.isOpen = true
    }

    mutating func closeAll() {
        for inode in Array(rows.keys) {
            rows[inode]?.state.isOpen = false
            rows[inode]?.state.isBeingWritten = false
        }
    }

    mutating func settle() { for inode in Array(rows.keys) { rows[inode]?.state.isSettled = true } }

    mutating func retryAll() {
        for inode in Array(rows.keys) { rows[inode]?.state.isPushable = true }
    }
}
