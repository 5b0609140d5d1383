import OortModel
import OortSimulators
import OortTesting
import Testing

/// What every provider promises of names, sizes and places at the edges.
@Suite("provider conformance: edges", .timeLimit(.minutes(15)))
struct ProviderEdgesConformance {
    /// Names that a URL, a header, a command or a comparison could take for something else.
    private static let names = [
        "100% #1?.txt", "%41%2F%00", "a;b=c,d", "a+b c", " leading", "trailing ", "two  spaces",
        "dots...", ".dot", "~tilde", "-dash", "quote'\"`", "back\\slash", "[x]{y}(z)", "&amp;<x>",
        "$HOME", "*", "a:b|c", "CON", "name.part", "🌋👩‍👩‍👧‍👧", "e\u{301} NFD", "\u{E9} NFC", "ключ 鍵",
        "İı ß ﬁ", "\u{202E}left", "zero\u{200B}width", "tab\there", "∕ U+2215", "．．", "‛quote",
        "a@b",
        String(repeating: "n", count: 200),
    ]

    /// Those of the names that the provider's rules take, in the form in which they are stored.
    private func taken(
        by kind: ConformingKind,
        _ world: any ProviderWorld,
        as itemKind: ItemKind
    ) -> [String] {
        let rules = world.provider.traits.names
        var seen: Set<[UInt8]> = []
        return Self.names.filter { name in
            rules.refusal(name, itemKind, 0) == nil && !kind.can(.refuses(name, itemKind))
                && seen.insert(Array(rules.key(name).utf8)).inserted
        }
    }

    private func stored(_ name: String, in world: any ProviderWorld) -> String {
        world.provider.traits.names.comparison.stored(name)
    }

    @Test("a name that the rules take is a file's name as it is", arguments: conformingKinds)
    func fileNames(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            let names = taken(by: kind, world, as: .file)
            #expect(names.count > 20)
            var items: [Item] = []
            for name in names {
                let item = try await world.upload("of \(name)", as: name)
                #expect(item.fileName.isSameText(as: stored(name, in: world)), "\(name)")
                items.append(item)
            }
            let paths = Set(names.map { Array(stored($0, in: world).utf8) })
            let there = try await world.truth().keys.map { Array(($0.name ?? "").utf8) }
            #expect(Set(there) == paths)
            #expect(Set(try await world.names().map { Array($0.utf8) }) == paths)
            for (name, item) in zip(names, items) {
                let found = try await world.provider.items(named: name, in: world.root)
                #expect(found.map(\.id) == [item.id], "\(name)")
                let bytes = try await world.read(world.reference(item), revision: item.rev)
                #expect(bytes == Array("of \(name)".utf8), "\(name)")
            }
            let folder = try await world.folder("folder")
            for (name, item) in zip(names, items) {
                let moved = try await world.provider.move(
                    Move(
                        item: world.reference(item),
                        oldParent: world.root,
                        parent: folder,
                        name: name,
                        modifiedTime: nil
                    )
                )
                #expect(moved.id == item.id, "\(name)")
                let place = world.reference(moved, in: folder)
                let next = try await world.upload(
                    Array("next".utf8),
                    to: .replace(place, revision: moved.rev)
                )
                #expect(next.id == item.id, "\(name)")
                try await world.provider.delete(Deletion(item: place))
            }
            #expect(try await world.files().isEmpty)
        }
    }

    @Test("a name that the rules take is a folder's name as it is", arguments: conformingKinds)
    func folderNames(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            var replica = FeedReplica(of: world.provider)
            try await replica.catchUp(with: world.provider)
            let names = taken(by: kind, world, as: .folder)
            #expect(names.count > 20)
            for name in names {
                let item = try await world.provider.createFolder(
                    NewFolder(parent: world.root, name: name)
                )
                let folder = world.reference(item)
                _ = try await world.upload("x", as: "x", in: folder)
                #expect(try await world.names(in: folder) == ["x"], "\(name)")
                let path = RemotePath([stored(name, in: world), "x"])
                #expect(try await world.bytes(at: path) == Array("x".utf8), "\(name)")
            }
            try await world.expectNews(in: &replica)
            for name in names {
                let folder = try #require(
                    try await world.provider.items(named: name, in: world.root).first,
                    "\(name)"
                )
                try await world.provider.delete(Deletion(item: world.reference(folder)))
            }
            #expect(try await world.truth().isEmpty)
        }
    }

    @Test("names of somebody else's come as they are", arguments: conformingKinds)
    func foreignNames(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            let names = taken(by: kind, world, as: .file)
            for name in names {
                try await world.somebodyElse(
                    .write(
                        path: ["a", stored(name, in: world)],
                        SimulatedContent(name),
                        modifiedTime: nil
                    )
                )
            }
            var replica = FeedReplica(of: world.provider)
            try await world.expectNews(in: &replica)
            for name in names {
                let item = try #require(
                    replica.items.values.first {
                        $0.fileName.isSameText(as: stored(name, in: world))
                    },
                    "\(name)"
                )
                let bytes = try await world.read(world.reference(item), revision: item.rev)
                #expect(bytes == Array(name.utf8), "\(name)")
            }
        }
    }

    @Test("contents at the edges of parts arrive whole", arguments: conformingKinds)
    func boundaries(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            let traits = world.provider.traits
            let part = traits.uploadPartSize
            let simple = traits.largestSimpleUpload
            // A whole number of parts is the last one's edge, too.
            let sizes =
                simple < .max ? [1, simple, simple + 1, (simple / part + 1) * part] : [1, 1 << 20]
            for size in Set(sizes).sorted() {
                let bytes = SimulatedContent(seed: UInt64(size), size: size).bytes
                let name = "\(size)"
                let item = try await world.upload(
                    bytes,
                    to: .create(parent: world.root, name: name, reservedID: nil)
                )
                #expect(item.size == size)
                #expect(item.contentHash == world.hash(bytes))
                #expect(try await world.bytes(at: RemotePath([name])) == bytes, "\(size) bytes")
                let place = world.reference(item)
                #expect(
                    try await world.read(place, revision: item.rev, range: size..<size + 10) == []
                )
                #expect(
                    try await world.read(
                        place,
                        revision: item.rev,
                        range: size + 1000..<size + 2000
                    ) == []
                )
                #expect(
                    try await world.read(place, revision: item.rev, range: max(0, size - 3)..<size)
                        == Array(bytes.suffix(3))
                )
            }
        }
    }

    @Test(
        "a name that somebody took meanwhile is told, and theirs stays",
        arguments: conformingKinds
    )
    func takenMeanwhile(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            let provider = world.provider
            guard provider.traits.refusesTakenNames else { return }
            let item = try await world.upload("mine", as: "mine.txt")
            let folder = try await world.folder("my folder")
            for name in ["theirs.txt", "theirs"] {
                try await world.somebodyElse(
                    .write(path: [name], SimulatedContent("theirs"), modifiedTime: nil)
                )
            }
            try await world.somebodyElse(.makeFolder(path: ["their folder"]))
            func move(_ item: ItemReference, to name: String) async -> ProviderError.Kind? {
                await world.failure {
                    _ = try await provider.move(
                        Move(
                            item: item,
                            oldParent: world.root,
                            parent: world.root,
                            name: name,
                            modifiedTime: nil
                        )
                    )
                }
            }
            for name in ["theirs.txt", "their folder"] {
                let sent = await world.failure { _ = try await world.upload("mine", as: name) }
                #expect(sent == .nameTaken, "\(name)")
                let made = await world.failure {
                    _ = try await provider.createFolder(NewFolder(parent: world.root, name: name))
                }
                #expect(made == .nameTaken, "\(name)")
                let movedFile = await move(world.reference(item), to: name)
                #expect(movedFile == .nameTaken, "\(name)")
                let movedFolder = await move(folder, to: name)
                #expect(movedFolder == .nameTaken, "\(name)")
            }
            if provider.traits.copiesFiles {
                let copied = await world.failure {
                    _ = try await provider.copy(
                        Copy(item: world.reference(item), parent: world.root, name: "theirs")
                    )
                }
                #expect(copied == .nameTaken)
            }
            for name in ["theirs.txt", "theirs"] {
                #expect(try await world.bytes(at: RemotePath([name])) == Array("theirs".utf8))
            }
            #expect(
                Set(try await world.truth().keys.map { $0.name ?? "" }) == [
                    "mine.txt", "my folder", "theirs.txt", "theirs", "their folder",
                ]
            )
        }
    }

    @Test(
        "a cursor of another account is lost, where folders are scanned",
        arguments: conformingKinds
    )
    func strangeCursor(_ kind: ConformingKind) async throws {
        var cursor: Cursor?
        try await kind.withWorld { world in
            guard world.provider.traits.feed == .scan else { return }
            cursor = try await world.provider.changes(since: nil).cursor
        }
        guard let cursor else { return }
        try await kind.withWorld { world in
            #expect(
                await world.failure { _ = try await world.provider.changes(since: cursor) }
                    == .cursorLost
            )
        }
    }
}
