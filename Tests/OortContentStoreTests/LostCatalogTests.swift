import Foundation
import OortCatalog
import OortModel
import Testing

@testable import OortContentStore

@Suite("Staged content whose catalog is lost or another", .timeLimit(.minutes(15)))
struct LostCatalogTests {
    private static let only: [UInt8] = Array("the only copy".utf8)

    /// A file that was written and closed, and one that a program has open.
    private func write(_ fixture: StoreFixture) throws {
        for name in ["closed", "open"] {
            let content = try fixture.stage(of: try fixture.file(name))
            _ = try content.write(Self.only, at: 0)
            if name == "closed" { try content.record(modified: .now) }
        }
    }

    @Test(
        "with the catalog's log or main file lost all that was written is moved aside",
        arguments: [
            [""], ["-wal"], ["", "-wal"], ["", "-shm"], ["-wal", "-shm"], ["", "-wal", "-shm"],
        ],
        [true, false]
    )
    func lost(endings: [String], isStamped: Bool) async throws {
        let fixture = try StoreFixture()
        // A folder that an older version used bears no stamp.
        if isStamped { try await fixture.store.recover() }
        try write(fixture)
        let recovery = try await fixture.crash(losing: endings)
        #expect(recovery.aside == 2)
        #expect(try fixture.aside == [Self.only, Self.only])
        #expect(fixture.files("state").count(where: { $0.hasPrefix("staged/") }) == 0)
        // The next daemon has nothing to say of it.
        #expect(try await fixture.restart() == ContentRecovery())
        #expect(try fixture.aside.count == 2)
    }

    @Test(
        "with all files, or all but the shared memory's, everything is as it was",
        arguments: [[], ["-shm"]]
    )
    func kept(endings: [String]) async throws {
        let fixture = try StoreFixture()
        try await fixture.store.recover()
        try write(fixture)
        let recovery = try await fixture.crash(losing: endings)
        #expect(recovery.recovered == 1 && recovery.damaged.isEmpty && recovery.aside == 0)
        #expect(try fixture.aside.isEmpty)
    }

    @Test("a catalog that was closed needs its log no longer")
    func closed() async throws {
        let fixture = try StoreFixture()
        try await fixture.store.recover()
        try write(fixture)
        await fixture.store.stop()
        try fixture.catalog.close()
        let main = try Data(contentsOf: URL(filePath: fixture.catalog.path))
        let recovery = try await fixture.crash(replacing: ["": main])
        #expect(recovery.damaged.isEmpty && recovery.aside == 0 && !recovery.isOfAnotherCatalog)
        #expect(fixture.store.usage.staged == Int64(2 * Self.only.count))
    }

    @Test("an older copy of the catalog does not take newer contents for its own")
    func older() async throws {
        let fixture = try StoreFixture()
        try await fixture.store.recover()
        let old = try fixture.stage(of: try fixture.file("old"))
        _ = try old.write([1], at: 0)
        try old.record(modified: .now)
        let copy = try fixture.catalogFiles()
        _ = try await fixture.restart()
        try write(fixture)
        let recovery = try await fixture.crash(replacing: copy)
        #expect(recovery.isOfAnotherCatalog && recovery.aside == 3)
        #expect(try fixture.aside.sorted { $0.count < $1.count } == [[1], Self.only, Self.only])
        // What it says of a content of its own is not sent as if it were there.
        #expect(recovery.damaged == [old.id.rawValue])
        await #expect(throws: ProviderError.self) { try await fixture.store.freeze(old.id) }
        #expect(try await fixture.restart().aside == 0)
    }

    @Test("of an older copy of the same run, which bears its stamp, nothing is taken away")
    func olderOfTheSameRun() async throws {
        let fixture = try StoreFixture()
        try await fixture.store.recover()
        let copy = try fixture.catalogFiles()
        try write(fixture)
        let recovery = try await fixture.crash(replacing: copy)
        #expect(!recovery.isOfAnotherCatalog && recovery.aside == 2)
        #expect(try fixture.aside == [Self.only, Self.only])
    }

    @Test("the cache of another catalog's is not given for this one's revisions")
    func cache() async throws {
        let fixture = try StoreFixture()
        try await fixture.store.recover()
        let copy = try fixture.catalogFiles()
        _ = try await fixture.restart()
        func read(_ item: String, _ bytes: [UInt8]) async throws {
            let content = try fixture.remote(item, bytes)
            #expect(try await content.bytes(0..<Int64(bytes.count)) == bytes)
            await content.verified()
            await fixture.store.save()
            fixture.store.close(content)
        }
        try await read("a", [1, 1, 1])
        let later = try fixture.catalogFiles()
        _ = try await fixture.crash(replacing: copy)
        // Under the number that the other catalog gave to "a".
        try await read("b", [2, 2, 2])
        _ = try await fixture.crash(replacing: later)
        let again = try fixture.remote("a", [1, 1, 1])
        #expect(try await again.bytes(0..<3) == [1, 1, 1])
    }

    @Test("files whose making a kill broke off are no false alarm")
    func broken() async throws {
        let fixture = try StoreFixture()
        let recovery = try await fixture.store.recover()
        #expect(recovery.aside == 0 && recovery.strays == 0)
        let paths = fixture.store.paths
        // A new file.
        _ = try DiskFile.open(paths.staged(ContentID(100)), creates: true)
        // One over a base.
        try DiskFile.open(paths.staged(ContentID(101)), creates: true).resize(to: 1 << 20)
        _ = try DiskFile.open(paths.journal(ContentID(101)), creates: true)
        // A clone.
        let clone = fixture.store.temporaryPath()
        try DiskFile.open(clone, creates: true).write([1, 2, 3][...], at: 0)
        try DiskFile.link(clone, as: paths.staged(ContentID(102)))
        // A sidecar whose content is gone.
        _ = try DiskFile.open(paths.journal(ContentID(103)), creates: true)
        let found = try await fixture.crash()
        #expect(found.aside == 0 && found.strays > 0)
        #expect(try fixture.aside.isEmpty && fixture.files("state").isEmpty)
    }

    @Test("what a program removed, and of which a kill left the file, is no false alarm")
    func garbage() async throws {
        let fixture = try StoreFixture()
        try await fixture.store.recover()
        let node = try fixture.file("f")
        let content = try fixture.stage(of: node)
        _ = try content.write(Self.only, at: 0)
        _ = try fixture.catalog.unlink("f", in: fixture.account.root)
        let other = try fixture.stage(of: try fixture.file("g"))
        fixture.store.close(other)
        // The file has another content; no file has the first.
        let path = fixture.store.paths.staged(content.id)
        let found = try await fixture.crash()
        #expect(found.aside == 0)
        #expect(try DiskFile.exists(path) == (fixture.catalog.content(content.id) != nil))
    }

    @Test("a clone whose catalog's transaction fails leaves no bytes under its number")
    func failedClone() async throws {
        let fixture = try StoreFixture()
        try await fixture.store.recover()
        let content = try fixture.stage(of: try fixture.file("f"))
        _ = try content.write(Self.only, at: 0)
        let frozen = try await fixture.store.freeze(content.id)
        let number = ContentID(content.id.rawValue + 1)
        func give() async throws {
            let thawed = try await fixture.store.thaw(content)
            try DiskFile.link(thawed.path, as: fixture.store.paths.staged(number))
        }
        try await give()
        #expect(try DiskFile.open(fixture.store.paths.staged(number)).size() == 0)
        fixture.store.release(frozen)
    }

    @Test("a new content never takes an unknown file's place")
    func taken() async throws {
        let fixture = try StoreFixture()
        try await fixture.store.recover()
        let first = try fixture.stage(of: try fixture.file("f"))
        let next = ContentID(first.id.rawValue + 1)
        try DiskFile.open(fixture.store.paths.staged(next), creates: true)
            .write(Self.only[...], at: 0)
        let second = try fixture.stage(of: try fixture.file("g"))
        #expect(second.id == next)
        #expect(try await second.bytes(0..<10).isEmpty)
        #expect(try fixture.aside == [Self.only])
    }
}
