import Foundation
import OortModel
import OortSimulators
import OortWebDAV
import Testing

/// What a Nextcloud keeps of what was deleted and overwritten, and its links.
@Suite("taking back at a Nextcloud", .timeLimit(.minutes(9)))
struct NextcloudTakingBackTests {
    @Test("what was deleted is listed with its place and goes where it is told")
    func trash() async throws {
        try await Cloud.with { cloud in
            let client = cloud.client()
            let trash = try #require(client.trash)
            #expect(try await trash.entries(below: .root, page: nil).entries.isEmpty)
            cloud.write("the note", to: ["papers", "100% ü.txt"])
            cloud.write("deep", to: ["gone", "deep", "file.txt"])
            let id = try #require(cloud.item("papers/100% ü.txt")).id
            try await client.delete(
                .file,
                at: RemotePath(["papers", "100% ü.txt"]),
                revision: nil
            )
            try await client.delete(.folder, at: RemotePath(["gone"]), revision: nil)
            let all = try await trash.entries(below: .root, page: nil).entries
            #expect(all.count == 2)
            let note = try #require(all.first { $0.kind == .file })
            #expect(note.path == RemotePath(["papers", "100% ü.txt"]))
            #expect(note.name == "100% ü.txt")
            #expect(note.size == 8)
            #expect(note.deletedTime != nil)
            cloud.write("theirs", to: ["papers", "100% ü.txt"])
            let back = Placement(folder: .at("papers"), name: "100% ü.txt")
            #expect(await failure { try await trash.restore(note, to: back) } == .nameTaken)
            #expect(try await client.text("papers/100% ü.txt") == "theirs")
            let none = Placement(folder: .at("none"), name: "x")
            #expect(await failure { try await trash.restore(note, to: none) } == .parentNotFound)
            try await trash.restore(note, to: Placement(folder: .root, name: "back.txt"))
            #expect(cloud.item("back.txt")?.id == id)
            let free = Placement(folder: .root, name: "free.txt")
            #expect(await failure { try await trash.restore(note, to: free) } == .notFound)
            let folder = try #require(all.first { $0.kind == .folder })
            #expect(folder.path == RemotePath(["gone"]))
            try await trash.restore(folder, to: Placement(folder: .root, name: "gone"))
            #expect(try await client.text("gone/deep/file.txt") == "deep")
            #expect(try await trash.entries(below: .root, page: nil).entries.isEmpty)
        }
    }

    /// Deletes what lies at a path and gives its entry in the trash.
    private func deleted(
        _ path: String,
        _ kind: PlaceEntry.Kind,
        _ client: WebDAVClient
    ) async throws -> TrashEntry {
        let path = RemotePath(text: path)
        try await client.delete(kind, at: path, revision: nil)
        let entries = try await client.trash?.entries(below: .root, page: nil).entries ?? []
        return try #require(entries.first { $0.path == path })
    }

    @Test(
        "a folder keeps its id and all in it, wherever it comes back to",
        arguments: ["old/work", "new/other", "new/work", "top", "old/work/inside"]
    )
    func folders(target: String) async throws {
        try await Cloud.with { cloud in
            let client = cloud.client()
            let trash = try #require(client.trash)
            cloud.write("deep", to: ["old", "work", "deep", "file.txt"])
            cloud.write("here", to: ["new", "here.txt"])
            let folder = try #require(cloud.item("old/work")).id
            let file = try #require(cloud.item("old/work/deep/file.txt")).id
            let entry = try await deleted("old/work", .folder, client)
            // Somebody took the place meanwhile, but for the first target.
            if target != "old/work" { cloud.write("theirs", to: ["old", "work", "file.txt"]) }
            let wished = RemotePath(text: target)
            let place = Placement(
                folder: ItemReference(id: ItemID(""), path: wished.parent ?? .root),
                name: wished.name ?? ""
            )
            try await trash.restore(entry, to: place)
            #expect(cloud.item(target)?.id == folder)
            #expect(cloud.item(target + "/deep/file.txt")?.id == file)
            #expect(try await client.text(target + "/deep/file.txt") == "deep")
            if target != "old/work" {
                #expect(try await client.text("old/work/file.txt") == "theirs")
            }
            #expect(cloud.item("old/work (restored)") == nil)
            #expect(try await trash.entries(below: .root, page: nil).entries.isEmpty)
        }
    }

    @Test("what lay in a folder that is gone comes to where it is wished, with its versions")
    func withoutItsFolder() async throws {
        try await Cloud.with { cloud in
            let client = cloud.client()
            let trash = try #require(client.trash)
            cloud.write("first", to: ["gone", "note.txt"])
            cloud.write("second", to: ["gone", "note.txt"])
            cloud.write("theirs", to: ["note.txt"])
            cloud.write("here", to: ["papers", "here.txt"])
            let id = try #require(cloud.item("gone/note.txt")).id
            let entry = try await deleted("gone/note.txt", .file, client)
            try await client.delete(.folder, at: RemotePath(["gone"]), revision: nil)
            try await trash.restore(
                entry,
                to: Placement(folder: .at("papers"), name: "note.txt")
            )
            let item = try #require(cloud.item("papers/note.txt"))
            #expect(item.id == id && item.revisions.count == 2)
            #expect(try await client.text("papers/note.txt") == "second")
            #expect(try await client.text("note.txt") == "theirs")
            #expect(cloud.item("note (restored).txt") == nil)
        }
    }

    @Test("an account that begins in a folder gets back what the server put outside of it")
    func outside() async throws {
        try await Cloud.with { cloud in
            cloud.write("here", to: ["mine", "here.txt"])
            var address = cloud.account.address
            address.folder = ["mine"]
            let client = WebDAVClient(
                http: cloud.http,
                address: address,
                dialect: cloud.account.dialect,
                abilities: cloud.account.abilities,
                clock: HastyClock()
            )
            cloud.write("text", to: ["mine", "gone", "note.txt"])
            let id = try #require(cloud.item("mine/gone/note.txt")).id
            let entry = try await deleted("gone/note.txt", .file, client)
            try await client.delete(.folder, at: RemotePath(["gone"]), revision: nil)
            let trash = try #require(client.trash)
            try await trash.restore(entry, to: Placement(folder: .root, name: "back.txt"))
            #expect(cloud.item("mine/back.txt")?.id == id)
            #expect(cloud.item("note.txt") == nil)
        }
    }

    @Test(
        "a lost answer makes nothing twice and loses nothing",
        arguments: [Fault.noAnswer, .doneButNoAnswer, .doneButStatus(504), .brokenText],
        ["MOVE trashbin", "MOVE files", "MOVE *"]
    )
    func lostAnswers(fault: Fault, route: String) async throws {
        try await Cloud.with { cloud in
            let client = cloud.client()
            let trash = try #require(client.trash)
            cloud.write("deep", to: ["old", "work", "file.txt"])
            cloud.write("here", to: ["new", "here.txt"])
            let folder = try #require(cloud.item("old/work")).id
            let entry = try await deleted("old/work", .folder, client)
            cloud.simulator.add(FaultRule(fault, at: route, times: route == "MOVE *" ? 2 : 1))
            try await trash.restore(entry, to: Placement(folder: .at("new"), name: "work"))
            #expect(cloud.item("new/work")?.id == folder)
            #expect(try await client.text("new/work/file.txt") == "deep")
            #expect(cloud.item("old/work") == nil)
            #expect(try await trash.entries(below: .root, page: nil).entries.isEmpty)
        }
    }

    @Test("a server that never answers is given up, with nothing done")
    func silence() async throws {
        try await Cloud.with { cloud in
            let client = cloud.client()
            let trash = try #require(client.trash)
            cloud.write("text", to: ["a.txt"])
            let entry = try await deleted("a.txt", .file, client)
            cloud.simulator.add(FaultRule(.noAnswer, at: "MOVE trashbin", times: nil))
            let place = Placement(folder: .root, name: "a.txt")
            let kind = await failure { try await trash.restore(entry, to: place) }
            guard case .outcomeUnknown = kind else {
                Issue.record("\(String(describing: kind))")
                return
            }
            cloud.simulator.clearFaults()
            #expect(cloud.item("a.txt") == nil)
            try await trash.restore(entry, to: place)
            #expect(try await client.text("a.txt") == "text")
        }
    }

    @Test("versions are listed, read and made current")
    func versions() async throws {
        try await Cloud.with { cloud in
            let client = cloud.client()
            let history = try #require(client.versions)
            for number in 0..<4 {
                SimulatorEdit.write(
                    path: ["report.txt"],
                    SimulatedContent("content \(number)"),
                    modifiedTime: Timestamp(seconds: 1_700_000_000 + Int64(number) * 60)
                ).apply(to: cloud.service)
            }
            let item = ItemReference.at("report.txt")
            let all = try await history.versions(of: item, page: nil).versions
            #expect(all.map(\.isCurrent) == [true, false, false, false])
            #expect(all.map(\.size) == [9, 9, 9, 9])
            for (index, version) in all.enumerated() {
                let bytes = try await history.read(version, of: item).collect(atMost: 1 << 20)
                #expect(String(decoding: bytes, as: UTF8.self) == "content \(3 - index)")
            }
            #expect(
                await failure {
                    try await history.restore(all[2], of: item, current: Revision("other"))
                } == .preconditionFailed
            )
            let current = try await client.entry(at: item.path).revision
            try await history.restore(all[2], of: item, current: current)
            #expect(try await client.text("report.txt") == "content 1")
            #expect(
                await failure { _ = try await history.versions(of: .root, page: nil) } == .notAFile
            )
        }
    }

    @Test("links have rights, an end and a password, and are taken back")
    func links() async throws {
        try await Cloud.with { cloud in
            let client = cloud.client()
            let sharing = try #require(client.links)
            cloud.write("for all", to: ["a & b", "ü+.txt"])
            let item = ItemReference.at("a & b/ü+.txt")
            #expect(try await sharing.links(of: item, page: nil).links.isEmpty)
            let plain = try await sharing.share(LinkWish(item: item, isFolder: false))
            #expect(!plain.mayEdit && !plain.hasPassword && plain.expires == nil)
            #expect(plain.path == item.path)
            let end = Timestamp(seconds: Timestamp.now.seconds + 7 * 86_400)
            let special = try await sharing.share(
                LinkWish(
                    item: .at("a & b"),
                    isFolder: true,
                    mayEdit: true,
                    expires: end,
                    password: "correct & horse"
                )
            )
            #expect(special.mayEdit && special.hasPassword)
            let expires = try #require(special.expires)
            #expect(abs(expires.seconds - end.seconds) <= 86_400)
            #expect(try await sharing.links(of: item, page: nil).links.map(\.url) == [plain.url])
            #expect(try await sharing.links(of: nil, page: nil).links.count == 2)
            try await sharing.withdraw(plain)
            try await sharing.withdraw(plain)
            #expect(try await sharing.links(of: nil, page: nil).links.map(\.id) == [special.id])
            #expect(
                await failure {
                    _ = try await sharing.share(
                        LinkWish(item: .at("none"), isFolder: false)
                    )
                } == .notFound
            )
        }
    }
}
