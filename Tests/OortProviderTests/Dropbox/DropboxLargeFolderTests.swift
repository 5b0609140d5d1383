import Foundation
import OortDropbox
import OortModel
import OortSimulators
import OortTesting
import OortTransport
import Synchronization
import Testing

/// Folders with more in them than Dropbox moves or deletes at once.
@Suite("Dropbox: folders that are too much for one request", .timeLimit(.minutes(15)))
struct DropboxLargeFolderTests {
    @Test("a folder that is refused as too much is deleted in parts")
    func deletion() async throws {
        try await withWorld { world in
            let folder = try await fill(world, ["big": 25, "kept": 2])
            allow(10, in: world)
            let before = world.simulator.calls.count
            try await world.provider.delete(Deletion(item: folder("big"), revision: nil))
            #expect(
                world.simulator.calls.dropFirst(before).map(\.route) == [
                    "files/delete_v2", "files/get_metadata", "files/list_folder",
                    "files/delete_batch", "files/delete_batch/check", "files/delete_v2",
                ]
            )
            #expect(paths(world) == ["kept", "kept/0", "kept/1"])
        }
    }

    @Test("what is in it goes page by page, until the rest can go at once")
    func pages() async throws {
        try await withWorld { world in
            let folder = try await fill(world, ["big": 4500])
            allow(600, in: world)
            try await world.provider.delete(Deletion(item: folder("big"), revision: nil))
            // 4500, 2500 and then the 500 that go at once.
            #expect(calls(world, "files/delete_v2") == 3)
            #expect(calls(world, "files/list_folder") == 2)
            #expect(calls(world, "files/list_folder/continue") == 0)
            #expect(calls(world, "files/delete_batch") == 4)
            #expect(paths(world).isEmpty)
        }
    }

    @Test("of the folders in it those are deleted in parts that are too much themselves")
    func nested() async throws {
        try await withWorld { world in
            let folder = try await fill(
                world,
                [
                    "big": 3, "big/small": 9, "big/large": 12, "big/large/larger": 30,
                    "big/other": 0, "big/other/large": 11, "next": 3,
                ]
            )
            allow(10, in: world)
            try await world.provider.delete(Deletion(item: folder("big"), revision: nil))
            #expect(paths(world) == ["next", "next/0", "next/1", "next/2"])
            // The listings of big, large, larger, other and its large.
            #expect(calls(world, "files/list_folder") == 5)
        }
    }

    @Test("among several deletions the one that is too much is deleted in parts")
    func several() async throws {
        try await withWorld { world in
            let folder = try await fill(world, ["a": 1, "b": 30, "c": 1, "kept": 1])
            allow(10, in: world)
            let results = await world.provider.delete(
                ["a", "b", "c"].map { Deletion(item: folder($0), revision: nil) }
            )
            #expect(results.count == 3)
            for result in results { try result.get() }
            #expect(paths(world) == ["kept", "kept/0"])
        }
    }

    @Test("what somebody moves out of the folder meanwhile stays where it is then")
    func movedAway() async throws {
        let between = Between()
        try await withWorld(between) { world in
            let folder = try await fill(world, ["big": 12, "big/inner": 14, "safe": 0])
            allow(10, in: world)
            between.before("files/delete_batch") { _ in
                world.somebodyElse(.move(from: ["big", "3"], to: ["safe", "3"]))
                world.somebodyElse(.move(from: ["big", "inner"], to: ["safe", "inner"]))
                return nil
            }
            try await world.provider.delete(Deletion(item: folder("big"), revision: nil))
            let inner = (0..<14).map { "safe/inner/\($0)" }
            #expect(paths(world) == (["safe", "safe/3", "safe/inner"] + inner).sorted())
        }
    }

    @Test("names that cannot stand in a path are deleted, too")
    func oddNames() async throws {
        try await withWorld { world in
            let folder = try await fill(world, ["big": 12, "big/line\nfeed": 14])
            for name in ["a\nb", "space ", "back\\slash"] {
                world.somebodyElse(
                    .write(path: ["big", name], SimulatedContent("x"), modifiedTime: nil)
                )
            }
            allow(10, in: world)
            try await world.provider.delete(Deletion(item: folder("big"), revision: nil))
            #expect(paths(world).isEmpty)
        }
    }

    @Test("a shared folder is not emptied for everybody")
    func shared() async throws {
        try await withWorld { world in
            let folder = try await fill(world, ["big": 2, "big/shared": 20, "mine": 20])
            allow(10, in: world)
            try share("big/shared", folder, in: world)
            try share("mine", folder, in: world)
            for name in ["big", "mine"] {
                let error = await error {
                    try await world.provider.delete(Deletion(item: folder(name), revision: nil))
                }
                #expect(error?.kind == .limitExceeded)
                #expect(error?.detail.contains("leave it on dropbox.com") == true)
            }
            let left = Set(paths(world))
            #expect(left.isSuperset(of: (0..<20).map { "big/shared/\($0)" }))
            #expect(left.isSuperset(of: (0..<20).map { "mine/\($0)" }))
            // One that goes at once is only no longer mounted.
            allow(100, in: world)
            try await world.provider.delete(Deletion(item: folder("big"), revision: nil))
        }
    }

    @Test("a refusal of something in it is told, and begun again the rest goes")
    func readOnly() async throws {
        let between = Between()
        try await withWorld(between) { world in
            let folder = try await fill(world, ["big": 25])
            allow(10, in: world)
            between.before("files/delete_batch") { _ in
                Self.answer(tags: ["path_write", "no_write_permission"], entries: 25)
            }
            let error = await error {
                try await world.provider.delete(Deletion(item: folder("big"), revision: nil))
            }
            #expect(error?.kind == .noPermission)
            try await world.provider.delete(Deletion(item: folder("big"), revision: nil))
            #expect(paths(world).isEmpty)
        }
    }

    @Test("a busy account is given time", arguments: [2, 1000])
    func busy(_ times: Int) async throws {
        let between = Between()
        let time = SleptTime()
        try await withWorld(between, clock: time) { world in
            let folder = try await fill(world, ["big": 25])
            allow(10, in: world)
            between.before("files/delete_batch", times: times) { _ in
                Self.answer(tags: ["too_many_write_operations"], entries: 25)
            }
            let error = await error {
                try await world.provider.delete(Deletion(item: folder("big"), revision: nil))
            }
            if times == 2 {
                #expect(error == nil)
                #expect(paths(world).isEmpty)
                #expect(time.sleeps == [.seconds(2), .seconds(4)])
            } else {
                // Some of it may have been done; the engine asks, and begins again later.
                #expect(error?.isOutcomeUnknown == true)
                #expect(calls(world, "files/list_folder") == 5)
            }
        }
    }

    @Test("a deletion that ends anywhere in its midst is gone on with")
    func lost() async throws {
        var passing = 0
        var isOver = false
        while !isOver {
            let wire = Mutex<CutWire?>(nil)
            try await Self.service().withWorld(patience: .milliseconds(100)) { client in
                let cut = CutWire(client)
                wire.withLock { $0 = cut }
                return cut
            } _: { world in
                let cut = try #require(wire.withLock { $0 })
                let folder = try await fill(
                    world,
                    ["big": 3, "big/large": 12, "big/small": 2, "kept": 1]
                )
                allow(10, in: world)
                let before = paths(world)
                cut.cut(after: passing)
                let deletion = Deletion(item: folder("big"), revision: nil)
                let error = await error { try await world.provider.delete(deletion) }
                isOver = !cut.isCut
                #expect(isOver == (error == nil), "after \(passing) requests")
                if paths(world) != before, let error {
                    #expect(error.isOutcomeUnknown, "after \(passing) requests: \(error)")
                }
                cut.mend()
                try await world.provider.delete(deletion)
                #expect(paths(world) == ["kept", "kept/0"])
            }
            passing += 1
            try #require(passing < 40, "so many requests are not worth it")
        }
        #expect(passing > 8)
    }

    @Test(
        "a folder that is too much is not moved, and its error says what to do",
        arguments: [1, 3]
    )
    func moving(_ count: Int) async throws {
        try await withWorld { world in
            let folder = try await fill(world, ["big": 12, "x": 0, "y": 0])
            allow(10, in: world)
            let before = paths(world)
            let moves = ["big", "x", "y"].prefix(count).map {
                Move(
                    item: folder($0),
                    oldParent: world.root,
                    parent: world.root,
                    name: "\($0) moved",
                    modifiedTime: Timestamp(seconds: 1_600_000_000)
                )
            }
            let results = await world.provider.move(moves)
            guard case .failure(let error) = results[0] else {
                Issue.record("moved")
                return
            }
            #expect(error.kind == .limitExceeded)
            #expect(error.detail.contains("move it back, and what is in it in parts"))
            #expect(count > 1 || paths(world) == before)
            let moved = paths(world)
            #expect(moved.contains("big/11"))
            #expect(count == 1 || moved.contains("y moved"))
            // What it holds can be moved.
            let inner = try await world.provider.children(of: folder("big"), page: nil).items
            #expect(inner.count == 12)
            let parts = await world.provider.move(
                inner.map {
                    Move(
                        item: world.reference($0),
                        oldParent: folder("big"),
                        parent: world.root,
                        name: "part \($0.fileName)",
                        modifiedTime: Timestamp(seconds: 1_600_000_000)
                    )
                }
            )
            for part in parts { _ = try part.get() }
        }
    }

    @Test("without a bound of its own a simulated Dropbox refuses from 10,001 on")
    func usualBound() async throws {
        try await withWorld { world in
            let folder = try await fill(world, ["big": 10_001])
            try await world.provider.delete(Deletion(item: folder("big"), revision: nil))
            #expect(calls(world, "files/list_folder") == 1)
            let other = try await fill(world, ["fits": 10_000])
            try await world.provider.delete(Deletion(item: other("fits"), revision: nil))
            #expect(calls(world, "files/list_folder") == 1)
            #expect(paths(world).isEmpty)
        }
    }

    // MARK: The world

    private static func service(clock: any Clock<Duration> = ContinuousClock()) -> SimulatedKind {
        SimulatedKind("dropbox", rules: .dropbox) { _ in
            DropboxSimulator(account: DropboxSimulator.emptyAccount())
        } provide: { client, simulator in
            DropboxProvider(
                client: client,
                endpoints: DropboxEndpoints(
                    api: simulator.url(host: "api.dropboxapi.com"),
                    content: simulator.url(host: "content.dropboxapi.com"),
                    notify: simulator.url(host: "notify.dropboxapi.com"),
                    web: simulator.url(host: "www.dropbox.com")
                ),
                clock: clock
            )
        }
    }

    private func withWorld(
        _ between: Between = Between(),
        clock: any Clock<Duration> = ContinuousClock(),
        _ body: (SimulatedWorld) async throws -> Void
    ) async throws {
        try await Self.service(clock: clock).withWorld(onTheWire: { between.over($0) }, body)
    }

    /// Makes folders with so many files each; gives the references to them by their paths.
    private func fill(
        _ world: SimulatedWorld,
        _ folders: [String: Int]
    ) async throws -> (String) -> ItemReference {
        let ids = world.simulator.account.withTree { tree -> [String: String] in
            var ids: [String: String] = [:]
            for (path, count) in folders {
                let parts = path.split(separator: "/").map(String.init)
                ids[path] = SimulatorEdit.makeFolder(path: parts).apply(to: &tree)
                guard let id = ids[path] else { continue }
                for number in 0..<count {
                    _ = tree.create("\(number)", in: id, content: SimulatedContent("\(number)"))
                }
            }
            return ids
        }
        return { path in
            ItemReference(
                id: ItemID(ids[path] ?? ""),
                path: RemotePath(path.split(separator: "/").map(String.init))
            )
        }
    }

    private func allow(_ items: Int, in world: SimulatedWorld) {
        world.simulator.account.withTree { $0.conditions.itemsAtOnce = items }
    }

    private func share(
        _ path: String,
        _ folder: (String) -> ItemReference,
        in world: SimulatedWorld
    ) throws {
        let id = folder(path).id.rawValue
        world.simulator.account.withTree { _ = $0.conditions.sharedFolders.insert(id) }
    }

    private func paths(_ world: SimulatedWorld) -> [String] {
        world.simulator.account.withTree { tree in
            tree.descendants(of: tree.rootID)
                .compactMap { tree.path(of: $0.id)?.joined(separator: "/") }.sorted()
        }
    }

    private func calls(_ world: SimulatedWorld, _ route: String) -> Int {
        world.simulator.calls.count { $0.route == route }
    }

    private func error(_ body: () async throws -> Void) async -> ProviderError? {
        do {
            try await body()
            return nil
        } catch let error as ProviderError {
            return error
        } catch {
            Issue.record("another error: \(error)")
            return nil
        }
    }

    /// A batch of which every entry failed.
    private static func answer(tags: [String], entries: Int) -> String {
        let failure = tags.reversed().reduce("") { inner, tag in
            inner.isEmpty ? #"{".tag":"\#(tag)"}"# : #"{".tag":"\#(tag)","\#(tag)":\#(inner)}"#
        }
        let entry = #"{".tag":"failure","failure":\#(failure)}"#
        let all = Array(repeating: entry, count: entries).joined(separator: ",")
        return #"{".tag":"complete","entries":[\#(all)]}"#
    }
}

/// Does something just before requests of a route are sent, or answers in the service's place.
private final class Between: Sendable {
    typealias Action = @Sendable (HTTPRequest) -> String?

    private let rule = Mutex<(route: String, left: Int, action: Action)?>(nil)

    func before(_ route: String, times: Int = 1, _ action: @escaping Action) {
        rule.withLock { $0 = (route, times, action) }
    }

    func over(_ wire: any HTTPClient) -> any HTTPClient { Client(wire: wire, between: self) }

    private struct Client: HTTPClient {
        let wire: any HTTPClient
        let between: Between

        func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPStreamedResponse {
            let action = between.rule.withLock { rule -> Action? in
                guard let found = rule, found.left > 0, request.url.hasSuffix("/" + found.route)
                else { return nil }
                rule?.left -= 1
                return found.action
            }
            guard let text = action?(request) else { return try await wire.stream(request) }
            let head = HTTPResponseHead(status: 200, headers: [], httpVersion: "1.1")
            return HTTPStreamedResponse(HTTPResponse(head: head, body: Array(text.utf8)))
        }
    }
}
