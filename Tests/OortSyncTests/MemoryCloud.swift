import Foundation
import OortModel
import OrderedCollections
import OortTesting
import Synchronization

/// A service in memory that can refuse, lose answers and be changed by somebody else; it counts the
/// calls that it gets.
final class MemoryCloud: Sendable {
    struct Entry {
        var item: Item
        var bytes: [UInt8]
    }

    struct State {
        var entries: OrderedDictionary<ItemID, Entry> = [:]
        var log: [ItemID] = []
        /// How many changes the feed, listings and searches may not show yet; questions for one item show all.
        var lag = 0
        /// What there was after each of the last changes, the newest last; empty where nothing lags.
        var past: [Replica] = []
        /// Whether such answers show the first of these, and not any.
        var isFarBehind = false
        var tellsPaths = false
        /// The paths that changed, in order, where places are reported by path.
        var changedPaths: [[String]] = []
        var counter = 0
        var calls: [String: Int] = [:]
        var refusals: [String: [ProviderError]] = [:]
        var lostAnswers: [String: Int] = [:]
        var bytesUp: Int64 = 0
        /// The sizes of the contents that are on their way.
        var uploading: [Int64] = []
        var cursorEpoch = 0
        var history: [[UInt8]] = []
        /// What each revision holds.
        var texts: [Revision: String] = [:]
        /// One call in so many fails; half of them after the service did its work.
        var faults = 0
        var numbers = SeededNumbers(seed: 0)
        /// Hears of each change, in words.
        var listener: (@Sendable (String) -> Void)?
        var usedIDs: Set<ItemID> = []
        /// Where each item was made, and as what.
        var origins: [ItemID: Item] = [:]
        var usingUp: Set<String> = []
        var sessions: [String: [UInt8]] = [:]
        /// What happens before each part of an upload in parts is read.
        var beforeParts: (@Sendable () async throws(ProviderError) -> Void)?
        var written = 0
        var damagedUploads = 0
        var rewrites = false
        var tellsNoHashes = false
        /// The kind of the weak hashes that the service reports; nil where its hashes tell contents apart.
        var weakness: HashAlgorithm?
        var movesMakeRevisions = false
        var changeOfOriginal: [UInt8]?
        /// What somebody puts into the next folder that is deleted, just before.
        var lateArrival: String?
        var stall: Stall?
        var isStalled = false
        var search: (any ContentSearching)?
        var isSilent = false
        /// Whether something lies in all folders that it reports to nobody.
        var hidesContents = false
        /// Whether it refuses to say whether there are news.
        var refusesWaits = false
        /// How many more pages of an enumeration are given before the feed is held.
        var pagesBeforeHold: Int?
        var held: Set<Gate> = []
        /// How many changes a page of the feed names, and how many ids are reserved at once, at most.
        var changesAtOnce = Int.max
        var idsAtOnce = Int.max
        /// How many wait at each.
        var waiting: [Gate: Int] = [:]
        var trash: [ItemID: Entry] = [:]
        var refusedLook: ItemID?
        var atNextLook: (@Sendable () -> Void)?
        var atNextRefusal: (@Sendable () -> Void)?
        var standsStill = false
        var pages = 0
        var quota = Quota(used: 1, total: nil)
        var quotaCalls = 0
        /// How often somebody began to wait for news.
        var looksForNews = 0
        /// How many more reads break after half of what was asked for.
        var breaks = 0
        /// The ranges that were read, in order.
        var reads: [Range<Int64>] = []
    }

    /// What a test can hold up, to have something else happen meanwhile.
    enum Gate {
        /// Pages of the feed, which are answered as of the time when they are let through.
        case feed
        /// Hashes of what nothing is staged for, which the planner's input needs.
        case hashes
        /// Questions for one item, which are answered as of the time when they are let through.
        case looks
        /// Reserving ids, for which an operation waits before it begins.
        case ids
        /// Contents, before anything of them is sent.
        case uploads
        /// New folders, before they are made.
        case folders
        /// Reads of contents.
        case reads
        /// Listings of single folders.
        case listings
        /// Questions for the account's room.
        case room
    }

    /// Where a call is to stay without an answer, until it is cancelled or nothing is stalled any more.
    struct Stall {
        /// The number of the writing call, from 0.
        var call: Int
        /// Whether the service has done it by then.
        var isDone: Bool
        /// Whether questions for single items are calls, too.
        var countsLooks = false
    }

    static let rootID = ItemID("root")
    let traits: ProviderTraits
    let state = Mutex(State())

    init(duplicates: Bool = false, change: (inout ProviderTraits) -> Void = { _ in }) {
        var traits = ProviderTraits(
            names: NameRules(
                comparison: duplicates ? .exact : .caseInsensitive,
                allowsDuplicates: duplicates,
                allowsSlash: duplicates,
                refusal: { _, _, _ in nil }
            ),
            hashAlgorithm: .sha256,
            largestSimpleUpload: 1 << 20,
            largestFile: 1 << 40,
            uploadPartMultiple: 1,
            uploadPartSize: 1 << 20
        )
        traits.replaceIsAtomic = true
        traits.refusesTakenNames = !duplicates
        traits.setsModifiedTime = true
        traits.timeResolution = .milliseconds
        traits.pollInterval = .milliseconds(20)
        change(&traits)
        self.traits = traits
    }

    // MARK: What tests do and ask

    /// How often the room was asked for.
    var quotaCalls: Int { state.withLock { $0.quotaCalls } }

    /// How often somebody began to wait for news.
    var looksForNews: Int { state.withLock { $0.looksForNews } }

    /// The next `count` calls of this name do their work, but the answer is lost.
    func loseAnswers(of call: String, count: Int = 1) {
        state.withLock { $0.lostAnswers[call] = count }
    }

    /// One call in `number` fails from now on, in an order that the seed repeats; 0 for none.
    func fail(oneIn number: Int, seed: UInt64) {
        state.withLock { state in
            state.faults = number
            state.numbers = SeededNumbers(seed: seed)
        }
    }

    /// Reports each change at the service to a listener, in words, in the order of the changes.
    func listen(_ listener: @escaping @Sendable (String) -> Void) {
        state.withLock { $0.listener = listener }
    }

    /// What a revision holds; nil where there never was one of that name.
    func text(of revision: Revision) -> String? { state.withLock { $0.texts[revision] } }

    /// The next call of each of these names creates what is trashed at once, and says so.
    func useUp(_ calls: [String]) { state.withLock { $0.usingUp = Set(calls) } }

    /// The next call of this name is refused.
    func refuse(_ call: String, with kind: ProviderError.Kind, times: Int = 1) {
        state.withLock {
            $0.refusals[call] = Array(
                repeating: ProviderError(kind, detail: "scripted"),
                count: times
            )
        }
    }

    /// The next calls of this name are refused, the last of these first.
    func refuse(_ call: String, with kinds: [ProviderError.Kind]) {
        state.withLock { state in
            state.refusals[call] = kinds.map { ProviderError($0, detail: "scripted") }
        }
    }

    /// From now on the service does not say what this item is like; nil for none.
    func refuseLooks(at id: ItemID?) { state.withLock { $0.refusedLook = id } }

    /// The next uploads are stored with other bytes, and said to be damaged.
    func damage(uploads: Int) { state.withLock { $0.damagedUploads = uploads } }

    /// Somebody puts a file into the next folder that is deleted, just before it goes.
    func putIntoDeleted(_ name: String) { state.withLock { $0.lateArrival = name } }

    /// Somebody changes the original just before the next copy of it is made.
    func changeOriginal(to text: String) {
        state.withLock { $0.changeOfOriginal = [UInt8](text.utf8) }
    }

    /// From now on properties are written into what is uploaded, as some services do.
    func rewriteUploads() { state.withLock { $0.rewrites = true } }

    /// From now on no hash is reported of what is stored, as some services do.
    func tellNoHashes() { state.withLock { $0.tellsNoHashes = true } }

    /// From now on two contents of the same bytes in another order have one hash, as at OneDrive some have,
    /// and as can be made for MD5.
    func tellWeakHashes(as algorithm: HashAlgorithm = .quickXor) {
        state.withLock { $0.weakness = algorithm }
    }

    /// From now on what is moved has a new revision of the same bytes, as at Dropbox.
    func makeRevisionsOfMoves() { state.withLock { $0.movesMakeRevisions = true } }

    /// The next so many reads break after half of what was asked for.
    func breakReads(_ count: Int) { state.withLock { $0.breaks = count } }

    /// The next so many reads bring nothing.
    func fail(reads count: Int) {
        state.withLock { state in
            state.refusals["read"] = Array(repeating: error(.offline), count: count)
        }
    }

    /// The ranges that were read, in order.
    var reads: [Range<Int64>] { state.withLock { $0.reads } }

    /// One of the writing calls from now on gets no answer.
    func stall(_ stall: Stall?) {
        state.withLock {
            $0.written = 0
            $0.stall = stall
            $0.isStalled = false
        }
    }

    /// Something happens just after the next change was refused.
    func atNextRefusal(_ event: @escaping @Sendable () -> Void) {
        state.withLock { $0.atNextRefusal = event }
    }

    /// Something happens while the next question for a single item is on its way.
    func atNextLook(_ event: @escaping @Sendable () -> Void) {
        state.withLock { $0.atNextLook = event }
    }

    /// Something happens before each part of an upload in parts is read, from now on.
    func beforeParts(_ event: @escaping @Sendable () async throws(ProviderError) -> Void) {
        state.withLock { $0.beforeParts = event }
    }

    /// Whether a call waits for ever.
    var isStalled: Bool { state.withLock { $0.isStalled } }

    /// Something lies in all folders from now on that the service reports to nobody.
    func hideContents() { state.withLock { $0.hidesContents = true } }

    /// The service does not say whether there are news from now on.
    func refuseWaits() { state.withLock { $0.refusesWaits = true } }

    /// From now on waiting for news brings none: the feed must be read.
    func fallSilent() { state.withLock { $0.isSilent = true } }

    /// Whether the feed says for ever that there is more, and names the same place for it.
    func standStill(_ standsStill: Bool) { state.withLock { $0.standsStill = standsStill } }

    /// How many pages of the feed were asked for.
    var pages: Int { state.withLock { $0.pages } }

    /// How many changes a page of the feed names at most from now on.
    func tell(changesAtOnce count: Int) { state.withLock { $0.changesAtOnce = count } }

    /// How many ids are reserved by one call at most from now on.
    func reserve(idsAtOnce count: Int) { state.withLock { $0.idsAtOnce = count } }

    /// From now on these wait.
    func hold(_ gate: Gate) { state.withLock { _ = $0.held.insert(gate) } }

    /// The next enumeration waits when it has given so many pages.
    func holdEnumeration(afterPages count: Int) {
        state.withLock { $0.pagesBeforeHold = count }
    }

    /// Those that wait go on, and all that come.
    func release(_ gate: Gate) {
        state.withLock {
            $0.held.remove(gate)
            $0.waiting[gate] = nil
        }
    }

    /// Whether any of these waits.
    func isWaiting(_ gate: Gate) -> Bool { waiting(at: gate) > 0 }

    /// How many of these wait.
    func waiting(at gate: Gate) -> Int { state.withLock { $0.waiting[gate] ?? 0 } }

    /// Of the items of a name, wherever they lie, the one that was made first.
    func eldest(_ name: String) -> ItemID? {
        state.withLock { state in
            state.entries.values.map(\.item).filter { $0.fileName.isSameText(as: name) }
                .min { ($0.createdTime?.seconds ?? 0) < ($1.createdTime?.seconds ?? 0) }?.id
        }
    }

    /// The names of all folders that were ever removed.
    var removedFolders: [String] {
        state.withLock { state in
            state.trash.values.filter { $0.item.kind == .folder }.map(\.item.fileName)
        }
    }

    /// How many items the service has.
    var count: Int { state.withLock { $0.entries.count } }

    /// Everything that was ever removed comes back as what it was.
    func restoreTrash() {
        state.withLock { state in
            for entry in state.trash.values { Self.store(entry, newContent: false, &state) }
            state.trash = [:]
        }
    }

    func loseCursors() { state.withLock { $0.cursorEpoch += 1 } }

    /// The calls since the last time, reads left out.
    func takeCalls() -> [String: Int] {
        state.withLock { state in
            defer { state.calls = [:] }
            return state.calls
        }
    }

    /// How often a call was made since `takeCalls`.
    func calls(_ name: String) -> Int { state.withLock { $0.calls[name] ?? 0 } }

    var bytesUp: Int64 { state.withLock { $0.bytesUp } }

    /// The sizes of the contents that are on their way.
    var uploading: [Int64] { state.withLock { $0.uploading } }

    /// Every content that was ever uploaded.
    var history: [[UInt8]] { state.withLock { $0.history } }

    /// The tree as paths and contents; folders end with a slash.
    var tree: [String: String] {
        state.withLock { state in
            var tree: [String: String] = [:]
            for entry in state.entries.values {
                var path = entry.item.fileName
                var parent = entry.item.parentID
                while let id = parent, id != Self.rootID, let above = state.entries[id] {
                    path = above.item.fileName + "/" + path
                    parent = above.item.parentID
                }
                let isFolder = entry.item.kind == .folder
                tree[path + (isFolder ? "/" : "")] =
                    isFolder ? "" : String(decoding: entry.bytes, as: UTF8.self)
            }
            return tree
        }
    }

    /// The paths of all folders, each as often as there is one.
    var folders: [String] {
        state.withLock { state in
            state.entries.values.filter { $0.item.kind == .folder }.map { entry in
                var path = entry.item.fileName
                var parent = entry.item.parentID
                while let id = parent, let above = state.entries[id] {
                    path = above.item.fileName + "/" + path
                    parent = above.item.parentID
                }
                return path
            }.sorted()
        }
    }

    /// Another machine, unseen so far, made a folder at the top, so many seconds before the oldest other
    /// one of its name, with these files and folders in it.
    @discardableResult
    func makeUnheard(_ name: String, secondsAgo: Int64, _ tree: [String: String]) -> ItemID {
        state.withLock { state in
            func firstMade(_ name: String) -> Int64 {
                let times = state.entries.values.filter { entry in
                    entry.item.kind == .folder && entry.item.fileName.isSameText(as: name)
                }.compactMap { $0.item.createdTime?.seconds }
                return times.min() ?? Timestamp.now.seconds
            }
            func make(_ name: String, _ parent: ItemID, _ bytes: [UInt8]?) -> ItemID {
                let seconds = firstMade(name) - secondsAgo
                let item = Self.make(name, parent, bytes, modified: nil, &state)
                guard bytes == nil, var entry = state.entries[item.id] else { return item.id }
                entry.item.createdTime = Timestamp(seconds: seconds)
                state.entries[item.id] = entry
                return item.id
            }
            let top = make(name, Self.rootID, nil)
            var ids = ["": top]
            for (path, text) in tree.sorted(by: { $0.key < $1.key }) {
                let parts = path.split(separator: "/").map(String.init)
                guard let name = parts.last,
                    let parent = ids[parts.dropLast().joined(separator: "/")]
                else { continue }
                let isFolder = path.hasSuffix("/")
                ids[parts.joined(separator: "/")] =
                    make(name, parent, isFolder ? nil : Array(text.utf8))
            }
            return top
        }
    }

    func id(_ path: String) -> ItemID? {
        state.withLock { state in
            var folder = Self.rootID
            for part in path.split(separator: "/") {
                guard
                    let found = state.entries.values.first(where: {
                        $0.item.parentID == folder && $0.item.fileName.isSameText(as: String(part))
                    })
                else { return nil }
                folder = found.item.id
            }
            return folder
        }
    }

    /// When the item was modified, as the service keeps it.
    func modified(_ path: String) -> Timestamp? {
        id(path).flatMap { id in state.withLock { $0.entries[id]?.item.clientModifiedTime } }
    }

    /// Somebody writes a file, or makes a folder.
    ///
    /// - Returns: whether it could be, and what the file held before; nil where there was none.
    @discardableResult
    func put(_ path: String, _ text: String?) -> (isDone: Bool, before: String?) {
        let parts = path.split(separator: "/").map(String.init)
        guard let name = parts.last, let parent = id(parts.dropLast().joined(separator: "/"))
        else { return (false, nil) }
        return state.withLock { state in
            guard let text, let id = Self.child(name, parent, state),
                var entry = state.entries[id]
            else {
                _ = Self.make(
                    name,
                    parent,
                    text.map { Array($0.utf8) },
                    modified: nil,
                    &state
                )
                return (true, nil)
            }
            let before = entry.bytes
            entry.bytes = Array(text.utf8)
            entry.item.clientModifiedTime = .now
            Self.store(entry, newContent: true, &state)
            return (true, String(decoding: before, as: UTF8.self))
        }
    }

    /// Somebody puts a new file into this folder, of however many of its name.
    func put(_ name: String, _ text: String, in folder: ItemID) {
        state.withLock { state in
            _ = Self.make(name, folder, Array(text.utf8), modified: nil, &state)
        }
    }

    /// Others are let into an item.
    func letIn(to id: ItemID) {
        state.withLock { state in
            guard var entry = state.entries[id] else { return }
            entry.item.isShared = true
            Self.store(entry, newContent: false, &state)
        }
    }

    /// The account may do less with an item from now on.
    func permit(_ permissions: Permissions, of id: ItemID) {
        state.withLock { state in
            guard var entry = state.entries[id] else { return }
            entry.item.permissions = permissions
            Self.store(entry, newContent: false, &state)
        }
    }

    /// Somebody else's file, which is shared with this account.
    func share(_ path: String, _ text: String) {
        put(path, text)
        disown(path)
    }

    /// A file of the account's turns out to be somebody else's.
    func disown(_ path: String) {
        guard let id = id(path) else { return }
        state.withLock { state in
            guard var entry = state.entries[id] else { return }
            entry.item.isOwn = false
            Self.store(entry, newContent: false, &state)
        }
    }

    /// Somebody removes what lies at a path.
    ///
    /// - Returns: what the files held that went.
    @discardableResult
    func remove(_ path: String) -> [String] {
        guard let id = id(path) else { return [] }
        return state.withLock { state in
            let before = state.entries
            Self.drop(id, &state)
            return before.filter { state.entries[$0.key] == nil && $0.value.item.kind == .file }
                .values.map { String(decoding: $0.bytes, as: UTF8.self) }
        }
    }

    func rename(_ path: String, to name: String) {
        guard let id = id(path) else { return }
        state.withLock { state in
            guard var entry = state.entries[id] else { return }
            entry.item.fileName = name
            Self.store(entry, newContent: false, &state)
        }
    }

    func move(_ path: String, to new: String) {
        let parts = new.split(separator: "/").map(String.init)
        guard let name = parts.last,
            let parent = self.id(parts.dropLast().joined(separator: "/"))
        else { return }
        move(path, into: parent, as: name)
    }

    /// Moves an item into a folder that need not be the only one at its path.
    func move(_ path: String, into folder: ItemID, as name: String? = nil) {
        guard let id = id(path) else { return }
        state.withLock { state in
            guard var entry = state.entries[id] else { return }
            if let name { entry.item.fileName = name }
            entry.item.parentID = folder
            Self.store(entry, newContent: false, &state)
        }
    }

    func describe(_ path: String, _ text: String) {
        guard let id = id(path) else { return }
        describe(id, text)
    }

    func describe(_ id: ItemID, _ text: String) {
        state.withLock { state in
            guard var entry = state.entries[id] else { return }
            entry.item.description = text
            Self.store(entry, newContent: false, &state)
        }
    }

    // MARK: The service

    private static func child(_ name: String, _ parent: ItemID, _ state: State) -> ItemID? {
        state.entries.values.first {
            $0.item.parentID == parent && $0.item.fileName.isSameText(as: name)
        }?.item.id
    }

    private static func hash(_ bytes: [UInt8], _ state: State) -> ContentHash {
        var hasher = MemoryHasher(weakness: state.weakness)
        hasher.update(bytes[...])
        return hasher.finalize()
    }

    @discardableResult
    static func store(_ entry: Entry, newContent: Bool, _ state: inout State) -> Item {
        var entry = entry
        state.counter += 1
        if newContent {
            entry.item.rev = Revision("r\(state.counter)")
            entry.item.size = Int64(entry.bytes.count)
            entry.item.contentHash = state.tellsNoHashes ? nil : hash(entry.bytes, state)
            state.history.append(entry.bytes)
        }
        if let revision = entry.item.rev {
            state.texts[revision] = String(decoding: entry.bytes, as: UTF8.self)
        }
        let old = state.path(of: entry.item.id)
        state.entries[entry.item.id] = entry
        state.log.append(entry.item.id)
        state.notePaths(of: entry.item.id, before: old)
        state.remember()
        if let listener = state.listener {
            let item = entry.item
            let text = String(decoding: entry.bytes, as: UTF8.self)
            listener(
                "\(item.id.rawValue) is \(item.parentID?.rawValue ?? "")/\(item.fileName) \(text)"
            )
        }
        return entry.item
    }

    static func make(
        _ name: String,
        _ parent: ItemID,
        _ bytes: [UInt8]?,
        modified: Timestamp?,
        id: ItemID? = nil,
        _ state: inout State
    ) -> Item {
        state.counter += 1
        let id = id ?? ItemID("i\(state.counter)")
        state.usedIDs.insert(id)
        var item = Item(
            id: id,
            kind: bytes == nil ? .folder : .file,
            fileName: name,
            parentID: parent
        )
        item.isOwn = true
        if bytes == nil { item.createdTime = .now.truncated(to: .milliseconds) }
        item.clientModifiedTime =
            bytes == nil ? nil : (modified ?? Timestamp(seconds: 1)).truncated(to: .milliseconds)
        let made = store(Entry(item: item, bytes: bytes ?? []), newContent: bytes != nil, &state)
        state.origins[id] = made
        return made
    }

    static func drop(_ id: ItemID, _ state: inout State) {
        for child in state.entries.values where child.item.parentID == id {
            drop(child.item.id, &state)
        }
        if let path = state.path(of: id) { state.changedPaths.append(path) }
        state.trash[id] = state.entries[id]
        state.entries[id] = nil
        state.listener?("\(id.rawValue) is gone")
        state.log.append(id)
        state.remember()
    }

    func call<T: Sendable>(
        _ name: String,
        _ body: (inout State) throws(ProviderError) -> T
    ) async throws(ProviderError) -> T {
        let stall: Stall? = state.withLock { state in
            state.written += 1
            guard let stall = state.stall, stall.call == state.written - 1 else { return nil }
            if !stall.isDone { state.isStalled = true }
            return stall
        }
        if stall?.isDone == false { try await stay() }
        try await travel()
        let answer: T
        do throws(ProviderError) { answer = try self.answer(name, body) } catch {
            let event = state.withLock { state in
                defer { state.atNextRefusal = nil }
                return state.atNextRefusal
            }
            event?()
            throw error
        }
        try await travel()
        if stall != nil {
            state.withLock { $0.isStalled = true }
            try await stay()
        }
        return answer
    }

    /// A question for single items; counted where it is refused only.
    func look() async throws(ProviderError) {
        try await travel()
        let event = state.withLock { state in
            defer { state.atNextLook = nil }
            return state.atNextLook
        }
        event?()
        let (refusal, isStalled) = state.withLock { state -> (ProviderError?, Bool) in
            if state.fault() != nil { return (error(.offline), false) }
            let refusal = state.refusals["look"]?.popLast()
            if refusal != nil { state.calls["look", default: 0] += 1 }
            guard let stall = state.stall, stall.countsLooks else { return (refusal, false) }
            state.written += 1
            if stall.call == state.written - 1 { state.isStalled = true }
            return (refusal, stall.call == state.written - 1)
        }
        if isStalled { try await stay() }
        if let refusal { throw refusal }
    }

    /// A request or an answer is on its way for up to 20 ms, where a seed has all in its hand.
    func travel() async throws(ProviderError) {
        guard SystemInputs.given != nil else { return }
        var numbers = SystemNumbers()
        let length = Int.random(in: 0...20, using: &numbers)
        do { try await SystemInputs.sleep(for: .milliseconds(length)) } catch {
            throw self.error(.cancelled)
        }
    }

    private func stay() async throws(ProviderError) {
        while state.withLock({ $0.stall != nil }) { try await rest() }
    }

    /// Waits where such calls are held.
    func pass(_ gate: Gate) async throws(ProviderError) {
        try await travel()
        guard arrive(gate) else { return }
        while isWaiting(gate) { try await rest() }
    }

    /// As `pass`, for who cannot be suspended.
    func passBlocking(_ gate: Gate) {
        guard arrive(gate) else { return }
        while isWaiting(gate) { usleep(1000) }
    }

    private func arrive(_ gate: Gate) -> Bool {
        state.withLock { state in
            guard state.held.contains(gate) else { return false }
            state.waiting[gate, default: 0] += 1
            return true
        }
    }

    private func rest() async throws(ProviderError) {
        do { try await SystemInputs.sleep(for: .milliseconds(5)) } catch {
            throw self.error(.cancelled)
        }
    }

    private func answer<T>(
        _ name: String,
        _ body: (inout State) throws(ProviderError) -> T
    ) throws(ProviderError) -> T {
        let result: Result<T, ProviderError> = state.withLock { state in
            state.calls[name, default: 0] += 1
            if let refusal = state.refusals[name]?.popLast() { return .failure(refusal) }
            let fault = state.fault()
            if fault == .before {
                state.listener?("\(name) fails")
                return .failure(error(.offline))
            }
            let result: Result<T, ProviderError>
            do throws(ProviderError) { result = .success(try body(&state)) } catch {
                return .failure(error)
            }
            if fault == .after {
                state.listener?("\(name) gets no answer")
                return .failure(error(.outcomeUnknown(retryAfter: nil)))
            }
            if let lost = state.lostAnswers[name], lost > 0 {
                state.lostAnswers[name] = lost - 1
                return .failure(
                    ProviderError(.outcomeUnknown(retryAfter: nil), detail: "answer lost")
                )
            }
            return result
        }
        return try result.get()
    }

    func error(_ kind: ProviderError.Kind) -> ProviderError {
        ProviderError(kind, detail: "memory")
    }

    func free(
        _ name: String,
        in parent: ItemID,
        but id: ItemID? = nil,
        _ state: State
    ) throws(ProviderError) {
        guard parent == Self.rootID || state.entries[parent]?.item.kind == .folder else {
            throw error(.parentNotFound)
        }
        guard !traits.names.allowsDuplicates else { return }
        let key = traits.names.key(name)
        let taken = state.entries.values.contains {
            $0.item.parentID == parent && $0.item.id != id
                && traits.names.key($0.item.fileName).isSameText(as: key)
        }
        if taken { throw error(.nameTaken) }
    }
}

extension MemoryCloud.State {
    enum Fault { case before, after }

    /// Whether the next call fails, and when: before the service does its work, or after.
    mutating func fault() -> Fault? {
        guard faults > 0 else { return nil }
        switch Int.random(in: 0..<2 * faults, using: &numbers) {
        case 0: return .before
        case 1: return .after
        default: return nil
        }
    }
}

/// FNV-1a: enough to distinguish test contents; or, where it is weak, a sum.
struct MemoryHasher: ContentHasher {
    let weakness: HashAlgorithm?
    private var value: UInt64 = 0xcbf2_9ce4_8422_2325

    /// A hasher, or one that is weak and goes by an algorithm's name.
    init(weakness: HashAlgorithm? = nil) { self.weakness = weakness }

    mutating func update(_ bytes: ArraySlice<UInt8>) {
        for byte in bytes {
            value =
                weakness == nil
                ? (value ^ UInt64(byte)) &* 0x100_0000_01b3 : value &+ UInt64(byte)
        }
    }

    func finalize() -> ContentHash {
        ContentHash(algorithm: weakness ?? .sha256, value: String(value, radix: 16))
    }
}
