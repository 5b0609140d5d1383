/// One session of SFTP version 3 with a server (draft-ietf-secsh-filexfer-02, and OpenSSH's
/// PROTOCOL for the extensions).
///
/// Isolation: every operation may be called from any task, several at once; none blocks a thread.
/// Requests leave in the order in which they were given, but that the opening of a folder waits where the
/// server allows no more handles; a server may answer in any order, so what must be done before something
/// else is awaited first. Nothing is repeated by itself.
public final class SFTPSession: Sendable {
    /// What the server said of itself.
    public let server: SFTPServer
    private let core: SessionCore

    private init(_ core: SessionCore, _ server: SFTPServer) {
        self.core = core
        self.server = server
    }

    deinit { core.stop(SFTPError(.notSent, detail: "the session was let go")) }

    /// Greets the server, and asks what it takes where it can say so.
    ///
    /// - Parameters:
    ///   - transport: what the server is reached over; owned by the session from here on, also where
    ///     this fails.
    ///   - patience: how long the greeting and its answers may take.
    ///   - silence: for how long a server that owes answers may neither send nor take a byte, before the
    ///     session ends; a copy and a `synchronize` may take a hundred times as long.
    /// - Returns: a session that the server has greeted.
    /// - Throws: `.connectionLost` when the connection ends before, `.malformedAnswer` when the server
    ///   speaks another protocol, `.cancelled`.
    public static func open(
        over transport: SFTPTransport,
        patience: Duration = .seconds(60),
        silence: Duration = .seconds(300)
    ) async throws(SFTPError) -> SFTPSession {
        let core: SessionCore
        do throws(SFTPError) {
            core = try SessionCore(transport, silence: silence)
        } catch {
            transport.close()
            throw error
        }
        core.start()
        let alarm = Task {
            try await Task.sleep(for: patience)
            core.stop(SFTPError(.notSent, detail: "the server gave no greeting"))
        }
        defer { alarm.cancel() }
        do throws(SFTPError) {
            return SFTPSession(core, try await greet(core))
        } catch {
            core.stop(error)
            throw error
        }
    }

    private static func greet(_ core: SessionCore) async throws(SFTPError) -> SFTPServer {
        guard case .extended(let pairs) = try await core.hello.answer() else {
            throw SFTPError(.malformedAnswer, detail: "no greeting")
        }
        var reader = PacketReader(pairs[...])
        var extensions: [String: String] = [:]
        while reader.remaining > 0 { extensions[try reader.text()] = try reader.text() }
        var server = SFTPServer(extensions: extensions, preamble: core.preamble)
        if server.offers(.limits) {
            try server.setLimits(try await core.send(.limits).answer().extended())
            if let most = server.mostHandles { core.limitHandles(to: most) }
        }
        return server
    }

    /// Gives a request to the session without waiting for its answer.
    ///
    /// Several that are given one after the other travel together. A request that the server would
    /// not survive, or does not offer, is answered at once by `.notSendable` or `.unsupported`.
    public func send(_ request: SFTPRequest) -> SFTPPendingAnswer {
        if case .write(_, _, let bytes) = request, bytes.count > server.largestWrite {
            return refuse(.notSendable, "\(bytes.count) bytes in one write")
        }
        guard server.takes(request) else {
            return refuse(.unsupported, request.requiredExtension?.name ?? "")
        }
        return core.send(request)
    }

    private func refuse(_ kind: SFTPError.Kind, _ detail: String) -> SFTPPendingAnswer {
        let answer = SFTPPendingAnswer(abandon: { _ in })
        answer.deliver(.failure(SFTPError(kind, detail: detail)))
        return answer
    }

    /// Ends the session; requests without an answer fail with `.connectionLost`.
    public func close() { core.stop(SFTPError(.notSent, detail: "the session was closed")) }

    // MARK: One request, one answer

    /// Opens a file.
    public func open(
        _ path: SFTPPath,
        _ flags: SFTPRequest.OpenFlags,
        _ attributes: SFTPAttributes = SFTPAttributes()
    ) async throws(SFTPError) -> SFTPHandle {
        try await send(.open(path, flags, attributes)).answer().handle()
    }

    /// Ends a handle; what was written through it is accepted by the server only then.
    public func close(_ handle: SFTPHandle) async throws(SFTPError) {
        try await send(.close(handle)).answer()
    }

    /// Attributes of a path: of a link those of the link itself, or of its target.
    public func attributes(
        of path: SFTPPath,
        followsLinks: Bool = false
    ) async throws(SFTPError) -> SFTPAttributes {
        let request: SFTPRequest =
            followsLinks ? .attributesOfTarget(path) : .attributesOfLink(path)
        return try await send(request).answer().attributes()
    }

    /// Attributes of an open file.
    public func attributes(of handle: SFTPHandle) async throws(SFTPError) -> SFTPAttributes {
        try await send(.attributesOfHandle(handle)).answer().attributes()
    }

    /// The absolute path of a path; `.` is where the login begins.
    public func realPath(of path: SFTPPath) async throws(SFTPError) -> SFTPPath {
        try await send(.realPath(path)).answer().onePath()
    }

    /// The target of a link, as it was written.
    public func target(ofLink path: SFTPPath) async throws(SFTPError) -> SFTPPath {
        try await send(.readLink(path)).answer().onePath()
    }

    /// What the file system of a path holds.
    public func fileSystem(of path: SFTPPath) async throws(SFTPError) -> SFTPFileSystem {
        try await send(.fileSystem(path)).fileSystem()
    }

    // MARK: Several requests

    /// How many requests for a folder's entries go together, at first and at most: two are all that most
    /// folders need, names and the end, so that their listing takes one round trip.
    private static let firstListings = 2, mostListings = 32

    /// All entries of a folder, in the server's order.
    ///
    /// - Parameters:
    ///   - folder: the folder's path.
    ///   - limit: the most entries that are taken in.
    /// - Returns: the entries, without `.` and `..`.
    /// - Throws: `.malformedAnswer` for a name that no file can have, or for more entries.
    public func entries(
        of folder: SFTPPath,
        atMost limit: Int = 10_000_000
    ) async throws(SFTPError) -> [SFTPEntry] {
        try await entries(of: send(.openFolder(folder)), atMost: limit)
    }

    /// As `entries(of:)` of a folder that was asked to be opened (`SFTPRequest.openFolder`).
    public func entries(
        of opening: SFTPPendingAnswer,
        atMost limit: Int = 10_000_000
    ) async throws(SFTPError) -> [SFTPEntry] {
        let handle = try await opening.answer().handle()
        let outcome: Result<[SFTPEntry], SFTPError>
        do throws(SFTPError) {
            outcome = .success(try await entries(of: handle, limit))
        } catch { outcome = .failure(error) }
        // Sent also when the caller no longer waits, so that the server keeps no handle.
        _ = send(.close(handle))
        return try outcome.get()
    }

    private func entries(
        of handle: SFTPHandle,
        _ limit: Int
    ) async throws(SFTPError) -> [SFTPEntry] {
        var entries: [SFTPEntry] = []
        var count = Self.firstListings
        var isOver = false
        while !isOver {
            // None is left unread: a server that works at several at once may end one before another that
            // has names.
            for pending in (0..<count).map({ _ in send(.readFolder(handle)) }) {
                do throws(SFTPError) {
                    for entry in try await pending.answer().names() where try entry.isOfFolder() {
                        entries.append(entry)
                    }
                } catch {
                    guard error.kind == .status(.endOfFile) else { throw error }
                    isOver = true
                }
                guard entries.count <= limit else {
                    throw SFTPError(.malformedAnswer, detail: "more than \(limit) entries")
                }
            }
            count = min(count * 2, Self.mostListings)
        }
        return entries
    }
}

extension SFTPEntry {
    /// Whether it is an entry and neither the folder itself nor the one above.
    ///
    /// - Throws: `.malformedAnswer` for what is no name and would lead elsewhere.
    fileprivate func isOfFolder() throws(SFTPError) -> Bool {
        guard !name.bytes.isEmpty, !name.bytes.contains(UInt8(ascii: "/")) else {
            throw SFTPError(.malformedAnswer, detail: "an entry named “\(name)”")
        }
        return name.isName
    }
}

extension SFTPPendingAnswer {
    /// Waits for what the file system of a path holds (`SFTPRequest.fileSystem`), once.
    ///
    /// - Throws: as `answer`.
    public func fileSystem() async throws(SFTPError) -> SFTPFileSystem {
        try SFTPFileSystem(try await answer().extended())
    }
}

extension SFTPAnswer {
    fileprivate static let ofAnotherKind = SFTPError(
        .malformedAnswer,
        detail: "an answer of another kind"
    )

    func handle() throws(SFTPError) -> SFTPHandle {
        guard case .handle(let handle) = self else { throw Self.ofAnotherKind }
        return handle
    }

    func data() throws(SFTPError) -> [UInt8] {
        guard case .data(let bytes) = self else { throw Self.ofAnotherKind }
        return bytes
    }

    func names() throws(SFTPError) -> [SFTPEntry] {
        guard case .names(let entries) = self else { throw Self.ofAnotherKind }
        return entries
    }

    func onePath() throws(SFTPError) -> SFTPPath {
        let entries = try names()
        guard entries.count == 1 else { throw Self.ofAnotherKind }
        return entries[0].name
    }

    func attributes() throws(SFTPError) -> SFTPAttributes {
        guard case .attributes(let attributes) = self else { throw Self.ofAnotherKind }
        return attributes
    }

    func extended() throws(SFTPError) -> [UInt8] {
        guard case .extended(let bytes) = self else { throw Self.ofAnotherKind }
        return bytes
    }
}
