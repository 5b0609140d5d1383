import OortModel
import OortSimulators
import OortTesting
import Synchronization
import Testing

/// Folders, moves, deletions and copies.
@Suite("Changing the tree at Google Drive")
struct GoogleDriveWritingTests {
    @Test("many folders, moves and deletions go in one call each")
    func batches() async throws {
        try await GoogleDriveWorld.with { world, _ in
            let provider = world.provider
            let made = await provider.createFolders(
                (0..<100).map { NewFolder(parent: world.root, name: "f\($0)") }
            )
            let folders = try made.map { try $0.get() }
            #expect(folders.map(\.fileName) == (0..<100).map { "f\($0)" })
            let target = folders[0]
            let moved = await provider.move(
                folders.dropFirst().map {
                    Move(
                        item: world.reference($0),
                        oldParent: world.root,
                        parent: world.reference(target),
                        name: $0.fileName + "!",
                        modifiedTime: nil
                    )
                }
            )
            #expect(try moved.allSatisfy { try $0.get().parentID == target.id })
            let gone = await provider.delete(
                folders.dropFirst().map { Deletion(item: world.reference($0)) }
            )
            for result in gone { try result.get() }
            #expect(
                try await provider.children(of: world.reference(target), page: nil).items.isEmpty
            )
            #expect(world.simulator.counts["batch"]?.calls == 3)
            #expect(world.simulator.counts["files.create"] == nil)
            #expect(world.simulator.counts["files.update"] == nil)
        }
    }

    @Test("of a batch, each answer stands for itself")
    func mixedBatch() async throws {
        try await GoogleDriveWorld.with { world, _ in
            let file = try await world.upload("1", as: "a")
            let stale = try await world.upload("2", as: "b")
            let results = await world.provider.delete([
                Deletion(item: world.reference(file), revision: file.rev),
                Deletion(item: world.reference(stale), revision: Revision("old")),
                Deletion(item: ItemReference(id: ItemID("gone"), path: .root)),
            ])
            try results[0].get()
            try results[2].get()
            let error = #expect(throws: ProviderError.self) { try results[1].get() }
            #expect(error?.kind == .preconditionFailed)
        }
    }

    @Test("a folder cannot go below itself, nor into what is not there")
    func refusedMoves() async throws {
        try await GoogleDriveWorld.with { world, _ in
            let outer = try await world.provider.createFolder(
                NewFolder(parent: world.root, name: "outer")
            )
            let inner = try await world.provider.createFolder(
                NewFolder(parent: world.reference(outer), name: "inner")
            )
            for (item, parent, kind) in [
                (outer.id, inner.id, ProviderError.Kind.moveIntoItself),
                (outer.id, ItemID("nowhere"), .parentNotFound),
                (ItemID("gone"), outer.id, .notFound),
                (outer.id, ItemID("oort:shared-drives"), .noPermission),
            ] {
                let refusal = await world.failure {
                    _ = try await world.provider.move(
                        Move(
                            item: ItemReference(id: item, path: .root),
                            oldParent: world.root,
                            parent: ItemReference(id: parent, path: .root),
                            name: "x",
                            modifiedTime: nil
                        )
                    )
                }
                #expect(refusal == kind)
            }
        }
    }

    @Test("copies of files and of documents keep the time that they are given")
    func copies() async throws {
        try await GoogleDriveWorld.with { world, service in
            let file = try await world.upload("text", as: "f")
            let document = service.account.withTree { tree in
                tree.create(
                    "d",
                    in: tree.rootID,
                    kind: .nativeDocument(.document),
                    content: SimulatedContent("d")
                ).id
            }
            for id in [file.id, ItemID(document)] {
                let copy = try await world.provider.copy(
                    Copy(
                        item: ItemReference(id: id, path: .root),
                        parent: world.root,
                        name: "copy",
                        modifiedTime: Timestamp(seconds: 1000)
                    )
                )
                #expect(copy.id != id)
                #expect(copy.clientModifiedTime == Timestamp(seconds: 1000))
            }
        }
    }

    /// What somebody does between a copy, whose answer is lost, and its repetition.
    enum BesideCopy: CaseIterable {
        case nothing, editCopy, editOriginal, trashOriginal
    }

    @Test(
        "what a lost copy made is taken for it only while nobody has changed either file",
        arguments: BesideCopy.allCases
    )
    func lostCopy(_ deed: BesideCopy) async throws {
        let wire = Mutex<CutWire?>(nil)
        try await SimulatedKind.googleDrive.withWorld { client in
            let cut = CutWire(client)
            wire.withLock { $0 = cut }
            return cut
        } _: { world in
            let cut = try #require(wire.withLock { $0 })
            let original = try await world.upload("one", as: "original")
            let id = try #require(try await world.provider.reserveIDs(1).first)
            let account = world.simulator.account
            let theirs = Timestamp(seconds: 1_650_000_000)
            cut.lose(after: 0) {
                account.withTree { tree in
                    switch deed {
                    case .nothing: break
                    case .editCopy, .editOriginal:
                        tree.write(
                            SimulatedContent("two"),
                            to: deed == .editCopy ? id.rawValue : original.id.rawValue,
                            modifiedTime: theirs
                        )
                    case .trashOriginal: tree.trash(original.id.rawValue)
                    }
                }
            }
            let time = Timestamp(seconds: 1_600_000_000)
            var copy: Item?
            let refusal = await world.failure {
                copy = try await world.provider.copy(
                    Copy(
                        item: world.reference(original),
                        parent: world.root,
                        name: "copy",
                        reservedID: id,
                        modifiedTime: time
                    )
                )
            }
            #expect(cut.hasLost)
            let isUntouched = deed == .nothing || deed == .trashOriginal
            #expect(refusal == (isUntouched ? nil : .preconditionFailed))
            #expect(copy?.id == (isUntouched ? id : nil))
            let made = account.withTree { tree in tree.items(named: "copy", in: tree.rootID) }
            #expect(made.map(\.id) == [id.rawValue])
            #expect(made.first?.modifiedTime == (deed == .editCopy ? theirs : time))
        }
    }
}
