import OortCatalog
import OortModel
import OortPlanner
import Testing

@Suite("Conflicts")
struct ConflictTests {
    private let world: TemporaryAccount
    private var catalog: Catalog { world.catalog }
    private var account: Account { world.account }
    private var root: Inode { account.root }

    init() throws { world = try TemporaryAccount() }

    private func file(_ path: String, _ revision: String) -> Change {
        guard case .changed(var item) = Change.told(path, "id:f") else {
            return .told(path, "id:f")
        }
        item.rev = Revision(revision)
        item.contentHash = ContentHash(algorithm: .md5, value: revision)
        return .changed(item)
    }

    /// A file that was changed on both sides, and its copy.
    private func conflict() async throws -> Conflict {
        try await world.page([.told("/folder/", "id:o"), file("/f.txt", "1")])
        let node = try #require(try catalog.lookup("f.txt", in: catalog.node(root)))
        _ = try catalog.setCopiedContent(
            item: ItemID("id:other"),
            revision: Revision("9"),
            hash: ContentHash(algorithm: .md5, value: "mine"),
            size: 5,
            modified: .now,
            of: node.inode
        )
        try await world.page([file("/f.txt", "2")])
        try await world.plan()
        let found = try await catalog.conflicts(account.id)
        #expect(found.count == 1)
        let conflict = try #require(found.first)
        #expect(conflict.original.path == ["f.txt"] && conflict.original.inode == node.inode)
        #expect(conflict.copy.path.first?.hasPrefix("f (conflicted copy ") == true)
        #expect(conflict.copy.size == 5)
        return conflict
    }

    private func isOpen() async throws -> Bool {
        try await !catalog.conflicts(account.id).isEmpty
    }

    private func rename(_ name: String, to new: String, in folder: Inode? = nil) throws {
        _ = try catalog.rename(name, in: root, to: new, in: folder ?? root, mode: .replace)
    }

    @Test("two saves of one second leave nothing to be sent but the copy")
    func oneSecond() async throws {
        let world = try TemporaryAccount(setsTimes: true)
        let second = Timestamp(seconds: 1_700_000_000, nanoseconds: 0)
        func saved(_ revision: String) -> Change {
            guard case .changed(var item) = file("/f.txt", revision) else {
                return file("/f.txt", revision)
            }
            item.clientModifiedTime = second
            return .changed(item)
        }
        try await world.page([saved("1")])
        let root = try world.catalog.node(world.account.root)
        let node = try #require(try world.catalog.lookup("f.txt", in: root))
        _ = try world.catalog.setCopiedContent(
            item: ItemID("id:other"),
            revision: Revision("9"),
            hash: ContentHash(algorithm: .md5, value: "mine"),
            size: 5,
            modified: Timestamp(seconds: second.seconds, nanoseconds: 500_000_000),
            of: node.inode
        )
        try await world.page([saved("2")])
        let operations = try await world.plan() + world.plan()
        #expect(!operations.isEmpty)
        #expect(!operations.contains { $0.inode == node.inode })
        #expect(try world.catalog.node(node.inode).modified == second)
        #expect(try await !world.catalog.conflicts(world.account.id).isEmpty)
    }

    @Test("a conflict ends when the copy takes the file's place")
    func over() async throws {
        let conflict = try await conflict()
        try rename(conflict.copy.path[0], to: "f.txt")
        #expect(try await !isOpen())
    }

    @Test("a conflict ends when either file is moved away, renamed or deleted")
    func away() async throws {
        for act in 0..<6 {
            let other = try ConflictTests()
            let conflict = try await other.conflict()
            let name = act % 2 == 0 ? conflict.copy.path[0] : "f.txt"
            let folder = try #require(
                try other.catalog.lookup("folder", in: other.catalog.node(other.root))
            )
            switch act / 2 {
            case 0: try other.rename(name, to: name, in: folder.inode)
            case 1: try other.rename(name, to: "g.txt")
            default: _ = try other.catalog.unlink(name, in: other.root)
            }
            #expect(try await !other.isOpen(), "\(act)")
            #expect(try await other.catalog.leftConflicts() == [conflict.id])
        }
    }

    @Test("an editor's save of either file ends nothing")
    func saved() async throws {
        let conflict = try await conflict()
        for name in ["f.txt", conflict.copy.path[0]] {
            _ = try catalog.create(.file, named: "new", in: root)
            try rename("new", to: name)
            #expect(try await isOpen())
            try rename(name, to: "backup")
            #expect(try await !isOpen())
            _ = try catalog.create(.file, named: name, in: root)
            #expect(try await isOpen())
            _ = try catalog.unlink("backup", in: root)
        }
        #expect(try await catalog.leftConflicts().isEmpty)
    }

    @Test("what is ended does not come back, and both files stay")
    func ended() async throws {
        let conflict = try await conflict()
        try await catalog.endConflict(conflict.id)
        #expect(try await !isOpen())
        for name in ["f.txt", conflict.copy.path[0]] {
            #expect(try catalog.lookup(name, in: catalog.node(root)) != nil)
        }
        #expect(try await catalog.leftConflicts().isEmpty)
    }

    @Test("somebody's move of the file decides nothing, somebody's deletion does")
    func elsewhere() async throws {
        _ = try await conflict()
        try await world.page([file("/folder/moved.txt", "2")])
        try await world.plan()
        #expect(
            try await catalog.conflicts(account.id).map(\.original.path) == [
                ["folder", "moved.txt"]
            ]
        )
        try await world.page([.removed(ItemID("id:f"))])
        try await world.plan()
        #expect(try await !isOpen())
    }
}
