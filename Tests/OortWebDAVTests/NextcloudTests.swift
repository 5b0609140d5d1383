import OortModel
import OortSimulators
import OortWebDAV
import Testing

@Suite("an account at a Nextcloud", .timeLimit(.minutes(5)))
struct NextcloudTests {
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
                of: .init(["copy"]),
                revision: copy.revision
            )
            #expect(timed.revision != copy.revision)
            // A time makes another revision: what has the former one is not touched.
            #expect(
                await failure {
                    _ = try await client.setModifiedTime(
                        Timestamp(seconds: 1_500_000_000),
                        of: .init(["copy"]),
                        revision: copy.revision
                    )
                } == .preconditionFailed
            )
            #expect(try await client.entry(at: .init(["copy"])).revision == timed.revision)
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

    @Test("a folder that only official programs can decrypt is listed as one that may not be read")
    func encryptedFolder() async throws {
        try await Cloud.with { cloud in
            let client = cloud.client()
            cloud.write("ciphertext", to: ["vault", "0123456789abcdef"])
            cloud.service.account.withTree { tree in
                guard let folder = tree.item(at: ["vault"]) else { return }
                tree.update(folder.id) { $0.extra["is-encrypted"] = .bool(true) }
            }
            let vault = RemotePath(["vault"])
            #expect(try await client.entry(at: vault).permissions == [])
            let error = try await #require(throws: ProviderError.self) {
                try await client.listing(of: vault)
            }
            #expect(error.kind == .noPermission)
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
}
