import Foundation
import Logging
import OortModel
import OortPlaces
import OortSimulators
import OortTesting
import OortTransport
import OortWebDAV
import Testing

/// A simulated OpenCloud with a person signed in.
struct OpenCloud: Sendable {
    let service: InfiniteScaleSimulator
    let simulator: Simulator
    let http: any HTTPClient
    let account: WebDAVDiscovery.Account

    static func url(_ simulator: Simulator) -> String {
        simulator.url(host: InfiniteScaleSimulator.host)
    }

    static func with(
        totalBytes: Int64? = nil,
        space: String? = nil,
        _ body: (OpenCloud) async throws -> Void
    ) async throws {
        let service = InfiniteScaleSimulator(totalBytes: totalBytes)
        let simulator = try await Simulator.start(service)
        do {
            let http = try DavServer.http(
                user: InfiniteScaleSimulator.user,
                password: service.account.tokens.issue().access
            )
            var server = try await WebDAVDiscovery.server(at: url(simulator), http: http)
            server.address.user = InfiniteScaleSimulator.user
            server.space = space
            let account = try await WebDAVDiscovery.account(at: server, http: http)
            simulator.clearCalls()
            try await body(
                OpenCloud(service: service, simulator: simulator, http: http, account: account)
            )
        } catch {
            await simulator.stop()
            throw error
        }
        await simulator.stop()
    }

    func client(
        partSize: Int64 = WebDAVClient.partSize,
        folderYouth: Duration = .zero
    ) -> WebDAVClient {
        WebDAVClient(
            http: http,
            address: account.address,
            dialect: account.dialect,
            abilities: account.abilities,
            partSize: partSize,
            folderYouth: folderYouth,
            clock: HastyClock()
        )
    }

    func write(_ text: String, to path: [String], time: Timestamp? = nil) {
        SimulatorEdit.write(path: path, SimulatedContent(text), modifiedTime: time)
            .apply(to: service)
    }

    func item(_ path: String) -> SimulatedItem? {
        service.account.withTree { $0.item(at: RemotePath(text: path).parts) }
    }

    func text(_ path: String) -> String? {
        item(path)?.head.map { String(decoding: $0.content.bytes, as: UTF8.self) }
    }
}

@Suite("an account at an OpenCloud", .timeLimit(.minutes(5)))
struct InfiniteScaleTests {
    private func reference(_ path: String) -> ItemReference {
        ItemReference(id: ItemID(""), path: RemotePath(text: path))
    }

    private var root: ItemReference { ItemReference(id: ItemID(""), path: .root) }

    // MARK: Signing in

    @Test("whatever a person pastes leads to the server, the space and the folder")
    func recognition() async throws {
        let service = InfiniteScaleSimulator()
        let simulator = try await Simulator.start(service)
        let http = try DavServer.http()
        let url = OpenCloud.url(simulator)
        let personal = InfiniteScaleSimulator.personalSpace
        let pasted: [(String, String?, [String])] = [
            ("", nil, []), ("/", nil, []), ("/account", nil, []),
            (
                "/files/spaces/personal/ada/Photos/a%20b?fileId=x", "personal/ada",
                ["Photos", "a b"]
            ),
            ("/files/spaces/project/the-team", "project/the-team", []),
            ("/dav/spaces/\(personal)/Sub", personal, ["Sub"]),
            ("/remote.php/dav/spaces/\(personal)/", personal, []),
        ]
        for (path, space, folder) in pasted {
            let server = try await WebDAVDiscovery.server(at: url + path, http: http)
            #expect(server.dialect == .infinitescale)
            #expect(server.product == "OpenCloud 3.4.0")
            #expect(server.address.base == [InfiniteScaleSimulator.host])
            #expect(server.space == space && server.address.folder == folder, "\(path)")
        }
        await simulator.stop()
    }

    @Test("an account is one space: the person's own, or one that is named")
    func spaces() async throws {
        try await OpenCloud.with { cloud in
            #expect(cloud.account.displayName == "Ada Example")
            #expect(cloud.account.email == "ada@example.com")
            #expect(cloud.account.address.space?.isPersonal == true)
            #expect(cloud.account.abilities.cloud?.largestPart == 10_000_000)
            #expect(try await cloud.client().owner().id == cloud.account.ownerID)
            try await cloud.client().put("x", to: "mine")
            var server = try await WebDAVDiscovery.server(
                at: OpenCloud.url(cloud.simulator),
                http: cloud.http
            )
            for name in [
                "the team", "project/the-team", InfiniteScaleSimulator.projectSpace,
            ] {
                server.space = name
                let other = try await WebDAVDiscovery.account(at: server, http: cloud.http)
                #expect(other.address.space?.name == InfiniteScaleSimulator.projectName)
                #expect(other.ownerID != cloud.account.ownerID)
                #expect(other.displayName == "Ada Example, The Team")
                let client = WebDAVClient(
                    http: cloud.http,
                    address: other.address,
                    dialect: other.dialect,
                    abilities: other.abilities
                )
                #expect(try await client.names().isEmpty)
                #expect(try await client.entry(at: .root).isOwn == false)
                let kept = try JSONEncoder().encode(other)
                #expect(try JSONDecoder().decode(WebDAVDiscovery.Account.self, from: kept) == other)
            }
            server.space = "none such"
            let error = await #expect(throws: WebDAVSignInError.self) {
                try await WebDAVDiscovery.account(at: server, http: cloud.http)
            }
            #expect(error?.description.contains("\"The Team\"") == true)
        }
    }

    @Test("a wrong token is sent once, and a sign-out takes none back")
    func wrongToken() async throws {
        let service = InfiniteScaleSimulator()
        let simulator = try await Simulator.start(service)
        let http = try DavServer.http(user: InfiniteScaleSimulator.user, password: "wrong")
        let server = try await WebDAVDiscovery.server(at: OpenCloud.url(simulator), http: http)
        simulator.clearCalls()
        await #expect {
            _ = try await WebDAVDiscovery.account(at: server, http: http)
        } throws: { ($0 as? WebDAVSignInError)?.isPasswordRefused == true }
        #expect(simulator.calls.count == 1)
        await simulator.stop()
        try await OpenCloud.with { cloud in
            #expect(await failure { try await cloud.client().signOut() } == .unsupported)
        }
    }

    // MARK: Files

    @Test("files go up, are replaced, moved and removed; ids stay")
    func roundTrip() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client()
            _ = try await client.createFolder(at: .init(["docs"]))
            let name = "docs/a b#?%+&ü.txt"
            let first = try await client.put("first", to: name)
            #expect(first.key?.hasPrefix(InfiniteScaleSimulator.personalSpace + "!") == true)
            #expect(first.hash != nil && first.modifiedTime?.seconds == 1_700_000_000)
            #expect(await failure { try await client.put("x", to: name) } == .nameTaken)
            let second = try await client.put("second", to: name, before: .file(first.revision))
            #expect(second.key == first.key && second.revision != first.revision)
            #expect(
                await failure {
                    try await client.put("x", to: name, before: .file(first.revision))
                } == .preconditionFailed
            )
            let moved = try await client.move(
                .file,
                from: RemotePath(text: name),
                to: .init(["moved"])
            )
            #expect(moved.key == first.key && moved.revision == second.revision)
            #expect(try await client.text("moved", revision: second.revision) == "second")
            #expect(try await client.text("moved", revision: second.revision, range: 2..<4) == "co")
            #expect(
                await failure { _ = try await client.text("moved", revision: first.revision) }
                    == .preconditionFailed
            )
            #expect(await failure { _ = try await client.text("docs") } == .notAFile)
            #expect(await failure { try await client.put("x", to: "none/x") } == .parentNotFound)
            #expect(await failure { try await client.put("x", to: "docs") } == .nameTaken)
            #expect(
                await failure { _ = try await client.createFolder(at: .init(["docs"])) }
                    == .nameTaken
            )
            try await client.put("x", to: "docs/other")
            #expect(
                await failure {
                    _ = try await client.move(
                        .file,
                        from: .init(["moved"]),
                        to: .init(["docs", "other"])
                    )
                } == .nameTaken
            )
            let copy = try await client.copy(from: .init(["moved"]), to: .init(["copy"]))
            #expect(copy.key != moved.key && copy.modifiedTime == moved.modifiedTime)
            #expect(copy.hash == second.hash)
            #expect(
                await failure {
                    _ = try await client.setModifiedTime(
                        Timestamp(seconds: 1_600_000_000),
                        of: .init(["copy"])
                    )
                } == .unsupported
            )
            #expect(
                await failure {
                    try await client.delete(.file, at: .init(["moved"]), revision: first.revision)
                } == .preconditionFailed
            )
            #expect(cloud.item("moved") != nil)
            try await client.delete(.file, at: .init(["moved"]), revision: second.revision)
            try await client.delete(.file, at: .init(["moved"]), revision: second.revision)
            let empty = try await client.put("", to: "empty")
            try await client.put("", to: "copy", before: .file(copy.revision))
            #expect(empty.size == 0 && cloud.text("copy") == "")
            #expect(try await client.names() == ["docs", "copy", "empty"])
        }
    }

    @Test("two contents of one second are two revisions, whatever their tag")
    func sameTag() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client()
            let time = Timestamp(seconds: 1_700_000_000)
            let first = try await client.put("one", to: "file", time: time)
            let second = try await client.put(
                "two",
                to: "file",
                before: .file(first.revision),
                time: time
            )
            #expect(second.modifiedTime == first.modifiedTime)
            func tag(_ entry: PlaceEntry) -> Substring? {
                entry.revision?.rawValue.split(separator: "\"").first
            }
            // Nobody else has to compare more than tags.
            #expect(tag(second) != tag(first))

            // Another program's times are whole seconds.
            cloud.write("here", to: ["other"], time: time)
            let before = try await client.entry(at: .init(["other"]))
            cloud.write("anew", to: ["other"], time: time)
            let after = try await client.entry(at: .init(["other"]))
            #expect(tag(before) == tag(after) && before.revision != after.revision)
            #expect(
                await failure { _ = try await client.text("other", revision: before.revision) }
                    == .preconditionFailed
            )
            #expect(
                await failure {
                    try await client.put("mine", to: "other", before: .file(before.revision))
                } == .preconditionFailed
            )
            #expect(
                await failure {
                    try await client.delete(.file, at: .init(["other"]), revision: before.revision)
                } == .preconditionFailed
            )
            #expect(cloud.text("other") == "anew")
        }
    }

    @Test("a file that somebody made just before has its content and its name again")
    func lostRace() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client(partSize: 1 << 20)
            cloud.service.habits.races = 1
            #expect(await failure { try await client.put("mine", to: "small") } == .nameTaken)
            #expect(cloud.text("small") == "theirs")
            cloud.service.habits.races = 1
            #expect(
                await failure { try await client.put(Self.large, to: .init(["large"])) }
                    == .nameTaken
            )
            #expect(cloud.text("large") == "theirs")
            // What was sent is not lost either: it goes up under another name.
            try await client.put("mine", to: "small (2)")
        }
    }

    @Test("what the server still looks over is locked, unknown to a listing, and never gone")
    func processing() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client()
            cloud.service.habits.processing = 3
            // An upload is done when the server has taken it.
            let entry = try await client.put("content", to: "file")
            #expect(entry.size == 7 && cloud.text("file") == "content")
            cloud.service.habits.processing = 1
            let other = cloud.client()
            let put = HTTPRequest(
                method: "PUT",
                url: cloud.account.address.text + "theirs",
                body: .bytes(Array("theirs".utf8))
            )
            _ = try await cloud.http.send(put, limit: 1 << 20)
            let listing = try await other.listing(of: .root)
            #expect(listing.unknown == ["theirs"] && listing.isYoung)
            #expect(listing.entries.map(\.name) == ["file"])
            #expect(try await other.listing(of: .root).unknown.isEmpty)
            _ = try await cloud.http.send(put, limit: 1 << 20)
            #expect(await failure { _ = try await other.text("theirs") } == .locked)
            _ = try await cloud.http.send(put, limit: 1 << 20)
            #expect(await failure { _ = try await other.entry(at: .init(["theirs"])) } == .locked)
            #expect(try await other.text("theirs") == "theirs")
        }
    }

    @Test("what the server looks over for long has an unknown outcome, and is not sent again")
    func longProcessing() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client(partSize: 1 << 20)
            for bytes in [Array("small".utf8), Self.large] {
                let path = RemotePath(["\(bytes.count)"])
                let observer = Remembering()
                cloud.service.habits.processing = 9
                let kind = await failure {
                    try await client.put(bytes, to: path, observer: observer)
                }
                guard case .outcomeUnknown = kind else {
                    Issue.record("\(String(describing: kind))")
                    return
                }
                cloud.simulator.clearCalls()
                cloud.service.habits.processing = 0
                if let session = observer.session {
                    let entry = try await client.put(bytes, to: path, session: session)
                    #expect(entry.size == Int64(bytes.count))
                    #expect(cloud.simulator.counts["PATCH data"] == nil)
                } else {
                    while await failure({ _ = try await client.entry(at: path) }) == .locked {}
                    #expect(try await client.entry(at: path).size == Int64(bytes.count))
                }
                #expect(cloud.item("\(bytes.count)")?.revisions.count == 1)
            }
        }
    }

    @Test("what arrives with another sum is refused, and leaves what was there")
    func damage() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client()
            let first = try await client.put("good", to: "file")
            let kind = await failure {
                _ = try await client.upload(
                    PlaceUpload(
                        path: .init(["file"]),
                        before: .file(first.revision),
                        size: 3,
                        hash: ContentHash(
                            algorithm: .sha1,
                            value: String(repeating: "0", count: 40)
                        ),
                        modifiedTime: nil,
                        mimeType: nil,
                        content: BytesSource(Array("bad".utf8))
                    ),
                    observer: SilentUploadObserver()
                )
            }
            #expect(kind == .contentDamaged)
            #expect(cloud.text("file") == "good")
            // What is stored with another sum than was sent is not taken for ours.
            SimulatorEdit.remove(path: ["file"]).apply(to: cloud.service)
            cloud.service.account.withTree { tree in
                var conditions = SimulatedConditions()
                conditions.damagedContents = 1
                tree.setConditions(conditions)
            }
            let stored = await failure { try await client.put("good", to: "file") }
            guard case .outcomeUnknown = stored else {
                Issue.record("\(String(describing: stored))")
                return
            }
        }
    }

    @Test("letters, names and room are the server's")
    func rules() async throws {
        try await OpenCloud.with(totalBytes: 1000) { cloud in
            let client = cloud.client()
            try await client.put(String(repeating: "x", count: 600), to: "a")
            let quota = try await client.quota()
            #expect(quota.used == 600 && quota.total == 1000)
            #expect(
                await failure { try await client.put(String(repeating: "x", count: 600), to: "b") }
                    == .quotaExceeded
            )
            // No letter says that a file can be read.
            #expect(try await client.entry(at: .init(["a"])).permissions == .all)
            cloud.simulator.clearCalls()
            for name in ["   ", "back\\slash", "line\nbreak"] {
                #expect(await failure { try await client.put("x", to: name) } == .nameRefused)
            }
            let long = String(repeating: "n", count: 256)
            #expect(await failure { try await client.put("x", to: long) } == .nameTooLong)
            #expect(cloud.simulator.calls.isEmpty)
            for name in [
                ".htaccess", "a.part", "tab\t", "e\u{301}", "\u{E9}", String(long.dropLast()),
            ] {
                try await client.put("", to: name)
            }
            _ = try await client.createFolder(at: .init(["dav"]))
            // The server looks for its own program in a destination, and wants to find it once.
            try await client.put("x", to: "dav/spaces 1")
            #expect(
                await failure {
                    _ = try await client.move(
                        .file,
                        from: .init(["a"]),
                        to: .init(["dav", "spaces 2"])
                    )
                } == .nameRefused
            )
            cloud.service.habits.locks = 1
            #expect(await failure { try await client.put("x", to: "locked") } == .locked)
        }
    }

    @Test("a name that the server hides, or takes for a part of another file, is refused")
    func hiddenNames() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client()
            try await client.put("good", to: "film")
            _ = try await client.createFolder(at: .init(["folder"]))
            cloud.simulator.clearCalls()
            for name in [
                "film-chunking-7-2-1", "film-chunking-a_Z9-10-0", "a.flock", ".mlock", ".Trash",
                ".oc-nodes", ".oc-tmp", "folder/film-chunking-7-2-1", "folder/b.mlock",
            ] {
                let path = RemotePath(text: name)
                #expect(await failure { try await client.put("x", to: name) } == .nameRefused)
                #expect(
                    await failure { _ = try await client.createFolder(at: path) } == .nameRefused
                )
                let refusal = client.traits.provider.names.refusal(
                    path.name ?? "",
                    .file,
                    path.parts.count - 1
                )
                #expect(refusal != nil, "\(name)")
            }
            #expect(cloud.simulator.calls.isEmpty)
            for name in [
                "film-chunking-7-2", "film-chunking-ü-2-1", "film-chunking-7-2-1x", "flock",
                "a.flock.txt", ".trash", "chunking-7-2-1", "folder/.Trash", "folder/.oc-nodes",
                "folder/.oc-tmp",
            ] {
                try await client.put("x", to: name)
                let path = RemotePath(text: name)
                #expect(
                    client.traits.provider.names.refusal(
                        path.name ?? "",
                        .file,
                        path.parts.count - 1
                    ) == nil
                )
                #expect(try await client.text(name) == "x")
            }
            let top: Set = ["a.flock.txt", "film", ".trash", "flock", "folder"]
            #expect(try await client.names().isSuperset(of: top))
            #expect(try await client.names(.init(["folder"])).contains(".Trash"))
            #expect(cloud.text("film") == "good")
        }
    }

    @Test("thumbnails come of pictures only, and each item has a page by its id")
    func thumbnailsAndPages() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client()
            let folder = try await client.createFolder(at: .init(["folder"]))
            let key = try #require(folder.key).replacing("$", with: "%24").replacing(
                "!",
                with: "%21"
            )
            let pages = try #require(client.webPages)
            let page = try await pages.page(of: reference("folder"), isFolder: true)
            #expect(page == OpenCloud.url(cloud.simulator) + "/f/\(key)")
            let picture = try await client.put("x", to: "a.png")
            let text = try await client.put("x", to: "a.txt")
            #expect(picture.hasThumbnail == true && text.hasThumbnail == false)
            let bytes = try await client.thumbnail(of: .init(["a.png"]), edge: 256)
            #expect(try await bytes.collect(atMost: 1 << 20).starts(with: [0x89, 0x50]))
            #expect(
                await failure { _ = try await client.thumbnail(of: .init(["a.txt"]), edge: 256) }
                    == .unsupported
            )
        }
    }

    // MARK: The feed

    private func withProvider(
        _ client: WebDAVClient,
        _ body: (PlaceProvider) async throws -> Void
    ) async throws {
        let file = NSTemporaryDirectory() + "oort-places-\(UUID().uuidString).sqlite"
        let map = try PlaceMap(path: file)
        defer {
            map.close()
            for ending in ["", "-wal", "-shm"] {
                try? FileManager.default.removeItem(atPath: file + ending)
            }
        }
        try await body(
            PlaceProvider(
                client: client,
                map: map,
                logger: Logger(label: "places") { _ in SwiftLogNoOpLogHandler() }
            )
        )
    }

    /// Has the provider look, and reads what it found.
    private func look(_ replica: inout FeedReplica, _ provider: PlaceProvider) async throws {
        if let cursor = replica.cursor {
            _ = try await provider.waitForChanges(since: cursor, atMost: .zero)
        }
        try await replica.catchUp(with: provider)
    }

    @Test("one question says that nothing changed; others' changes come by the folders' tags")
    func feed() async throws {
        try await OpenCloud.with { cloud in
            cloud.write("1", to: ["a", "one"])
            try await withProvider(cloud.client()) { provider in
                var replica = FeedReplica(of: provider)
                try await replica.catchUp(with: provider)
                let one = try #require(replica.named("one").first)
                SimulatorEdit.move(from: ["a", "one"], to: ["b", "two"]).apply(to: cloud.service)
                cloud.write("new", to: ["c", "new"])
                try await look(&replica, provider)
                #expect(replica.named("two").map(\.id) == [one.id])
                #expect(replica.named("new").first?.size == 3)
                let calls = cloud.simulator.calls.count
                try await look(&replica, provider)
                #expect(cloud.simulator.calls.count == calls + 1)
            }
        }
    }

    @Test("a change comes although the folders above show another one first")
    func lateTags() async throws {
        try await OpenCloud.with { cloud in
            cloud.write("1", to: ["a", "deep", "one"])
            cloud.write("2", to: ["b", "two"])
            try await withProvider(cloud.client(folderYouth: .seconds(3600))) { provider in
                var replica = FeedReplica(of: provider)
                try await replica.catchUp(with: provider)
                cloud.service.habits.lag = 2
                cloud.write("changed", to: ["a", "deep", "one"])
                cloud.write("new", to: ["b", "three"])
                SimulatorEdit.remove(path: ["b", "two"]).apply(to: cloud.service)
                for _ in 0..<12 { try await look(&replica, provider) }
                #expect(replica.named("one").first?.size == 7)
                #expect(replica.named("three").first?.size == 3)
                #expect(replica.named("two").isEmpty)
            }
        }
    }

    // MARK: Uploads in parts

    private static let large = (0..<7_500_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }

    @Test("a large file goes up in parts, guarded as a small one")
    func parts() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client(partSize: 1 << 20)
            let path = RemotePath(["large"])
            cloud.service.habits.processing = 1
            let first = try await client.put(Self.large, to: path)
            cloud.service.habits.processing = 0
            #expect(first.size == Int64(Self.large.count))
            #expect(first.modifiedTime?.seconds == 1_700_000_000)
            #expect(cloud.simulator.counts["PATCH data"]?.calls == 8)
            #expect(cloud.item("large")?.head?.content.bytes == Self.large)
            #expect(await failure { try await client.put(Self.large, to: path) } == .nameTaken)
            let other = Self.large.reversed() as [UInt8]
            let second = try await client.put(other, to: path, before: .file(first.revision))
            #expect(second.key == first.key && second.revision != first.revision)
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

    @Test("an upload that broke off goes on where it stopped, and one that is over is known")
    func resumed() async throws {
        try await OpenCloud.with { cloud in
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
            #expect(session.confirmedBytes == 3 << 20)
            cloud.simulator.clearCalls()
            // An answer that is lost costs a question, and no byte twice.
            cloud.simulator.add(FaultRule(.doneButNoAnswer, at: "PATCH data"))
            try await client.put(Self.large, to: path, session: session, observer: observer)
            #expect(cloud.item("large")?.head?.content.bytes == Self.large)
            #expect(cloud.simulator.counts["HEAD data"]?.calls == 2)
            #expect(observer.session == nil)
            let again = try await client.put(Self.large, to: path, session: session)
            #expect(again.size == Int64(Self.large.count))
            #expect(cloud.item("large")?.revisions.count == 1)
            let other = Self.large.reversed() as [UInt8]
            #expect(
                await failure { try await client.put(other, to: path, session: session) }
                    == .sessionLost
            )
        }
    }

    @Test("an upload whose bytes all came is not sent again while the server makes a file of it")
    func finishing() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client(partSize: 1 << 20)
            let path = RemotePath(["large"])
            let observer = Remembering()
            cloud.service.habits.finishing = 4
            // The answer of the last part is lost, and its file is not there at first.
            let lost = await failure {
                try await client.put(Self.large, to: path, observer: observer)
            }
            #expect(lost == .outcomeUnknown(retryAfter: nil))
            #expect(cloud.item("large") == nil)
            cloud.simulator.clearCalls()
            let again = await failure {
                try await client.put(
                    Self.large,
                    to: path,
                    session: observer.session,
                    observer: observer
                )
            }
            #expect(again == .outcomeUnknown(retryAfter: nil))
            let session = try #require(observer.session)
            try await client.put(Self.large, to: path, session: session, observer: observer)
            #expect(cloud.simulator.counts["PATCH data"] == nil)
            #expect(cloud.simulator.counts["POST spaces"] == nil)
            #expect(cloud.item("large")?.revisions.count == 1 && observer.session == nil)
        }
    }

    @Test("an upload that the server makes no file of rests until its session's end")
    func neverFinished() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client(partSize: 1 << 20)
            let path = RemotePath(["large"])
            let observer = Remembering()
            cloud.service.habits.failsToFinish = true
            for _ in 0..<3 {
                let kind = await failure {
                    try await client.put(
                        Self.large,
                        to: path,
                        session: observer.session,
                        observer: observer
                    )
                }
                #expect(kind == .outcomeUnknown(retryAfter: nil))
            }
            #expect(cloud.simulator.counts["PATCH data"]?.calls == 8)
            cloud.service.habits.failsToFinish = false
            var session = try #require(observer.session)
            #expect(session.confirmedBytes == Int64(Self.large.count))
            session.expires = Timestamp(seconds: Timestamp.now.seconds - 1)
            #expect(
                await failure {
                    try await client.put(
                        Self.large,
                        to: path,
                        session: session,
                        observer: observer
                    )
                } == .sessionLost
            )
            #expect(observer.session == nil)
            try await client.put(Self.large, to: path, observer: observer)
            #expect(cloud.item("large")?.head?.content.bytes == Self.large)
        }
    }

    @Test("an upload that is over without a file has an unknown outcome, and its session ends")
    func thrownAway() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client(partSize: 1 << 20)
            let observer = Remembering()
            cloud.service.habits.failsToFinish = true
            _ = await failure {
                try await client.put(Self.large, to: .init(["large"]), observer: observer)
            }
            let session = try #require(observer.session)
            cloud.service.loseUploadSessions()
            #expect(
                await failure {
                    try await client.put(
                        Self.large,
                        to: .init(["large"]),
                        session: session,
                        observer: observer
                    )
                } == .outcomeUnknown(retryAfter: nil)
            )
            #expect(observer.session == nil)
        }
    }

    @Test("an upload that broke off before its file was renamed is begun anew at the new place")
    func renamedMeanwhile() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client(partSize: 1 << 20)
            let observer = Remembering()
            _ = await failure {
                try await client.put(
                    Self.large,
                    to: .init(["big.iso"]),
                    content: BrokenContent(size: Int64(Self.large.count), good: Self.large),
                    observer: observer
                )
            }
            let session = try #require(observer.session)
            try await client.put(
                Self.large,
                to: .init(["film.iso"]),
                session: session,
                observer: observer
            )
            #expect(try await client.names() == ["film.iso"] && observer.session == nil)
            #expect(cloud.item("film.iso")?.head?.content.bytes == Self.large)
            #expect(cloud.simulator.counts["DELETE data"]?.calls == 1)
        }
    }

    @Test("what somebody made while an upload of the name had broken off is seen before its end")
    func madeMeanwhile() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client(partSize: 1 << 20)
            let path = RemotePath(["large"])
            let observer = Remembering()
            _ = await failure {
                try await client.put(
                    Self.large,
                    to: path,
                    content: BrokenContent(size: Int64(Self.large.count), good: Self.large),
                    observer: observer
                )
            }
            let session = try #require(observer.session)
            cloud.write("theirs", to: ["large"])
            #expect(
                await failure {
                    try await client.put(
                        Self.large,
                        to: path,
                        session: session,
                        observer: observer
                    )
                } == .nameTaken
            )
            #expect(cloud.text("large") == "theirs" && observer.session == nil)
            #expect(cloud.simulator.counts["DELETE data"]?.calls == 1)
        }
    }

    @Test("a part that the server does not keep is an error, and is not sent for ever")
    func noProgress() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client(partSize: 1 << 20)
            let observer = Remembering()
            cloud.service.habits.forgottenParts = 20
            #expect(
                await failure {
                    try await client.put(Self.large, to: .init(["large"]), observer: observer)
                } == .malformedAnswer
            )
            #expect(cloud.simulator.counts["PATCH data"]?.calls == 1)
            cloud.service.habits.forgottenParts = 0
            let session = try #require(observer.session)
            try await client.put(Self.large, to: .init(["large"]), session: session)
            #expect(cloud.item("large")?.head?.content.bytes == Self.large)
        }
    }

    @Test("what a proxy before the server lets not through whole goes up in parts")
    func smallBodies() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client(partSize: 1 << 20)
            let some = Array(Self.large.prefix(3_000_000))
            cloud.simulator.add(FaultRule(.status(413, retryAfterSeconds: nil), at: "PUT spaces"))
            let entry = try await client.put(some, to: RemotePath(["some"]))
            #expect(entry.size == 3_000_000)
            #expect(cloud.item("some")?.head?.content.bytes == some)
            #expect(cloud.simulator.counts["PATCH data"]?.calls == 3)
        }
    }

    @Test("a save of somebody else while a large one is under way is seen before its end")
    func staleAtTheEnd() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client(partSize: 1 << 20)
            let first = try await client.put("first", to: "large")
            let observer = Remembering()
            _ = await failure {
                try await client.put(
                    Self.large,
                    to: .init(["large"]),
                    before: .file(first.revision),
                    content: BrokenContent(size: Int64(Self.large.count), good: Self.large),
                    observer: observer
                )
            }
            let session = try #require(observer.session)
            cloud.write("theirs", to: ["large"])
            #expect(
                await failure {
                    try await client.put(
                        Self.large,
                        to: .init(["large"]),
                        before: .file(first.revision),
                        session: session,
                        observer: observer
                    )
                } == .preconditionFailed
            )
            #expect(cloud.text("large") == "theirs" && observer.session == nil)
        }
    }

    // MARK: Taking back

    @Test("what was deleted is listed with its place and goes where it is told")
    func trash() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client()
            let trash = try #require(client.trash)
            #expect(try await trash.entries(below: root, page: nil).entries.isEmpty)
            cloud.write("the note", to: ["papers", "100% ü.txt"])
            cloud.write("deep", to: ["gone", "deep", "file.txt"])
            let id = try #require(cloud.item("papers/100% ü.txt")).id
            try await client.delete(.file, at: RemotePath(["papers", "100% ü.txt"]), revision: nil)
            try await client.delete(.folder, at: RemotePath(["gone"]), revision: nil)
            let all = try await trash.entries(below: root, page: nil).entries
            #expect(all.count == 2)
            let note = try #require(all.first { $0.kind == .file })
            #expect(note.path == RemotePath(["papers", "100% ü.txt"]) && note.name == "100% ü.txt")
            #expect(note.size == 8 && note.deletedTime != nil)
            cloud.write("theirs", to: ["papers", "100% ü.txt"])
            let back = Placement(folder: reference("papers"), name: "100% ü.txt")
            #expect(await failure { try await trash.restore(note, to: back) } == .nameTaken)
            #expect(try await client.text("papers/100% ü.txt") == "theirs")
            let none = Placement(folder: reference("none"), name: "x")
            #expect(await failure { try await trash.restore(note, to: none) } == .parentNotFound)
            cloud.simulator.add(FaultRule(.doneButNoAnswer, at: "MOVE trash-bin"))
            try await trash.restore(note, to: Placement(folder: root, name: "back.txt"))
            #expect(cloud.item("back.txt")?.id == id)
            let free = Placement(folder: root, name: "free.txt")
            #expect(await failure { try await trash.restore(note, to: free) } == .notFound)
            let folder = try #require(all.first { $0.kind == .folder })
            #expect(folder.path == RemotePath(["gone"]))
            try await trash.restore(
                folder,
                to: Placement(folder: reference("papers"), name: "kept")
            )
            #expect(try await client.text("papers/kept/deep/file.txt") == "deep")
            #expect(try await trash.entries(below: root, page: nil).entries.isEmpty)
        }
    }

    @Test("earlier contents are read, and come back as the newest")
    func versions() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client()
            let history = try #require(client.versions)
            var last = try await client.put(
                "first",
                to: "file",
                time: Timestamp(seconds: 1_600_000_000)
            )
            last = try await client.put("second!", to: "file", before: .file(last.revision))
            let all = try await history.versions(of: reference("file"), page: nil).versions
            #expect(all.map(\.size) == [7, 5] && all.map(\.isCurrent) == [true, false])
            #expect(all[1].modifiedTime?.seconds == 1_600_000_000)
            for (version, text) in zip(all, ["second!", "first"]) {
                let bytes = try await history.read(version, of: reference("file"))
                #expect(try await bytes.collect(atMost: 100) == Array(text.utf8))
            }
            #expect(
                await failure {
                    try await history.restore(
                        all[1],
                        of: reference("file"),
                        current: Revision("\"x\" 1 -")
                    )
                } == .preconditionFailed
            )
            try await history.restore(all[1], of: reference("file"), current: last.revision)
            #expect(try await client.text("file") == "first")
            #expect(
                try await history.versions(of: reference("file"), page: nil).versions.count == 3
            )
            _ = try await client.createFolder(at: .init(["folder"]))
            #expect(
                await failure { _ = try await history.versions(of: reference("folder"), page: nil) }
                    == .notAFile
            )
        }
    }

    @Test("versions of one second are listed by the rest of their times, the newest first")
    func versionsOfOneSecond() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client()
            // The server leaves out zeros at the end, and numbers what has one time.
            let parts: [Int32] = [
                0, 250_000_000, 250_000_000, 250_000_000, 255_000_000, 300_000_000,
            ]
            for (number, nanoseconds) in parts.enumerated() {
                cloud.write(
                    String(repeating: "x", count: number + 1),
                    to: ["file"],
                    time: Timestamp(seconds: 1_700_000_000, nanoseconds: nanoseconds)
                )
            }
            let history = try #require(client.versions)
            let all = try await history.versions(of: reference("file"), page: nil).versions
            #expect(all.map(\.size) == [6, 5, 4, 3, 2, 1])
            let bytes = try await history.read(all[2], of: reference("file"))
            #expect(try await bytes.collect(atMost: 100).count == 4)
        }
    }

    @Test("links are made, listed and taken back")
    func links() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client()
            let links = try #require(client.links)
            try await client.put("x", to: "a & ü.txt")
            _ = try await client.createFolder(at: .init(["folder"]))
            let made = try await links.share(
                LinkWish(item: reference("a & ü.txt"), isFolder: false)
            )
            #expect(!made.mayEdit && !made.hasPassword && made.expires == nil)
            #expect(try await links.links(of: reference("a & ü.txt"), page: nil).links == [made])
            let end = Timestamp(seconds: Timestamp.now.seconds + 7 * 86_400)
            var wish = LinkWish(item: reference("folder"), isFolder: true)
            (wish.mayEdit, wish.password, wish.expires) = (true, "Correct-horse1", end)
            let special = try await links.share(wish)
            #expect(special.mayEdit && special.hasPassword)
            #expect(special.expires?.seconds == end.seconds)
            let all = try await links.links(of: nil, page: nil).links
            #expect(Set(all.compactMap { $0.path?.parts.last }) == ["a & ü.txt", "folder"])
            wish.password = ""
            let refused = await #expect(throws: ProviderError.self) { try await links.share(wish) }
            #expect(refused?.detail.contains("enforced") == true)
            try await links.withdraw(made)
            try await links.withdraw(made)
            #expect(try await links.links(of: nil, page: nil).links.map(\.url) == [special.url])
        }
    }

    // MARK: Trouble on the way

    @Test("a save whose answer is lost is an unknown outcome, and never a second one")
    func lostAnswers() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client()
            let first = try await client.put("first", to: "a")
            cloud.simulator.add(FaultRule(.doneButNoAnswer, at: "PUT spaces"))
            let kind = await failure {
                try await client.put("second", to: "a", before: .file(first.revision))
            }
            guard case .outcomeUnknown = kind else {
                Issue.record("\(String(describing: kind))")
                return
            }
            #expect(cloud.item("a")?.revisions.count == 2)
            cloud.simulator.add(FaultRule(.doneButNoAnswer, at: "MOVE spaces"))
            let moved = try await client.move(.file, from: .init(["a"]), to: .init(["b"]))
            #expect(moved.size == 6)
        }
    }
}
