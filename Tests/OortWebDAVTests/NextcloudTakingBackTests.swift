import Foundation
import OortModel
import OortSimulators
import OortWebDAV
import Testing

/// What a Nextcloud keeps of what was deleted and overwritten, and its links.
@Suite("taking back at a Nextcloud", .timeLimit(.minutes(9)))
struct NextcloudTakingBackTests {
    private func reference(_ path: String) -> ItemReference {
        ItemReference(id: ItemID(""), path: RemotePath(text: path))
    }

    private var root: ItemReference { ItemReference(id: ItemID(""), path: .root) }

    private func kind(_ body: () async throws -> Void) async -> ProviderError.Kind? {
        do {
            try await body()
            return nil
        } catch { return (error as? ProviderError)?.kind }
    }

    @Test("what was deleted is listed with its place and goes where it is told")
    func trash() async throws {
        try await Cloud.with { cloud in
            let client = cloud.client()
            let trash = try #require(client.trash)
            #expect(try await trash.entries(below: root, page: nil).entries.isEmpty)
            cloud.write("the note", to: ["papers", "100% ü.txt"])
            cloud.write("deep", to: ["gone", "deep", "file.txt"])
            let id = try #require(cloud.item("papers/100% ü.txt")).id
            try await client.delete(
                .file,
                at: RemotePath(["papers", "100% ü.txt"]),
                revision: nil
            )
            try await client.delete(.folder, at: RemotePath(["gone"]), revision: nil)
            let all = try await trash.entries(below: root, page: nil).entries
            #expect(all.count == 2)
            let note = try #require(all.first { $0.kind == .file })
            #expect(note.path == RemotePath(["papers", "100% ü.txt"]))
            #expect(note.name == "100% ü.txt")
            #expect(note.size == 8)
            #expect(note.deletedTime != nil)
            cloud.write("theirs", to: ["papers", "100% ü.txt"])
            let back = Placement(folder: reference("papers"), name: "100% ü.txt")
            #expect(await kind { try await trash.restore(note, to: back) } == .nameTaken)
            #expect(try await client.text("papers/100% ü.txt") == "theirs")
            let none = Placement(folder: reference("none"), name: "x")
            #expect(await kind { try await trash.restore(note, to: none) } == .parentNotFound)
            try await trash.restore(note, to: Placement(folder: root, name: "back.txt"))
            #expect(cloud.item("back.txt")?.id == id)
            #expect(await kind { try await trash.restore(note, to: back) } == .notFound)
            let folder = try #require(all.first { $0.kind == .folder })
            #expect(folder.path == RemotePath(["gone"]))
            try await trash.restore(folder, to: Placement(folder: root, name: "gone"))
            #expect(try await client.text("gone/deep/file.txt") == "deep")
            #expect(try await trash.entries(below: root, page: nil).entries.isEmpty)
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
            let item = reference("report.txt")
            let all = try await history.versions(of: item, page: nil).versions
            #expect(all.map(\.isCurrent) == [true, false, false, false])
            #expect(all.map(\.size) == [9, 9, 9, 9])
            for (index, version) in all.enumerated() {
                let bytes = try await history.read(version, of: item).collect(atMost: 1 << 20)
                #expect(String(decoding: bytes, as: UTF8.self) == "content \(3 - index)")
            }
            #expect(
                await kind {
                    try await history.restore(all[2], of: item, current: Revision("other"))
                } == .preconditionFailed
            )
            let current = try await client.entry(at: item.path).revision
            try await history.restore(all[2], of: item, current: current)
            #expect(try await client.text("report.txt") == "content 1")
            #expect(
                await kind { _ = try await history.versions(of: root, page: nil) } == .notAFile
            )
        }
    }

    @Test("links have rights, an end and a password, and are taken back")
    func links() async throws {
        try await Cloud.with { cloud in
            let client = cloud.client()
            let sharing = try #require(client.links)
            cloud.write("for all", to: ["a & b", "ü+.txt"])
            let item = reference("a & b/ü+.txt")
            #expect(try await sharing.links(of: item, page: nil).links.isEmpty)
            let plain = try await sharing.share(LinkWish(item: item, isFolder: false))
            #expect(!plain.mayEdit && !plain.hasPassword && plain.expires == nil)
            #expect(plain.path == item.path)
            let end = Timestamp(seconds: Timestamp.now.seconds + 7 * 86_400)
            let special = try await sharing.share(
                LinkWish(
                    item: reference("a & b"),
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
                await kind {
                    _ = try await sharing.share(
                        LinkWish(item: reference("none"), isFolder: false)
                    )
                } == .notFound
            )
        }
    }
}
