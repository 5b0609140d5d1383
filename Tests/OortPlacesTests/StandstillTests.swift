import OortModel
import OortPlaces
import OortTesting
import Testing

/// What a service refuses of one folder, one file or one list for ever, and all else goes on.
@Suite("what is refused for good holds up nothing else", .timeLimit(.minutes(5)))
struct StandstillTests: Sendable {
    private static let root = ItemReference(id: ItemID("root"), path: .root)
    private static let unknown = ProviderError.Kind.outcomeUnknown(retryAfter: nil)

    private func with(
        _ kind: RandomPlacesTests.Kind,
        _ body: (PlacesWorld) async throws -> Void
    ) async throws {
        let world = try PlacesWorld(kind.client)
        defer { world.end() }
        try await body(world)
    }

    private func reference(_ path: String, in world: PlacesWorld) throws -> ItemReference {
        ItemReference(id: try #require(world.paths[path]?.id, "\(path)"), path: .root)
    }

    @Test(
        "a folder that cannot be listed keeps what is known of it, and others' news come",
        arguments: [RandomPlacesTests.Kind.sftp, .webDAV, .nextcloud]
    )
    func folderThatCannotBeListed(kind: RandomPlacesTests.Kind) async throws {
        try await with(kind) { world in
            let client = world.client
            client.write("/good/file", "1")
            client.write("/bad/file", "1")
            for _ in 0..<3 { await world.readFeed() }
            client.answer("listing", at: "/bad", with: Self.unknown)
            client.write("/good/new", "2")
            client.write("/bad/new", "2")
            for _ in 0..<12 { await world.readFeed() }
            #expect(world.hasRead)
            #expect(world.paths["/good/new"] != nil)
            #expect(world.paths["/bad/file"] != nil)
            client.answer("listing", at: "/bad", with: nil)
            for _ in 0..<3 { await world.readFeed() }
            #expect(world.paths["/bad/new"] != nil)
        }
    }

    @Test(
        "a folder whose listing is refused may not be read, until it can be listed again",
        arguments: [RandomPlacesTests.Kind.sftp, .webDAV, .nextcloud],
        [ProviderError.Kind.noPermission, unknown]
    )
    func closedFolder(kind: RandomPlacesTests.Kind, refusal: ProviderError.Kind) async throws {
        try await with(kind) { world in
            let client = world.client
            client.write("/bad/file", "1")
            client.answer("listing", at: "/bad", with: refusal)
            for _ in 0..<12 where !world.hasRead { await world.readFeed() }
            #expect(world.paths["/bad/"]?.permissions == [.write, .delete, .share])
            try world.restart()
            await world.readFeed()
            #expect(world.paths["/bad/"]?.permissions.contains(.read) == false)
            let bad = try reference("/bad/", in: world)
            client.answer("listing", at: "/bad", with: nil)
            // A program looks: the server's answer to anything else does not show that it may be listed.
            let children = try await world.provider.children(of: bad, page: nil)
            #expect(children.items.map(\.fileName) == ["file"])
            for _ in 0..<3 { await world.readFeed() }
            #expect(world.paths["/bad/"]?.permissions == .all)
            #expect(world.paths["/bad/file"] != nil)
        }
    }

    @Test(
        "the first look at an account ends without a folder that cannot be listed",
        arguments: [RandomPlacesTests.Kind.sftp, .webDAV, .nextcloud]
    )
    func firstLook(kind: RandomPlacesTests.Kind) async throws {
        try await with(kind) { world in
            let client = world.client
            client.write("/good/file", "1")
            client.write("/bad/file", "1")
            client.answer("listing", at: "/bad", with: Self.unknown)
            for _ in 0..<12 where !world.hasRead { await world.readFeed() }
            #expect(Set(world.paths.keys) == ["/good/", "/good/file", "/bad/"])
            client.answer("listing", at: "/bad", with: nil)
            for _ in 0..<3 { await world.readFeed() }
            #expect(world.paths["/bad/file"] != nil)
        }
    }

    @Test(
        "a folder at which the line breaks each time keeps no other one waiting",
        arguments: [RandomPlacesTests.Kind.sftp, .webDAV, .nextcloud]
    )
    func folderThatBreaksTheLine(kind: RandomPlacesTests.Kind) async throws {
        try await with(kind) { world in
            let client = world.client
            // More than two pages of listings.
            let good = (0..<3 * client.traits.listingsPerPage).map { "/good\($0)/file" }
            for path in good { client.write(path, "1") }
            client.write("/bad/file", "1")
            client.answer("listing", at: "/bad", with: .offline)
            for _ in 0..<12 { await world.readFeed() }
            #expect(!world.hasRead)
            client.answer("listing", at: "/bad", with: nil)
            client.forgetCalls()
            await world.readFeed()
            #expect(world.hasRead)
            // All the others had been listed while it failed.
            #expect(client.calls["listing", default: 0] <= 2)
            #expect(Set(world.paths.keys) == Set(client.contents.keys))
        }
    }

    @Test("a server that lists nothing is waited for", arguments: [RandomPlacesTests.Kind.webDAV])
    func serverThatListsNothing(kind: RandomPlacesTests.Kind) async throws {
        try await with(kind) { world in
            let client = world.client
            for name in ["/a/file", "/b/file"] { client.write(name, "1") }
            for name in ["", "/a", "/b"] { client.answer("listing", at: name, with: Self.unknown) }
            for _ in 0..<20 { await world.readFeed() }
            #expect(!world.hasRead)
            for name in ["", "/a", "/b"] { client.answer("listing", at: name, with: nil) }
            await world.readFeed()
            #expect(Set(world.paths.keys) == Set(client.contents.keys))
        }
    }

    @Test(
        "a folder that is moved piece by piece leaves behind what cannot be moved",
        arguments: [RandomPlacesTests.Kind.s3, .disks]
    )
    func pieceThatCannotBeMoved(kind: RandomPlacesTests.Kind) async throws {
        try await with(kind) { world in
            let client = world.client
            for name in ["a", "frozen", "in/b", "in/frozen"] { client.write("/old/\(name)", name) }
            client.makeFolder("/other")
            for _ in 0..<3 { await world.readFeed() }
            for name in ["/old/frozen", "/old/in/frozen"] {
                client.answer("move", at: name, with: .contentBlocked)
            }
            let (item, other) = (
                try reference("/old/", in: world), try reference("/other/", in: world)
            )
            let time = Timestamp?.none
            _ = try await world.provider.move(
                Move(
                    item: item,
                    oldParent: Self.root,
                    parent: other,
                    name: "new",
                    modifiedTime: time
                )
            )
            let there = client.contents
            #expect(there["/other/new/a"] == "a")
            #expect(there["/other/new/in/b"] == "in/b")
            #expect(there["/old/frozen"] == "frozen")
            #expect(there["/old/in/frozen"] == "in/frozen")
            for _ in 0..<20 { await world.readFeed() }
            #expect(Set(world.paths.keys) == Set(there.keys))
            // Both folders are to be worked in.
            let target = UploadTarget.create(
                parent: try reference("/old/in/", in: world),
                name: "more",
                reservedID: nil
            )
            try await PlacesWorld.Act.send("ours", to: target, world.provider)
            #expect(client.contents["/old/in/more"] == "ours")
        }
    }

    @Test("a list of everything of which the store forgot the pages begins anew")
    func forgottenPages() async throws {
        try await with(.s3) { world in
            let client = world.client
            for number in 0..<10 { client.write("/file \(number)", "1") }
            // Before the second page.
            client.before("snapshot") { client.before("snapshot") { client.forgetLists() } }
            await world.readFeed()
            #expect(!world.hasRead)
            await world.readFeed()
            #expect(world.hasRead)
            #expect(world.paths.count == 10)
        }
    }

    @Test("a folder that is renamed while everything is being listed keeps what lies in it")
    func renamedBetweenPages() async throws {
        try await with(.s3) { world in
            let client = world.client
            for number in 0..<5 { client.write("/x/\(number)", "1") }
            for number in 0..<5 { client.write("/z/\(number)", "1") }
            for _ in 0..<3 { await world.readFeed() }
            let before = Set(world.paths.filter { $0.key.hasPrefix("/x/") }.map(\.value.id))
            let (item, provider) = (try reference("/x/", in: world), world.provider)
            let (root, time) = (Self.root, Timestamp?.none)
            let move = Move(
                item: item,
                oldParent: root,
                parent: root,
                name: "y",
                modifiedTime: time
            )
            // Before the second page, where the first has named a part of the folder.
            client.before("snapshot") {
                client.before("snapshot") { _ = try? await provider.move(move) }
            }
            for _ in 0..<3 { await world.readFeed() }
            let after = Set(world.paths.filter { $0.key.hasPrefix("/y/") }.map(\.value.id))
            #expect(after == before)
            #expect(Set(world.paths.keys) == Set(client.contents.keys))
        }
    }
}
