import Foundation
import OortModel
import OortSimulators
import OortTransport
import OortWebDAV
import Testing

@Suite("an account at an OpenCloud", .timeLimit(.minutes(5)))
struct InfiniteScaleTests {
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
                        of: .init(["copy"]),
                        revision: copy.revision
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
            // Other clients need not compare more than tags.
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
            let page = try await pages.page(of: .at("folder"), isFolder: true)
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
}
