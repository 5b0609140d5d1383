import OortModel
import OortPlaces
import OortTesting
import Testing

/// Two operations of ours at once, one of which changes the path of what the other is about.
@Suite("operations on a service of places at the same time", .timeLimit(.minutes(15)))
struct TwoAtOnceTests: Sendable {
    private static let kinds = RandomPlacesTests.Kind.allCases

    /// An account with `/old/in/file` and `/other/`, of which the feed spoke.
    private func with(
        _ kind: RandomPlacesTests.Kind,
        _ body: (PlacesWorld) async throws -> Void
    ) async throws {
        let world = try PlacesWorld(kind.client)
        defer { world.end() }
        world.client.write("/old/in/file", "content")
        world.client.makeFolder("/other")
        for _ in 0..<3 { await world.readFeed() }
        try await body(world)
        // What the map believes is what there is, without another look.
        let there = world.client.contents
        for _ in 0..<20 { await world.readFeed() }
        #expect(Set(world.paths.keys) == Set(there.keys))
    }

    private static let root = ItemReference(id: ItemID("root"), path: .root)

    private func reference(_ path: String, in world: PlacesWorld) throws -> ItemReference {
        ItemReference(id: try #require(world.paths[path]?.id, "\(path)"), path: .root)
    }

    private func rename(
        _ folder: ItemReference,
        to name: String,
        at provider: PlaceProvider
    ) async throws {
        let (root, none) = (Self.root, Timestamp?.none)
        _ = try await provider.move(
            Move(item: folder, oldParent: root, parent: root, name: name, modifiedTime: none)
        )
    }

    /// What is done below a folder.
    enum Deed: String, CaseIterable, Sendable {
        case create, replace, remove, makeFolder, copy, setTime, moveOut

        /// The call that carries it out.
        var call: String {
            switch self {
            case .create, .replace: "upload"
            case .remove: "delete"
            case .makeFolder: "createFolder"
            case .copy: "copy"
            case .setTime: "setModifiedTime"
            case .moveOut: "move"
            }
        }

        var outcome: [String: String] {
            let file = "/new/in/file"
            var all = ["/new/": "", "/new/in/": "", "/other/": "", file: "content"]
            switch self {
            case .create: all["/new/in/more"] = "ours"
            case .replace: all[file] = "ours"
            case .remove: all[file] = nil
            case .makeFolder: all["/new/in/more/"] = ""
            case .copy: all["/new/in/more"] = "content"
            case .setTime: break
            case .moveOut: (all[file], all["/other/file"]) = (nil, "content")
            }
            return all
        }

        func perform(
            on file: ItemReference,
            in folder: ItemReference,
            revision: Revision?,
            other: ItemReference,
            at provider: PlaceProvider
        ) async throws {
            switch self {
            case .create:
                let target = UploadTarget.create(parent: folder, name: "more", reservedID: nil)
                try await PlacesWorld.Act.send("ours", to: target, provider)
            case .replace:
                try await PlacesWorld.Act.send(
                    "ours",
                    to: .replace(file, revision: revision),
                    provider
                )
            case .remove: try await provider.delete(Deletion(item: file, revision: revision))
            case .makeFolder:
                _ = try await provider.createFolder(NewFolder(parent: folder, name: "more"))
            case .copy:
                _ = try await provider.copy(Copy(item: file, parent: folder, name: "more"))
            case .setTime:
                let change = AttributeChange(modifiedTime: Timestamp(seconds: 1_600_000_000))
                _ = try await provider.setAttributes(of: file, to: change)
            case .moveOut:
                _ = try await provider.move(
                    Move(
                        item: file,
                        oldParent: folder,
                        parent: other,
                        name: "file",
                        modifiedTime: nil
                    )
                )
            }
        }
    }

    @Test(
        "what is done below a folder while it is renamed is done in the folder, whichever is first",
        arguments: kinds,
        Deed.allCases
    )
    func below(kind: RandomPlacesTests.Kind, deed: Deed) async throws {
        for isFolderFirst in [false, true] {
            try await with(kind) { world in
                let (client, provider) = (world.client, world.provider)
                let folder = try reference("/old/", in: world)
                let inner = try reference("/old/in/", in: world)
                let file = try reference("/old/in/file", in: world)
                let other = try reference("/other/", in: world)
                let revision = world.paths["/old/in/file"]?.rev
                // The first is on its way to the service when the other begins.
                let renaming = kind == .s3 ? "createFolder" : "move"
                client.holdUp(isFolderFirst ? renaming : deed.call)
                let doIt = { @Sendable () async throws in
                    try await deed.perform(
                        on: file,
                        in: inner,
                        revision: revision,
                        other: other,
                        at: provider
                    )
                }
                let rename = { @Sendable () async throws in
                    try await self.rename(folder, to: "new", at: provider)
                }
                async let first: Void = isFolderFirst ? rename() : doIt()
                while client.waitingCalls == 0 { await Task.yield() }
                async let second: Void = isFolderFirst ? doIt() : rename()
                // Time for the second to do all that it may.
                for _ in 0..<200 { await Task.yield() }
                client.letGo()
                try await first
                try await second
                #expect(client.contents == deed.outcome, "folder first: \(isFolderFirst)")
            }
        }
    }

    @Test("what is put into a folder while it is deleted is not deleted unseen", arguments: kinds)
    func deleted(kind: RandomPlacesTests.Kind) async throws {
        try await with(kind) { world in
            let (client, provider) = (world.client, world.provider)
            let folder = try reference("/old/", in: world)
            let inner = try reference("/old/in/", in: world)
            client.holdUp("upload")
            let target = UploadTarget.create(parent: inner, name: "more", reservedID: nil)
            async let sent: Void = PlacesWorld.Act.send("ours", to: target, provider)
            while client.waitingCalls == 0 { await Task.yield() }
            let deletion = Task { try await provider.delete(Deletion(item: folder)) }
            for _ in 0..<200 { await Task.yield() }
            client.letGo()
            try await sent
            // It was not known when the deletion was asked for.
            await #expect(throws: ProviderError.self) { try await deletion.value }
            #expect(client.contents["/old/in/more"] == "ours")
        }
    }

    @Test("a file that is moved while it is asked for is read where it is then", arguments: kinds)
    func movedWhileRead(kind: RandomPlacesTests.Kind) async throws {
        try await with(kind) { world in
            let provider = world.provider
            let file = try reference("/old/in/file", in: world)
            let folders = (
                try reference("/old/in/", in: world), try reference("/other/", in: world)
            )
            for round in 0..<40 {
                let isThere = round % 2 == 1
                let move = Move(
                    item: file,
                    oldParent: isThere ? folders.1 : folders.0,
                    parent: isThere ? folders.0 : folders.1,
                    name: isThere ? "file" : "moved",
                    modifiedTime: nil
                )
                async let moved = provider.move(move)
                for _ in 0..<round { await Task.yield() }
                // Several at once, as a program that reads ahead does.
                try await withThrowingTaskGroup(of: [UInt8].self) { group in
                    for _ in 0..<3 {
                        group.addTask {
                            let stream = try await provider.read(
                                file,
                                revision: nil,
                                range: 0..<100
                            )
                            return try await stream.collect(atMost: 100)
                        }
                    }
                    for try await bytes in group { #expect(bytes == Array("content".utf8)) }
                }
                _ = try await moved
            }
            // What is gone is gone.
            world.client.remove("/old/in/file")
            await #expect(throws: ProviderError.self) {
                try await provider.read(file, revision: nil, range: 0..<100)
            }
        }
    }

    @Test("a rename that waits for an upload holds up no reader, and is given up when cancelled")
    func waiting() async throws {
        for kind in Self.kinds {
            try await with(kind) { world in
                let (client, provider) = (world.client, world.provider)
                let folder = try reference("/old/", in: world)
                let inner = try reference("/old/in/", in: world)
                let file = try reference("/old/in/file", in: world)
                client.holdUp("upload")
                let target = UploadTarget.create(parent: inner, name: "more", reservedID: nil)
                async let sent: Void = PlacesWorld.Act.send("ours", to: target, provider)
                while client.waitingCalls == 0 { await Task.yield() }
                let rename = Task { try await self.rename(folder, to: "new", at: provider) }
                for _ in 0..<200 { await Task.yield() }
                let stream = try await provider.read(file, revision: nil, range: 0..<100)
                #expect(try await stream.collect(atMost: 100) == Array("content".utf8))
                _ = try await provider.children(of: inner, page: nil)
                rename.cancel()
                await #expect(throws: ProviderError.self) { try await rename.value }
                // No operation waits behind it any more.
                _ = try await provider.createFolder(NewFolder(parent: inner, name: "folder"))
                client.letGo()
                try await sent
                #expect(client.contents["/old/in/more"] == "ours")
                #expect(client.contents["/old/in/folder/"] != nil)
            }
        }
    }

    @Test("below a folder whose rename had no answer, things go to where it is", arguments: kinds)
    func lostRename(kind: RandomPlacesTests.Kind) async throws {
        for seed in 0..<12 as Range<UInt64> {
            try await with(kind) { world in
                let folder = try reference("/old/", in: world)
                let inner = try reference("/old/in/", in: world)
                world.client.fail(oneIn: 2, seed: seed)
                try? await rename(folder, to: "new", at: world.provider)
                world.client.fail(oneIn: 0, seed: seed)
                if seed % 2 == 0 { try world.restart() }
                let target = UploadTarget.create(parent: inner, name: "more", reservedID: nil)
                try await PlacesWorld.Act.send("ours", to: target, world.provider)
                let there = world.client.contents
                let names = [true, false].map { isNew in
                    there.keys.filter { $0.hasPrefix(isNew ? "/new/" : "/old/") }.count
                }
                #expect(names.contains(0) && names.contains(4), "seed \(seed): \(there)")
                for _ in 0..<10 { await world.readFeed() }
                let known = Set(world.paths.values.map(\.id))
                #expect(known.isSuperset(of: [folder.id, inner.id]), "seed \(seed)")
            }
        }
    }
}
