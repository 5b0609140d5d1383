import Foundation
import OortModel
import OortPlaces
import OortTesting
import Testing

/// What must never be taken for gone, and what must never go unseen.
@Suite("what a map of places believes", .timeLimit(.minutes(15)))
struct PlaceRuleTests {
    private static let kinds = RandomPlacesTests.Kind.allCases

    private func with(
        _ client: MemoryPlaces,
        _ body: (PlacesWorld) async throws -> Void
    ) async throws {
        let world = try PlacesWorld(client)
        defer { world.end() }
        try await body(world)
    }

    @Test(
        "a server whose disk is not there for a while loses nothing, ids included",
        arguments: kinds
    )
    func unmounted(kind: RandomPlacesTests.Kind) async throws {
        try await with(kind.client) { world in
            for name in ["a", "b", "c"] { world.client.write("/folder/\(name)", name) }
            await world.readFeed()
            let before = world.paths.mapValues(\.id)
            #expect(before.count == 4)
            world.client.setDown(true)
            await world.readFeed()
            #expect(world.paths.mapValues(\.id) == before)
            world.client.setDown(false)
            for _ in 0..<3 { await world.readFeed() }
            #expect(world.paths.mapValues(\.id) == before)
        }
    }

    @Test(
        "a folder that a program looks into while everything is listed is listed once",
        arguments: [RandomPlacesTests.Kind.sftp, .webDAV]
    )
    func looksBeside(kind: RandomPlacesTests.Kind) async throws {
        try await with(kind.client) { world in
            let count = 4 * world.client.traits.listingsPerPage
            for number in 0..<count { world.client.write("/folder\(number)/deep/file", "1") }
            var (folders, cursor): ([ItemID], Cursor?) = ([], nil)
            func readPage() async throws -> Bool {
                let page = try await world.provider.changes(since: cursor)
                cursor = page.cursor
                for case .changed(let item) in page.changes where item.kind == .folder {
                    folders.append(item.id)
                }
                return page.hasMore
            }
            // Until the account's own folder is listed, and nothing below it.
            while folders.isEmpty { _ = try await readPage() }
            #expect(folders.count == count)
            for id in folders {
                let look = ItemReference(id: id, path: .root)
                #expect(try await world.provider.children(of: look, page: nil).items.count == 1)
            }
            while try await readPage() {}
            #expect(Set(folders).count == 2 * count)
            #expect(world.client.calls["listing"] == 1 + 2 * count)
        }
    }

    @Test(
        "a smaller disk below the account's folder that is away for one look loses nothing",
        arguments: kinds
    )
    func unmountedBelow(kind: RandomPlacesTests.Kind) async throws {
        try await with(kind.client) { world in
            for name in ["a", "b", "c"] {
                world.client.write("/disk/deep/\(name)", name)
                world.client.write("/other/\(name)", name)
            }
            for _ in 0..<3 { await world.readFeed() }
            let before = world.paths.mapValues(\.id)
            #expect(before.count == 9)
            let disk = world.client.contents.filter { $0.key.hasPrefix("/disk/deep/") }
            world.client.remove("/disk/deep")
            // Beside it something is deleted by somebody: nothing holds that up.
            world.client.remove("/other/a")
            await world.readFeed()
            #expect(world.paths["/other/a"] == nil || kind == .s3)
            let left = before.filter { $0.key != "/other/a" }
            #expect(left.keys.allSatisfy { world.paths[$0]?.id == left[$0] })
            for (path, text) in disk where !path.hasSuffix("/") { world.client.write(path, text) }
            for _ in 0..<6 { await world.readFeed() }
            #expect(world.paths.mapValues(\.id) == left)
            // What does not come back goes.
            world.client.remove("/disk/deep")
            for _ in 0..<6 { await world.readFeed() }
            #expect(Set(world.paths.keys) == Set(world.client.contents.keys))
        }
    }

    @Test("what is not where it was is looked for before it is gone", arguments: kinds)
    func moved(kind: RandomPlacesTests.Kind) async throws {
        try await with(kind.client) { world in
            world.client.write("/one/file", "content")
            world.client.makeFolder("/two")
            await world.readFeed()
            let id = try #require(world.paths["/one/file"]?.id)
            world.client.move("/one/file", to: "/two/file")
            await #expect(throws: ProviderError.self) {
                try await world.provider.item(ItemReference(id: id, path: .root))
            }
            for _ in 0..<6 { await world.readFeed() }
            #expect(world.paths["/one/file"] == nil)
            let found = try #require(world.paths["/two/file"])
            // Where entries have a key, it is the same item still.
            #expect((found.id == id) == (kind == .nextcloud))
        }
    }

    @Test("what we move is a file by now, and nothing lies in it any more", arguments: kinds)
    func movedAnother(kind: RandomPlacesTests.Kind) async throws {
        try await with(kind.client) { world in
            world.client.write("/one/deep/file", "content")
            world.client.makeFolder("/two")
            await world.readFeed()
            let folder = try #require(world.paths["/one/"])
            let two = try #require(world.paths["/two/"])
            world.client.remove("/one")
            world.client.write("/one", "theirs")
            let move = Move(
                item: Self.reference(folder),
                oldParent: Self.root,
                parent: Self.reference(two),
                name: "one",
                modifiedTime: nil
            )
            do {
                // A service that moves files only made the folder anew, and is right about it.
                _ = try await world.provider.move(move)
                #expect(!world.client.traits.movesFolders)
            } catch let error as ProviderError { #expect(error.kind == .notFound, "\(error)") }
            for _ in 0..<6 { await world.readFeed() }
            #expect(Set(world.paths.keys) == Set(world.client.contents.keys))
            let file = try #require(world.paths.values.first { $0.kind == .file })
            #expect(file.id != folder.id)
        }
    }

    @Test("the only file of a folder is at one place at any time while somebody moves it")
    func movedAlone() async throws {
        try await with(RandomPlacesTests.Kind.nextcloud.client) { world in
            world.client.write("/one/file", "content")
            world.client.makeFolder("/two")
            await world.readFeed()
            let id = try #require(world.paths["/one/file"]?.id)
            // Whichever of the two folders is listed first.
            for (old, new) in [("/one/file", "/two/file"), ("/two/file", "/one/file")] {
                world.client.move(old, to: new)
                await world.readFeed()
                #expect(world.paths[old] == nil)
                #expect(world.paths[new]?.id == id)
            }
        }
    }

    @Test(
        "a folder that goes does not take with it what the feed has not shown, however deep",
        arguments: PlaceTraits.Scan.allCases,
        [false, true]
    )
    func unseen(scan: PlaceTraits.Scan, trashes: Bool) async throws {
        let client = MemoryPlaces(scan, hasKeys: scan == .subtreeStamps, deletesToTrash: trashes)
        try await with(client) { world in
            world.client.write("/folder/known", "known")
            world.client.write("/folder/deep/down/known", "known")
            world.client.write("/folder/other/known", "known")
            for _ in 0..<4 { await world.readFeed() }
            let folder = try #require(world.paths["/folder/"])
            world.client.forgetCalls()
            world.client.write("/folder/deep/down/new", "nobody here has seen it")
            await #expect(throws: ProviderError.self) {
                try await world.provider.delete(Deletion(item: Self.reference(folder)))
            }
            // Where one look at a stamp shows what is new, and a trash keeps what is never shown, the rest is
            // not listed.
            let trustsStamps = scan == .subtreeStamps && trashes
            if trustsStamps { #expect(world.client.calls["listing"] == 3) }
            for _ in 0..<4 { await world.readFeed() }
            #expect(world.paths["/folder/deep/down/new"] != nil)
            world.client.forgetCalls()
            try await world.provider.delete(Deletion(item: Self.reference(folder)))
            if trustsStamps { #expect(world.client.calls["listing"] == nil) }
            #expect(world.client.contents.isEmpty)
        }
    }

    @Test(
        "what cannot be shown goes with its folder only where a trash keeps it",
        arguments: [true, false]
    )
    func unnamed(trashes: Bool) async throws {
        let client = MemoryPlaces(.folderStamps, hasKeys: false, deletesToTrash: trashes)
        try await with(client) { world in
            world.client.write("/folder/deep/known", "known")
            world.client.write("/folder/deep/..", "of a name that nobody can ask for")
            for _ in 0..<4 { await world.readFeed() }
            let folder = try #require(world.paths["/folder/"])
            let deletion = Deletion(item: Self.reference(folder))
            if trashes {
                try await world.provider.delete(deletion)
                #expect(world.client.contents.isEmpty)
            } else {
                for _ in 0..<2 {
                    let error = await #expect(throws: ProviderError.self) {
                        try await world.provider.delete(deletion)
                    }
                    #expect(error?.kind == .noPermission)
                }
                let names = ["known", ".."]
                #expect(names.allSatisfy { world.client.contents["/folder/deep/\($0)"] != nil })
            }
        }
    }

    @Test("a folder that goes does not take with it what is known and not stored yet")
    func unstored() async throws {
        try await with(MemoryPlaces(.folderStamps)) { world in
            world.client.write("/folder/known", "known")
            await world.readFeed()
            let folder = try #require(world.paths["/folder/"])
            let deletion = Deletion(item: ItemReference(id: folder.id, path: .root))
            world.client.write("/folder/new", "nobody here has seen it")
            // Not even where the map knows it already.
            for _ in 0..<2 {
                await #expect(throws: ProviderError.self) {
                    try await world.provider.delete(deletion)
                }
            }
            // Nor where the feed reported it, and its reader has not stored that yet.
            var place = try #require(world.replica.cursor)
            _ = try await world.provider.waitForChanges(since: place, atMost: .zero)
            var names: [String] = []
            var hasMore = true
            while hasMore {
                let page = try await world.provider.changes(since: place)
                for case .changed(let item) in page.changes { names.append(item.fileName) }
                (place, hasMore) = (page.cursor, page.hasMore)
            }
            #expect(names.contains("new"))
            await #expect(throws: ProviderError.self) {
                try await world.provider.delete(deletion)
            }
            #expect(world.client.contents["/folder/new"] != nil)
            await world.readFeed()
            #expect(world.paths["/folder/new"] != nil)
            try await world.provider.delete(deletion)
            #expect(world.client.contents["/folder/known"] == nil)
        }
    }

    @Test(
        "a folder that is moved piece by piece takes along what comes meanwhile, over what is there"
    )
    func carried() async throws {
        try await with(RandomPlacesTests.Kind.s3.client) { world in
            for number in 0..<5 { world.client.write("/old/in/\(number)", "\(number)") }
            for _ in 0..<4 { await world.readFeed() }
            let folder = try #require(world.paths["/old/"])
            let root = ItemReference(id: ItemID("root"), path: .root)
            let move = Move(
                item: ItemReference(id: folder.id, path: .root),
                oldParent: root,
                parent: root,
                name: "new",
                modifiedTime: nil
            )
            // The first answers get lost; somebody else is at both places.
            world.client.fail(oneIn: 3, seed: 11)
            var tries = 0
            while tries < 200 {
                tries += 1
                world.client.write("/old/in/late \(tries)", "late")
                world.client.write("/new/in/3", "somebody else's")
                let isDone = try? await world.provider.move(move)
                if isDone != nil { break }
                if tries == 20 { world.client.fail(oneIn: 0, seed: 11) }
            }
            world.client.fail(oneIn: 0, seed: 11)
            for _ in 0..<20 { await world.readFeed() }
            let there = world.client.contents
            for number in 0..<5 {
                #expect(there.values.contains("\(number)"), "\(number): \(there)")
            }
            #expect(there.values.filter { $0 == "late" }.count == tries, "\(there)")
            #expect(Set(world.paths.keys) == Set(there.keys))
        }
    }

    @Test(
        "a move piece by piece ends where somebody puts a file in place of either folder",
        arguments: ["/old", "/new"],
        [false, true]
    )
    func carriedAway(place: String, isReplaced: Bool) async throws {
        try await with(RandomPlacesTests.Kind.s3.client) { world in
            world.client.write("/old/file", "text")
            for _ in 0..<4 { await world.readFeed() }
            let folder = try #require(world.paths["/old/"])
            let move = Move(
                item: Self.reference(folder),
                oldParent: Self.root,
                parent: Self.root,
                name: "new",
                modifiedTime: nil
            )
            world.client.holdUp("move")
            let provider = world.provider
            async let moving = provider.move(move)
            while world.client.waitingCalls == 0 { await Task.yield() }
            world.client.remove(place)
            if isReplaced { world.client.write(place, "somebody's") }
            world.client.letGo()
            let moved = try? await moving
            // A folder is made anew where something is put into it.
            #expect((moved == nil) == (place == "/new" && isReplaced))
            // Nothing is under way any more: the feed reports what is there.
            for _ in 0..<8 { await world.readFeed() }
            #expect(Set(world.paths.keys) == Set(world.client.contents.keys))
            #expect(world.client.contents[place] == (isReplaced ? "somebody's" : nil))
        }
    }

    @Test("a folder goes piece by piece, over interruptions, with nothing that nobody saw")
    func deletedByPieces() async throws {
        try await with(RandomPlacesTests.Kind.disks.client) { world in
            for number in 0..<5 {
                world.client.write("/folder/\(number)", "\(number)")
                world.client.write("/folder/in/\(number)", "\(number)")
            }
            for _ in 0..<4 { await world.readFeed() }
            let folder = try #require(world.paths["/folder/"])
            let deletion = Deletion(item: ItemReference(id: folder.id, path: .root))
            // The first answers get lost.
            world.client.fail(oneIn: 3, seed: 12)
            var failures = 0
            while failures < 200 {
                do { try await world.provider.delete(deletion) } catch {
                    failures += 1
                    if failures == 3 { world.client.write("/folder/in/late", "late") }
                    // Until the feed has reported it, it keeps what lies above it.
                    if failures == 20 {
                        #expect(world.client.contents["/folder/in/late"] == "late")
                        world.client.fail(oneIn: 0, seed: 12)
                        for _ in 0..<4 { await world.readFeed() }
                        #expect(world.paths["/folder/in/late"] != nil)
                    }
                    continue
                }
                break
            }
            #expect(failures >= 20)
            for _ in 0..<4 { await world.readFeed() }
            #expect(world.client.contents.isEmpty)
            #expect(world.paths.isEmpty, "\(world.paths.keys)")
        }
    }

    // MARK: Hashes that the service does not tell

    /// A world with `/a`, of which only the upload said what it holds.
    private func withUploaded(
        _ kind: RandomPlacesTests.Kind,
        _ body: (PlacesWorld, Item) async throws -> Void
    ) async throws {
        try await with(kind.client) { world in
            await world.readFeed()
            let target = UploadTarget.create(parent: Self.root, name: "a", reservedID: nil)
            try await PlacesWorld.Act.send("ours", to: target, world.provider)
            for _ in 0..<3 { await world.readFeed() }
            let item = try #require(world.paths["/a"])
            #expect(item.contentHash != nil)
            try await body(world, item)
        }
    }

    private static let root = ItemReference(id: ItemID("root"), path: .root)

    private static func reference(_ item: Item) -> ItemReference {
        ItemReference(id: item.id, path: .root)
    }

    @Test("a copy has the hash of an original that stayed the same", arguments: kinds)
    func copied(kind: RandomPlacesTests.Kind) async throws {
        try await withUploaded(kind) { world, item in
            let copy = Copy(item: Self.reference(item), parent: Self.root, name: "b")
            let copied = try await world.provider.copy(copy)
            #expect(copied.contentHash == item.contentHash)
        }
    }

    @Test("what somebody rewrote before it was looked at is not copied", arguments: kinds)
    func rewrittenBefore(kind: RandomPlacesTests.Kind) async throws {
        try await withUploaded(kind) { world, item in
            world.client.write("/a", "them")
            let copy = Copy(item: Self.reference(item), parent: Self.root, name: "b")
            let error = await #expect(throws: ProviderError.self) {
                try await world.provider.copy(copy)
            }
            #expect(error?.kind == .preconditionFailed)
            #expect(world.client.contents["/b"] == nil)
        }
    }

    @Test("what somebody rewrites while it is copied gives the copy no hash", arguments: kinds)
    func rewrittenMeanwhile(kind: RandomPlacesTests.Kind) async throws {
        try await withUploaded(kind) { world, item in
            world.client.holdUp("copy")
            let provider = world.provider
            async let copying = provider.copy(
                Copy(item: Self.reference(item), parent: Self.root, name: "b")
            )
            while world.client.waitingCalls == 0 { await Task.yield() }
            world.client.write("/a", "them")
            world.client.letGo()
            let copied = try await copying
            #expect(copied.contentHash == nil)
        }
    }

    @Test("contents of one size that a program gives one time, one after the other, are told apart")
    func sameTimes() async throws {
        let client = MemoryPlaces(.folderStamps, hasRevisionsOfTimes: true)
        try await with(client) { world in
            await world.readFeed()
            func send(_ text: String, over old: Item?) async throws -> Item {
                let target: UploadTarget =
                    if let old {
                        .replace(Self.reference(old), revision: old.rev)
                    } else { .create(parent: Self.root, name: "a", reservedID: nil) }
                // All with one time.
                try await PlacesWorld.Act.send(text, to: target, world.provider)
                await world.readFeed()
                return try #require(world.paths["/a"])
            }
            var item = try await send("text 0", over: nil)
            var revisions = [item.rev]
            for number in 1..<10 {
                item = try await send("text \(number)", over: item)
                revisions.append(item.rev)
            }
            #expect(Set(revisions).count == 10)
            #expect(client.contents == ["/a": "text 9"])
            // Nor does a program that sets the old time afterwards give one of the former revisions.
            let change = AttributeChange(modifiedTime: Timestamp(seconds: 1_600_000_000))
            for _ in 0..<2 {
                item = try await world.provider.setAttributes(of: Self.reference(item), to: change)
                #expect(!revisions.dropLast().contains(item.rev))
            }
            // Somebody's content in between is no exception.
            client.write("/a", "theirs")
            await world.readFeed()
            for text in ["text a", "text b"] {
                item = try await send(text, over: world.paths["/a"])
                #expect(!revisions.contains(item.rev))
                revisions.append(item.rev)
            }
        }
    }

    @Test("a size and second that come back with another content are another revision")
    func timeThatComesBack() async throws {
        let client = MemoryPlaces(.folderStamps, hasRevisionsOfTimes: true)
        try await with(client) { world in
            func theirs(_ text: String, at second: Int64) async throws -> Item {
                client.write("/a", text, at: Timestamp(seconds: second))
                await world.readFeed()
                return try #require(world.paths["/a"])
            }
            func ours(_ text: String, over old: Item) async -> ProviderError.Kind? {
                let target = UploadTarget.replace(Self.reference(old), revision: old.rev)
                do throws(ProviderError) {
                    try await PlacesWorld.Act.send(text, to: target, world.provider)
                    return nil
                } catch { return error.kind }
            }
            func read(_ item: Item) async throws -> String {
                let stream = try await world.provider.read(
                    Self.reference(item),
                    revision: item.rev,
                    range: 0..<6
                )
                return String(decoding: try await stream.collect(atMost: 100), as: UTF8.self)
            }
            let first = try await theirs("text 1", at: 1_600_000_000)
            let second = try await theirs("text 2", at: 1_600_000_001)
            let third = try await theirs("text 3", at: 1_600_000_000)
            #expect(Set([first.rev, second.rev, third.rev]).count == 3)
            #expect(try await read(third) == "text 3")
            // Whoever knows the first of them has not seen the third.
            for old in [first, second] {
                #expect(await ours("ours 1", over: old) == .preconditionFailed)
                let error = await #expect(throws: ProviderError.self) { try await read(old) }
                #expect(error?.kind == .preconditionFailed)
                let deletion = Deletion(item: Self.reference(old), revision: old.rev)
                let refusal = await #expect(throws: ProviderError.self) {
                    try await world.provider.delete(deletion)
                }
                #expect(refusal?.kind == .preconditionFailed)
            }
            #expect(client.contents == ["/a": "text 3"])
            // A restart changes nothing about it, and what has seen the third goes over it.
            try world.restart()
            #expect(try await read(third) == "text 3")
            #expect(await ours("ours 2", over: third) == nil)
            #expect(client.contents == ["/a": "ours 2"])
            await world.readFeed()
            let fourth = try await theirs("text 4", at: 1_600_000_000)
            #expect(fourth.rev != third.rev && fourth.rev != first.rev)
            #expect(await ours("ours 3", over: third) == .preconditionFailed)
            try await world.provider.delete(
                Deletion(item: Self.reference(fourth), revision: fourth.rev)
            )
            #expect(client.contents.isEmpty)
        }
    }

    @Test("a time is not set on content that somebody rewrote", arguments: kinds)
    func rewrittenBeforeTouch(kind: RandomPlacesTests.Kind) async throws {
        try await withUploaded(kind) { world, item in
            world.client.write("/a", "them")
            let change = AttributeChange(modifiedTime: Timestamp(seconds: 1_600_000_000))
            let error = await #expect(throws: ProviderError.self) {
                try await world.provider.setAttributes(of: Self.reference(item), to: change)
            }
            #expect(error?.kind == .preconditionFailed)
        }
    }

    @Test("nor on what somebody rewrote before our move met it", arguments: kinds)
    func rewrittenBeforeMove(kind: RandomPlacesTests.Kind) async throws {
        try await withUploaded(kind) { world, item in
            world.client.write("/a", "them")
            let move = Move(
                item: Self.reference(item),
                oldParent: Self.root,
                parent: Self.root,
                name: "b",
                modifiedTime: nil
            )
            let moved = try await world.provider.move(move)
            #expect(moved.rev != item.rev)
            var change = AttributeChange(modifiedTime: Timestamp(seconds: 1_600_000_000))
            change.revision = item.rev
            let error = await #expect(throws: ProviderError.self) {
                try await world.provider.setAttributes(of: Self.reference(item), to: change)
            }
            #expect(error?.kind == .preconditionFailed)
            change.revision = moved.rev
            _ = try await world.provider.setAttributes(of: Self.reference(item), to: change)
            #expect(world.client.contents == ["/b": "them"])
        }
    }

    @Test("nor on what somebody rewrites after the look", arguments: kinds)
    func rewrittenWhileTouched(kind: RandomPlacesTests.Kind) async throws {
        try await withUploaded(kind) { world, item in
            let client = world.client
            client.before("setModifiedTime") { client.write("/a", "them") }
            let change = AttributeChange(modifiedTime: Timestamp(seconds: 1_600_000_000))
            let error = await #expect(throws: ProviderError.self) {
                try await world.provider.setAttributes(of: Self.reference(item), to: change)
            }
            #expect(error?.kind == .preconditionFailed)
            await world.readFeed()
            #expect(world.paths["/a"]?.rev != item.rev)
        }
    }
}
