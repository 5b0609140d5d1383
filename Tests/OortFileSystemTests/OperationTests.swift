import OortCatalog
import OortContentStore
import OortFileSystem
import OortModel
import Synchronization
import Testing

@Suite("Operations of the file system", .timeLimit(.minutes(15)))
struct OperationTests {
    let fixture: FileSystemFixture
    var system: CloudFileSystem { fixture.system }
    var root: Inode { fixture.account.root }

    init() throws { fixture = try FileSystemFixture() }

    /// A file whose content is the service's.
    func remote(_ name: String, _ bytes: [UInt8], revision: String = "1") async throws -> Node {
        fixture.service.contents.withLock { $0["id-\(name)"] = bytes }
        let (entry, opened) = try await system.make(name, in: root)
        system.release(opened.handle)
        return try fixture.catalog.setCopiedContent(
            item: ItemID("id-\(name)"),
            revision: Revision(revision),
            hash: nil,
            size: Int64(bytes.count),
            modified: .now,
            of: entry.attributes.inode
        )
    }

    func fails<T: Sendable>(
        _ error: FileSystemError,
        _ outcome: Outcome<T>,
        _ location: SourceLocation = #_sourceLocation
    ) async {
        await #expect(throws: error, sourceLocation: location) { _ = try await outcome.value() }
    }

    @Test("the top folder lists the accounts and cannot be written")
    func top() async throws {
        #expect(try await system.names(.root).sorted() == ["home", "work"])
        // It is dated when it was mounted, and not 1970.
        let dated = try await system.attributes(of: .root, handle: nil).value().attributes
        let hour = Timestamp(seconds: Timestamp.now.seconds - 3600)
        #expect(dated.modified > hour && dated.changed == dated.modified)
        let caller = CloudFileSystem.caller
        await fails(
            .readOnly,
            system.makeFolder("x", in: .root, permissions: 0o755, caller: caller)
        )
        await fails(.readOnly, system.removeFolder("work", in: .root))
        await fails(
            .readOnly,
            system.rename("work", in: .root, to: "w", in: .root, mode: .replace)
        )
        await fails(.notFound, system.lookup("none", in: .root))
    }

    @Test("a path that is too long for the service is refused at once")
    func longPaths() async throws {
        let caller = CloudFileSystem.caller
        func make(_ name: String, in folder: Inode) async throws -> Inode {
            try await system.makeFolder(name, in: folder, permissions: 0o755, caller: caller)
                .value().attributes.inode
        }
        // Six of these, each with its slash, are 906 units; 𝄞 has two, and four bytes.
        let name = String(repeating: "𝄞", count: 20) + String(repeating: "x", count: 110)
        var folder = root
        for _ in 0..<6 { folder = try await make(name, in: folder) }
        await fails(
            .nameTooLong,
            system.makeFolder(
                String(repeating: "y", count: 95),
                in: folder,
                permissions: 0o755,
                caller: caller
            )
        )
        let last = try await make(String(repeating: "y", count: 94), in: folder)
        await fails(
            .nameTooLong,
            system.makeFolder("a", in: last, permissions: 0o755, caller: caller)
        )
        await fails(
            .nameTooLong,
            system.create(
                "a",
                in: last,
                permissions: 0o644,
                caller: caller,
                mode: CloudFileSystem.readWrite,
                isExclusive: false
            )
        )
        await fails(.nameTooLong, system.makeLink("a", to: "b", in: last, caller: caller))
        _ = try await make("a", in: root)
        await fails(
            .nameTooLong,
            system.rename("a", in: root, to: "a", in: last, mode: .replace)
        )
        try await system.rename("a", in: root, to: "a", in: folder, mode: .replace).value()
        // A pipe never goes to the service.
        _ = try await system.makeSpecial(
            "a",
            kind: .fifo,
            in: last,
            permissions: 0o600,
            caller: caller
        ).value()
    }

    @Test("names that the service refuses are refused at once")
    func names() async throws {
        let caller = CloudFileSystem.caller
        await fails(
            .nameRefused(reason: "colon"),
            system.makeFolder("a:b", in: root, permissions: 0o755, caller: caller)
        )
        await fails(
            .nameTooLong,
            system.makeFolder(
                String(repeating: "x", count: 220),
                in: root,
                permissions: 0o755,
                caller: caller
            )
        )
        await fails(
            .nameTooLong,
            system.lookup(String(repeating: "x", count: 256), in: root)
        )
        // A pipe is known to this machine only, and so may be called what it likes.
        let pipe = try await system.makeSpecial(
            "a:b",
            kind: .fifo,
            in: root,
            permissions: 0o600,
            caller: caller
        ).value()
        #expect(pipe.attributes.kind == .fifo)
        await fails(
            .notPermitted,
            system.makeSpecial("d", kind: .device, in: root, permissions: 0, caller: caller)
        )
    }

    @Test("where case does not count, the kernel remembers an item under its own name only")
    func cases() async throws {
        _ = try await system.makeFolder(
            "Foo",
            in: root,
            permissions: 0o755,
            caller: CloudFileSystem.caller
        ).value()
        let own = try await system.lookup("Foo", in: root).value()
        let other = try await system.lookup("fOO", in: root).value()
        #expect(own.attributes == other.attributes)
        #expect(own.validity.entry == Validity.day.entry && other.validity.entry == .zero)
        #expect(system.absenceValidity(in: root) == .zero)
        #expect(system.absenceValidity(in: .root) == Validity.day.entry)
    }

    @Test("an unknown folder costs one listing, shared by all who wait; offline it is an error")
    func listing() async throws {
        let (system, root) = (system, root)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<5 {
                group.addTask { _ = try await system.list(root, after: 0, limit: 10).value() }
            }
            try await group.waitForAll()
        }
        #expect(fixture.service.listings.withLock { $0.allSatisfy { $0 == root } })
        fixture.service.isOffline.withLock { $0 = true }
        await fails(.offline, system.list(root, after: 0, limit: 10))
    }

    /// A folder of an account whose tree is known, which the service does not list.
    private func closedFolder() async throws -> Inode {
        try await fixture.know()
        var closed = Item(
            id: ItemID("closed"),
            kind: .folder,
            fileName: "closed",
            parentID: try fixture.setRoot()
        )
        closed.permissions.remove(.read)
        var all = Observations(changes: [.changed(closed)])
        all.endsEnumeration = true
        all.cursor = Cursor("1")
        _ = try await fixture.catalog.apply(all, to: fixture.account.id)
        let folder = try await system.lookup("closed", in: root).value().attributes.inode
        fixture.service.closed.withLock { _ = $0.insert(folder) }
        return folder
    }

    @Test("a folder that may not be listed is never empty: each look asks the service")
    func closed() async throws {
        let folder = try await closedFolder()
        await fails(.noPermission, system.list(folder, after: 0, limit: 10))
        await fails(.noPermission, system.lookup("in", in: folder))
        await fails(.noPermission, system.removeFolder("closed", in: root))
        fixture.service.isOffline.withLock { $0 = true }
        await fails(.offline, system.list(folder, after: 0, limit: 10))
        await fails(.offline, system.lookup("in", in: folder))
        fixture.service.isOffline.withLock { $0 = false }
        #expect(fixture.service.asked.withLock(\.self) == ["in"])
        #expect(system.absenceValidity(in: folder) == .zero)
    }

    @Test("in a folder that may be searched and not listed, names are found one by one")
    func searchableFolder() async throws {
        let folder = try await closedFolder()
        let service = fixture.service
        service.searchable.withLock { _ = $0.insert(folder) }
        service.named.withLock { [catalog = fixture.catalog, account = fixture.account] in
            $0["in"] = {
                var item = Item(
                    id: ItemID("in"),
                    kind: .file,
                    fileName: "in",
                    parentID: ItemID("closed")
                )
                item.size = 1
                item.rev = Revision("1")
                let news = Observations(changes: [.changed(item)])
                _ = try? await catalog.apply(news, to: account.id)
            }
        }
        await fails(.noPermission, system.list(folder, after: 0, limit: 10))
        await fails(.notFound, system.lookup("other", in: folder))
        #expect(try await system.lookup("in", in: folder).value().attributes.size == 1)
        // One may put something into it, too.
        _ = try await system.makeFolder(
            "new",
            in: folder,
            permissions: 0o755,
            caller: CloudFileSystem.caller
        ).value()
        // What is known of it shows, without network, too.
        for isOffline in [false, true] {
            service.isOffline.withLock { $0 = isOffline }
            let entries = try await system.list(folder, after: 0, limit: 10).value()
            #expect(Set(entries.map(\.name)) == ["in", "new"])
            _ = try await system.lookup("in", in: folder).value()
        }
        service.isOffline.withLock { $0 = false }
        _ = try await system.removeFolder("new", in: folder).value()
        _ = try await system.unlink("in", in: folder).value()
        // Nothing is known in it now: it is not empty for that.
        await fails(.noPermission, system.list(folder, after: 0, limit: 10))
        await fails(.noPermission, system.removeFolder("closed", in: root))
    }

    @Test("links: any target, a link file's text, a shortcut's relative path; hard ones never")
    func links() async throws {
        let link = try await system.makeLink(
            "l",
            to: "../any where",
            in: root,
            caller: CloudFileSystem.caller
        ).value()
        #expect(try await system.readLink(link.attributes.inode).value() == "../any where")
        #expect(link.attributes.size == 12 && link.attributes.kind == .symlink)
        await fails(.invalid, system.readLink(root))
    }

    @Test("extended attributes: ours show the schema, others are kept, other namespaces are not")
    func extendedAttributes() async throws {
        let (entry, _) = try await system.make("f", in: root)
        let inode = entry.attributes.inode
        await fails(.notSupported, system.extendedAttribute("security.capability", of: inode))
        await fails(.noAttribute, system.extendedAttribute("user.a", of: inode))
        try await system.setExtendedAttribute(
            "user.a",
            to: [1, 0, 255],
            of: inode,
            mustExist: nil
        ).value()
        #expect(try await system.extendedAttribute("user.a", of: inode).value() == [1, 0, 255])
        await fails(
            .exists,
            system.setExtendedAttribute("user.a", to: [], of: inode, mustExist: false)
        )
        await fails(
            .noAttribute,
            system.setExtendedAttribute("user.b", to: [], of: inode, mustExist: true)
        )
        let status = try await system.extendedAttribute("user.oort.status", of: inode).value()
        #expect(status == Array("pending".utf8))
        let path = try await system.extendedAttribute("user.oort.path", of: inode).value()
        #expect(path == Array("/f".utf8))
        await fails(
            .notSupported,
            system.setExtendedAttribute("user.oort.id", to: [1], of: inode, mustExist: nil)
        )
        try await system.setExtendedAttribute(
            "user.oort.description",
            to: Array("hello".utf8),
            of: inode,
            mustExist: nil
        ).value()
        #expect(try fixture.catalog.node(inode).itemDescription == "hello")
        let names = try await system.extendedAttributes(of: inode).value()
        #expect(names.contains("user.a") && names.contains("user.oort.description"))
        try await system.removeExtendedAttribute("user.a", of: inode).value()
        await fails(.noAttribute, system.removeExtendedAttribute("user.a", of: inode))
    }

    @Test("seek and allocate are honest")
    func ranges() async throws {
        let (entry, opened) = try await system.make("f", in: root)
        _ = try await system.put(opened.handle, [1], at: 100)
        #expect(try await system.seek(opened.handle, to: .data, from: 0).value() == 100)
        #expect(try await system.seek(opened.handle, to: .hole, from: 100).value() == 101)
        await fails(.noMoreData, system.seek(opened.handle, to: .data, from: 101))
        try await system.allocate(opened.handle, range: 0..<5000, extends: true).value()
        #expect(
            try await system.attributes(of: entry.attributes.inode, handle: nil).value()
                .attributes.size == 5000
        )
        await fails(
            .notSupported,
            system.allocate(opened.handle, range: 0..<9, extends: false)
        )
    }

    @Test("a changed or given away file loses its set-user-ID and set-group-ID bits")
    func privileges() async throws {
        let (entry, opened) = try await system.make("f", in: root)
        let inode = entry.attributes.inode
        let told = Mutex<[CatalogChange]>([])
        fixture.catalog.setListeners(
            CatalogListeners(news: { news in told.withLock { $0 += news } })
        )
        func mode() async throws -> UInt16 {
            try await system.attributes(of: inode, handle: nil).value().attributes.mode
        }
        func set(_ body: (inout AttributeSetting) -> Void) async throws -> UInt16 {
            var setting = AttributeSetting()
            body(&setting)
            return try await system.setAttributes(setting, of: inode, handle: nil).value()
                .attributes.mode
        }
        #expect(try await set { $0.mode = 0o6755 } == 0o6755)
        _ = try await system.put(opened.handle, [1, 2, 3], at: 0)
        #expect(try await mode() == 0o755)
        #expect(told.withLock { $0 } == [.attributes(inode)])
        #expect(try await set { $0.mode = 0o6755 } == 0o6755)
        #expect(try await set { $0.size = 1 } == 0o755)
        // Without the group's execute bit it is not the right to act as the group.
        #expect(try await set { $0.mode = 0o6644 } == 0o6644)
        #expect(try await set { $0.owner = 7 } == 0o2644)
        #expect(try await set { $0.mode = 0o4700 } == 0o4700)
        let cut = try await system.open(
            inode,
            mode: OpenMode(writes: true, truncates: true)
        ).value()
        #expect(try await mode() == 0o700)
        system.release(cut.handle)
        system.release(opened.handle)
    }

    @Test("a folder that was never listed is listed before it is replaced or removed")
    func unlisted() async throws {
        try await fixture.know()
        let rootID = try fixture.setRoot()
        var remote = Item(
            id: ItemID("full"),
            kind: .folder,
            fileName: "full",
            parentID: rootID
        )
        remote.serverModifiedTime = Timestamp(seconds: 1)
        try await fixture.observe(remote)
        let full = try await system.lookup("full", in: root).value().attributes.inode
        _ = try await system.makeFolder(
            "new",
            in: root,
            permissions: 0o755,
            caller: CloudFileSystem.caller
        ).value()
        fixture.service.isOffline.withLock { $0 = true }
        await fails(
            .offline,
            system.rename("new", in: root, to: "full", in: root, mode: .replace)
        )
        await fails(.offline, system.removeFolder("full", in: root))
        fixture.service.isOffline.withLock { $0 = false }
        #expect(!fixture.service.listings.withLock { $0.contains(full) })
        fixture.service.children.withLock {
            [catalog = fixture.catalog, account = fixture.account] in
            $0[full] = {
                var child = Item(
                    id: ItemID("child"),
                    kind: .folder,
                    fileName: "child",
                    parentID: ItemID("full")
                )
                child.serverModifiedTime = Timestamp(seconds: 1)
                _ = try? await catalog.apply(
                    Observations(changes: [.changed(child)]),
                    to: account.id
                )
            }
        }
        await fails(
            .notEmpty,
            system.rename("new", in: root, to: "full", in: root, mode: .replace)
        )
        await fails(.notEmpty, system.removeFolder("full", in: root))
    }

    @Test(
        "a shortcut waits for its target while the account is enumerated, then says that it has none"
    )
    func shortcuts() async throws {
        let catalog = fixture.catalog
        let rootID = try fixture.setRoot()
        func shortcut(_ name: String, to target: String) -> Change {
            var item = Item(
                id: ItemID("s-\(name)"),
                kind: .shortcut,
                fileName: name,
                parentID: rootID
            )
            item.serverModifiedTime = Timestamp(seconds: 1)
            item.shortcutTarget = ItemID(target)
            return .changed(item)
        }
        func folder(_ name: String) -> Change {
            var item = Item(
                id: ItemID(name),
                kind: .folder,
                fileName: name,
                parentID: rootID
            )
            item.serverModifiedTime = Timestamp(seconds: 1)
            return .changed(item)
        }
        try await catalog.beginEnumeration(of: fixture.account.id)
        let begin = Observations(changes: [shortcut("a", to: "t"), shortcut("b", to: "x/y")])
        _ = try await catalog.apply(begin, to: fixture.account.id)
        let nodes = try ["a", "b"].map {
            try #require(try catalog.node(atPath: ["work", $0])).inode
        }
        let system = system
        async let a = system.readLink(nodes[0]).value()
        async let b = system.readLink(nodes[1]).value()
        guard case .later = system.readLink(nodes[0]) else {
            Issue.record("the link was answered before its target was known")
            return
        }
        var end = Observations(changes: [folder("t")])
        end.endsEnumeration = true
        end.cursor = Cursor("1")
        _ = try await catalog.apply(end, to: fixture.account.id)
        #expect(try await a == "t")
        #expect(try await b == "not in this account: x∕y")
        #expect(try await system.readLink(nodes[0]).value() == "t")
        let attributes = try await system.attributes(of: nodes[0], handle: nil).value()
        #expect(attributes.attributes.size == 1 && attributes.validity.attributes == .zero)
        #expect(try await system.extendedAttributes(of: nodes[0]).value() == [])
    }

    @Test("a native document has a size before it was exported, and its true one afterwards")
    func documents() async throws {
        let catalog = fixture.catalog
        let rootID = try fixture.setRoot()
        var item = Item(
            id: ItemID("doc"),
            kind: .nativeDocument,
            fileName: "Plan",
            parentID: rootID
        )
        item.clientModifiedTime = Timestamp(seconds: 1)
        item.exports = ["docx", "pdf", "odt"].map {
            ExportFormat(mimeType: "x/\($0)", fileExtension: $0)
        }
        catalog.setExportPreference(ExportPreference(["docx": "odt"]), of: fixture.account.id)
        try await fixture.observe(item)
        try await fixture.know()
        fixture.service.contents.withLock { $0["doc"] = [1, 2, 3] }
        let entry = try await system.lookup("Plan.odt", in: root).value()
        let inode = entry.attributes.inode
        #expect(entry.attributes.size > 0 && entry.validity.attributes == .zero)
        #expect(entry.attributes.mode == 0o444)
        await fails(.noAttribute, system.extendedAttribute("user.oort.size", of: inode))
        await fails(.noPermission, system.open(inode, mode: CloudFileSystem.readWrite))
        let opened = try await system.open(inode, mode: OpenMode()).value()
        #expect(opened.isDirect)
        #expect(try await system.attributes(of: inode, handle: nil).value().attributes.size == 3)
        #expect(try await system.bytes(opened.handle, 0, 4096) == [1, 2, 3])
        system.release(opened.handle)
        fixture.service.isOffline.withLock { $0 = true }
        let again = try await system.open(inode, mode: OpenMode()).value()
        #expect(try await system.bytes(again.handle, 0, 4096) == [1, 2, 3])
        system.release(again.handle)
    }

    @Test("the schema shows what the service said, by the canonical names only")
    func schema() async throws {
        let rootID = try fixture.setRoot("oort:root")
        var item = Item(id: ItemID("i"), kind: .file, fileName: "f", parentID: rootID)
        item.originalFileName = "o"
        item.description = "d"
        item.clientModifiedTime = Timestamp(seconds: 1)
        item.serverModifiedTime = Timestamp(seconds: 2)
        item.createdTime = Timestamp(seconds: 0)
        item.size = 5
        item.mimeType = "m"
        item.thumbnail = false
        item.tag = "t"
        item.rev = Revision("r")
        item.version = "v"
        item.contentHash = ContentHash(algorithm: .md5, value: "h")
        item.isShared = true
        item.sharedWith = TextList(["Grace Other", "staff (group)"])
        item.tags = TextList(["urgent", "tax 2026"])
        try await fixture.observe(item)
        try await fixture.know()
        let inode = try await system.lookup("f", in: root).value().attributes.inode
        var found: [String: String] = [:]
        for name in try await system.extendedAttributes(of: inode).value() {
            let value = try await system.extendedAttribute(name, of: inode).value()
            found[name] = String(decoding: value, as: UTF8.self)
        }
        let expected = [
            "id": "i", "path": "/f", "kind": "file", "fileName": "f", "originalFileName": "o",
            "description": "d", "clientModifiedTime": "1970-01-01T00:00:01.000Z",
            "serverModifiedTime": "1970-01-01T00:00:02.000Z",
            "createdTime": "1970-01-01T00:00:00.000Z", "size": "5", "mimeType": "m",
            "thumbnail": "no", "tag": "t", "rev": "r", "version": "v", "contentHash": "md5:h",
            "permissions": "read,write,delete,share", "status": "synced", "availability": "online",
            "shared": "yes", "sharedWith": "Grace Other; staff (group)",
            "tags": "urgent; tax 2026",
        ]
        #expect(
            found == Dictionary(uniqueKeysWithValues: expected.map { ("user.oort." + $0, $1) })
        )
    }

    @Test("with whom an item is shared is asked for by its name only, once for a while")
    func askedShares() async throws {
        let name = "user.oort.sharedWith"
        for file in ["shared", "unshared", "secret", "later"] {
            try await fixture.observe(file, [1])
        }
        try await fixture.know()
        let service = fixture.service
        func inode(_ name: String) async throws -> Inode {
            try await system.lookup(name, in: root).value().attributes.inode
        }
        let shared = try await inode("shared")
        await fails(.noAttribute, system.extendedAttribute(name, of: shared))
        let (unshared, later) = (try await inode("unshared"), try await inode("later"))
        service.shares.withLock { $0 = [shared: TextList(["Grace"]), unshared: TextList()] }
        #expect(try await !system.extendedAttributes(of: shared).value().contains(name))
        #expect(service.askedShares.withLock { $0.isEmpty })
        for _ in 0..<2 {
            let told = try await system.extendedAttribute(name, of: shared).value()
            #expect(told == Array("Grace".utf8))
            await fails(.noAttribute, system.extendedAttribute(name, of: unshared))
        }
        #expect(service.askedShares.withLock { $0 } == [shared, unshared])
        // What the service does not say to this person; what is not at the service; the top folder.
        let secret = try await inode("secret")
        await fails(.noAttribute, system.extendedAttribute(name, of: secret))
        let new = try await system.make("new", in: root).0.attributes.inode
        await fails(.noAttribute, system.extendedAttribute(name, of: new))
        await fails(.noAttribute, system.extendedAttribute(name, of: .root))
        service.isOffline.withLock { $0 = true }
        await fails(.offline, system.extendedAttribute(name, of: later))
        #expect(
            try await system.extendedAttribute(name, of: shared).value() == Array("Grace".utf8)
        )
        service.isOffline.withLock { $0 = false }
        service.shares.withLock { $0?[later] = TextList(["Ada"]) }
        #expect(
            try await system.extendedAttribute(name, of: later).value() == Array("Ada".utf8)
        )
    }

    @Test("without a quota the room is what can be written here at once")
    func unknownRoom() async throws {
        let local = fixture.store.freeBytes
        let unknown = try await system.room(of: root).value()
        #expect(unknown.free > 0 && unknown.free <= unknown.total)
        #expect(unknown.total <= max(local, fixture.store.freeBytes) + (1 << 30))
        try fixture.catalog.setQuota(Quota(used: 10, total: nil), of: fixture.account.id)
        let boundless = try await system.room(of: root).value()
        #expect(boundless.total - boundless.free == 10)
        try fixture.catalog.setQuota(Quota(used: 10, total: 100), of: fixture.account.id)
        try fixture.catalog.setQuota(Quota(used: 1, total: 50), of: fixture.other.id)
        let all = try await system.room(of: .root).value()
        #expect(all.total == 150 && all.free == 139)
    }

    @Test("room is the account's quota, from the catalog")
    func room() async throws {
        try fixture.catalog.setQuota(Quota(used: 10, total: 100), of: fixture.account.id)
        let room = try await system.room(of: root).value()
        #expect(room.total == 100 && room.free == 90 && room.longestName == 255)
    }

    @Test("whoever looks at the room has it asked for behind that, once for each account")
    func shownRoom() async throws {
        _ = try await system.room(of: root).value()
        #expect(fixture.service.shownRooms.withLock { $0 } == 1)
        _ = try await system.attributes(of: root, handle: nil).value()
        #expect(fixture.service.shownRooms.withLock { $0 } == 1)
    }

    @Test("a read-only mount refuses every change")
    func readOnly() async throws {
        var settings = FileSystemSettings()
        settings.isReadOnly = true
        let fixture = try FileSystemFixture(settings: settings)
        let root = fixture.account.root
        let caller = CloudFileSystem.caller
        await fails(
            .readOnly,
            fixture.system.makeFolder("x", in: root, permissions: 0o755, caller: caller)
        )
        await fails(.readOnly, fixture.system.unlink("x", in: root))
        await fails(
            .readOnly,
            fixture.system.setAttributes(AttributeSetting(), of: root, handle: nil)
        )
        await fails(
            .readOnly,
            fixture.system.setExtendedAttribute("user.a", to: [], of: root, mustExist: nil)
        )
    }

    @Test("a waiting operation ends when its caller gives up, and at its limit")
    func waiting() async throws {
        var settings = FileSystemSettings()
        settings.waitLimit = .milliseconds(50)
        let fixture = try FileSystemFixture(settings: settings)
        fixture.system.connect(
            fixture.account.id,
            traits: FakeService.traits,
            lister: EndlessLister()
        )
        await fails(
            .timedOut,
            fixture.system.list(fixture.account.root, after: 0, limit: 1)
        )
    }

    private struct EndlessLister: FolderLister {
        func find(_ name: String, in folder: Inode) async throws(ProviderError) {}
        func list(_ folder: Inode) async throws(ProviderError) {
            try? await Task.sleep(for: .seconds(3))
        }

        func look(at item: Inode) async throws(ProviderError) {}
        func roomIsShown() {}
    }
}
