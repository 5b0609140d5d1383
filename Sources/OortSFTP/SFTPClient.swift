import Crypto
import Foundation
public import OortModel
public import OortTransport
import SwiftSFTP
import Synchronization

/// An account on a server that the person's `ssh` reaches, over SFTP.
///
/// It makes up for what the protocol lacks: content goes to a temporary file beside its place and is
/// renamed over it; deleted items go to `.oort-trash` in the account's folder, where they stay for 30 days;
/// symbolic links are `NAME.rclonelink` files whose content is the target; a revision is size and time.
public final class SFTPClient: PlaceClient {
    public let traits: PlaceTraits
    let connection: SSHConnection
    let bandwidth: Bandwidth
    let root = Mutex<SFTPPath?>(nil)
    private let keepsTrash: Bool
    let now: @Sendable () -> Timestamp
    let hasPurged = Mutex(false)
    let openFiles = OpenFiles()
    /// Whether the server refused the times of the last file that this program made.
    let refusesTimes = Mutex(false)

    /// The folder in the account's folder that deleted items go to.
    static let trash = ".oort-trash"

    /// A client over `connection`.
    ///
    /// - Parameters:
    ///   - connection: the account's; ended by `close`.
    ///   - keepsTrash: whether deleted items go to `.oort-trash`; if not, they are gone.
    ///   - bandwidth: the limits of contents.
    ///   - now: the time, by which the trash's folders are named.
    public init(
        _ connection: SSHConnection,
        keepsTrash: Bool = true,
        bandwidth: Bandwidth = Bandwidth(),
        now: @escaping @Sendable () -> Timestamp = { .now }
    ) {
        self.connection = connection
        self.keepsTrash = keepsTrash
        self.bandwidth = bandwidth
        self.now = now
        var provider = ProviderTraits(
            names: NameRules(comparison: .exact, allowsDuplicates: false) { name, _, _ in
                if ByteNames.bytes(name).count > 255 { return .tooLong }
                if let problem = ByteNames.problem(name) { return .refused(reason: problem) }
                if Self.isHidden(name) {
                    return .refused(reason: "names like this are those of Oort's temporary files")
                }
                return nil
            },
            hashAlgorithm: .sha256,
            largestSimpleUpload: 4 << 20,
            largestFile: .max,
            uploadPartMultiple: 1,
            uploadPartSize: 8 << 20
        )
        provider.tellsHashes = false
        provider.replaceIsAtomic = false
        provider.setsModifiedTime = true
        provider.copiesFiles = true
        provider.linkMark = Self.linkMark
        // A session answers requests one after the other.
        provider.rangesAhead = 12
        provider.timeResolution = .seconds
        provider.pollInterval = .seconds(30)
        provider.maximumWritesInFlight = 32
        var traits = PlaceTraits(
            provider: provider,
            scan: .folderStamps,
            listingFreshness: .seconds(3600),
            listingsInFlight: 64,
            deletesToTrash: keepsTrash
        )
        traits.mayHaveDisks = true
        traits.hasRevisionsOfTimes = true
        traits.listingsPerRequest = 256
        traits.listingsPerPage = 256
        self.traits = traits
    }

    public func makeHasher() -> any ContentHasher { SHA256Hasher() }

    public var trash: (any Trash)? { keepsTrash ? SFTPTrash(client: self) : nil }

    public func trashMark(of entry: PlaceEntry, at path: RemotePath, id: ItemID) -> String? {
        keepsTrash ? id.rawValue : nil
    }

    /// Whether a name is that of a temporary file of this program, which is of no use to a person; a file
    /// that was renamed aside for a failed replacement does show.
    static func isHidden(_ name: String) -> Bool {
        name.isSameText(as: trash) || TemporaryName.isOne(name)
    }

    /// How the revisions of links begin.
    private static let linkMark = "link."

    // MARK: Account

    public func owner() async throws(ProviderError) -> PlaceOwner {
        let root = try await rootPath()
        let address = connection.address
        let server =
            (address.user.map { "\($0)@" } ?? "") + address.host
            + (address.port.map { ":\($0)" } ?? "")
        return PlaceOwner(id: "\(server)\(root)", displayName: "\(server)\(root)")
    }

    public func quota() async throws(ProviderError) -> Quota {
        let path = try await rootPath()
        let disk = try await onSession(.root) { session throws(SFTPError) in
            try await session.fileSystem(of: path)
        }
        // A disk that reports nothing of its room (some FUSE file systems) says that it has none at all.
        guard disk.total > 0 else {
            throw ProviderError(.unsupported, detail: "the server's disk tells no size")
        }
        let used = disk.total - min(disk.total, disk.free)
        let (total, overflows) = used.addingReportingOverflow(disk.available)
        return Quota(
            used: Int64(clamping: used),
            total: overflows ? nil : Int64(clamping: total)
        )
    }

    public func close() async { await connection.close() }

    /// The account's folder at the server; asked for once.
    func rootPath() async throws(ProviderError) -> SFTPPath {
        if let known = root.withLock(\.self) { return known }
        let folder = connection.address.folder ?? "."
        let path = try await onSession(.root) { session throws(SFTPError) in
            let path = try await session.realPath(of: SFTPPath(ByteNames.bytes(folder)))
            guard try await session.attributes(of: path, followsLinks: true).kind == .folder else {
                throw SFTPError(.status(.noSuchFile), detail: "\(folder) is no folder")
            }
            return path
        }
        root.withLock { $0 = path }
        return path
    }

    // MARK: Sessions

    /// Runs requests that belong together on the session for small requests.
    ///
    /// If the connection broke before anything was sent, they are tried once more on a new one.
    func onSession<Value: Sendable>(
        _ path: RemotePath,
        _ body: (SFTPSession) async throws(SFTPError) -> Value
    ) async throws(ProviderError) -> Value {
        var isRetry = false
        while true {
            let session = try await connection.session()
            do throws(SFTPError) { return try await body(session) } catch {
                if error.endsSession { await connection.broke(session) }
                if error.kind == .connectionLost(mayHaveBeenDone: false), !isRetry {
                    isRetry = true
                    continue
                }
                throw error.provider(path)
            }
        }
    }

    /// Runs requests on a session for content.
    func onContentSession<Value: Sendable>(
        _ path: RemotePath,
        _ body: (SFTPSession) async throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        let session = try await connection.contentSession()
        let result: Result<Value, ProviderError>
        do throws(ProviderError) { result = .success(try await body(session)) } catch {
            result = .failure(error)
        }
        connection.release(session)
        return try result.get()
    }

    /// The answer of a content session in canonical terms; an error that ends the session ends the
    /// connection.
    func heard<Value>(
        _ session: SFTPSession,
        _ path: RemotePath,
        _ body: () async throws(SFTPError) -> Value
    ) async throws(ProviderError) -> Value {
        do throws(SFTPError) { return try await body() } catch {
            if error.endsSession { await connection.broke(session) }
            throw error.provider(path)
        }
    }

    // MARK: Places

    /// The server's path of a place.
    func path(_ place: RemotePath) async throws(ProviderError) -> SFTPPath {
        var path = try await rootPath()
        do throws(SFTPError) {
            for name in place.parts {
                path = path.appending(try SFTPPath(name: ByteNames.bytes(name)))
            }
        } catch { throw error.provider(place) }
        return path
    }

    /// What really lies at a place: the file of that name or, for `NAME.rclonelink`, the link `NAME`.
    struct Found: Sendable {
        let path: SFTPPath
        let attributes: SFTPAttributes
        /// A link's target.
        var target: SFTPPath?
    }

    /// Looks at a place; nil where the server positively has nothing there.
    func find(
        _ place: RemotePath,
        _ session: SFTPSession
    ) async throws(ProviderError) -> Found? {
        let path = try await self.path(place)
        if let attributes = try await attributes(of: path, place, session), attributes.kind != .link
        {
            return Found(path: path, attributes: attributes)
        }
        guard let name = place.name, let link = LinkName.link(name), let folder = place.parent
        else {
            return nil
        }
        let linkPath = try await self.path(folder.appending(link))
        guard let attributes = try await attributes(of: linkPath, place, session),
            attributes.kind == .link
        else { return nil }
        let target = try await heard(session, place) { () async throws(SFTPError) in
            try await session.target(ofLink: linkPath)
        }
        return Found(path: linkPath, attributes: attributes, target: target)
    }

    /// What lies at a path of the server's, links not followed; nil where it positively has nothing there.
    func attributes(
        of path: SFTPPath,
        _ place: RemotePath,
        _ session: SFTPSession
    ) async throws(ProviderError) -> SFTPAttributes? {
        try await attributes(session.send(.attributesOfLink(path)), place, session)
    }

    /// The answer to a request for attributes; nil where the server positively has nothing there.
    private func attributes(
        _ look: SFTPPendingAnswer,
        _ place: RemotePath,
        _ session: SFTPSession
    ) async throws(ProviderError) -> SFTPAttributes? {
        do throws(SFTPError) { return try await look.fileAttributes() } catch {
            if error.endsSession { await connection.broke(session) }
            guard error.kind == .status(.noSuchFile) else { throw error.provider(place) }
            return nil
        }
    }

    /// As `find`, on the session for what is small.
    func find(_ place: RemotePath) async throws(ProviderError) -> Found? {
        try await find(place, try await connection.session())
    }

    /// As `find`, for an item that was just created or moved.
    ///
    /// - Throws: `.outcomeUnknown` also where the server could not be asked: the operation was done.
    func findMade(
        _ place: RemotePath,
        _ session: SFTPSession
    ) async throws(ProviderError) -> Found? {
        do throws(ProviderError) { return try await find(place, session) } catch {
            throw error.asUnknownOutcome
        }
    }

    func entry(_ place: RemotePath, _ found: Found) -> PlaceEntry? {
        Self.entry(place.name ?? "", found.attributes, target: found.target)
    }

    /// The entry of what lies under a name; nil for sockets, pipes and devices.
    static func entry(
        _ name: String,
        _ attributes: SFTPAttributes,
        target: SFTPPath?
    ) -> PlaceEntry? {
        let seconds = attributes.times.map { Int64($0.modified) }
        let time = seconds.map { Timestamp(seconds: $0) }
        var entry: PlaceEntry
        switch attributes.kind {
        case .folder:
            entry = .folder(name, stamp: seconds.map { FolderStamp("\($0)") })
        case .link:
            guard let target else { return nil }
            let digest = SHA256.hash(data: target.bytes)
            entry = .file(
                name,
                size: Int64(target.bytes.count),
                revision: Revision("\(linkMark)\(ContentHash.hex(digest).prefix(16))"),
                modifiedTime: time
            )
            entry.hash = ContentHash(algorithm: .sha256, value: ContentHash.hex(digest))
        case .file, nil:
            // A server may report any number.
            let size = min(Int64(clamping: attributes.size ?? 0), ReportedSize.largest)
            entry = .file(
                name,
                size: size,
                revision: Revision("\(size).\(seconds.map(String.init) ?? "-")"),
                modifiedTime: time
            )
        case .special: return nil
        }
        entry.isOwn = true
        return entry
    }

    // MARK: Looking

    public func entry(at path: RemotePath) async throws(ProviderError) -> PlaceEntry {
        let session = try await connection.session()
        if let found = try await find(path, session), let entry = entry(path, found) {
            return entry
        }
        try await checkRoot(session)
        throw ProviderError(.notFound, detail: "\(path) is not there")
    }

    /// A missing item counts as gone only if the account's folder is there.
    func checkRoot(_ session: SFTPSession) async throws(ProviderError) {
        let root = try await rootPath()
        guard let attributes = try await attributes(of: root, .root, session),
            attributes.kind == .folder
        else {
            throw ProviderError(.offline, detail: "the account's folder \(root) is not there")
        }
    }

    public func listing(of folder: RemotePath) async throws(ProviderError) -> PlaceListing {
        let path = try await path(folder)
        let session = try await connection.session()
        let question = SFTPRequest.fileSystem(path)
        let asked = session.server.takes(question) ? session.send(question) : nil
        let look = session.send(.attributesOfLink(path))
        let opening = session.send(.openFolder(path))
        // The stamp must have come before the first entry is asked for.
        guard let before = try await attributes(look, folder, session) else {
            try await checkRoot(session)
            throw ProviderError(.notFound, detail: "\(folder) is not there")
        }
        guard before.kind == .folder || folder == .root else {
            throw ProviderError(.notAFolder, detail: "\(folder) is no folder")
        }
        let all = try await heard(session, folder) { () async throws(SFTPError) in
            try await session.entries(of: opening)
        }
        if all.isEmpty { try await checkEmpty(path, before, folder, session) }
        let disk = await Self.disk(asked)
        let links = all.filter { $0.attributes.kind == .link }
            .map { ($0, session.send(.readLink(path.appending($0.name)))) }
        var listed = all.filter { $0.attributes.kind != .link }
            .map { ListedEntry(name: $0.name, attributes: $0.attributes) }
        var unknown: [String] = []
        for (entry, pending) in links {
            do throws(SFTPError) {
                listed.append(
                    ListedEntry(
                        name: entry.name,
                        attributes: entry.attributes,
                        target: try await pending.path()
                    )
                )
            } catch {
                if error.endsSession { await connection.broke(session) }
                guard case .status(let status) = error.kind else { throw error.provider(folder) }
                // If it was removed meanwhile, the folder's stamp is new. A link that may not be read, or is
                // none any longer, is there all the same.
                if status != .noSuchFile { unknown.append(ByteNames.text(entry.name.bytes)) }
            }
        }
        var listing = listing(
            ListedFolder(attributes: before, entries: listed),
            at: path,
            disk: disk,
            session
        )
        listing.unknown = unknown.map(LinkName.file)
        return listing
    }

    /// The listing of a folder in which these entries lie; temporary files of uploads that ended long ago
    /// are removed.
    private func listing(
        _ folder: ListedFolder,
        at path: SFTPPath,
        disk: String?,
        _ session: SFTPSession
    ) -> PlaceListing {
        var entries: [PlaceEntry] = []
        var names: Set<ExactText> = []
        // Of a link and a file of one name, the file shows.
        let links = folder.entries.filter { $0.target != nil }
        for entry in folder.entries.filter({ $0.target == nil }) + links {
            let name = ByteNames.text(entry.name.bytes)
            let modified = entry.attributes.times.map { Int64($0.modified) }
            if entry.target == nil,
                TemporaryName.isLeft(name, modified: modified, now: now().seconds),
                !folder.entries.contains(where: {
                    $0.name.bytes == entry.name.bytes + Array(".old".utf8)
                })
            {
                _ = session.send(.remove(path.appending(entry.name)))
            }
            let shown = entry.target == nil ? name : LinkName.file(name)
            guard entry.target != nil || !Self.isHidden(name),
                let placed = Self.entry(shown, entry.attributes, target: entry.target),
                names.insert(ExactText(shown)).inserted
            else { continue }
            entries.append(placed)
        }
        let stamp = folder.attributes.times.map { FolderStamp("\($0.modified)") }
        var listing = PlaceListing(entries: entries, stamp: stamp)
        listing.disk = disk
        return listing
    }

    public func listings(of folders: [RemotePath]) async -> [PlaceListing?] {
        let nothing = [PlaceListing?](repeating: nil, count: folders.count)
        guard let session = try? await connection.session() else { return nothing }
        var paths: [SFTPPath] = []
        for folder in folders {
            guard let path = try? await path(folder) else { return nothing }
            paths.append(path)
        }
        let looks = paths.map { session.send(.attributesOfLink($0)) }
        let questions = paths.map { path in
            let question = SFTPRequest.fileSystem(path)
            return session.server.takes(question) ? session.send(question) : nil
        }
        guard let found = await connection.listByShell(paths) else { return nothing }
        var listings: [PlaceListing?] = []
        var compared = 0
        for (number, folder) in found.enumerated() {
            let disk = await Self.disk(questions[number])
            let attributes = try? await looks[number].fileAttributes()
            // An empty folder may be one that may not be searched.
            guard folder.isWhole, !folder.entries.isEmpty, let attributes else {
                listings.append(nil)
                continue
            }
            compared += 1
            // A shell may see other folders than SFTP does, under the same names.
            let isSame = attributes.kind == .folder && attributes.isSame(as: folder.attributes)
            listings.append(
                isSame ? listing(folder, at: paths[number], disk: disk, session) : nil
            )
        }
        // One of a few may have changed between the two looks.
        if compared >= 4, listings.allSatisfy({ $0 == nil }) { await connection.distrustListings() }
        return listings
    }

    /// Refuses to take a folder for empty in which nothing may be looked at: OpenSSH's server leaves out
    /// what it cannot ask the disk about, so a folder that may be read and not searched lists nothing.
    private func checkEmpty(
        _ path: SFTPPath,
        _ attributes: SFTPAttributes,
        _ folder: RemotePath,
        _ session: SFTPSession
    ) async throws(ProviderError) {
        guard let mode = attributes.mode, mode & 0o111 != 0o111 else { return }
        // That the folder is gone by now shows elsewhere.
        _ = try await self.attributes(of: path.appending(.itself), folder, session)
    }

    /// The number of a disk, as the server gives it; nil where it gives none.
    private static func disk(_ asked: SFTPPendingAnswer?) async -> String? {
        guard let asked, let id = try? await asked.fileSystem().id, id != 0 else { return nil }
        return String(id, radix: 16)
    }

    public func stamps(of folders: [RemotePath]) async -> [Result<FolderStamp?, ProviderError>] {
        let session: SFTPSession
        var pending: [SFTPPendingAnswer] = []
        do throws(ProviderError) {
            session = try await connection.session()
            for folder in folders {
                pending.append(session.send(.attributesOfLink(try await path(folder))))
            }
        } catch { return folders.map { _ in .failure(error) } }
        var stamps: [Result<FolderStamp?, ProviderError>] = []
        for (folder, answer) in zip(folders, pending) {
            do throws(SFTPError) {
                let times = try await answer.fileAttributes().times
                stamps.append(.success(times.map { FolderStamp("\($0.modified)") }))
            } catch {
                if error.endsSession { await connection.broke(session) }
                stamps.append(.failure(error.provider(folder)))
            }
        }
        return stamps
    }
}

extension SFTPAttributes {
    /// Whether they are the same, whenever it was last read.
    fileprivate func isSame(as other: SFTPAttributes) -> Bool {
        size == other.size && owner == other.owner && mode == other.mode
            && times?.modified == other.times?.modified
    }
}

extension SFTPPendingAnswer {
    func fileAttributes() async throws(SFTPError) -> SFTPAttributes {
        guard case .attributes(let attributes) = try await answer() else {
            throw SFTPError(.malformedAnswer, detail: "an answer of another kind")
        }
        return attributes
    }

    func path() async throws(SFTPError) -> SFTPPath {
        guard case .names(let entries) = try await answer(), entries.count == 1 else {
            throw SFTPError(.malformedAnswer, detail: "an answer of another kind")
        }
        return entries[0].name
    }
}

/// SHA-256 piece by piece: SFTP has no hash of its own.
struct SHA256Hasher: ContentHasher {
    private var state = SHA256()

    mutating func update(_ bytes: ArraySlice<UInt8>) { state.update(data: bytes) }

    func finalize() -> ContentHash {
        ContentHash(algorithm: .sha256, value: ContentHash.hex(state.finalize()))
    }
}

extension ContentHash {
    static func hex(_ digest: SHA256.Digest) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        for byte in digest { text += [digits[Int(byte >> 4)], digits[Int(byte & 15)]] }
        return String(decoding: text, as: UTF8.self)
    }
}
