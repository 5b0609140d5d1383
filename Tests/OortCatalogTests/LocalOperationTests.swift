import Foundation
import GRDB
import Logging
import OortCatalog
import OortModel
import Synchronization
import Testing

@Suite("Local operations on the catalog")
struct LocalOperationTests {
    let temporary: TemporaryCatalog
    var catalog: Catalog { temporary.catalog }
    let account: Account

    init() throws {
        temporary = try TemporaryCatalog()
        account = try temporary.catalog.registerAccount(
            name: "work",
            service: "dropbox",
            names: Rules.composed
        )
    }

    func names(in folder: Inode) throws -> [String] {
        try catalog.children(of: folder, after: nil, limit: 1000).map(\.name).sorted()
    }

    @Test("who opens a file for writing waits for a transaction that took it for unused")
    func openedDuringATransaction() async throws {
        let (catalog, account) = (catalog, account)
        let file = try catalog.create(
            NewNode(kind: .file, mode: 0o644, owner: 0, group: 0),
            named: "f",
            in: account.root
        )
        let isBegun = Mutex(false)
        let isOver = Mutex(false)
        async let staged = catalog.stage(
            NewStagedContent(size: 3),
            account: account.id,
            modified: .now,
            of: file.inode,
            prepare: { _ in
                isBegun.withLock { $0 = true }
                while !catalog.writers.isOpen(file.inode) { sched_yield() }
                isOver.withLock { $0 = true }
            }
        )
        while !isBegun.withLock({ $0 }) { await Task.yield() }
        catalog.opened(forWriting: file.inode)
        #expect(isOver.withLock { $0 })
        #expect(try catalog.node(file.inode).size == 3)
        _ = try await staged
    }

    @Test("an account is a folder of the mount's root, and registering it again changes nothing")
    func registration() throws {
        let again = try catalog.registerAccount(
            name: "work",
            service: "dropbox",
            names: Rules.composed
        )
        #expect(again.id == account.id)
        #expect(try names(in: .root) == ["work"])
        #expect(throws: CatalogError.exists) {
            try catalog.registerAccount(name: "work", service: "drive", names: Rules.exact)
        }
    }

    @Test("an account stays the person's to whom it belongs first")
    func ownership() throws {
        func identity(_ id: String) -> AccountIdentity {
            AccountIdentity(id: id, displayName: id, email: nil, rootID: ItemID("root of \(id)"))
        }
        func register(_ owner: String?) throws -> Account {
            try catalog.registerAccount(
                name: "work",
                service: "dropbox",
                names: Rules.composed,
                owner: owner.map { AccountOwner(identity: $0) }
            )
        }
        // It is not known yet whose it is.
        #expect(try register(nil).identity == nil)
        #expect(try register("ada").identity == "ada")
        #expect(throws: CatalogError.otherPerson) { try register("bob") }
        #expect(throws: CatalogError.otherPerson) {
            try catalog.setIdentity(identity("bob"), of: account.id)
        }
        #expect(try catalog.account(account.id)?.rootID == nil)
        try catalog.setIdentity(identity("ada"), of: account.id)
        #expect(try catalog.account(account.id)?.rootID == ItemID("root of ada"))
        #expect(throws: CatalogError.otherPerson) {
            try catalog.setIdentity(identity("bob"), of: account.id)
        }
        #expect(try catalog.account(account.id)?.displayName == "ada")
        try temporary.reopen()
        #expect(throws: CatalogError.otherPerson) { try register("bob") }
        #expect(try register("ada").id == account.id)
    }

    @Test("inodes are never used twice and stay over a restart")
    func inodes() throws {
        let first = try catalog.create(.file, named: "a", in: account.root)
        let socket = try catalog.create(
            NewNode(kind: .socket, mode: 0o600, owner: 0, group: 0),
            named: "s",
            in: account.root
        )
        _ = try catalog.unlink("s", in: account.root)
        #expect(throws: CatalogError.notFound) { try catalog.node(socket.inode) }
        try temporary.reopen()
        let second = try catalog.create(.file, named: "b", in: account.root)
        #expect(second.inode > socket.inode)
        #expect(try catalog.node(atPath: ["work", "a"])?.inode == first.inode)
    }

    @Test("names are kept as typed and compared as the service compares")
    func comparison() throws {
        let typed = "Cafe\u{301} Σ.txt"
        let node = try catalog.create(.file, named: typed, in: account.root)
        #expect(Array(node.name.utf8) == Array(typed.utf8))
        let root = try catalog.node(account.root)
        #expect(try catalog.lookup("CAFÉ σ.TXT", in: root)?.inode == node.inode)
        #expect(throws: CatalogError.exists) {
            try catalog.create(.file, named: "café σ.txt", in: account.root)
        }
    }

    @Test("a slash shows as U+2215 and goes to a service that takes slashes")
    func slash() throws {
        let drive = try catalog.registerAccount(
            name: "drive",
            service: "drive",
            names: Rules.exact
        )
        let node = try catalog.create(.file, named: "a∕b.txt", in: drive.root)
        #expect(node.serviceName == "a/b.txt")
        let elsewhere = try catalog.create(.file, named: "a∕b.txt", in: account.root)
        #expect(elsewhere.serviceName == "a∕b.txt")
        #expect(try catalog.servicePath(of: node.inode) == RemotePath(["a/b.txt"]))
    }

    @Test("a symbolic link goes to the service as NAME.rclonelink")
    func link() throws {
        let node = try catalog.create(
            NewNode(kind: .symlink, mode: 0o777, owner: 0, group: 0, target: "../x"),
            named: "link",
            in: account.root
        )
        #expect(node.serviceName == "link.rclonelink")
        let moved = try catalog.rename(
            "link",
            in: account.root,
            to: "other",
            in: account.root,
            mode: .replace
        )
        #expect(moved.node.serviceName == "other.rclonelink")
        #expect(moved.node.target == "../x")
    }

    @Test("rename keeps POSIX's rules")
    func rename() throws {
        let folder = try catalog.create(.folder, named: "d", in: account.root)
        let inner = try catalog.create(.folder, named: "e", in: folder.inode)
        let file = try catalog.create(.file, named: "f", in: account.root)
        let other = try catalog.create(.file, named: "g", in: folder.inode)

        #expect(throws: CatalogError.moveIntoItself) {
            _ = try catalog.rename("d", in: account.root, to: "x", in: inner.inode, mode: .replace)
        }
        #expect(throws: CatalogError.notEmpty) {
            _ = try catalog.create(.folder, named: "empty", in: account.root)
            _ = try catalog.rename(
                "empty",
                in: account.root,
                to: "d",
                in: account.root,
                mode: .replace
            )
        }
        #expect(throws: CatalogError.isAFolder) {
            _ = try catalog.rename("f", in: account.root, to: "d", in: account.root, mode: .replace)
        }
        #expect(throws: CatalogError.notAFolder) {
            _ = try catalog.rename(
                "empty",
                in: account.root,
                to: "f",
                in: account.root,
                mode: .replace
            )
        }
        #expect(throws: CatalogError.exists) {
            _ = try catalog.rename(
                "f",
                in: account.root,
                to: "g",
                in: folder.inode,
                mode: .noReplace
            )
        }
        let swapped = try catalog.rename(
            "f",
            in: account.root,
            to: "g",
            in: folder.inode,
            mode: .exchange
        )
        #expect(swapped.node.inode == file.inode && swapped.node.parent == folder.inode)
        #expect(swapped.other?.inode == other.inode && swapped.other?.parent == account.root)
        #expect(swapped.other?.name == "f")
        let replaced = try catalog.rename(
            "f",
            in: account.root,
            to: "g",
            in: folder.inode,
            mode: .replace
        )
        #expect(replaced.node.inode == other.inode)
        #expect(replaced.other?.inode == file.inode)
        #expect(try names(in: folder.inode) == ["e", "g"])
        #expect(try catalog.node(file.inode).parent == nil)
    }

    @Test(
        "a rename from one normal form to the other is a rename where the service tells them apart"
    )
    func normalForms() throws {
        let drive = try catalog.registerAccount(
            name: "drive",
            service: "drive",
            names: Rules.exact
        )
        let node = try catalog.create(.file, named: "e\u{301}", in: drive.root)
        let both = try catalog.create(.file, named: "\u{e9}", in: drive.root)
        #expect(node.inode != both.inode)
        _ = try catalog.unlink("\u{e9}", in: drive.root)
        let renamed = try catalog.rename(
            "e\u{301}",
            in: drive.root,
            to: "\u{e9}",
            in: drive.root,
            mode: .noReplace
        )
        #expect(Array(renamed.node.name.utf8) == Array("\u{e9}".utf8))
    }

    @Test("a rename between accounts is refused, so that mv copies")
    func acrossAccounts() throws {
        let drive = try catalog.registerAccount(
            name: "drive",
            service: "drive",
            names: Rules.exact
        )
        _ = try catalog.create(.file, named: "f", in: account.root)
        #expect(throws: CatalogError.otherAccount) {
            _ = try catalog.rename("f", in: account.root, to: "f", in: drive.root, mode: .replace)
        }
    }

    @Test("a folder that is not empty cannot be removed, and a file is none")
    func removeFolder() throws {
        let folder = try catalog.create(.folder, named: "d", in: account.root)
        _ = try catalog.create(.file, named: "f", in: folder.inode)
        #expect(throws: CatalogError.notEmpty) {
            try catalog.removeFolder("d", in: account.root)
        }
        #expect(throws: CatalogError.notAFolder) {
            try catalog.removeFolder("f", in: folder.inode)
        }
        #expect(throws: CatalogError.isAFolder) { try catalog.unlink("d", in: account.root) }
        _ = try catalog.unlink("f", in: folder.inode)
        _ = try catalog.removeFolder("d", in: account.root)
        #expect(try names(in: account.root) == [])
    }

    @Test("a listing goes on after the last inode, whatever was removed meanwhile")
    func listing() throws {
        for number in 0..<50 {
            _ = try catalog.create(.file, named: "f\(number)", in: account.root)
        }
        var seen: [String] = []
        var last: Inode?
        while true {
            let page = try catalog.children(of: account.root, after: last, limit: 7)
            guard let end = page.last else { break }
            seen += page.map(\.name)
            last = end.inode
            _ = try catalog.unlink(page[0].name, in: account.root)
        }
        #expect(Set(seen).count == 50 && seen.count == 50)
    }

    @Test("mode, owner, times and extended attributes survive a restart")
    func attributes() throws {
        let node = try catalog.create(.file, named: "f", in: account.root)
        var change = NodeAttributes()
        change.mode = 0o4751
        change.owner = 33
        change.modified = Timestamp(seconds: 1_000_000_000, nanoseconds: 123_456_789)
        _ = try catalog.setAttributes(change, of: node.inode)
        #expect(
            try !catalog.setExtendedAttribute("user.a", to: [0, 255, 1], of: node.inode)
        )
        #expect(try catalog.setExtendedAttribute("user.a", to: [7], of: node.inode))
        try temporary.reopen()
        let read = try catalog.node(node.inode)
        #expect(read.mode == 0o4751 && read.owner == 33 && read.group == 1000)
        #expect(read.modified == Timestamp(seconds: 1_000_000_000, nanoseconds: 123_456_789))
        #expect(try catalog.extendedAttribute("user.a", of: node.inode) == [7])
        #expect(try catalog.extendedAttributes(of: node.inode) == ["user.a"])
    }

    @Test("staged content that replaces a copy goes back to the file's own base")
    func stagedOverCopy() throws {
        let node = try catalog.create(.file, named: "f", in: account.root)
        _ = try catalog.setCopiedContent(
            item: ItemID("id:other"),
            revision: Revision("r9"),
            hash: nil,
            size: 5,
            modified: .now,
            of: node.inode
        )
        #expect(
            try catalog.node(node.inode).content
                == .revision(item: ItemID("id:other"), Revision("r9"))
        )
        _ = try catalog.setStaged(ContentID(4), size: 3, modified: .now, of: node.inode)
        #expect(try catalog.node(node.inode).content == .staged(ContentID(4), base: nil))
    }

    @Test("of what is pending it is told in which folders it lies")
    func pendingBelow() async throws {
        let new = NewNode(kind: .folder, mode: 0o755, owner: 0, group: 0)
        let outer = try catalog.create(new, named: "outer", in: account.root)
        let inner = try catalog.create(new, named: "inner", in: outer.inode)
        let file = try catalog.create(.file, named: "f", in: inner.inode)
        let other = try catalog.create(.file, named: "g", in: account.root)
        let all = try await catalog.pending(account.id)
        let found = try #require(all.first { $0.inode == file.inode })
        #expect(found.folders == [inner.inode, outer.inode, account.root])
        for scope in [account.root, outer.inode, inner.inode, file.inode, other.inode] {
            #expect(
                try await catalog.pending(account.id, below: scope) == all.filter { $0.isIn(scope) }
            )
        }
        #expect(all.filter { $0.isIn(outer.inode) }.map(\.path.last) == ["outer", "inner", "f"])
    }

    @Test("all that is pending is counted in groups, with examples and what keeps it back")
    func pendingSurvey() async throws {
        let new = NewNode(kind: .folder, mode: 0o755, owner: 0, group: 0)
        let refused = try catalog.create(new, named: "refused", in: account.root)
        let inner = try catalog.create(new, named: "inner", in: refused.inode)
        for number in 0..<5 {
            _ = try catalog.create(.file, named: "f\(number)", in: inner.inode)
            _ = try catalog.create(.file, named: "g\(number)", in: account.root)
        }
        // A folder that keeps something back is one with an error.
        try await catalog.failed(
            refused.inode,
            PushTrouble(kind: "nameRefused", detail: "", nextTry: 0),
            isUnknown: false
        )
        let survey = try await catalog.surveyPending(
            account.id,
            examples: 2,
            isRefused: { $0.inode == refused.inode },
            kind: { item, obstacle in "\(item.kind) \(obstacle == refused.inode)" }
        )
        #expect(
            survey.groups.mapValues(\.count) == [
                "folder false": 1, "folder true": 1, "file true": 5, "file false": 5,
            ]
        )
        #expect(
            survey.groups["file true"]?.examples.map(\.path) == [
                ["refused", "inner", "f0"], ["refused", "inner", "f1"],
            ]
        )
        let all = try await catalog.pending(account.id)
        #expect(survey.groups.values.reduce(0) { $0 + $1.count } == all.count)
    }

    @Test("removing an account takes all of its rows")
    func removeAccount() throws {
        let node = try catalog.create(.file, named: "f", in: account.root)
        try catalog.removeAccount(account.id)
        #expect(throws: CatalogError.notFound) { try catalog.node(node.inode) }
        #expect(try catalog.accounts() == [])
        #expect(try names(in: .root) == [])
    }

    @Test("a file that is no database is told, not overwritten")
    func corrupt() throws {
        let path = temporary.folder.appendingPathComponent("other.sqlite").path
        let junk = Data("this is no database at all, only a text of some length".utf8)
        try junk.write(to: URL(fileURLWithPath: path))
        #expect {
            try Catalog(path: path, logger: Logger(label: "test"))
        } throws: { error in
            if case CatalogError.corrupt = error { true } else { false }
        }
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == junk)
    }

    @Test("names are escaped, numbered and shortened within 255 bytes")
    func shownNames() {
        var item = Item(id: ItemID("1"), kind: .file, fileName: "a/b\0c")
        #expect(ShownName.shown(item) == "a∕b␀c")
        item.fileName = ".."
        #expect(ShownName.shown(item) == "．．")
        item.fileName = String(repeating: "ж", count: 300)
        #expect(ShownName.shown(item).utf8.count == 254)
        #expect(ShownName.numbered("a.tar.gz", 2) == "a.tar (2).gz")
        #expect(ShownName.numbered(".bashrc", 3) == ".bashrc (3)")
        let long = String(repeating: "x", count: 251) + ".txt"
        #expect(ShownName.numbered(long, 12).utf8.count == 255)
        #expect(ShownName.numbered(long, 12).hasSuffix(" (12).txt"))
        #expect(
            ShownName.conflictCopy("r.odt", date: "2026-11-21", host: "box")
                == "r (conflicted copy 2026-11-21 box).odt"
        )
    }
}
