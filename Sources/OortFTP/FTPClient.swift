import Crypto
import Foundation
public import OortModel
public import OortTransport
import Synchronization

/// An account on a server that speaks FTP, with or without TLS, and lists by `MLSD`.
///
/// It makes up for what the protocol lacks: content goes to a temporary file beside its place and is
/// renamed over it; deleted items go to `.oort-trash` in the account's folder; a revision is size and time;
/// and since one code, 550, stands for most refusals, the place is looked at before an error is chosen.
public final class FTPClient: PlaceClient {
    public let traits: PlaceTraits
    let account: FTPAccount
    let lines: FTPLines
    let meter: TrafficMeter
    let bandwidth: Bandwidth
    private let root = Mutex<FTPPath?>(nil)
    private let keepsTrash: Bool
    private let now: @Sendable () -> Timestamp
    private let hasPurged = Mutex(false)
    /// Whether this program has closed the trash to other logins.
    let hasClosedTrash = Mutex(false)

    /// Where what is deleted goes, in the account's folder.
    static let trash = ".oort-trash"

    /// A client that connects when it is first asked for something.
    ///
    /// - Parameters:
    ///   - account: where it lies, and what its server can do.
    ///   - secret: the password.
    ///   - settings: how connections are made and watched.
    ///   - keepsTrash: whether what is deleted goes to `.oort-trash`; else it is gone.
    ///   - meter: counts contents.
    ///   - bandwidth: the limits of contents.
    ///   - now: the time, by which the trash's folders are named.
    public init(
        _ account: FTPAccount,
        secret: any AccessTokens,
        settings: FTPSettings = FTPSettings(),
        keepsTrash: Bool = true,
        meter: TrafficMeter = TrafficMeter(),
        bandwidth: Bandwidth = Bandwidth(),
        now: @escaping @Sendable () -> Timestamp = { .now }
    ) {
        self.account = account
        self.keepsTrash = keepsTrash
        self.meter = meter
        self.bandwidth = bandwidth
        self.now = now
        lines = FTPLines(account.address, settings: settings, secret: secret)
        var provider = ProviderTraits(
            names: NameRules(comparison: .exact, allowsDuplicates: false) { name, _, _ in
                let bytes = ByteNames.bytes(name)
                if bytes.count > 255 { return .tooLong }
                if let problem = FTPPath.problem(bytes[...]) ?? ByteNames.problem(name) {
                    return .refused(reason: problem)
                }
                if Self.isHidden(name) {
                    return .refused(reason: "names like this are those of Oort's temporary files")
                }
                return nil
            },
            hashAlgorithm: .sha256,
            largestSimpleUpload: .max,
            largestFile: .max,
            uploadPartMultiple: 1,
            uploadPartSize: 8 << 20
        )
        provider.tellsHashes = false
        provider.replaceIsAtomic = false
        provider.keepsModifiedTime = account.setsTimes
        provider.setsModifiedTime = account.setsTimes
        provider.timeResolution = .seconds
        provider.pollInterval = .seconds(30)
        provider.maximumWritesInFlight = 4
        // The rest of a range that ends before the file costs a new login.
        provider.largestRangeRequest = 64 << 20
        // Its few lines serve in turn.
        provider.rangesAhead = 4
        var traits = PlaceTraits(
            provider: provider,
            scan: .folderStamps,
            listingFreshness: .seconds(3600),
            listingsInFlight: 3,
            deletesToTrash: keepsTrash
        )
        traits.hasRevisionsOfTimes = true
        self.traits = traits
    }

    public func makeHasher() -> any ContentHasher { SHA256Hasher() }

    public var trash: (any Trash)? { keepsTrash ? FTPTrash(client: self) : nil }

    public func trashMark(of entry: PlaceEntry, at path: RemotePath, id: ItemID) -> String? {
        keepsTrash ? id.rawValue : nil
    }

    /// Whether a name is that of something that only this program makes, and that is of no worth to a
    /// person: what was renamed aside for a replacement that did not come about shows.
    static func isHidden(_ name: String) -> Bool {
        name.isSameText(as: trash) || TemporaryName.isOne(name)
    }

    // MARK: Account

    public func owner() async throws(ProviderError) -> PlaceOwner {
        let root = try await rootPath().text
        let place = "\(account.address.server)\(root)"
        let warning = account.address.security == .plain ? " (not encrypted)" : ""
        return PlaceOwner(id: place, displayName: place + warning)
    }

    public func close() async { await lines.close() }

    /// The account's folder at the server; asked for once.
    func rootPath() async throws(ProviderError) -> FTPPath {
        if let known = root.withLock(\.self) { return known }
        var path: FTPPath
        if let folder = account.address.folder, folder.begins(with: "/") {
            guard let absolute = FTPPath(absolute: ByteNames.bytes(folder)) else {
                throw ProviderError(.nameRefused, detail: "\(folder) cannot be a folder's path")
            }
            path = absolute
        } else {
            let reply = try await ask([Array("PWD".utf8)], "")[0]
            guard let home = Self.quoted(reply).flatMap({ FTPPath(absolute: $0) }) else {
                throw ProviderError(
                    .malformedAnswer,
                    detail: "the server does not say where one logs in: \(reply.words)"
                )
            }
            path = home
            let names = (account.address.folder ?? "").parts(between: "/").filter { !$0.isEmpty }
            for name in names { path = try path.appending(String(name)) }
        }
        guard let facts = FTPFacts(try await ask([command("MLST", path)], path.text)[0]),
            facts.kind == .folder || facts.kind == .listed
        else { throw ProviderError(.offline, detail: "the folder \(path.text) is not there") }
        root.withLock { $0 = path }
        return path
    }

    /// The path in `257 "PATH" words`, in which a quotation mark is written twice (RFC 959, appendix II).
    static func quoted(_ reply: FTPReply) -> [UInt8]? {
        let mark = UInt8(ascii: "\"")
        guard reply.code == 257, let line = reply.lines.last, let start = line.firstIndex(of: mark)
        else { return nil }
        var path: [UInt8] = []
        var index = start + 1
        while index < line.count {
            if line[index] == mark {
                guard index + 1 < line.count, line[index + 1] == mark else { return path }
                index += 1
            }
            path.append(line[index])
            index += 1
        }
        return nil
    }

    // MARK: Commands

    /// A command about a path.
    func command(_ verb: String, _ path: FTPPath) -> [UInt8] {
        Array(verb.utf8) + [0x20] + path.bytes
    }

    private static let factsCommand = Array("OPTS MLST type;size;modify;unique;UNIX.mode;".utf8)

    /// What goes before commands that ask for facts.
    var factsCommands: [[UInt8]] { account.asksForFacts ? [Self.factsCommand] : [] }

    /// Sends commands that change nothing.
    func ask(
        _ commands: [[UInt8]],
        _ path: String,
        on line: FTPLine? = nil
    ) async throws(ProviderError) -> [FTPReply] {
        let before = factsCommands
        return try await heard(path) { password throws(FTPFailure) in
            let replies = try await (line ?? lines.main).ask(before + commands, password: password)
            return Array(replies.dropFirst(before.count))
        }
    }

    /// Sends commands that change something; the answers' meaning is up to the caller.
    func tell(
        _ commands: [[UInt8]],
        _ path: String,
        on line: FTPLine? = nil
    ) async throws(ProviderError) -> [FTPReply] {
        try await heard(path, changes: true) { password throws(FTPFailure) in
            try await (line ?? lines.main).tell(commands, password: password)
        }
    }

    /// Runs transfers with the password, and gives their failure in canonical terms.
    func heard<Value>(
        _ path: String,
        changes: Bool = false,
        _ body: (String) async throws(FTPFailure) -> Value
    ) async throws(ProviderError) -> Value {
        var password = ""
        do throws(FTPFailure) {
            password = try await lines.password()
            return try await body(password)
        } catch {
            await lines.note(error, of: password)
            throw error.provider(path, changes: changes)
        }
    }

    // MARK: Places

    /// The server's path of a place.
    func path(_ place: RemotePath) async throws(ProviderError) -> FTPPath {
        var path = try await rootPath()
        for name in place.parts { path = try path.appending(name) }
        return path
    }

    /// What lies at a place.
    struct Found: Sendable {
        let facts: FTPFacts
        /// Nil for links, devices, and files of which the server does not say the size.
        let entry: PlaceEntry?
    }

    /// As `find`, for what was just made or moved.
    ///
    /// - Throws: `.outcomeUnknown` also where the server could not be asked: what is looked for was done.
    func findMade(
        _ place: RemotePath,
        on line: FTPLine? = nil
    ) async throws(ProviderError) -> Found? {
        do throws(ProviderError) { return try await find(place, on: line) } catch {
            throw error.asUnknownOutcome
        }
    }

    /// Looks at a place; nil where the server positively has nothing there.
    func find(
        _ place: RemotePath,
        on line: FTPLine? = nil
    ) async throws(ProviderError) -> Found? {
        let path = try await path(place)
        let reply = try await ask([command("MLST", path)], "\(place)", on: line)[0]
        if var facts = FTPFacts(reply) {
            if facts.kind == .listed { facts.kind = .folder }
            return Found(facts: facts, entry: entry(place.name ?? "", facts))
        }
        guard reply.refusesThePath else { throw refusal(reply, place) }
        if reply.saysMissing(of: path) { return nil }
        // ProFTPD's MLST does not say why; its MDTM does.
        let second = try await ask([command("MDTM", path)], "\(place)", on: line)[0]
        if second.saysMissing(of: path) { return nil }
        guard let folder = place.parent, let name = place.name else {
            throw noRoot(path, reply)
        }
        let all: [FTPFacts]
        do throws(ProviderError) { all = try await facts(of: folder, on: line) } catch {
            if error.isLastingRefusal, try await find(folder, on: line) == nil { return nil }
            throw error
        }
        guard !all.contains(where: { ByteNames.text($0.name).isSameText(as: name) }) else {
            throw ProviderError(.noPermission, detail: "\(place.words): \(reply.words)")
        }
        return nil
    }

    /// A refusal in canonical terms.
    func refusal(_ reply: FTPReply, _ place: RemotePath) -> ProviderError {
        guard !reply.isGood else {
            return ProviderError(.malformedAnswer, detail: "\(place.words): \(reply.words)")
        }
        return ProviderError(reply.meaning, detail: "\(place.words): \(reply.words)")
    }

    /// All that a listing of a folder says.
    private func facts(
        of folder: RemotePath,
        on line: FTPLine?
    ) async throws(ProviderError) -> [FTPFacts] {
        let path = try await path(folder)
        let before = factsCommands
        let bytes = try await heard("\(folder)") { password throws(FTPFailure) in
            try await (line ?? lines.main).run { handle, cancellation throws(FTPFailure) in
                try again { () throws(FTPFailure) in
                    try handle.list(path, before: before, password: password, cancellation)
                }
            }
        }
        guard let all = FTPFacts.listing(bytes) else {
            throw ProviderError(
                .outcomeUnknown(retryAfter: nil),
                detail: "\(folder.words): cut off"
            )
        }
        return all
    }

    /// The entry of what lies under a name; nil for links and devices, and for files without a size.
    func entry(_ name: String, _ facts: FTPFacts) -> PlaceEntry? {
        var entry: PlaceEntry
        switch facts.kind {
        case .folder:
            entry = .folder(name, stamp: facts.modified.map { FolderStamp($0) })
        case .file:
            guard let size = facts.size else { return nil }
            entry = .file(
                name,
                size: size,
                revision: Revision("\(size).\(facts.modified ?? "-")"),
                modifiedTime: facts.time
            )
            if let time = facts.time {
                // A clock that is ahead of ours has files of the future; those of next year are no young ones.
                entry.isYoung = (-300..<2).contains(now().seconds - time.seconds)
            }
        case .listed, .other: return nil
        }
        entry.key = facts.unique
        entry.isOwn = true
        return entry
    }

    // MARK: Looking

    public func entry(at path: RemotePath) async throws(ProviderError) -> PlaceEntry {
        if let entry = try await find(path)?.entry { return entry }
        try await checkRoot()
        throw ProviderError(.notFound, detail: "\(path) is not there")
    }

    /// That something is not there counts only where the account's folder is there.
    func checkRoot() async throws(ProviderError) {
        let root = try await rootPath()
        let reply = try await ask([command("MLST", root)], root.text)[0]
        guard let kind = FTPFacts(reply)?.kind, kind == .folder || kind == .listed else {
            throw noRoot(root, reply)
        }
    }

    /// Whatever a server says of the account's own folder, it has no place in that.
    private func noRoot(_ root: FTPPath, _ reply: FTPReply) -> ProviderError {
        ProviderError(
            .offline,
            detail: "the account's folder \(root.text) is not there: \(reply.words)"
        )
    }

    public func listing(of folder: RemotePath) async throws(ProviderError) -> PlaceListing {
        let free = try await heard("\(folder)") { _ throws(FTPFailure) in
            try await lines.takeFree(.reading)
        }
        let result: Result<PlaceListing, ProviderError>
        do throws(ProviderError) {
            result = .success(try await listing(of: folder, on: free))
        } catch { result = .failure(error) }
        if let free { await lines.giveBack(free, .reading) }
        return try result.get()
    }

    private func listing(
        of folder: RemotePath,
        on line: FTPLine?
    ) async throws(ProviderError) -> PlaceListing {
        guard let before = try await find(folder, on: line) else {
            try await checkRoot()
            throw ProviderError(.notFound, detail: "\(folder.words) is not there")
        }
        guard before.facts.kind == .folder else {
            throw ProviderError(.notAFolder, detail: "\(folder.words) is no folder")
        }
        let above = try await keys(above: folder, on: line)
        var listing = PlaceListing(entries: [], stamp: before.entry?.stamp)
        var names: Set<ExactText> = []
        var keys: [String: Int] = [:]
        let all = try await facts(of: folder, on: line)
        for facts in all where facts.kind != .listed && facts.kind != .other {
            let name = ByteNames.text(facts.name)
            removeLeftover(name, facts, in: folder, among: all)
            // What no command can name might as well not be there.
            guard FTPPath.problem(facts.name[...]) == nil, !Self.isHidden(name) else { continue }
            // A server that follows links has a folder in itself without end.
            if facts.kind == .folder, let key = facts.unique, above.contains(key) { continue }
            guard names.insert(ExactText(name)).inserted else { continue }
            guard let entry = entry(name, facts) else {
                listing.unknown.append(name)
                continue
            }
            if let key = entry.key { keys[key, default: 0] += 1 }
            listing.entries.append(entry)
        }
        // ProFTPD leaves out what it cannot ask the disk about: all of a folder that may only be read.
        guard !listing.entries.isEmpty || before.facts.mayEnter != false else {
            throw ProviderError(.noPermission, detail: "\(folder.words) may not be entered")
        }
        // Several names of one file, and servers that give all the same: no such key says what moved.
        for index in listing.entries.indices {
            if let key = listing.entries[index].key, keys[key, default: 0] > 1 {
                listing.entries[index].key = nil
            }
        }
        return listing
    }

    /// Below so many folders it is looked whether one of them is met again.
    private static let suspiciousDepth = 6

    /// What distinguishes the folders that a folder lies in, itself included, where it lies deep.
    private func keys(
        above folder: RemotePath,
        on line: FTPLine?
    ) async throws(ProviderError) -> Set<String> {
        guard folder.parts.count >= Self.suspiciousDepth else { return [] }
        var commands: [[UInt8]] = []
        var place: RemotePath? = folder
        while let one = place {
            commands.append(command("MLST", try await path(one)))
            place = one.parent
        }
        let replies = try await ask(commands, "\(folder)", on: line)
        return Set(replies.compactMap { FTPFacts($0)?.unique })
    }

    public func stamps(of folders: [RemotePath]) async -> [Result<FolderStamp?, ProviderError>] {
        var stamps: [Result<FolderStamp?, ProviderError>] = []
        var rest = folders[...]
        while !rest.isEmpty {
            // What a person waits for gets its turn in between.
            let some = Array(rest.prefix(Self.stampsAtOnce))
            rest = rest.dropFirst(Self.stampsAtOnce)
            do throws(ProviderError) {
                var paths: [FTPPath] = []
                for folder in some { paths.append(try await path(folder)) }
                let replies = try await ask(paths.map { command("MLST", $0) }, "\(some[0])")
                for (index, folder) in some.enumerated() {
                    stamps.append(stamp(folder, paths[index], replies[index]))
                }
            } catch { stamps += some.map { _ in .failure(error) } }
        }
        return stamps
    }

    private static let stampsAtOnce = 16

    private func stamp(
        _ folder: RemotePath,
        _ path: FTPPath,
        _ reply: FTPReply
    ) -> Result<FolderStamp?, ProviderError> {
        guard let facts = FTPFacts(reply) else {
            let isNoRoot = folder == .root && reply.refusesThePath
            return .failure(isNoRoot ? noRoot(path, reply) : refusal(reply, folder))
        }
        guard facts.kind == .folder || facts.kind == .listed else {
            return .failure(ProviderError(.notAFolder, detail: "\(folder.words) is no folder"))
        }
        return .success(facts.modified.map { FolderStamp($0) })
    }

    // MARK: Temporary files of earlier uploads

    /// The name of a temporary file, which says when it was made.
    func temporaryName() -> String { TemporaryName.make(at: now().seconds) }

    /// Removes a temporary file of an upload that nothing will continue.
    private func removeLeftover(
        _ name: String,
        _ facts: FTPFacts,
        in folder: RemotePath,
        among all: [FTPFacts]
    ) {
        guard facts.kind == .file,
            TemporaryName.isLeft(name, modified: facts.time?.seconds, now: now().seconds),
            // What was renamed aside has no other copy until the temporary file has its name.
            !all.contains(where: { $0.name == facts.name + Array(".old".utf8) })
        else { return }
        remove(folder.appending(name))
    }

    /// Removes a file of Oort's own, behind the rest; one that stays does no harm.
    func remove(_ place: RemotePath) {
        // Owned by nothing: it ends with the answer, or with the connection.
        Task {
            guard let path = try? await self.path(place) else { return }
            _ = try? await tell([command("DELE", path)], "\(place)")
        }
    }

    /// Removes files that have lain in the trash for more than 30 days; once in the client's life, and
    /// behind the rest.
    ///
    /// It happens after a deletion, whose folder in the trash has the server's time now
    /// (`TrashFolder.outlived`). Folders stay: a server that follows links would have what a link leads to
    /// removed with them.
    func purgeTrash(after deletion: String) {
        guard
            !hasPurged.withLock({ done in
                defer { done = true }
                return done
            })
        else { return }
        // Owned by nothing: it ends with the answers, or with the connection.
        Task {
            let trash = RemotePath([Self.trash])
            guard let entries = try? await facts(of: trash, on: nil) else { return }
            let folders = entries.compactMap { entry in
                entry.kind == .folder ? entry.time.map { (ByteNames.text(entry.name), $0) } : nil
            }
            for name in TrashFolder.outlived(among: folders, at: deletion) {
                guard let (names, inside) = try? await lookInto(name) else { continue }
                let folders = names.indices.map { RemotePath([Self.trash] + names[...$0]) }
                let files = inside.filter { $0.kind == .file }.map {
                    (folders.last ?? trash).appending(ByteNames.text($0.name))
                }
                for file in files {
                    guard let file = try? await path(file) else { continue }
                    _ = try? await tell([command("DELE", file)], name)
                }
                for folder in folders.reversed() {
                    guard let folder = try? await path(folder) else { continue }
                    _ = try? await tell([command("RMD", folder)], name)
                }
            }
        }
    }

    /// The entries of a folder of the trash; nil where there is none.
    func trashFacts(of folder: RemotePath) async throws(ProviderError) -> [FTPFacts]? {
        guard try await find(folder) != nil else { return nil }
        return try await facts(of: folder, on: nil)
    }

    /// The names of a deletion's folder and of those in it with which its name goes on, and what lies in the
    /// last one.
    func lookInto(
        _ deletion: String
    ) async throws(ProviderError) -> (names: [String], entries: [FTPFacts]) {
        var names = [deletion]
        while true {
            let folder = RemotePath([Self.trash] + names)
            let entries = try await trashFacts(of: folder) ?? []
            let more = entries.first {
                $0.kind == .folder && TrashFolder.isMore(ByteNames.text($0.name))
            }
            let goesOn = TrashFolder.deletion(deletion, Array(names.dropFirst()))?.goesOn ?? false
            guard goesOn, names.count < TrashFolder.mostNames, let more else {
                return (names, entries)
            }
            names.append(ByteNames.text(more.name))
        }
    }

    /// Seconds now, for the names in the trash.
    var second: Int64 { now().seconds }
}

/// SHA-256 piece by piece: FTP has no hash that all servers know.
struct SHA256Hasher: ContentHasher {
    private var state = SHA256()

    mutating func update(_ bytes: ArraySlice<UInt8>) { state.update(data: bytes) }

    func finalize() -> ContentHash {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        for byte in state.finalize() { text += [digits[Int(byte >> 4)], digits[Int(byte & 15)]] }
        return ContentHash(algorithm: .sha256, value: String(decoding: text, as: UTF8.self))
    }
}
