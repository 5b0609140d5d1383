import Foundation
import Logging
import ServiceLifecycle
import Synchronization
import Testing

@testable import oort

/// A mount that mounts nothing, for what stands around it.
private final class QuietMount: MountedClouds {
    let mountPoint: String
    let added = Mutex<[String]>([])
    private let stream: AsyncStream<Void>
    private let end: AsyncStream<Void>.Continuation

    init(mountPoint: String) {
        self.mountPoint = mountPoint
        (stream, end) = AsyncStream.makeStream()
    }

    func run() async throws {
        await withGracefulShutdownHandler {
            for await _ in stream {}
        } onGracefulShutdown: {
            self.end.finish()
        }
    }

    func status() async -> StatusReport {
        let pending = PendingChange(
            path: "\(mountPoint)/dropbox/a",
            action: "upload",
            error: "quota",
            next: "waits"
        )
        return StatusReport(
            mount: MountStatus(
                mountPoint: mountPoint,
                process: 7,
                since: Date(timeIntervalSince1970: 0),
                version: "1",
                cachedBytes: 1,
                cacheLimit: 2
            ),
            accounts: [
                AccountStatus(
                    name: "dropbox",
                    service: "dropbox",
                    person: "p",
                    state: .syncing,
                    trouble: nil,
                    usedBytes: 1,
                    totalBytes: nil,
                    knownItems: 3,
                    pendingCount: 1,
                    pending: [pending],
                    transfers: [],
                    conflicts: []
                )
            ]
        )
    }

    func sync(_ request: SyncRequest) throws(Failure) -> AsyncStream<SyncProgress> {
        guard request.path != "/etc" else { throw Failure("Not in the mount.") }
        return AsyncStream { continuation in
            for count in stride(from: 3, to: 0, by: -1) {
                continuation.yield(.init(state: .waiting, pendingCount: count, pending: []))
            }
            let isKnown = request.path == nil
            continuation.yield(
                .init(state: isKnown ? .done : .stuck, pendingCount: 0, pending: [])
            )
            continuation.finish()
        }
    }

    func addAccount(named name: String) async throws(Failure) {
        guard name != "bad" else { throw Failure("No such account.", advice: "Look.") }
        added.withLock { $0.append(name) }
    }

    func keptAccounts() throws(Failure) -> [KeptAccount] { [] }
    func removeAccount(named name: String, givingUp most: Int) async throws(Failure) {}
    func conflicts(_ wish: ConflictsRequest) async throws(Failure) -> [ConflictReport] { [] }
    func search(_ request: SearchRequest) throws(Failure) -> AsyncStream<SearchLine> {
        AsyncStream { $0.finish() }
    }
    func watch(_ request: WatchRequest) throws(Failure) -> AsyncStream<WatchEvent> {
        AsyncStream { $0.finish() }
    }
    func pause(_ wish: PauseRequest) async throws(Failure) -> PaceReport { .init(paused: []) }
    func resume(_ wish: ResumeRequest) async throws(Failure) -> PaceReport { .init(paused: []) }
    func limit(_ wish: LimitRequest) async throws(Failure) -> PaceReport { .init(paused: []) }
    func prepareChoice(_ choice: ConflictChoice) async throws(Failure) {}
    func endConflict(_ id: UInt64) async throws(Failure) {}
    func pin(_ wish: PinRequest) async throws(Failure) -> PinReport {
        throw Failure("\(wish.path) is not there.")
    }
    func unpin(_ wish: UnpinRequest) async throws(Failure) {}
    func pins() async throws(Failure) -> [PinReport] { [] }
    func free(_ wish: FreeRequest) async throws(Failure) -> FreeReport {
        let none = FreeReport.Sum(count: 0, bytes: 0)
        return FreeReport(freed: none, pinned: none, open: none, unsent: none)
    }
    func paths(of inodes: [UInt64]) throws(Failure) -> [String: String] {
        inodes.contains(7) ? ["7": "\(mountPoint)/dropbox/seven"] : [:]
    }
    func stop() { end.finish() }
    func metrics() async -> String { "oort_up 1\n" }
}

/// Accounts of it have nothing to take back and no links.
extension QuietMount {
    private static let nothing = Failure("There is no account.")

    func trash(_ request: TrashRequest) throws(Failure) -> TrashReport { throw Self.nothing }
    func restore(_ request: RestoreRequest) throws(Failure) -> RestoreReport { throw Self.nothing }
    func versions(_ request: VersionsRequest) throws(Failure) -> VersionsReport {
        throw Self.nothing
    }
    func readVersion(_ request: VersionsRequest) throws(Failure) -> FetchedVersion {
        throw Self.nothing
    }
    func checkUnchanged(_ request: VersionsRequest) throws(Failure) {}
    func restoreVersion(_ request: VersionsRequest) throws(Failure) -> RestoredVersion {
        throw Self.nothing
    }
    func share(_ request: ShareRequest) throws(Failure) -> LinkReport { throw Self.nothing }
    func page(_ request: PageRequest) async throws(Failure) -> PageReport {
        throw Failure("nothing")
    }
    func thumbnail(_ request: ThumbnailRequest) throws(Failure) -> ThumbnailReport {
        throw Self.nothing
    }
    func links(_ request: LinksRequest) throws(Failure) -> LinksReport { throw Self.nothing }
    func unshare(_ request: UnshareRequest) throws(Failure) -> LinksReport { throw Self.nothing }
}

@Suite("The daemon", .timeLimit(.minutes(15)))
struct DaemonTests {
    private let folder: TemporaryFolder
    private let folders: Folders

    init() throws {
        folder = try TemporaryFolder()
        folders = try folder.folders()
    }

    private func options() -> MountOptions {
        MountOptions(
            folders: folders,
            settings: Settings(),
            mountPoint: MountPoint(folder.path + "/m")
        )
    }

    /// Runs a daemon around a quiet mount for as long as `body` runs, and stops it by its socket.
    private func whileRunning(
        _ body: @Sendable (ControlClient, QuietMount) async throws -> Void
    ) async throws {
        let options = options()
        let mount = QuietMount(mountPoint: options.mountPoint.path)
        let (ready, isReady) = AsyncStream<ReadyMessage>.makeStream()
        async let running: Void = Daemon(options: options, log: { _ in }).run(
            make: { (_, _) async throws(Failure) in mount },
            ready: {
                isReady.yield($0)
                isReady.finish()
            }
        )
        var messages: [ReadyMessage] = []
        for await message in ready { messages.append(message) }
        #expect(messages.map(\.mountPoint) == [options.mountPoint.path])
        let client = ControlClient(folders: folders)
        try await body(client, mount)
        #expect(try await client.unmount(nil) == options.mountPoint.path)
        try await running
        #expect(!client.isMountRunning)
        #expect(!FileManager.default.fileExists(atPath: folders.socket))
    }

    @Test("status, accounts and sync go over the socket, which only the user may open")
    func socket() async throws {
        try await whileRunning { client, mount in
            let attributes = try FileManager.default.attributesOfItem(atPath: folders.socket)
            #expect(attributes[.posixPermissions] as? Int == 0o600)
            let report = try await client.status()
            #expect(report == (await mount.status()))
            try await client.accountAdded("drive")
            #expect(mount.added.withLock { $0 } == ["drive"])
            let seen = Seen()
            let last = try await client.sync(SyncRequest(path: nil, timeoutSeconds: nil)) {
                let count = $0.pendingCount
                seen.counts.withLock { $0.append(count) }
            }
            #expect(last.state == .done)
            #expect(seen.counts.withLock { $0 } == [3, 2, 1, 0])
            let stuck = try await client.sync(SyncRequest(path: "/x", timeoutSeconds: 1)) { _ in }
            #expect(stuck.state == .stuck)
            let failure = await #expect(throws: Failure.self) {
                try await client.sync(SyncRequest(path: "/etc", timeoutSeconds: 1)) { _ in }
            }
            #expect(failure?.message == "Not in the mount.")
        }
    }

    @Test("a refusal of the mount's comes back with its advice")
    func refusal() async throws {
        try await whileRunning { client, _ in
            let failure = await #expect(throws: Failure.self) {
                try await client.accountAdded("bad")
            }
            #expect(failure == Failure("No such account.", advice: "Look."))
            let other = await #expect(throws: Failure.self) {
                try await client.unmount("/somewhere/else")
            }
            #expect(other?.message.contains("/somewhere/else") == true)
        }
    }

    @Test("a second mount of the same state is refused, with the first one's process")
    func secondMount() async throws {
        try await whileRunning { _, mount in
            let failure = await #expect(throws: Failure.self) {
                try await Daemon(options: options(), log: { _ in }).run(
                    make: { (_, _) async throws(Failure) in mount },
                    ready: { _ in }
                )
            }
            #expect(failure?.message.contains("process \(getpid())") == true)
        }
    }

    @Test("without a mount the commands say so")
    func noMount() async throws {
        let failure = await #expect(throws: Failure.self) {
            try await ControlClient(folders: folders).status()
        }
        #expect(failure?.message == "No mount is running.")
    }

    @Test("a mount point that is missing is made; one that is a file or not empty is refused")
    func mountPoints() throws {
        let fresh = MountPoint(folder.path + "/new/deep")
        try fresh.prepare()
        #expect(try FileManager.default.contentsOfDirectory(atPath: fresh.path).isEmpty)

        let file = folder.path + "/file"
        try Data().write(to: URL(filePath: file))
        #expect(throws: Failure.self) { try MountPoint(file).prepare() }
        #expect(throws: Failure.self) { try MountPoint(file + "/below").prepare() }
        let full = #expect(throws: Failure.self) { try MountPoint(folder.path).prepare() }
        #expect(full?.message.contains("not empty") == true)
        let used = #expect(throws: Failure.self) { try MountPoint("/proc").prepare() }
        #expect(used?.message.contains("in use") == true)
    }

    @Test("the log begins anew when it is full and keeps a few older ones")
    func logRotation() throws {
        let path = folder.path + "/log"
        let log = try LogFile(path: path, limit: 100, kept: 2)
        for number in 0..<50 { log.write("line number \(number)") }
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        #expect(names == ["log", "log.1", "log.2"])
        let newest = try String(contentsOfFile: path, encoding: .utf8)
        #expect(newest.hasSuffix("line number 49\n"))
        #expect(newest.utf8.count <= 100)
    }

    @Test("an entry of the log is one line, whatever a name holds")
    func logLines() {
        let lines = Mutex<[String]>([])
        let logger = Logger(label: "x") {
            LineLogHandler(label: $0, level: .info) { line in lines.withLock { $0.append(line) } }
        }
        logger.debug("not shown")
        logger.info("moved", metadata: ["path": "a\nb"])
        #expect(lines.withLock { $0.count } == 1)
        #expect(lines.withLock { $0.first?.hasSuffix("info x: moved path=a\\nb") } == true)
    }
}

/// The counts of pending changes that a client got.
private final class Seen: Sendable {
    let counts = Mutex<[Int]>([])
}
