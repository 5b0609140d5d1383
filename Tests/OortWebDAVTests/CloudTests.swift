import OortModel
import OortSimulators
import OortWebDAV
import Testing

@Suite("accounts at all clouds of one family", .timeLimit(.minutes(5)))
struct CloudTests {
    @Test("a large file goes up in parts, guarded as a small one")
    func parts() async throws {
        try await Cloud.with { try await Self.checkParts($0, by: "PUT uploads") }
        try await Cloud.with(isOwnCloud: true) {
            try await Self.checkParts($0, by: "PUT uploads")
        }
        try await OpenCloud.with { cloud in
            // What comes is looked over first.
            cloud.service.habits.processing = 1
            try await Self.checkParts(cloud, by: "PATCH data")
        }
    }

    private static func checkParts<Service>(
        _ cloud: SignedInCloud<Service>,
        by route: String
    ) async throws {
        let large = (0..<7_500_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
        let client = cloud.client(partSize: 1 << 20)
        let path = RemotePath(["large"])
        let first = try await client.put(large, to: path)
        #expect(first.size == Int64(large.count))
        #expect(first.modifiedTime?.seconds == 1_700_000_000)
        #expect(cloud.simulator.counts[route]?.calls == 8)
        #expect(cloud.item("large")?.head?.content.bytes == large)
        let taken = await failure { try await client.put(large, to: path) }
        #expect(taken == .nameTaken)
        let other = large.reversed() as [UInt8]
        let second = try await client.put(other, to: path, before: .file(first.revision))
        #expect(second.key == first.key && second.revision != first.revision)
        #expect(cloud.item("large")?.head?.content.bytes == other)
        let stale = await failure {
            try await client.put(large, to: path, before: .file(first.revision))
        }
        #expect(stale == .preconditionFailed)
        try await client.delete(.file, at: path, revision: nil)
        let gone = await failure {
            try await client.put(large, to: path, before: .file(second.revision))
        }
        #expect(gone == .preconditionFailed)
        let nowhere = await failure { try await client.put(large, to: .init(["no", "file"])) }
        #expect(nowhere == .parentNotFound)
    }

    @Test("a save whose answer is lost is an unknown outcome, and never a second one")
    func lostAnswers() async throws {
        try await Cloud.with { try await Self.checkLostAnswers($0, "files") }
        try await Cloud.with(isOwnCloud: true) { try await Self.checkLostAnswers($0, "files") }
        try await OpenCloud.with { try await Self.checkLostAnswers($0, "spaces") }
    }

    @Test("a save that somebody else answers in the server's place is an unknown outcome")
    func foreignAnswers() async throws {
        try await Cloud.with { try await Self.checkForeignAnswers($0, "files") }
        try await Cloud.with(isOwnCloud: true) {
            try await Self.checkForeignAnswers($0, "files")
        }
        try await OpenCloud.with { try await Self.checkForeignAnswers($0, "spaces") }
    }

    private static func checkForeignAnswers<Service>(
        _ cloud: SignedInCloud<Service>,
        _ program: String
    ) async throws {
        cloud.simulator.add(FaultRule(.html(status: 200), at: "PUT \(program)"))
        let kind = await failure { try await cloud.client().put("text", to: "a") }
        #expect(kind == .outcomeUnknown(retryAfter: nil))
        #expect(cloud.item("a") == nil)
    }

    private static func checkLostAnswers<Service>(
        _ cloud: SignedInCloud<Service>,
        _ program: String
    ) async throws {
        let client = cloud.client()
        let first = try await client.put("first", to: "a")
        cloud.simulator.add(FaultRule(.doneButNoAnswer, at: "PUT \(program)"))
        let kind = await failure {
            try await client.put("second", to: "a", before: .file(first.revision))
        }
        #expect(kind == .outcomeUnknown(retryAfter: nil))
        #expect(cloud.item("a")?.revisions.count == 2)
        cloud.simulator.add(FaultRule(.doneButNoAnswer, at: "MOVE \(program)"))
        let moved = try await client.move(.file, from: .init(["a"]), to: .init(["b"]))
        #expect(moved.size == 6)
    }

    @Test(
        "what the person shares counts as shared, with people and by links, at no further question",
        arguments: [false, true]
    )
    func given(isOwnCloud: Bool) async throws {
        try await Cloud.with(isOwnCloud: isOwnCloud) { cloud in
            try await Self.checkShared(cloud)
        }
        guard !isOwnCloud else { return }
        try await OpenCloud.with { cloud in try await Self.checkShared(cloud) }
    }

    @Test("a Nextcloud lists with whom an item is shared, and its tags, at no further question")
    func sharees() async throws {
        try await Cloud.with { cloud in
            let client = cloud.client()
            for name in ["mine", "lent", "theirs"] { cloud.write("x", to: [name]) }
            let people = [
                SimulatedSharee(id: "grace", name: "Grace <Other> & Co; Ltd"),
                SimulatedSharee(id: "bob", name: ""),
                SimulatedSharee(id: "staff", name: "Staff", isGroup: true),
                SimulatedSharee(id: "grace2", name: "Grace <Other> & Co, Ltd"),
            ]
            SimulatorEdit.lend(path: ["lent"], to: people).apply(to: cloud.service)
            SimulatorEdit.tag(path: ["lent"], ["urgent", "R&D <x>", "a\nb"])
                .apply(to: cloud.service)
            SimulatorEdit.share(path: ["theirs"], SimulatedContent("x")).apply(to: cloud.service)
            SimulatorEdit.lend(path: ["theirs"], to: people).apply(to: cloud.service)
            let links = try #require(client.links)
            _ = try await links.share(LinkWish(item: .at("lent"), isFolder: false))
            cloud.simulator.clearCalls()
            let listed = try await client.listing(of: .root).entries
            #expect(cloud.calls == 1)
            let entries = Dictionary(uniqueKeysWithValues: listed.map { ($0.name, $0) })
            let lent = try #require(entries["lent"])
            #expect(
                lent.sharedWith.joined
                    == "Grace <Other> & Co, Ltd; bob; Staff (group); anyone with the link"
            )
            #expect(lent.tags?.joined == "R&D <x>; a b; urgent")
            #expect(lent.isShared)
            #expect(entries["mine"]?.sharedWith.isEmpty == true)
            #expect(entries["mine"]?.tags?.isEmpty == true)
            // Of what others share, the server does not list whom it is shared with.
            #expect(entries["theirs"]?.sharedWith.isEmpty == true)
            #expect(try await client.entry(at: .init(["lent"])).sharedWith == lent.sharedWith)
        }
        try await Cloud.with(isOwnCloud: true) { cloud in
            cloud.write("x", to: ["lent"])
            let person = SimulatedSharee(id: "grace", name: "Grace Other")
            SimulatorEdit.lend(path: ["lent"], to: [person]).apply(to: cloud.service)
            SimulatorEdit.tag(path: ["lent"], ["urgent"]).apply(to: cloud.service)
            let entry = try #require(try await cloud.client().listing(of: .root).entries.first)
            #expect(entry.isShared && entry.sharedWith.isEmpty && entry.tags == nil)
        }
    }

    @Test("ten thousand people of one item are listed as some of them, and how many more")
    func manySharees() async throws {
        try await Cloud.with { cloud in
            cloud.write("x", to: ["lent"])
            let people = (1...10_000).map { SimulatedSharee(id: "p\($0)", name: "Person \($0)") }
            SimulatorEdit.lend(path: ["lent"], to: people).apply(to: cloud.service)
            let entry = try #require(try await cloud.client().listing(of: .root).entries.first)
            #expect(entry.sharedWith.joined.hasSuffix("; Person 100; and 9900 more"))
        }
    }

    private static func checkShared<Service>(_ cloud: SignedInCloud<Service>) async throws {
        let client = cloud.client()
        for name in ["mine", "with a person", "with a group", "by a link"] {
            cloud.write("x", to: [name])
        }
        let types: [String: JSON] = ["with a person": .array([0]), "with a group": .array([1])]
        for (name, types) in types {
            let id = try #require(cloud.item(name)).id
            _ = cloud.service.account.withTree { tree in
                tree.update(id) { $0.extra["share-types"] = types }
            }
        }
        var shared: Set = ["with a person", "with a group"]
        if let links = client.links {
            _ = try await links.share(LinkWish(item: .at("by a link"), isFolder: false))
            shared.insert("by a link")
        }
        cloud.simulator.clearCalls()
        let entries = try await client.listing(of: .root).entries
        #expect(cloud.calls == 1)
        #expect(Set(entries.filter { $0.isShared }.map(\.name)) == shared)
        // It stays one's own, and whose it is needs no word.
        #expect(entries.allSatisfy { $0.isOwn && $0.owner == nil })
        let one = try await client.entry(at: .init(["with a person"]))
        #expect(one.isShared)
    }
}
