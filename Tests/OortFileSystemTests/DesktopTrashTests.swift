import OortCatalog
import OortFileSystem
import OortModel
import Testing

@Suite("The desktop's trash")
struct DesktopTrashTests {
    @Test("what the service's trash cannot take is refused at once, and stays; all else goes")
    func cannotTake() async throws {
        let fixture = try FileSystemFixture()
        try await fixture.know()
        for name in ["kept", "refused"] { try await fixture.observe(name, [1]) }
        let system = TrashFileSystem(
            fixture.system,
            service: TrashService(
                keepsDeleted: { _, id in id != ItemID("id-refused") },
                mark: { _, _ in nil },
                restore: { _, _, _ throws(FileSystemError) in }
            )
        )
        func entry(_ name: String, _ folder: Inode) async throws -> Inode {
            try await system.lookup(name, in: folder).value().attributes.inode
        }
        let top = try await entry(".Trash-\(fixture.settings.owner)", .root)
        let (files, info) = (try await entry("files", top), try await entry("info", top))
        func trash(_ name: String) async throws {
            _ = try await system.create(
                name + ".trashinfo",
                in: info,
                permissions: 0o600,
                caller: Caller(owner: 0, group: 0),
                mode: OpenMode(reads: true, writes: true),
                isExclusive: true
            ).value()
            try await system.rename(
                name,
                in: fixture.account.root,
                to: name,
                in: files,
                mode: .noReplace
            ).value()
        }
        try await trash("kept")
        await #expect(throws: FileSystemError.notInTrash) { try await trash("refused") }
        _ = try await entry("refused", fixture.account.root)
        _ = try await entry("kept", files)
        await #expect(throws: FileSystemError.notFound) {
            _ = try await entry("kept", fixture.account.root)
        }
    }
}
