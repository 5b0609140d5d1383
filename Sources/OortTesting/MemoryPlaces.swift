public import OortModel
import OrderedCollections
import Synchronization

/// A service of places in memory, as each kind of them is: what an item is called is all that it is.
///
/// Others change it past the client; answers can get lost, before or after the service did its work.
/// A listing is as of the moment when it was asked for and comes a little later.
public final class MemoryPlaces: PlaceClient {
    /// The kinds of services: how others' changes are found, whether moves are seen, and whether the
    /// service moves folders, or has any.
    public enum Kind: String, CaseIterable, Sendable {
        /// Stamps of single folders.
        case sftp
        /// Nothing but listings.
        case webDAV
        /// Stamps that propagate, and ids that stay over moves.
        case nextcloud
        /// Flat keys, in one list of everything.
        case s3
        /// As `sftp`, where every folder is a disk of its own.
        case disks

        /// An empty account of this kind.
        public var client: MemoryPlaces {
            switch self {
            case .sftp: MemoryPlaces(.folderStamps)
            case .webDAV: MemoryPlaces(.listings)
            case .nextcloud: MemoryPlaces(.subtreeStamps, hasKeys: true)
            case .s3: MemoryPlaces(.snapshots, movesFolders: false, makesFoldersAbove: true)
            case .disks: MemoryPlaces(.folderStamps, mayHaveDisks: true)
            }
        }
    }

    /// What lies at one place.
    struct Node {
        var bytes: [UInt8]?
        var modified: Timestamp
        var revision: Int
        var key: String?
        /// Changes with the entries of a folder; of subtree stamps, with anything below.
        var stamp: Int
    }

    /// A path whose names are compared byte for byte.
    typealias Place = [ExactText]

    struct State {
        var nodes: OrderedDictionary<Place, Node> = [
            []: Node(bytes: nil, modified: .epoch, revision: 0, stamp: 0)
        ]
        var counter = 0
        /// The texts of files that went into the trash with a folder, or in its place.
        var trash: Set<String> = []
        /// What each revision holds.
        var texts: [Revision: String] = [:]
        /// Hears of each change, in words.
        var listener: (@Sendable (String) -> Void)?
        var calls: [String: Int] = [:]
        var numbers: SeededNumbers?
        /// One call in so many fails; half of them after the service did its work.
        var faults = 0
        var isDown = false
        var stampsStandStill = false
        /// So many uploads are stored with another first byte, and are not answered.
        var damages = 0
        /// The calls of which the next one is not sent.
        var unsent: Set<String> = []
        /// What calls of a name at a path are answered.
        var refusals: [String: ProviderError.Kind] = [:]
        /// Of how many lists of everything the pages are known no more.
        var forgottenLists = 0
        /// What is done before the service hears of the next call of a name.
        var meanwhile: [String: @Sendable () async -> Void] = [:]
        /// The calls that are held up, and those that wait.
        var heldUp: Set<String> = []
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    public let traits: PlaceTraits
    private let hasKeys: Bool
    private let makesFoldersAbove: Bool
    private let second: (@Sendable () -> Int64)?
    private let hasRevisionsOfTimes: Bool
    private let state = Mutex(State())

    /// An empty account of a kind.
    ///
    /// - Parameters:
    ///   - scan: how changes of others are found.
    ///   - hasKeys: whether entries have something that stays over a move.
    ///   - movesFolders: whether folders are moved in one step.
    ///   - makesFoldersAbove: whether what is put below a folder that is not there makes it.
    ///   - mayHaveDisks: whether folders are moved within their folder only, and deleted when nothing lies
    ///     in them.
    ///   - hasRevisionsOfTimes: whether size and second are all of a file's revision.
    ///   - deletesToTrash: whether it says that what is deleted can be had back.
    ///   - freshness: how long a listing holds where folders have stamps.
    ///   - second: the server's clock, where folders' stamps are the seconds of their last changes; without
    ///     it each change has a stamp of its own.
    public init(
        _ scan: PlaceTraits.Scan,
        hasKeys: Bool = false,
        movesFolders: Bool = true,
        makesFoldersAbove: Bool = false,
        mayHaveDisks: Bool = false,
        hasRevisionsOfTimes: Bool = false,
        deletesToTrash: Bool = false,
        freshness: Duration = .zero,
        second: (@Sendable () -> Int64)? = nil
    ) {
        self.second = second
        self.hasRevisionsOfTimes = hasRevisionsOfTimes
        self.hasKeys = hasKeys
        self.makesFoldersAbove = makesFoldersAbove
        var provider = ProviderTraits(
            names: NameRules(comparison: .exact, allowsDuplicates: false) { _, _, _ in nil },
            hashAlgorithm: .sha256,
            largestSimpleUpload: .max,
            largestFile: .max,
            uploadPartMultiple: 1,
            uploadPartSize: 1 << 20
        )
        provider.setsModifiedTime = true
        provider.copiesFiles = true
        provider.timeResolution = .seconds
        provider.pollInterval = .milliseconds(20)
        var traits = PlaceTraits(
            provider: provider,
            scan: scan,
            listingFreshness: scan == .folderStamps ? freshness : nil,
            movesFolders: movesFolders
        )
        // A small account has several pages, too.
        traits.listingsPerPage = 16
        if scan == .folderStamps { traits.listingsPerRequest = 6 }
        traits.mayHaveDisks = mayHaveDisks
        // Where folders are no more than the beginnings of keys, keys are deleted, and not folders.
        traits.deletesKnownOnly = scan == .snapshots
        traits.hasRevisionsOfTimes = hasRevisionsOfTimes
        traits.deletesToTrash = deletesToTrash
        self.traits = traits
    }

    // MARK: What tests do

    /// Has one call in `number` fail from now on, in an order that the seed repeats; 0 for none.
    public func fail(oneIn number: Int, seed: UInt64) {
        state.withLock { state in
            state.faults = number
            state.numbers = SeededNumbers(seed: seed)
        }
    }

    /// Has no stamp change from now on.
    public func stopStamps() { state.withLock { $0.stampsStandStill = true } }

    /// Has every folder empty from now on, as a server whose disk is not there.
    public func setDown(_ isDown: Bool) { state.withLock { $0.isDown = isDown } }

    /// Has the next uploads stored with other bytes of the same size, and the answers lost.
    public func damageUploads(_ count: Int) { state.withLock { $0.damages = count } }

    /// Has calls of a name wait, with all that they were given, before the service hears of them.
    public func holdUp(_ call: String) { state.withLock { _ = $0.heldUp.insert(call) } }

    /// Has the next call of a name fail before the service hears of it.
    public func failNext(_ call: String) { state.withLock { _ = $0.unsent.insert(call) } }

    /// Has each call of a name at a path answered so from now on, listings and moves only; nil ends that.
    public func answer(_ call: String, at path: String, with kind: ProviderError.Kind?) {
        state.withLock { $0.refusals["\(call) \(path)"] = kind }
    }

    /// Has something done before the service hears of the next call of a name.
    public func before(_ call: String, _ body: @escaping @Sendable () async -> Void) {
        state.withLock { $0.meanwhile[call] = body }
    }

    /// Has no page of the lists of everything known that were begun before.
    public func forgetLists() { state.withLock { $0.forgottenLists += 1 } }

    /// How many calls wait.
    public var waitingCalls: Int { state.withLock { $0.waiting.count } }

    /// Lets all calls go on that wait.
    public func letGo() {
        let waiting = state.withLock { state in
            defer { (state.heldUp, state.waiting) = ([], []) }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// How often each call was made.
    public var calls: [String: Int] { state.withLock { $0.calls } }

    /// Forgets which calls were made.
    public func forgetCalls() { state.withLock { $0.calls = [:] } }

    /// Reports each change at the service to a listener, in words, in the order of the changes.
    public func listen(_ listener: @escaping @Sendable (String) -> Void) {
        state.withLock { $0.listener = listener }
    }

    /// What a revision of a file holds; nil where there never was one of that name.
    public func text(of revision: Revision) -> String? { state.withLock { $0.texts[revision] } }

    /// Writes a file as another client, and makes the folders above it; does nothing below a file.
    ///
    /// The file has a modified time that no other one had, or `time`.
    ///
    /// - Returns: whether it was written, and what the file held before; nil where there was none.
    @discardableResult
    public func write(
        _ path: String,
        _ text: String,
        at time: Timestamp? = nil
    ) -> (isDone: Bool, before: String?) {
        state.withLock { state in
            let place = Self.place(path)
            let above = (0..<place.count).map { state.nodes[Array(place.prefix($0))] }
            guard above.allSatisfy({ $0?.isFolder ?? true }) else { return (false, nil) }
            for length in 1..<place.count where state.nodes[Array(place.prefix(length))] == nil {
                set(Array(place.prefix(length)), to: nil, in: &state)
            }
            let before = state.nodes[place]
            guard before?.bytes != nil || before == nil else { return (false, nil) }
            set(place, to: Array(text.utf8), in: &state)
            if let time { state.nodes[place]?.modified = time }
            return (true, before?.bytes.map { String(decoding: $0, as: UTF8.self) })
        }
    }

    /// Makes a folder as another client.
    public func makeFolder(_ path: String) {
        state.withLock { state in
            let place = Self.place(path)
            guard state.nodes[place] == nil, state.nodes[Array(place.dropLast())]?.isFolder == true
            else { return }
            set(place, to: nil, in: &state)
        }
    }

    /// Removes what lies at a place, as another client.
    ///
    /// - Returns: what the removed files held.
    @discardableResult
    public func remove(_ path: String) -> [String] {
        state.withLock { state in
            let before = state.nodes
            remove(Self.place(path), in: &state)
            return before.filter { state.nodes[$0.key] == nil }.values.compactMap(\.bytes)
                .map { String(decoding: $0, as: UTF8.self) }
        }
    }

    /// Moves what lies at a place, as another client; does nothing where that cannot be done.
    public func move(_ old: String, to new: String) {
        state.withLock { state in
            let (old, new) = (Self.place(old), Self.place(new))
            guard state.nodes[old] != nil, state.nodes[new] == nil, !new.starts(with: old),
                state.nodes[Array(new.dropLast())]?.isFolder == true
            else { return }
            rename(old, to: new, in: &state)
        }
    }

    /// The texts of files that went into the trash with a folder, or in its place.
    public var trashed: Set<String> { state.withLock { $0.trash } }

    /// All there is: paths, a slash at the end of folders, with the contents of files.
    public var contents: [String: String] {
        state.withLock { state in
            var all: [String: String] = [:]
            for (place, node) in state.nodes where !place.isEmpty {
                let path = place.map { "/" + $0.text }.joined()
                if let bytes = node.bytes {
                    all[path] = String(decoding: bytes, as: UTF8.self)
                } else {
                    all[path + "/"] = ""
                }
            }
            return all
        }
    }

    private static func place(_ path: String) -> Place {
        path.parts(between: "/").filter { !$0.isEmpty }.map { ExactText(String($0)) }
    }

    private static func path(_ place: Place) -> String { place.map { "/" + $0.text }.joined() }

    private static func place(_ path: RemotePath) -> Place { path.parts.map(ExactText.init) }

    // MARK: The tree

    private func set(_ place: Place, to bytes: [UInt8]?, in state: inout State) {
        state.counter += 1
        let old = state.nodes[place]
        state.nodes[place] = Node(
            bytes: bytes,
            modified: Timestamp(seconds: 1_700_000_000 + Int64(state.counter)),
            revision: state.counter,
            key: hasKeys ? old?.key ?? "key\(state.counter)" : nil,
            stamp: state.counter
        )
        let text = bytes.map { String(decoding: $0, as: UTF8.self) }
        if let text { state.texts[Revision("\(state.counter)")] = text }
        state.listener?("\(Self.path(place)) is \(text ?? "a folder")")
        stamp(place, entriesChanged: old == nil, in: &state)
    }

    private func stamp(_ place: Place, entriesChanged: Bool, in state: inout State) {
        guard !place.isEmpty, !state.stampsStandStill else { return }
        switch traits.scan {
        case .folderStamps:
            let stamp = second.map { Int($0()) } ?? state.counter
            if entriesChanged { state.nodes[Array(place.dropLast())]?.stamp = stamp }
        case .subtreeStamps:
            for length in 0..<place.count {
                state.nodes[Array(place.prefix(length))]?.stamp = state.counter
            }
        case .listings, .snapshots: break
        }
    }

    private func remove(_ place: Place, in state: inout State) {
        guard state.nodes[place] != nil, !place.isEmpty else { return }
        state.counter += 1
        state.nodes = state.nodes.filter { !$0.key.starts(with: place) }
        state.listener?("\(Self.path(place)) is gone")
        stamp(place, entriesChanged: true, in: &state)
    }

    private func rename(_ old: Place, to new: Place, in state: inout State) {
        state.counter += 1
        for (place, node) in state.nodes where place.starts(with: old) {
            state.nodes[place] = nil
            state.nodes[new + place.dropFirst(old.count)] = node
        }
        state.listener?("\(Self.path(old)) is \(Self.path(new)) now")
        stamp(old, entriesChanged: true, in: &state)
        stamp(new, entriesChanged: true, in: &state)
    }

    private func entry(_ place: Place, _ node: Node) -> PlaceEntry {
        let name = place.last?.text ?? ""
        let hasStamps = traits.scan == .folderStamps || traits.scan == .subtreeStamps
        var entry: PlaceEntry
        if let bytes = node.bytes {
            entry = .file(
                name,
                size: Int64(bytes.count),
                revision: current(node),
                modifiedTime: node.modified
            )
        } else {
            entry = .folder(name, stamp: hasStamps ? FolderStamp("\(node.stamp)") : nil)
        }
        entry.key = node.key
        return entry
    }

    private func current(_ node: Node) -> Revision {
        guard hasRevisionsOfTimes else { return Revision("\(node.revision)") }
        return Revision("\(node.bytes?.count ?? 0).\(node.modified.seconds)")
    }

    // MARK: Calls

    /// A request or an answer is on its way while others go on: for a moment, or, where a seed has all in its
    /// hand, for up to 20 ms.
    private func travel() async {
        guard SystemInputs.given != nil else {
            for _ in 0..<3 { await SystemInputs.yield() }
            return
        }
        var numbers = SystemNumbers()
        let length = Int.random(in: 0...20, using: &numbers)
        try? await SystemInputs.sleep(for: .milliseconds(length))
    }

    private func call<Value: Sendable>(
        _ name: String,
        _ body: (inout State) throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        await withCheckedContinuation { continuation in
            let goesOn = state.withLock { state in
                guard state.heldUp.contains(name) else { return true }
                state.waiting.append(continuation)
                return false
            }
            if goesOn { continuation.resume() }
        }
        if SystemInputs.given != nil { await travel() }
        if let meanwhile = state.withLock({ $0.meanwhile.removeValue(forKey: name) }) {
            await meanwhile()
        }
        let result = state.withLock { state -> Result<Value, ProviderError> in
            state.calls[name, default: 0] += 1
            var fault: Int?
            if state.faults > 0, var numbers = state.numbers {
                let draw = Int.random(in: 0..<2 * state.faults, using: &numbers)
                state.numbers = numbers
                if draw < 2 { fault = draw }
            }
            if state.unsent.remove(name) != nil { fault = 0 }
            if fault == 0 { return .failure(ProviderError(.offline, detail: "not sent")) }
            let result: Result<Value, ProviderError>
            do throws(ProviderError) { result = .success(try body(&state)) } catch {
                result = .failure(error)
            }
            if fault == 1 {
                let unknown = ProviderError(.outcomeUnknown(retryAfter: nil), detail: "no answer")
                return .failure(unknown)
            }
            return result
        }
        await travel()
        return try result.get()
    }

    private static func refuse(
        _ call: String,
        _ place: Place,
        _ state: State
    ) throws(ProviderError) {
        guard let kind = state.refusals["\(call) \(path(place))"] else { return }
        throw ProviderError(kind, detail: "\(path(place)): refused")
    }

    private static func missing(_ path: RemotePath) -> ProviderError {
        ProviderError(.notFound, detail: "\(path) is not there")
    }

    public func owner() async throws(ProviderError) -> PlaceOwner {
        PlaceOwner(id: "memory", displayName: "Memory")
    }

    public func makeHasher() -> any ContentHasher { LengthAndSum() }

    public func entry(at path: RemotePath) async throws(ProviderError) -> PlaceEntry {
        try await call("entry") { state throws(ProviderError) in
            let place = Self.place(path)
            guard let node = state.nodes[place], !state.isDown || place.isEmpty else {
                throw Self.missing(path)
            }
            return entry(place, node)
        }
    }

    public func listing(of folder: RemotePath) async throws(ProviderError) -> PlaceListing {
        try await call("listing") { state throws(ProviderError) in
            let place = Self.place(folder)
            try Self.refuse("listing", place, state)
            guard let node = state.nodes[place] else { throw Self.missing(folder) }
            guard node.isFolder else {
                throw ProviderError(.notAFolder, detail: "\(folder) is a file")
            }
            let children = state.nodes.filter {
                $0.key.count == place.count + 1 && $0.key.starts(with: place)
            }
            let all = children.map { entry($0.key, $0.value) }
            return PlaceListing(entries: state.isDown ? [] : all, stamp: entry(place, node).stamp)
        }
    }

    public func listings(of folders: [RemotePath]) async -> [PlaceListing?] {
        var listings: [PlaceListing?] = []
        for folder in folders {
            let listing = try? await listing(of: folder)
            // As at SFTP, an empty one is looked at by itself.
            listings.append(listing?.entries.isEmpty == false ? listing : nil)
        }
        return listings
    }

    public func stamps(of folders: [RemotePath]) async -> [Result<FolderStamp?, ProviderError>] {
        do throws(ProviderError) {
            return try await call("stamps") { state in
                folders.map { folder in
                    let place = Self.place(folder)
                    guard let node = state.nodes[place] else {
                        return .failure(Self.missing(folder))
                    }
                    return .success(entry(place, node).stamp)
                }
            }
        } catch { return folders.map { _ in .failure(error) } }
    }

    /// Pages of three, as of the moment when each is asked for.
    public func snapshot(page: PageToken?) async throws(ProviderError) -> SnapshotPage {
        try await call("snapshot") { state throws(ProviderError) in
            let path = Self.path
            let mark = "\(state.forgottenLists) "
            guard let last = (page?.rawValue ?? mark).dropping(beginning: mark) else {
                throw ProviderError(.badRequest, detail: "the page is not known")
            }
            let files = state.nodes.filter { $0.value.bytes != nil || !$0.key.isEmpty }
                .sorted { path($0.key) < path($1.key) }
                .drop { page != nil && path($0.key) <= last }
            let some = state.isDown ? [] : Array(files.prefix(3))
            return SnapshotPage(
                entries: some.map { place, node in
                    (RemotePath(place.dropLast().map(\.text)), entry(place, node))
                },
                next: some.count < files.count
                    ? some.last.map { PageToken(mark + path($0.key)) } : nil
            )
        }
    }

    public func read(
        _ path: RemotePath,
        revision: Revision?,
        range: Range<Int64>
    ) async throws(ProviderError) -> ByteStream {
        let bytes = try await call("read") { state throws(ProviderError) -> [UInt8] in
            guard let node = state.nodes[Self.place(path)], let bytes = node.bytes else {
                throw Self.missing(path)
            }
            if let revision, revision != current(node) {
                throw ProviderError(.preconditionFailed, detail: "another revision is current")
            }
            return bytes
        }
        let some = Array(bytes.dropFirst(Int(range.lowerBound)).prefix(range.count))
        let isGiven = Mutex(some.isEmpty)
        return ByteStream { () async throws(ProviderError) in
            let given = isGiven.withLock { given in
                defer { given = true }
                return given
            }
            return given ? nil : some
        }
    }

    public func createFolder(at path: RemotePath) async throws(ProviderError) -> PlaceEntry {
        try await call("createFolder") { state throws(ProviderError) in
            let place = Self.place(path)
            try checkFree(path, in: &state)
            set(place, to: nil, in: &state)
            guard let node = state.nodes[place] else { throw Self.missing(path) }
            return entry(place, node)
        }
    }

    private func checkFree(_ path: RemotePath, in state: inout State) throws(ProviderError) {
        let place = Self.place(path)
        if makesFoldersAbove {
            for length in 1..<max(1, place.count) {
                let above = Array(place.prefix(length))
                guard let node = state.nodes[above] else {
                    set(above, to: nil, in: &state)
                    continue
                }
                // Nothing lies in a file.
                guard node.isFolder else { break }
            }
        }
        guard state.nodes[Array(place.dropLast())]?.isFolder == true else {
            throw ProviderError(.parentNotFound, detail: "\(path) has no folder")
        }
        guard state.nodes[place] == nil else {
            throw ProviderError(.nameTaken, detail: "\(path) is taken")
        }
    }

    public func upload(
        _ upload: PlaceUpload,
        observer: any UploadObserver
    ) async throws(ProviderError) -> PlaceEntry {
        let bytes = try await upload.content.read(at: 0, count: Int(upload.size))
        return try await call("upload") { state throws(ProviderError) in
            let place = Self.place(upload.path)
            switch upload.before {
            case .nothing: try checkFree(upload.path, in: &state)
            case .file(let revision):
                guard let node = state.nodes[place], node.bytes != nil else {
                    throw Self.missing(upload.path)
                }
                if let revision, revision != current(node) {
                    throw ProviderError(.preconditionFailed, detail: "another revision is current")
                }
            }
            let isDamaged = state.damages > 0 && !bytes.isEmpty
            set(place, to: isDamaged ? [~bytes[0]] + bytes.dropFirst() : bytes, in: &state)
            if let time = upload.modifiedTime { state.nodes[place]?.modified = time }
            if isDamaged {
                state.damages -= 1
                throw ProviderError(.outcomeUnknown(retryAfter: nil), detail: "not proven")
            }
            guard let node = state.nodes[place] else { throw Self.missing(upload.path) }
            return entry(place, node)
        }
    }

    public func move(
        _ kind: PlaceEntry.Kind,
        from old: RemotePath,
        to new: RemotePath
    ) async throws(ProviderError) -> PlaceEntry {
        try await call("move") { state throws(ProviderError) in
            let (from, to) = (Self.place(old), Self.place(new))
            guard let node = state.nodes[from] else { throw Self.missing(old) }
            try Self.refuse("move", from, state)
            guard !node.isFolder || traits.movesFolders else {
                throw ProviderError(.unsupported, detail: "folders are not moved")
            }
            try checkFree(new, in: &state)
            guard !to.starts(with: from) else {
                throw ProviderError(.moveIntoItself, detail: "\(new) lies in \(old)")
            }
            guard !node.isFolder || !traits.mayHaveDisks || from.dropLast() == to.dropLast() else {
                throw ProviderError(.unsupported, detail: "\(new) lies on another disk")
            }
            rename(from, to: to, in: &state)
            return entry(to, node)
        }
    }

    public func delete(
        _ kind: PlaceEntry.Kind,
        at path: RemotePath,
        revision: Revision?
    ) async throws(ProviderError) {
        try await call("delete") { state throws(ProviderError) in
            let place = Self.place(path)
            if let revision, let node = state.nodes[place],
                revision != current(node)
            {
                throw ProviderError(.preconditionFailed, detail: "another revision is current")
            }
            if state.nodes[place]?.isFolder == true, traits.mayHaveDisks {
                throw ProviderError(.unsupported, detail: "\(path) lies on another disk")
            }
            // A Nextcloud does not heed the slash at the end of an address.
            if kind == .folder, state.nodes[place]?.isFolder == false, !hasKeys {
                throw ProviderError(.notFound, detail: "\(path) is a file")
            }
            if kind == .folder, hasKeys {
                // Its trash takes what came into the folder while the deletion was under way.
                for (inside, node) in state.nodes where inside.starts(with: place) {
                    if let bytes = node.bytes {
                        state.trash.insert(String(decoding: bytes, as: UTF8.self))
                    }
                }
            }
            remove(place, in: &state)
        }
    }

    public func deleteFolder(
        at path: RemotePath,
        holding contents: PlaceContents,
        mark: String?
    ) async throws(ProviderError) {
        guard traits.deletesKnownOnly else {
            return try await delete(.folder, at: path, revision: nil, mark: mark)
        }
        try await call("delete") { state throws(ProviderError) in
            let top = Self.place(path)
            let folders = Set(contents.folders.map(Self.place))
            var files: [Place: Revision] = [:]
            for file in contents.files { files[Self.place(file.path)] = file.revision }
            // In the order of the keys, up to the first that is not known as it is.
            let inside = state.nodes.filter { $0.key.starts(with: top) }
                .sorted { Self.path($0.key) < Self.path($1.key) }
            var gone: [Place] = []
            for (place, node) in inside {
                guard node.isFolder ? folders.contains(place) : files[place] == current(node) else {
                    for place in gone where state.nodes[place]?.isFolder == false {
                        remove(place, in: &state)
                    }
                    throw ProviderError(.preconditionFailed, detail: "\(path) holds something else")
                }
                gone.append(place)
            }
            remove(top, in: &state)
        }
    }

    public func removeEmptyFolder(at path: RemotePath) async throws(ProviderError) {
        try await call("removeEmptyFolder") { state throws(ProviderError) in
            let place = Self.place(path)
            guard
                !state.nodes.keys.contains(where: {
                    $0.count > place.count && $0.starts(with: place)
                })
            else {
                guard traits.mayHaveDisks else { return }
                throw ProviderError(.locked, detail: "\(path) holds something")
            }
            remove(place, in: &state)
        }
    }

    public func copy(
        from path: RemotePath,
        to new: RemotePath
    ) async throws(ProviderError) -> PlaceEntry {
        try await call("copy") { state throws(ProviderError) in
            guard let node = state.nodes[Self.place(path)], let bytes = node.bytes else {
                throw Self.missing(path)
            }
            try checkFree(new, in: &state)
            let place = Self.place(new)
            set(place, to: bytes, in: &state)
            state.nodes[place]?.modified = node.modified
            guard let copy = state.nodes[place] else { throw Self.missing(new) }
            return entry(place, copy)
        }
    }

    public func setModifiedTime(
        _ time: Timestamp,
        of path: RemotePath,
        revision: Revision?
    ) async throws(ProviderError) -> PlaceEntry {
        try await call("setModifiedTime") { state throws(ProviderError) in
            let place = Self.place(path)
            guard let known = state.nodes[place], known.bytes != nil else {
                throw Self.missing(path)
            }
            guard revision == nil || revision == current(known) else {
                throw ProviderError(.preconditionFailed, detail: "another revision is current")
            }
            state.nodes[place]?.modified = time
            guard let node = state.nodes[place] else { throw Self.missing(path) }
            return entry(place, node)
        }
    }
}

extension MemoryPlaces.Node {
    var isFolder: Bool { bytes == nil }
}

extension Timestamp {
    fileprivate static let epoch = Timestamp(seconds: 0)
}

/// A hash that distinguishes what tests write; the service itself has none.
private struct LengthAndSum: ContentHasher {
    private var count = 0
    private var sum: UInt64 = 14_695_981_039_346_656_037

    mutating func update(_ bytes: ArraySlice<UInt8>) {
        count += bytes.count
        for byte in bytes { sum = (sum ^ UInt64(byte)) &* 1_099_511_628_211 }
    }

    func finalize() -> ContentHash {
        ContentHash(algorithm: .sha256, value: "\(count)-\(String(sum, radix: 16))")
    }
}
