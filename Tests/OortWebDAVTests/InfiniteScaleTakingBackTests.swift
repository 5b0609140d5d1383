import Foundation
import OortModel
import OortSimulators
import OortWebDAV
import Testing

/// What an OpenCloud keeps of what was deleted and overwritten, and its links.
@Suite("taking back at an OpenCloud", .timeLimit(.minutes(5)))
struct InfiniteScaleTakingBackTests {
    @Test("what was deleted is listed with its place and goes where it is told")
    func trash() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client()
            let trash = try #require(client.trash)
            #expect(try await trash.entries(below: .root, page: nil).entries.isEmpty)
            cloud.write("the note", to: ["papers", "100% ü.txt"])
            cloud.write("deep", to: ["gone", "deep", "file.txt"])
            let id = try #require(cloud.item("papers/100% ü.txt")).id
            try await client.delete(.file, at: RemotePath(["papers", "100% ü.txt"]), revision: nil)
            try await client.delete(.folder, at: RemotePath(["gone"]), revision: nil)
            let all = try await trash.entries(below: .root, page: nil).entries
            #expect(all.count == 2)
            let note = try #require(all.first { $0.kind == .file })
            #expect(note.path == RemotePath(["papers", "100% ü.txt"]) && note.name == "100% ü.txt")
            #expect(note.size == 8 && note.deletedTime != nil)
            cloud.write("theirs", to: ["papers", "100% ü.txt"])
            let back = Placement(folder: .at("papers"), name: "100% ü.txt")
            #expect(await failure { try await trash.restore(note, to: back) } == .nameTaken)
            #expect(try await client.text("papers/100% ü.txt") == "theirs")
            let none = Placement(folder: .at("none"), name: "x")
            #expect(await failure { try await trash.restore(note, to: none) } == .parentNotFound)
            cloud.simulator.add(FaultRule(.doneButNoAnswer, at: "MOVE trash-bin"))
            try await trash.restore(note, to: Placement(folder: .root, name: "back.txt"))
            #expect(cloud.item("back.txt")?.id == id)
            let free = Placement(folder: .root, name: "free.txt")
            #expect(await failure { try await trash.restore(note, to: free) } == .notFound)
            let folder = try #require(all.first { $0.kind == .folder })
            #expect(folder.path == RemotePath(["gone"]))
            try await trash.restore(
                folder,
                to: Placement(folder: .at("papers"), name: "kept")
            )
            #expect(try await client.text("papers/kept/deep/file.txt") == "deep")
            #expect(try await trash.entries(below: .root, page: nil).entries.isEmpty)
        }
    }

    @Test("earlier contents are read, and come back as the newest")
    func versions() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client()
            let history = try #require(client.versions)
            var last = try await client.put(
                "first",
                to: "file",
                time: Timestamp(seconds: 1_600_000_000)
            )
            last = try await client.put("second!", to: "file", before: .file(last.revision))
            let all = try await history.versions(of: .at("file"), page: nil).versions
            #expect(all.map(\.size) == [7, 5] && all.map(\.isCurrent) == [true, false])
            #expect(all[1].modifiedTime?.seconds == 1_600_000_000)
            for (version, text) in zip(all, ["second!", "first"]) {
                let bytes = try await history.read(version, of: .at("file"))
                #expect(try await bytes.collect(atMost: 100) == Array(text.utf8))
            }
            #expect(
                await failure {
                    try await history.restore(
                        all[1],
                        of: .at("file"),
                        current: Revision("\"x\" 1 -")
                    )
                } == .preconditionFailed
            )
            try await history.restore(all[1], of: .at("file"), current: last.revision)
            #expect(try await client.text("file") == "first")
            #expect(
                try await history.versions(of: .at("file"), page: nil).versions.count == 3
            )
            _ = try await client.createFolder(at: .init(["folder"]))
            #expect(
                await failure { _ = try await history.versions(of: .at("folder"), page: nil) }
                    == .notAFile
            )
        }
    }

    @Test("versions of one second are listed by the rest of their times, the newest first")
    func versionsOfOneSecond() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client()
            // The server leaves out zeros at the end, and numbers what has one time.
            let parts: [Int32] = [
                0, 250_000_000, 250_000_000, 250_000_000, 255_000_000, 300_000_000,
            ]
            for (number, nanoseconds) in parts.enumerated() {
                cloud.write(
                    String(repeating: "x", count: number + 1),
                    to: ["file"],
                    time: Timestamp(seconds: 1_700_000_000, nanoseconds: nanoseconds)
                )
            }
            let history = try #require(client.versions)
            let all = try await history.versions(of: .at("file"), page: nil).versions
            #expect(all.map(\.size) == [6, 5, 4, 3, 2, 1])
            let bytes = try await history.read(all[2], of: .at("file"))
            #expect(try await bytes.collect(atMost: 100).count == 4)
        }
    }

    @Test("links are made, listed and taken back")
    func links() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client()
            let links = try #require(client.links)
            try await client.put("x", to: "a & ü.txt")
            _ = try await client.createFolder(at: .init(["folder"]))
            let made = try await links.share(
                LinkWish(item: .at("a & ü.txt"), isFolder: false)
            )
            #expect(!made.mayEdit && !made.hasPassword && made.expires == nil)
            #expect(try await links.links(of: .at("a & ü.txt"), page: nil).links == [made])
            let end = Timestamp(seconds: Timestamp.now.seconds + 7 * 86_400)
            var wish = LinkWish(item: .at("folder"), isFolder: true)
            (wish.mayEdit, wish.password, wish.expires) = (true, "Correct-horse1", end)
            let special = try await links.share(wish)
            #expect(special.mayEdit && special.hasPassword)
            #expect(special.expires?.seconds == end.seconds)
            let all = try await links.links(of: nil, page: nil).links
            #expect(Set(all.compactMap { $0.path?.parts.last }) == ["a & ü.txt", "folder"])
            wish.password = ""
            let refused = await #expect(throws: ProviderError.self) { try await links.share(wish) }
            #expect(refused?.detail.contains("enforced") == true)
            try await links.withdraw(made)
            try await links.withdraw(made)
            #expect(try await links.links(of: nil, page: nil).links.map(\.url) == [special.url])
        }
    }
}
