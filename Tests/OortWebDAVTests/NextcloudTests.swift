import Foundation
import Logging
import OortModel
import OortPlaces
import OortSimulators
import OortTransport
import OortWebDAV
import Synchronization
import Testing

/// A simulated Nextcloud with a person signed in.
struct Cloud: Sendable {
    let service: NextcloudSimulator
    let simulator: Simulator
    let http: any HTTPClient
    let account: WebDAVDiscovery.Account

    /// What a person would paste.
    static func url(_ simulator: Simulator) -> String {
        simulator.url(host: NextcloudSimulator.host)
    }

    static func with(
        totalBytes: Int64? = nil,
        isOwnCloud: Bool = false,
        _ body: (Cloud) async throws -> Void
    ) async throws {
        let service = NextcloudSimulator(totalBytes: totalBytes, isOwnCloud: isOwnCloud)
        let simulator = try await Simulator.start(service)
        do {
            let password = service.account.tokens.issue().access
            let http = try DavServer.http(
                user: NextcloudSimulator.loginName,
                password: password
            )
            var server = try await WebDAVDiscovery.server(at: url(simulator), http: http)
            server.address.user = NextcloudSimulator.loginName
            let account = try await WebDAVDiscovery.account(at: server, http: http)
            simulator.clearCalls()
            try await body(
                Cloud(service: service, simulator: simulator, http: http, account: account)
            )
        } catch {
            await simulator.stop()
            throw error
        }
        await simulator.stop()
    }

    func client(
        partSize: Int64 = WebDAVClient.partSize,
        secondLook: Duration = .seconds(60)
    ) -> WebDAVClient {
        WebDAVClient(
            http: http,
            address: account.address,
            dialect: account.dialect,
            abilities: account.abilities,
            partSize: partSize,
            secondLook: secondLook,
            clock: HastyClock()
        )
    }

    func write(_ text: String, to path: [String]) {
        SimulatorEdit.write(path: path, SimulatedContent(text), modifiedTime: nil)
            .apply(to: service)
    }

    func item(_ path: String) -> SimulatedItem? {
        service.account.withTree { $0.item(at: RemotePath(text: path).parts) }
    }

    var calls: Int { simulator.calls.count }
}

/// A clock whose sleeps last a hundredth.
struct HastyClock: Clock {
    typealias Instant = ContinuousClock.Instant
    var now: Instant { ContinuousClock.now }
    var minimumResolution: Duration { .nanoseconds(1) }
    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        try await Task.sleep(for: (deadline - now) / 100)
    }
}

@Suite("an account at a Nextcloud", .timeLimit(.minutes(5)))
struct NextcloudTests {
    @Test("whatever a person pastes leads to the server")
    func recognition() async throws {
        let service = NextcloudSimulator()
        let simulator = try await Simulator.start(service)
        let http = try DavServer.http()
        let url = Cloud.url(simulator)
        let pasted = [
            ("", []), ("/", []), ("/index.php/apps/files/?dir=/Photos/a%20b", ["Photos", "a b"]),
            ("/apps/files/files/123?dir=/Photos", ["Photos"]), ("/index.php/login", []),
            ("/remote.php/dav/files/ada/Sub/Folder/", ["Sub", "Folder"]),
            ("/remote.php/webdav", []),
        ]
        for (path, folder) in pasted {
            let server = try await WebDAVDiscovery.server(at: url + path, http: http)
            #expect(server.dialect == .nextcloud)
            #expect(server.product == "Nextcloud 34.0.1")
            #expect(server.address.base == [NextcloudSimulator.host])
            #expect(server.address.folder == folder)
        }
        service.habits.isUnderMaintenance = true
        await #expect(throws: WebDAVSignInError.self) {
            _ = try await WebDAVDiscovery.server(at: url, http: http)
        }
        await simulator.stop()
    }

    @Test("the browser's sign-in gives a password, and a sign-out takes it back")
    func login() async throws {
        let service = NextcloudSimulator()
        let simulator = try await Simulator.start(service)
        let open = try DavServer.http()
        var server = try await WebDAVDiscovery.server(at: Cloud.url(simulator), http: open)
        let flow = try await NextcloudLoginFlow.start(at: server, name: "Oort (test)", http: open)
        #expect(flow.loginURL.contains("/login/v2/flow/"))
        #expect(try await flow.poll() == nil)
        service.grantLogin()
        let granted = try #require(try await flow.poll())
        #expect(granted.user == NextcloudSimulator.loginName)
        #expect(try await flow.poll() == nil)
        server.address.user = granted.user
        let http = try DavServer.http(user: granted.user, password: granted.appPassword)
        let account = try await WebDAVDiscovery.account(at: server, http: http)
        #expect(account.address.userID == NextcloudSimulator.userID)
        #expect(account.displayName == "Ada Example" && account.email == "ada@example.com")
        #expect(account.abilities.cloud?.largestPart == 104_857_600)
        let client = WebDAVClient(
            http: http,
            address: account.address,
            dialect: account.dialect,
            abilities: account.abilities
        )
        #expect(try await client.owner().id == account.ownerID)
        try await client.signOut()
        #expect(await failure { _ = try await client.owner() } == .signedOut)
        await simulator.stop()
    }

    @Test("a person's own password is exchanged for an app password, which is kept")
    func appPassword() async throws {
        try await Cloud.with { cloud in
            let own = try DavServer.http(
                user: NextcloudSimulator.loginName,
                password: NextcloudSimulator.ownPassword
            )
            let made = try await WebDAVDiscovery.appPassword(for: cloud.account, http: own)
            let password = try #require(made)
            #expect(password != NextcloudSimulator.ownPassword)
            let signed = try DavServer.http(
                user: NextcloudSimulator.loginName,
                password: password
            )
            // One that is an app password stays.
            #expect(try await WebDAVDiscovery.appPassword(for: cloud.account, http: signed) == nil)
            let client = WebDAVClient(
                http: signed,
                address: cloud.account.address,
                dialect: cloud.account.dialect,
                abilities: cloud.account.abilities
            )
            #expect(try await client.owner().id == cloud.account.ownerID)
            try await client.signOut()
            #expect(await failure { _ = try await client.owner() } == .signedOut)
        }
    }

    @Test("a wrong password is sent once; another is tried no sooner than after a while")
    func wrongPassword() async throws {
        let service = NextcloudSimulator()
        let simulator = try await Simulator.start(service)
        let http = try DavServer.http(user: NextcloudSimulator.userID, password: "wrong")
        let server = try await WebDAVDiscovery.server(at: Cloud.url(simulator), http: http)
        simulator.clearCalls()
        await #expect {
            _ = try await WebDAVDiscovery.account(at: server, http: http)
        } throws: { ($0 as? WebDAVSignInError)?.isPasswordRefused == true }
        #expect(simulator.calls.count == 1)
        await simulator.stop()

        try await Cloud.with { cloud in
            let client = cloud.client(secondLook: .seconds(3600))
            cloud.service.account.tokens.revokeAll()
            for _ in 0..<5 {
                let kind = await failure { _ = try await client.entry(at: .root) }
                guard case .rateLimited = kind else {
                    Issue.record("\(String(describing: kind))")
                    return
                }
            }
            #expect(cloud.calls == 1)

            let hasty = cloud.client(secondLook: .milliseconds(50))
            let first = await failure { _ = try await hasty.entry(at: .root) }
            guard case .rateLimited = first else {
                Issue.record("\(String(describing: first))")
                return
            }
            try await Task.sleep(for: .milliseconds(60))
            #expect(await failure { _ = try await hasty.entry(at: .root) } == .signedOut)
            #expect(cloud.calls == 3)
        }
    }

    @Test("files go up, are replaced, moved and removed; ids stay")
    func roundTrip() async throws {
        try await Cloud.with { cloud in
            let client = cloud.client()
            _ = try await client.createFolder(at: .init(["docs"]))
            let first = try await client.put("first", to: "docs/a b#?%.txt")
            #expect(first.key != nil && first.hash != nil)
            #expect(first.modifiedTime?.seconds == 1_700_000_000)
            #expect(
                await failure { try await client.put("x", to: "docs/a b#?%.txt") } == .nameTaken
            )
            let second = try await client.put(
                "second",
                to: "docs/a b#?%.txt",
                before: .file(first.revision)
            )
            #expect(second.key == first.key && second.revision != first.revision)
            #expect(
                await failure {
                    try await client.put("x", to: "docs/a b#?%.txt", before: .file(first.revision))
                } == .preconditionFailed
            )
            let moved = try await client.move(
                .file,
                from: .init(["docs", "a b#?%.txt"]),
                to: .init(["moved"])
            )
            #expect(moved.key == first.key && moved.revision == second.revision)
            #expect(try await client.text("moved", revision: second.revision) == "second")
            #expect(try await client.text("moved", revision: second.revision, range: 2..<4) == "co")
            #expect(
                await failure { _ = try await client.text("moved", revision: first.revision) }
                    == .preconditionFailed
            )
            #expect(await failure { try await client.put("x", to: "none/x") } == .parentNotFound)
            #expect(
                await failure { _ = try await client.createFolder(at: .init(["docs"])) }
                    == .nameTaken
            )
            let copy = try await client.copy(from: .init(["moved"]), to: .init(["copy"]))
            #expect(copy.key != moved.key && copy.modifiedTime == moved.modifiedTime)
            let timed = try await client.setModifiedTime(
                Timestamp(seconds: 1_600_000_000),
                of: .init(["copy"])
            )
            #expect(timed.modifiedTime?.seconds == 1_600_000_000)
            #expect(
                await failure {
                    try await client.delete(.file, at: .init(["moved"]), revision: first.revision)
                } == .preconditionFailed
            )
            try await client.delete(.file, at: .init(["moved"]), revision: second.revision)
            try await client.delete(.file, at: .init(["moved"]), revision: second.revision)
            #expect(try await client.names() == ["docs", "copy"])
        }
    }

    @Test("an old time is kept back: the server would write the file and report an error")
    func oldTimes() async throws {
        try await Cloud.with { cloud in
            let client = cloud.client()
            let entry = try await client.put("x", to: "a", time: Timestamp(seconds: 0))
            #expect(entry.size == 1)
            #expect((entry.modifiedTime?.seconds ?? 0) > 86400)
        }
    }

    @Test("one request says that nothing changed; what changed is found by its folders' stamps")
    func stamps() async throws {
        try await Cloud.with { cloud in
            let client = cloud.client()
            cloud.write("x", to: ["a", "b", "file"])
            cloud.write("x", to: ["c", "file"])
            let folders = [["a"], ["a", "b"], ["c"]].map { RemotePath($0) }
            func stamps(_ paths: [RemotePath]) async throws -> [FolderStamp?] {
                var found: [FolderStamp?] = []
                for result in await client.stamps(of: paths) { found.append(try result.get()) }
                return found
            }
            let before = try await stamps(folders + [.root])
            #expect(!before.contains(nil))
            cloud.simulator.clearCalls()
            #expect(try await stamps([.root]) == [before[3]])
            #expect(cloud.calls == 1)
            cloud.write("other", to: ["a", "b", "file"])
            let after = try await stamps(folders + [.root])
            #expect(zip(before, after).map { $0 != $1 } == [true, true, false, true])
            let listing = try await client.listing(of: .init(["a"]))
            #expect(listing.stamp == after[0])
            #expect(listing.entries.first?.stamp == after[1])
        }
    }

    @Test(
        "a storage that is down is unknown, and nothing in it is gone",
        arguments: [NextcloudSimulator.Down.unavailable, .empty]
    )
    func down(_ down: NextcloudSimulator.Down) async throws {
        try await Cloud.with { cloud in
            let client = cloud.client()
            cloud.write("x", to: ["mount", "folder", "file"])
            cloud.write("x", to: ["mine"])
            cloud.service.mount(["mount"], as: "external")
            let mounted = try await client.entry(at: .init(["mount"]))
            #expect(mounted.stamp == nil && mounted.key?.hasSuffix("@mount") == true)
            let inside = try await client.listing(of: .init(["mount"]))
            #expect(inside.entries.map(\.key) == [nil])
            cloud.service.habits.down = ["/mount": down]
            let listing = try await client.listing(of: .root)
            #expect(listing.entries.map(\.name) == ["mine"])
            #expect(listing.unknown == ["mount"])
            for path in [["mount"], ["mount", "folder"]] {
                let kind = await failure { _ = try await client.listing(of: .init(path)) }
                #expect(kind != nil && kind != .notFound)
            }
            let kind = await failure { _ = try await client.entry(at: .init(["mount", "folder"])) }
            #expect(kind != nil && kind != .notFound)
        }
    }

    @Test("maintenance is offline, for everything")
    func maintenance() async throws {
        try await Cloud.with { cloud in
            let client = cloud.client()
            try await client.put("x", to: "a")
            cloud.service.habits.isUnderMaintenance = true
            #expect(await failure { _ = try await client.entry(at: .init(["a"])) } == .offline)
            #expect(await failure { _ = try await client.listing(of: .root) } == .offline)
            #expect(await failure { try await client.put("y", to: "b") } == .offline)
            #expect(
                await failure { try await client.delete(.file, at: .init(["a"]), revision: nil) }
                    == .offline
            )
            #expect(await failure { _ = try await client.owner() } == .offline)
            cloud.service.habits.isUnderMaintenance = false
            #expect(try await client.names() == ["a"])
        }
    }

    @Test("letters and the home storage say what may be done")
    func permissions() async throws {
        try await Cloud.with { cloud in
            let client = cloud.client()
            cloud.write("x", to: ["shared", "file"])
            cloud.service.account.withTree { tree in
                guard let folder = tree.item(at: ["shared"]),
                    let file = tree.item(at: ["shared", "file"])
                else { return }
                tree.update(folder.id) { $0.extra["read-only"] = .bool(true) }
                tree.update(file.id) { $0.extra["read-only"] = .bool(true) }
            }
            cloud.service.mount(["shared"], as: "shared")
            let shared = try await client.entry(at: .init(["shared"]))
            #expect(shared.permissions == .read && !shared.isOwn && shared.stamp != nil)
            let file = try await client.entry(at: .init(["shared", "file"]))
            #expect(file.permissions == .read && file.key == nil)
            let root = try await client.entry(at: .root)
            #expect(root.permissions == .all && root.isOwn)
        }
    }

    @Test("names are composed; what the server refuses is refused before")
    func names() async throws {
        try await Cloud.with { cloud in
            let client = cloud.client()
            _ = try await client.put("x", to: "e\u{301}")
            let stored = try await client.names().map { Array($0.utf8) }
            #expect(stored == [Array("\u{E9}".utf8)])
            let rules = client.traits.provider.names
            #expect(
                rules.key("e\u{301}").isSameText(as: "\u{E9}") && rules.key("A") != rules.key("a")
            )
            cloud.simulator.clearCalls()
            for name in [".htaccess", "a.part", "back\\slash", "tab\t"] {
                #expect(await failure { try await client.put("x", to: name) } == .nameRefused)
            }
            let long = String(repeating: "n", count: 251)
            #expect(await failure { try await client.put("x", to: long) } == .nameTooLong)
            #expect(cloud.calls == 0)
            cloud.service.habits.refusesWindowsNames = true
            #expect(await failure { try await client.put("x", to: "a:b") } == .nameRefused)
        }
    }

    @Test("how much room there is")
    func quota() async throws {
        try await Cloud.with(totalBytes: 1000) { cloud in
            let client = cloud.client()
            try await client.put(String(repeating: "x", count: 600), to: "a")
            let quota = try await client.quota()
            #expect(quota.used == 600 && quota.total == 1000)
            #expect(
                await failure {
                    try await client.put(String(repeating: "x", count: 600), to: "b")
                } == .quotaExceeded
            )
        }
        try await Cloud.with { cloud in
            let unlimited = try await cloud.client().quota()
            #expect(unlimited.total == nil)
        }
    }

    @Test("a locked file is locked, and thumbnails come of pictures only")
    func locksAndThumbnails() async throws {
        try await Cloud.with { cloud in
            let client = cloud.client()
            try await client.put("x", to: "a.png")
            try await client.put("x", to: "a.txt")
            let picture = try await client.thumbnail(of: .init(["a.png"]), edge: 256)
            #expect(try await picture.collect(atMost: 1 << 20).starts(with: [0x89, 0x50]))
            #expect(
                await failure { _ = try await client.thumbnail(of: .init(["a.txt"]), edge: 256) }
                    == .unsupported
            )
            cloud.service.habits.locks = 1
            #expect(await failure { try await client.put("x", to: "b") } == .locked)
        }
    }

    // MARK: Uploads in parts

    private static let large = (0..<3_500_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }

    @Test("a large file goes up in parts, guarded as a small one")
    func parts() async throws {
        try await Cloud.with { cloud in
            let client = cloud.client(partSize: 1 << 20)
            let path = RemotePath(["large"])
            let first = try await client.put(Self.large, to: path)
            #expect(first.size == Int64(Self.large.count))
            #expect(first.modifiedTime?.seconds == 1_700_000_000)
            #expect(cloud.simulator.counts["PUT uploads"]?.calls == 4)
            #expect(cloud.item("large")?.head?.content.bytes == Self.large)
            #expect(await failure { try await client.put(Self.large, to: path) } == .nameTaken)
            let other = Self.large.reversed() as [UInt8]
            let second = try await client.put(other, to: path, before: .file(first.revision))
            #expect(second.key == first.key)
            #expect(cloud.item("large")?.head?.content.bytes == other)
            #expect(
                await failure {
                    try await client.put(Self.large, to: path, before: .file(first.revision))
                } == .preconditionFailed
            )
            try await client.delete(.file, at: path, revision: nil)
            #expect(
                await failure {
                    try await client.put(Self.large, to: path, before: .file(second.revision))
                } == .preconditionFailed
            )
            #expect(
                await failure { try await client.put(Self.large, to: .init(["no", "file"])) }
                    == .parentNotFound
            )
        }
    }

    @Test("an upload that broke off goes on with the parts that are missing")
    func resumed() async throws {
        try await Cloud.with { cloud in
            let client = cloud.client(partSize: 1 << 20)
            let path = RemotePath(["large"])
            let observer = Remembering()
            #expect(
                await failure {
                    try await client.put(
                        Self.large,
                        to: path,
                        content: BrokenContent(size: Int64(Self.large.count), good: Self.large),
                        observer: observer
                    )
                } == .localContent
            )
            let session = try #require(observer.session)
            #expect(session.confirmedBytes == 1 << 20)
            cloud.simulator.clearCalls()
            try await client.put(Self.large, to: path, session: session, observer: observer)
            #expect(cloud.item("large")?.head?.content.bytes == Self.large)
            // The one that broke off may be counted late.
            let sent = cloud.simulator.calls.filter {
                $0.route == "PUT uploads" && $0.status == 201
            }
            #expect(sent.count == 3)
            #expect(observer.session == nil)
            // The session is over; what it made is recognised by its checksum.
            let again = try await client.put(Self.large, to: path, session: session)
            #expect(again.size == Int64(Self.large.count))
            cloud.service.loseUploadSessions()
            let other = Self.large.reversed() as [UInt8]
            #expect(
                await failure { try await client.put(other, to: path, session: session) }
                    == .sessionLost
            )
        }
    }

    @Test("a put-together whose answer is late is waited for, and not done twice")
    func slowMove() async throws {
        try await Cloud.with { cloud in
            let client = cloud.client(partSize: 1 << 20)
            cloud.service.habits.slowMoves = 1
            let entry = try await client.put(Self.large, to: .init(["large"]))
            #expect(entry.size == Int64(Self.large.count))
            #expect(cloud.simulator.counts["MOVE uploads/.file"]?.calls == 1)
        }
    }

    @Test("an upload in parts that the server stored with other bytes is damaged, and never ours")
    func damagedParts() async throws {
        try await Cloud.with { cloud in
            let client = cloud.client(partSize: 1 << 20)
            for computesNothing in [false, true] {
                cloud.service.habits.computesNothing = computesNothing
                cloud.service.habits.damages = 1
                let path = RemotePath(["large \(computesNothing)"])
                let kind = await failure { try await client.put(Self.large, to: path) }
                #expect(kind == .contentDamaged)
                let damaged = try await client.entry(at: path)
                try await client.put(Self.large, to: path, before: .file(damaged.revision))
                #expect(cloud.item("large \(computesNothing)")?.head?.content.bytes == Self.large)
            }
        }
    }

    @Test("a server that computes no checksum has what it stored read back")
    func readBack() async throws {
        try await Cloud.with { cloud in
            let client = cloud.client()
            cloud.service.habits.computesNothing = true
            for size in [0, 7] {
                let bytes = [UInt8](repeating: 1, count: size)
                let entry = try await client.put(bytes, to: RemotePath(["\(size)"]))
                #expect(entry.size == Int64(size))
            }
            #expect(cloud.simulator.counts["GET files"]?.calls == 1)
        }
    }

    @Test("what lies where an upload was not proven is known by its bytes only")
    func unproven() async throws {
        try await Cloud.with { cloud in
            let file = NSTemporaryDirectory() + "oort-places-\(UUID().uuidString).sqlite"
            let map = try PlaceMap(path: file)
            defer {
                map.close()
                for ending in ["", "-wal", "-shm"] {
                    try? FileManager.default.removeItem(atPath: file + ending)
                }
            }
            let provider = PlaceProvider(
                client: cloud.client(partSize: 1 << 20),
                map: map,
                logger: Logger(label: "places") { _ in SwiftLogNoOpLogHandler() }
            )
            let root = ItemReference(id: try await provider.identity().rootID, path: .root)
            var hasher = provider.makeHasher()
            hasher.update(Self.large[...])
            let upload = Upload(
                target: .create(parent: root, name: "large", reservedID: nil),
                size: Int64(Self.large.count),
                hash: hasher.finalize(),
                modifiedTime: Timestamp(seconds: 1_700_000_000),
                mimeType: nil,
                content: BytesSource(Self.large)
            )
            cloud.service.habits.damages = 1
            let fault = Fault.status(423, retryAfterSeconds: nil)
            cloud.simulator.add(FaultRule(fault, at: "PATCH files"))
            let kind = await failure {
                _ = try await provider.upload(upload, observer: SilentUploadObserver())
            }
            guard case .outcomeUnknown = kind else {
                Issue.record("\(String(describing: kind))")
                return
            }
            let found = try #require(try await provider.items(named: "large", in: root).first)
            #expect(found.size == upload.size)
            #expect(found.clientModifiedTime == upload.modifiedTime)
            #expect(found.contentHash == nil)
        }
    }

    // MARK: A backup that was restored

    @Test("nothing of a server that was restored from a backup is news before a new sign-in")
    func restoredBackup() async throws {
        try await Cloud.with { cloud in
            #expect(cloud.account.abilities.cloud?.fingerprint?.isEmpty == true)
            let kept = try JSONEncoder().encode(cloud.account)
            cloud.write("kept", to: ["file"])
            let client = cloud.client()
            #expect(try await client.listing(of: .root).entries.count == 1)
            cloud.service.habits.fingerprint = "f1"
            for client in [client, cloud.client()] {
                let error = await #expect(throws: ProviderError.self) {
                    try await client.listing(of: .root)
                }
                #expect(error?.kind == .signedOut)
                #expect(error?.detail.contains("backup") == true)
                let stamp = try #require(await client.stamps(of: [.root]).first)
                #expect(throws: ProviderError.self) { try stamp.get() }
            }
            // A sign-in takes over what there is.
            let server = try await WebDAVDiscovery.server(
                at: Cloud.url(cloud.simulator),
                http: cloud.http
            )
            let account = try await WebDAVDiscovery.account(at: server, http: cloud.http)
            #expect(account.abilities.cloud?.fingerprint == "f1")
            let other = WebDAVClient(
                http: cloud.http,
                address: account.address,
                dialect: account.dialect,
                abilities: account.abilities
            )
            #expect(try await other.listing(of: .root).entries.count == 1)
            // A server that says nothing of it at a time says nothing new.
            cloud.service.habits.fingerprint = ""
            #expect(try await other.listing(of: .root).entries.count == 1)
            let again = try JSONDecoder().decode(WebDAVDiscovery.Account.self, from: kept)
            #expect(again == cloud.account)
        }
    }

    @Test("an account that begins in a folder, or was signed in earlier, hears of a backup, too")
    func restoredBackupElsewhere() async throws {
        try await Cloud.with { cloud in
            cloud.write("text", to: ["folder", "file"])
            var account = cloud.account
            account.address.folder = ["folder"]
            // As versions before kept it.
            account.abilities.cloud?.fingerprint = nil
            let client = WebDAVClient(
                http: cloud.http,
                address: account.address,
                dialect: account.dialect,
                abilities: account.abilities
            )
            cloud.service.habits.fingerprint = "f1"
            let listing = try await client.listing(of: .root)
            #expect(listing.entries.map(\.name) == ["file"])
            cloud.service.habits.fingerprint = "f2"
            #expect(await failure { _ = try await client.listing(of: .root) } == .signedOut)
        }
    }

    // MARK: Trouble on the way

    @Test("a listing that is cut, broken or a page of HTML is none")
    func brokenListings() async throws {
        try await Cloud.with { cloud in
            let client = cloud.client()
            for number in 0..<20 { cloud.write("x", to: ["folder", "\(number)"]) }
            for fault in [
                Fault.truncatedAnswer(bytes: 900), .truncatedAnswer(bytes: 0), .brokenText,
                .html(status: 200),
            ] {
                cloud.simulator.add(FaultRule(fault, at: "PROPFIND files"))
                let kind = await failure { _ = try await client.listing(of: .init(["folder"])) }
                #expect(kind == .malformedAnswer, "\(fault)")
                cloud.simulator.clearFaults()
            }
            let names = try await client.names(.init(["folder"]))
            #expect(names.count == 20)
        }
    }

    @Test("a save whose answer is lost is an unknown outcome, and never a second one")
    func lostAnswers() async throws {
        try await Cloud.with { cloud in
            let client = cloud.client()
            let first = try await client.put("first", to: "a")
            cloud.simulator.add(FaultRule(.doneButNoAnswer, at: "PUT files"))
            let kind = await failure {
                try await client.put("second", to: "a", before: .file(first.revision))
            }
            guard case .outcomeUnknown = kind else {
                Issue.record("\(String(describing: kind))")
                return
            }
            #expect(cloud.item("a")?.revisions.count == 2)
        }
    }
}

/// Keeps the last session.
final class Remembering: UploadObserver {
    private let last = Mutex<UploadSession?>(nil)

    var session: UploadSession? { last.withLock { $0 } }
    func sessionChanged(_ session: UploadSession?) async { last.withLock { $0 = session } }
    func sent(_ bytes: Int64) {}
}
