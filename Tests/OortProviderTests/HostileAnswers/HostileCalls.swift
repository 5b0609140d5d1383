import OortModel
import OortSimulators
import OortTesting

/// Every call of a provider, on items that are there; each gives the items that it answered.
struct HostileCalls {
    struct Call: Sendable {
        var name: String
        var body: @Sendable () async throws -> [Item]
    }

    /// Items that exist at the start of a round.
    struct Place: Sendable {
        var folder: ItemReference
        var file: ItemReference
        var revision: Revision?
        var document: ItemReference?
        var exports: [ExportFormat]
        var cursor: Cursor
    }

    let world: SimulatedWorld
    let place: Place

    static func prepare(_ world: SimulatedWorld) async throws -> Place {
        world.somebodyElse(
            .write(path: ["folder", "file.txt"], SimulatedContent("content"), modifiedTime: nil)
        )
        world.simulator.account.withTree { tree in
            _ = tree.create(
                "plan.gdoc",
                in: tree.rootID,
                kind: .nativeDocument(.document),
                content: SimulatedContent("a plan")
            )
        }
        var replica = FeedReplica(of: world.provider)
        try await replica.catchUp(with: world.provider)
        guard let folder = replica.named("folder").first,
            let file = replica.named("file.txt").first,
            let cursor = replica.cursor
        else { throw ProviderError(.notFound, detail: "the test's own items") }
        let folderPlace = world.reference(folder)
        let document = replica.items.values.first { $0.kind == .nativeDocument }
        return Place(
            folder: folderPlace,
            file: world.reference(file, in: folderPlace),
            revision: file.rev,
            document: document.map { world.reference($0) },
            exports: document?.exports ?? [],
            cursor: cursor
        )
    }

    var all: [Call] { looking + reading + writing + takingBack }

    private var provider: any Provider { world.provider }

    private var looking: [Call] {
        let (provider, place, root) = (provider, place, world.root)
        return [
            Call(name: "identity") {
                _ = try await provider.identity()
                return []
            },
            Call(name: "quota") {
                let quota = try await provider.quota()
                return quota.used < 0 ? [Item(id: ItemID(""), kind: .file, fileName: "quota")] : []
            },
            Call(name: "enumeration") {
                var items: [Item] = []
                var cursor: Cursor?
                for _ in 0..<5 {
                    let page = try await provider.changes(since: cursor)
                    items += page.changes.compactMap(\.item)
                    cursor = page.cursor
                    guard page.hasMore else { break }
                }
                return items
            },
            Call(name: "changes") {
                world.somebodyElse(.makeFolder(path: ["folder", "new"]))
                world.somebodyElse(.trash(path: ["folder", "new"]))
                return try await provider.changes(since: place.cursor).changes.compactMap(\.item)
            },
            Call(name: "waiting") {
                _ = try await provider.waitForChanges(
                    since: place.cursor,
                    atMost: .milliseconds(20)
                )
                return []
            },
            Call(name: "children") {
                let page = try await provider.children(of: place.folder, page: nil)
                return page.items
                    + (try await provider.children(of: root, page: page.next).items)
            },
            Call(name: "item") { [try await provider.item(place.file)] },
            Call(name: "items by name") {
                try await provider.items(named: "file.txt", in: place.folder)
            },
            Call(name: "outcome of an upload") {
                let upload = LostUpload(
                    folder: place.folder,
                    name: "file.txt",
                    hash: provider.makeHasher().finalize(),
                    modifiedTime: nil,
                    createdTime: nil
                )
                let item = try await provider.item(place.file)
                return try await provider.isOutcome(item, of: upload) ? [item] : []
            },
        ]
    }

    private var reading: [Call] {
        let (provider, place) = (provider, place)
        return [
            Call(name: "read") {
                let stream = try await provider.read(
                    place.file,
                    revision: place.revision,
                    range: 2..<5
                )
                _ = try await stream.collect(atMost: 1 << 26)
                return []
            },
            Call(name: "export") {
                guard let document = place.document, let format = place.exports.first else {
                    return []
                }
                _ = try await provider.export(document, to: format).collect(atMost: 1 << 26)
                return []
            },
            Call(name: "thumbnail") {
                _ = try await provider.thumbnail(of: place.file, edge: 128)
                    .collect(atMost: 1 << 26)
                return []
            },
        ]
    }

    private var takingBack: [Call] {
        let (provider, place, root) = (provider, place, world.root)
        return [
            Call(name: "trash") {
                world.somebodyElse(.makeFolder(path: ["folder", "old"]))
                world.somebodyElse(.trash(path: ["folder", "old"]))
                guard let trash = provider.trash else { return [] }
                let page = try await trash.entries(below: root, page: nil)
                if let next = page.next { _ = try await trash.entries(below: root, page: next) }
                guard let entry = page.entries.first else { return [] }
                try await trash.restore(entry, to: Placement(folder: root, name: "back"))
                return []
            },
            Call(name: "versions") {
                guard let history = provider.versions else { return [] }
                let page = try await history.versions(of: place.file, page: nil)
                if let next = page.next {
                    _ = try await history.versions(of: place.file, page: next)
                }
                guard let version = page.versions.last else { return [] }
                _ = try await history.read(version, of: place.file).collect(atMost: 1 << 26)
                guard history.restoresAtService else { return [] }
                try await history.restore(version, of: place.file, current: nil)
                return []
            },
            Call(name: "links") {
                guard let links = provider.links else { return [] }
                let made = try await links.share(LinkWish(item: place.file, isFolder: false))
                _ = try await links.links(of: place.file, page: nil)
                if links.abilities.listsAll { _ = try await links.links(of: nil, page: nil) }
                try await links.withdraw(made)
                return []
            },
        ]
    }

    private var writing: [Call] {
        let (provider, place, root, world) = (provider, place, world.root, world)
        let largeBytes = SimulatedContent(seed: 1, size: 5 << 20).bytes
        return [
            Call(name: "reserve ids") {
                try await provider.reserveIDs(3).map {
                    Item(id: $0, kind: .file, fileName: "reserved")
                }
            },
            Call(name: "create folder") {
                [try await provider.createFolder(NewFolder(parent: place.folder, name: "made"))]
            },
            Call(name: "create folders") {
                await provider.createFolders(
                    (0..<3).map { NewFolder(parent: place.folder, name: "made \($0)") }
                ).compactMap { try? $0.get() }
            },
            Call(name: "upload") {
                [try await world.upload("new", as: "new.txt", in: place.folder)]
            },
            Call(name: "replace") {
                let target = UploadTarget.replace(
                    place.file,
                    revision: place.revision ?? Revision("1")
                )
                return [try await world.upload(Array("next".utf8), to: target)]
            },
            Call(name: "upload in parts") {
                let target = UploadTarget.create(
                    parent: place.folder,
                    name: "large",
                    reservedID: nil
                )
                return [try await world.upload(largeBytes, to: target)]
            },
            Call(name: "uploads") {
                await provider.upload(
                    (0..<3).map { index in
                        world.entry(
                            Array("\(index)".utf8),
                            to: .create(parent: root, name: "small \(index)", reservedID: nil)
                        )
                    }
                ).compactMap { try? $0.get() }
            },
            Call(name: "move") {
                let move = Move(
                    item: place.file,
                    oldParent: place.folder,
                    parent: root,
                    name: "moved.txt",
                    modifiedTime: nil
                )
                return [try await provider.move(move)]
            },
            Call(name: "moves") {
                let move = Move(
                    item: place.file,
                    oldParent: place.folder,
                    parent: place.folder,
                    name: "FILE.txt",
                    modifiedTime: nil
                )
                return await provider.move([move, move]).compactMap { try? $0.get() }
            },
            Call(name: "copy") {
                let copy = Copy(item: place.file, parent: root, name: "copy.txt")
                return [try await provider.copy(copy)]
            },
            Call(name: "attributes") {
                let change = AttributeChange(
                    modifiedTime: Timestamp(seconds: 1_600_000_000),
                    description: "a note"
                )
                return [try await provider.setAttributes(of: place.file, to: change)]
            },
            Call(name: "delete") {
                try await provider.delete(
                    Deletion(item: place.file, revision: place.revision)
                )
                return []
            },
            Call(name: "deletes") {
                _ = await provider.delete([
                    Deletion(item: place.file), Deletion(item: place.folder),
                ])
                return []
            },
        ]
    }
}

extension Change {
    fileprivate var item: Item? { if case .changed(let item) = self { item } else { nil } }
}
