import OortCatalog
import OortFileSystem
import OortModel
import Synchronization
import Testing

/// Link files that came from the service, in a folder two levels below the account's own.
@Suite("Links of others", .timeLimit(.minutes(15)))
struct StrangersLinkTests {
    /// What `readlink` says of a link of this text: the target, or that it is no link.
    private func read(
        _ target: [UInt8],
        isOwn: Bool,
        _ policy: LinkPolicy
    ) async throws -> String? {
        var settings = FileSystemSettings()
        settings.links = policy
        let fixture = try FileSystemFixture(settings: settings)
        let system = fixture.system
        try fixture.catalog.setLinkPolicy(policy, of: fixture.account.id)
        var parent = try fixture.setRoot()
        for name in ["a", "b"] {
            let folder = Item(id: ItemID(name), kind: .folder, fileName: name, parentID: parent)
            try await fixture.observe(folder)
            parent = folder.id
        }
        var item = Item(
            id: ItemID("link"),
            kind: .file,
            fileName: "l.rclonelink",
            parentID: parent
        )
        (item.size, item.rev, item.isOwn) = (Int64(target.count), Revision("1"), isOwn)
        fixture.service.contents.withLock { $0["link"] = target }
        try await fixture.observe(item)
        func find(_ name: String) throws -> Node? {
            try fixture.catalog.node(atPath: ["work", "a", "b", name])
        }
        if let link = try find("l") {
            do {
                let found = try await system.readLink(link.inode).value()
                #expect(try await system.readLink(link.inode).value() == found)
                #expect(try find("l")?.kind == .symlink)
                return found
            } catch { #expect(error as? FileSystemError == .invalid) }
        }
        #expect(try find("l") == nil)
        let file = try #require(try find("l.rclonelink"))
        #expect(file.kind == .file)
        await #expect(throws: FileSystemError.invalid) {
            _ = try await system.readLink(file.inode).value()
        }
        // Its bytes can be read, whatever they are.
        let opened = try await system.open(file.inode, mode: OpenMode()).value()
        #expect(try await system.bytes(opened.handle, 0, 10_000) == target)
        system.release(opened.handle)
        return nil
    }

    @Test(
        "somebody else's link leads as far as the policy lets it",
        arguments: [
            ("/etc/passwd", false), ("../../../x", false), ("../..", true), ("../../..", false),
            ("x", true), ("./x/../../y", true), ("x/../../../../y", false),
            ("../../../work/x", false),
            ("..//../x", true), ("//x", false), (".../x", true),
        ]
    )
    func strangers(_ target: String, _ isInside: Bool) async throws {
        let bytes = [UInt8](target.utf8)
        #expect(try await read(bytes, isOwn: false, .own) == nil)
        #expect(try await read(bytes, isOwn: false, .off) == nil)
        #expect(try await read(bytes, isOwn: false, .inside) == (isInside ? target : nil))
        #expect(try await read(bytes, isOwn: false, .all) == target)
        #expect(try await read(bytes, isOwn: true, .own) == target)
        #expect(try await read(bytes, isOwn: true, .inside) == target)
    }

    @Test(
        "what is no target is a plain file, whoever made it",
        arguments: [
            [], [0], [97, 0, 98], [0xFF, 0xFE], [UInt8](repeating: 97, count: 4096),
        ]
    )
    func noTargets(_ bytes: [UInt8]) async throws {
        #expect(try await read(bytes, isOwn: true, .own) == nil)
        #expect(try await read(bytes, isOwn: false, .all) == nil)
    }

    @Test("the longest target is a link")
    func longest() async throws {
        let bytes = [UInt8](repeating: 97, count: 4095)
        #expect(try await read(bytes, isOwn: true, .own)?.utf8.count == 4095)
    }

    @Test("with links off, none can be made")
    func off() async throws {
        var settings = FileSystemSettings()
        settings.links = .off
        let fixture = try FileSystemFixture(settings: settings)
        await #expect(throws: FileSystemError.notPermitted) {
            _ = try await fixture.system.makeLink(
                "l",
                to: "x",
                in: fixture.account.root,
                caller: CloudFileSystem.caller
            ).value()
        }
    }
}
