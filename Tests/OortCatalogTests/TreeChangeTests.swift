import OortCatalog
import OortModel
import Synchronization
import Testing

@Suite("what whoever watches the tree is told", .timeLimit(.minutes(15)))
struct TreeChangeTests {
    private let fixture: TemporaryAccount
    private var catalog: Catalog { fixture.catalog }
    private var root: Inode { fixture.account.root }

    init() throws { fixture = try TemporaryAccount() }

    /// The reports of the transactions in `work`: what, the path, and "there" when it came from the
    /// service.
    private func told(of work: () async throws -> Void) async throws -> [String] {
        let heard = Heard()
        catalog.setTreeObserver(TreeObserver(changed: { heard.hear($0) }, told: {}))
        defer { catalog.setTreeObserver(nil) }
        try await work()
        return heard.words
    }

    private func node(_ path: String) throws -> Node {
        let parts = path.split(separator: "/").map(String.init)
        return try #require(try catalog.node(atPath: ["work"] + parts))
    }

    @Test("what programs do here")
    func here() async throws {
        let told = try await told {
            let folder = try catalog.create(.folder, named: "a", in: root)
            _ = try catalog.create(.file, named: "x", in: folder.inode)
            _ = try catalog.rename("x", in: folder.inode, to: "y", in: root, mode: .replace)
            _ = try catalog.rename("a", in: root, to: "b", in: root, mode: .replace)
            _ = try catalog.unlink("y", in: root)
        }
        #expect(
            told == [
                "created work/a", "created work/a/x", "moved work/a/x to work/y",
                "moved work/a to work/b", "deleted work/y",
            ]
        )
    }

    @Test("what is replaced is gone, and what replaces it has moved")
    func replacing() async throws {
        _ = try catalog.create(.file, named: "old", in: root)
        _ = try catalog.create(.file, named: "new", in: root)
        let told = try await told {
            _ = try catalog.rename("new", in: root, to: "old", in: root, mode: .replace)
        }
        #expect(told == ["deleted work/old", "moved work/new to work/old"])
    }

    @Test("what somebody else does")
    func there() async throws {
        let came = try await told {
            try await fixture.page([.told("a/", "a"), .told("a/x", "x"), .told("a/y", "y")])
        }
        #expect(
            came == ["created work/a there", "created work/a/x there", "created work/a/y there"]
        )
        let moved = try await told { try await fixture.page([.told("a/z", "x")]) }
        #expect(moved == ["moved work/a/x to work/a/z there"])
        var item = Item(id: ItemID("y"), kind: .file, fileName: "y")
        (item.path, item.rev, item.size) = (RemotePath(["a", "y"]), Revision("2"), 7)
        let changed = try await told { [item] in try await fixture.page([.changed(item)]) }
        #expect(changed == ["content work/a/y there"])
        let gone = try await told {
            try await fixture.page([.removedPath(RemotePath(["a"]))])
            try await fixture.plan()
        }
        #expect(Set(gone.dropLast()) == ["deleted work/a/y there", "deleted work/a/z there"])
        #expect(gone.last == "deleted work/a there")
    }

    @Test("a change of attributes alone is told as such, and none that nobody sees")
    func attributes() async throws {
        let file = try catalog.create(.file, named: "x", in: root)
        let told = try await told {
            var change = NodeAttributes()
            change.mode = 0o600
            _ = try catalog.setAttributes(change, of: file.inode)
            _ = try catalog.setAttributes(change, of: file.inode)
        }
        #expect(told == ["attributes work/x"])
    }

    @Test("an account that goes is too much to tell one by one")
    func account() async throws {
        let told = try await told { try catalog.removeAccount(fixture.account.id) }
        #expect(told == ["too many"])
    }

    @Test("a transaction that fails is not told")
    func failing() async throws {
        _ = try catalog.create(.file, named: "x", in: root)
        let told = try await told {
            #expect(throws: CatalogError.exists) {
                try catalog.create(.file, named: "x", in: root)
            }
        }
        #expect(told.isEmpty)
    }
}

/// The changes that an observer got, in words.
private final class Heard: Sendable {
    private let changes = Mutex<[TreeChanges]>([])

    func hear(_ new: TreeChanges) { changes.withLock { $0.append(new) } }

    var words: [String] {
        changes.withLock { $0 }.flatMap { changes in
            switch changes {
            case .tooMany: ["too many"]
            case .these(let changes): changes.map(Self.words)
            }
        }
    }

    private static func words(_ change: TreeChange) -> String {
        let path = change.path.joined(separator: "/")
        let words =
            switch change.kind {
            case .created: "created"
            case .changed(content: true): "content"
            case .changed(content: false): "attributes"
            case .moved(let from): "moved \(from.joined(separator: "/")) to"
            case .deleted: "deleted"
            case .sent: "sent"
            }
        return "\(words) \(path)" + (change.isNews ? " there" : "")
    }
}
