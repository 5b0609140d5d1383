import OortModel
import Testing

@testable import OortCatalog

/// Small files at the service that hold symbolic links.
@Suite("Link files")
struct LinkTests {
    let world: TemporaryAccount
    var catalog: Catalog { world.catalog }

    init() throws { world = try TemporaryAccount(service: "drive") }

    private func file(
        _ name: String,
        isOwn: Bool,
        revision: String = "1",
        size: Int64? = 5
    ) -> Item {
        var item = Item(id: ItemID("1"), kind: .file, fileName: name, parentID: ItemID("root"))
        (item.isOwn, item.rev, item.size) = (isOwn, Revision(revision), size)
        return item
    }

    private func shown() throws -> [String: NodeKind] {
        let nodes = try catalog.children(of: world.account.root, after: nil, limit: 100)
        return Dictionary(uniqueKeysWithValues: nodes.map { ($0.name, $0.kind) })
    }

    @Test("only what this account made or owns is a link, unless the policy says otherwise")
    func policies() async throws {
        let link: [String: NodeKind] = ["l": .symlink]
        let plain: [String: NodeKind] = ["l.rclonelink": .file]
        for (policy, own, strangers) in [
            (LinkPolicy.own, link, plain), (.inside, link, link), (.all, link, link),
            (.off, plain, plain),
        ] {
            try catalog.setLinkPolicy(policy, of: world.account.id)
            for (isOwn, expected) in [(true, own), (false, strangers)] {
                try await world.page([.changed(file("l.rclonelink", isOwn: isOwn))])
                #expect(try shown() == expected, "\(policy), own: \(isOwn)")
                try await world.page([.removed(ItemID("1"))])
                #expect(try shown() == [:])
            }
        }
    }

    @Test("a link is a file once somebody else wrote it, and a link again once this account did")
    func changes() async throws {
        try await world.page([.changed(file("l.rclonelink", isOwn: true))])
        #expect(try shown() == ["l": .symlink])
        try await world.page([.changed(file("l.rclonelink", isOwn: false, revision: "2"))])
        #expect(try shown() == ["l.rclonelink": .file])
        try await world.page([.changed(file("l.rclonelink", isOwn: true, revision: "3"))])
        #expect(try shown() == ["l": .symlink])
        try await world.page([.changed(file("l.txt", isOwn: true, revision: "3"))])
        #expect(try shown() == ["l.txt": .file])
    }

    @Test("another policy holds for what is known already, once the account was enumerated again")
    func changedPolicy() async throws {
        try catalog.setLinkPolicy(.own, of: world.account.id)
        try await world.page([.changed(file("l.rclonelink", isOwn: false))])
        #expect(try catalog.account(world.account.id)?.cursor != nil)
        try catalog.setLinkPolicy(.own, of: world.account.id)
        #expect(try catalog.account(world.account.id)?.cursor != nil)
        try catalog.setLinkPolicy(.all, of: world.account.id)
        #expect(try catalog.account(world.account.id)?.cursor == nil)
        try await world.page([.changed(file("l.rclonelink", isOwn: false))])
        #expect(try shown() == ["l": .symlink])
    }

    @Test(
        "what is empty, or longer than any target, is a file whoever made it",
        arguments: [(nil, false), (0, false), (1, true), (4095, true), (4096, false)]
            as [(Int64?, Bool)]
    )
    func sizes(_ size: Int64?, _ isLink: Bool) async throws {
        try await world.page([.changed(file("l.rclonelink", isOwn: true, size: size))])
        #expect(try shown() == (isLink ? ["l": .symlink] : ["l.rclonelink": .file]))
    }

    @Test("a link that was refused stays a file for as long as it has this revision")
    func refused() async throws {
        try catalog.setLinkPolicy(.all, of: world.account.id)
        try await world.page([.changed(file("l.rclonelink", isOwn: false))])
        let inode = try #require(try catalog.node(atPath: ["work", "l"])).inode
        try catalog.showAsFile(inode)
        #expect(try shown() == ["l.rclonelink": .file])
        try await world.page([.changed(file("l.rclonelink", isOwn: false))])
        #expect(try shown() == ["l.rclonelink": .file])
        try await world.page([.changed(file("m.rclonelink", isOwn: false))])
        #expect(try shown() == ["m.rclonelink": .file])
        try await world.page([.changed(file("m.rclonelink", isOwn: false, revision: "2"))])
        #expect(try shown() == ["m": .symlink])
    }

    @Test("a link that was made here is never shown as a file, for its target is only here")
    func local() throws {
        let node = try catalog.create(
            NewNode(kind: .symlink, mode: 0o777, owner: 0, group: 0, target: "/etc"),
            named: "l",
            in: world.account.root
        )
        try catalog.showAsFile(node.inode)
        #expect(try shown() == ["l": .symlink])
        #expect(try catalog.node(node.inode).target == "/etc")
    }
}
