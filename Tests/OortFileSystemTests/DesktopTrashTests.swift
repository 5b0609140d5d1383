import OortCatalog
import OortFileSystem
import OortModel
import OortTesting
import Synchronization
import Testing

@Suite("The desktop's trash", .timeLimit(.minutes(5)))
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
                restore: { _, _, _ throws(FileSystemError) in },
                isInPart: { _, _, _ in false }
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

    @Test("a restore goes on when its caller's time is over, and a repeat is the same one")
    func goesOn() async throws {
        let fixture = try FileSystemFixture()
        try await fixture.know()
        try await fixture.observe("note", [1])
        let begun = Mutex(0)
        let gate = AsyncStream<Void>.makeStream()
        let system = TrashFileSystem(
            fixture.system,
            service: TrashService(
                keepsDeleted: { _, _ in true },
                mark: { _, _ in nil },
                restore: { _, _, _ throws(FileSystemError) in
                    begun.withLock { $0 += 1 }
                    for await _ in gate.stream {}
                    guard !Task.isCancelled else { throw .interrupted }
                },
                isInPart: { _, _, _ in true }
            ),
            // Each caller's time is over at once.
            clock: SleptTime()
        )
        let top = try await system.lookup(".Trash-\(fixture.settings.owner)", in: .root).value()
        let inside = top.attributes.inode
        let files = try await system.lookup("files", in: inside).value().attributes.inode
        let info = try await system.lookup("info", in: inside).value().attributes.inode
        _ = try await system.create(
            "note.trashinfo",
            in: info,
            permissions: 0o600,
            caller: Caller(owner: 0, group: 0),
            mode: OpenMode(reads: true, writes: true),
            isExclusive: true
        ).value()
        let root = fixture.account.root
        try await system.rename("note", in: root, to: "note", in: files, mode: .noReplace).value()
        func bringBack() async throws {
            try await system.rename("note", in: files, to: "note", in: root, mode: .replace).value()
        }
        for _ in 0..<2 {
            await #expect(throws: FileSystemError.timedOut) { try await bringBack() }
        }
        gate.continuation.finish()
        while true {
            do throws(FileSystemError) {
                _ = try await system.lookup("note", in: files).value()
            } catch {
                #expect(error == .notFound)
                break
            }
            await Task.yield()
        }
        #expect(begun.withLock { $0 } == 1)
    }
}
