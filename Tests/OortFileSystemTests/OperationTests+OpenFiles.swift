import Foundation
import OortCatalog
import OortContentStore
import OortFileSystem
import OortModel
import Synchronization
import Testing

/// What handles show while files are read, written, replaced and copied.
extension OperationTests {
    @Test("a file is read from the service once, and from the cache then, offline too")
    func read() async throws {
        let bytes = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let node = try await remote("f", bytes)
        fixture.service.isOffline.withLock { $0 = true }
        let first = try await system.open(node.inode, mode: OpenMode()).value()
        await fails(.offline, system.read(first.handle, at: 0, count: 10))
        fixture.service.isOffline.withLock { $0 = false }
        #expect(try await system.bytes(first.handle, 99_990, 100) == Array(bytes[99_990...]))
        fixture.service.isOffline.withLock { $0 = true }
        guard case .now(.success(.file)) = system.read(first.handle, at: 0, count: 4096) else {
            Issue.record("a cached range was not answered at once")
            return
        }
        #expect(try await system.bytes(first.handle, 100_000, 1) == [])
        let second = try await system.open(node.inode, mode: OpenMode()).value()
        #expect(!first.keepsCache || second.keepsCache)
        #expect(second.keepsCache)
    }

    @Test("a handle keeps its revision while another reads the new one")
    func revisions() async throws {
        let node = try await remote("f", [1, 2, 3])
        let old = try await system.open(node.inode, mode: OpenMode()).value()
        #expect(try await system.bytes(old.handle, 0, 10) == [1, 2, 3])
        fixture.service.contents.withLock { $0["id-f"] = [4, 5] }
        _ = try fixture.catalog.setCopiedContent(
            item: ItemID("id-f"),
            revision: Revision("2"),
            hash: nil,
            size: 2,
            modified: .now,
            of: node.inode
        )
        let new = try await system.open(node.inode, mode: OpenMode()).value()
        #expect(!new.keepsCache)
        #expect(try await system.bytes(new.handle, 0, 10) == [4, 5])
        #expect(try await system.bytes(old.handle, 0, 10) == [1, 2, 3])

        // The kernel has one cache for both, and one size: it may keep the bytes of one, and believe
        // the size of none.
        #expect(!old.isDirect)
        #expect(new.isDirect)
        func seen(_ handle: OortFileSystem.FileHandle?) async throws -> (Int64, Duration) {
            let entry = try await system.attributes(of: node.inode, handle: handle).value()
            return (entry.attributes.size, entry.validity.attributes)
        }
        // By another size the kernel would cut what the reader of the old one gets; but by its own
        // handle's a program finds the end at which it writes.
        #expect(try await seen(nil) == (3, .zero))
        #expect(try await seen(new.handle) == (2, .zero))
        await fails(.revisionGone, system.read(old.handle, at: 0, count: 4096))
        #expect(try await seen(old.handle) == (3, .zero))
        // A page is asked for as a whole, and nothing beyond it: of that, zeros would be shown.
        #expect(try await system.bytes(old.handle, 0, 4096) == [1, 2, 3])
        await fails(.revisionGone, system.read(old.handle, at: 0, count: 4097))
        #expect(try await system.bytes(new.handle, 0, 4097) == [4, 5])
        system.release(old.handle)
        let later = try await system.open(node.inode, mode: OpenMode()).value()
        #expect(!later.isDirect && !later.keepsCache)
        #expect(try await seen(nil) == (2, .seconds(86_400)))
    }

    @Test("a file has its present size once the reader of an older revision rests")
    func restingReader() async throws {
        var settings = FileSystemSettings()
        settings.readersRest = .zero
        let fixture = try FileSystemFixture(settings: settings)
        try await fixture.observe("f", [1, 2, 3])
        let file = try fixture.catalog.node(remoteID: ItemID("id-f"), account: fixture.account.id)
        let inode = try #require(file).inode
        let system = fixture.system
        let old = try await system.open(inode, mode: OpenMode()).value().handle
        #expect(try await system.bytes(old, 0, 10) == [1, 2, 3])
        try await fixture.observe("f", [4, 5, 6, 7], revision: "2")
        let new = try await system.open(inode, mode: OpenMode()).value().handle
        func size(_ handle: OortFileSystem.FileHandle?) async throws -> Int64 {
            let entry = try await system.attributes(of: inode, handle: handle).value()
            #expect(entry.validity.attributes == .zero)
            return entry.attributes.size
        }
        #expect(try await size(old) == 3)
        #expect(try await size(new) == 4)
        #expect(try await size(nil) == 4)
        for handle in [old, new] { system.release(handle) }
    }

    @Test("who writes through a handle of an older revision changes that, for all handles")
    func writingAnOlderRevision() async throws {
        let node = try await remote("f", [1, 2, 3])
        let old = try await system.open(node.inode, mode: CloudFileSystem.readWrite).value()
        #expect(try await system.bytes(old.handle, 0, 10) == [1, 2, 3])
        try replace(node, with: [4, 5], revision: "2")
        let new = try await system.open(node.inode, mode: CloudFileSystem.readWrite).value()
        let news = Mutex<[CatalogChange]>([])
        fixture.catalog.setListeners(
            CatalogListeners(news: { changes in news.withLock { $0 += changes } })
        )
        _ = try await system.put(old.handle, [9], at: 4)
        #expect(try await system.bytes(old.handle, 0, 10) == [1, 2, 3, 0, 9])
        #expect(try await system.bytes(new.handle, 0, 10) == [1, 2, 3, 0, 9])
        let entry = try await system.attributes(of: node.inode, handle: nil).value()
        #expect(entry.attributes.size == 5)
        // What the kernel keeps for the first handle does not know of what the second writes.
        #expect(news.withLock { $0.isEmpty })
        _ = try await system.put(new.handle, [7], at: 0)
        #expect(news.withLock { $0 } == [.content(node.inode)])
        #expect(try await system.bytes(old.handle, 0, 10) == [7, 2, 3, 0, 9])
    }

    @Test("who opened a file while it was empty replaces nobody's newer revision")
    func writingAnEmptyRevision() async throws {
        try await fixture.know()
        try await fixture.observe("f", [])
        let inode = try await system.lookup("f", in: root).value().attributes.inode
        let handle = try await system.open(inode, mode: CloudFileSystem.readWrite).value().handle
        #expect(try await system.bytes(handle, 0, 9) == [])
        try await fixture.observe("f", [1, 2], revision: "2")
        _ = try await system.put(handle, [9], at: 0)
        #expect(try await system.bytes(handle, 0, 9) == [9])
        system.release(handle)
        try await fixture.plan()
        let names = try await system.names(root)
        #expect(names.count == 2 && names.contains { $0.hasPrefix("f (conflicted copy ") })
        let theirs = try await system.open(inode, mode: OpenMode()).value().handle
        #expect(try await system.bytes(theirs, 0, 9) == [1, 2])
    }

    @Test("a handle of which nothing was read goes on with the revision that replaced its own")
    func renewed() async throws {
        let node = try await remote("f", [1, 2, 3])
        fixture.service.contents.withLock { $0["id-f"] = nil }
        let handle = try await system.open(node.inode, mode: OpenMode()).value().handle
        let other = try await system.open(node.inode, mode: OpenMode()).value().handle
        let news = Mutex<[CatalogChange]>([])
        fixture.catalog.setListeners(
            CatalogListeners(news: { changes in news.withLock { $0 += changes } })
        )
        bringsNews(of: node, [4, 5, 6, 7], revision: "2")
        #expect(try await system.bytes(handle, 0, 10) == [4, 5, 6, 7])
        // The kernel would cut it to the old size.
        #expect(news.withLock { $0 } == [.attributes(node.inode)])
        #expect(try await system.bytes(other, 2, 10) == [6, 7])
        #expect(fixture.service.looks.withLock { $0.count } == 1)
    }

    @Test("a read that began before a shorter revision fails, and the next one gives that")
    func renewedShorter() async throws {
        let node = try await remote("f", [1, 2, 3, 4])
        fixture.service.contents.withLock { $0["id-f"] = nil }
        let handle = try await system.open(node.inode, mode: OpenMode()).value().handle
        bringsNews(of: node, [5, 6], revision: "2")
        // The kernel would fill it up to the old size.
        await fails(.revisionGone, system.read(handle, at: 0, count: 10))
        await fails(.revisionGone, system.read(handle, at: 0, count: 10))
        // It has heard of the new size now.
        _ = try await system.attributes(of: node.inode, handle: nil).value()
        #expect(try await system.bytes(handle, 0, 10) == [5, 6])
    }

    @Test("a file in whose place a folder lies by now is gone, not a folder")
    func folderInItsPlace() async throws {
        let node = try await remote("f", [1, 2, 3, 4])
        let handle = try await system.open(node.inode, mode: OpenMode()).value().handle
        fixture.service.holdsFolders.withLock { $0 = true }
        await fails(.revisionGone, system.read(handle, at: 0, count: 10))
    }

    @Test("a handle of which something was read never goes on with another revision")
    func neverMixed() async throws {
        let bytes = [UInt8](repeating: 1, count: 5 << 20)
        let node = try await remote("f", bytes)
        let handle = try await system.open(node.inode, mode: OpenMode()).value().handle
        let other = try await system.open(node.inode, mode: OpenMode()).value().handle
        #expect(try await system.bytes(handle, 0, 10) == Array(bytes[..<10]))
        system.release(handle)
        let third = try await system.open(node.inode, mode: OpenMode()).value()
        #expect(third.keepsCache)
        fixture.service.contents.withLock { $0["id-f"] = nil }
        bringsNews(of: node, [4, 5, 6, 7], revision: "2")
        // The kernel has bytes that it may have given to the readers of these.
        await fails(.revisionGone, system.read(other, at: 4 << 20, count: 10))
        await fails(.revisionGone, system.read(third.handle, at: 4 << 20, count: 10))
        let new = try await system.open(node.inode, mode: OpenMode()).value()
        #expect(new.isDirect)
        #expect(try await system.bytes(new.handle, 0, 10) == [4, 5, 6, 7])
    }

    /// Somebody else's revision of a file, as the feed brings it.
    private func replace(_ node: Node, with bytes: [UInt8], revision: String) throws {
        fixture.service.contents.withLock { $0["id-\(node.name)"] = bytes }
        _ = try fixture.catalog.setCopiedContent(
            item: ItemID("id-\(node.name)"),
            revision: Revision(revision),
            hash: nil,
            size: Int64(bytes.count),
            modified: .now,
            of: node.inode
        )
    }

    /// Has the next look at a file bring a revision.
    private func bringsNews(of node: Node, _ bytes: [UInt8], revision: String) {
        let (service, catalog) = (fixture.service, fixture.catalog)
        service.news.withLock { news in
            news[node.inode] = {
                service.contents.withLock { $0["id-\(node.name)"] = bytes }
                _ = try? catalog.setCopiedContent(
                    item: ItemID("id-\(node.name)"),
                    revision: Revision(revision),
                    hash: nil,
                    size: Int64(bytes.count),
                    modified: .now,
                    of: node.inode
                )
            }
        }
    }

    @Test("a revision that the service no longer gives is asked for, and nothing else is")
    func goneRevision() async throws {
        let node = try await remote("f", [1, 2, 3])
        fixture.service.contents.withLock { $0["id-f"] = nil }
        let handle = try await system.open(node.inode, mode: OpenMode()).value().handle
        await fails(.revisionGone, system.read(handle, at: 0, count: 3))
        #expect(fixture.service.looks.withLock { $0 } == [node.inode])
        fixture.service.isOffline.withLock { $0 = true }
        await fails(.offline, system.read(handle, at: 0, count: 3))
        #expect(fixture.service.looks.withLock { $0.count } == 1)
    }

    @Test("changing a part of a cloud file fetches nothing; all handles see it")
    func partial() async throws {
        let node = try await remote("f", [UInt8](repeating: 7, count: 50_000))
        let reader = try await system.open(node.inode, mode: OpenMode()).value()
        let writer = try await system.open(node.inode, mode: CloudFileSystem.readWrite).value()
        let writers = fixture.store.writers
        #expect(writers.isOpen(node.inode) && !writers.isBeingWritten(node.inode))
        fixture.service.isOffline.withLock { $0 = true }
        #expect(try await system.put(writer.handle, [1, 2], at: 10) == 2)
        #expect(try await system.bytes(reader.handle, 10, 2) == [1, 2])
        await fails(.offline, system.read(reader.handle, at: 9, count: 3))
        fixture.service.isOffline.withLock { $0 = false }
        #expect(try await system.bytes(reader.handle, 9, 4) == [7, 1, 2, 7])
        let idle = try await system.open(node.inode, mode: CloudFileSystem.readWrite).value()
        #expect(writers.isBeingWritten(node.inode))
        system.release(writer.handle)
        #expect(writers.isOpen(node.inode) && !writers.isBeingWritten(node.inode))
        system.release(idle.handle)
        #expect(!writers.isOpen(node.inode))
        guard case .staged = try fixture.catalog.node(node.inode).content else {
            Issue.record("nothing is staged")
            return
        }
    }

    @Test("size and time show while writing; a time that is set stays")
    func times() async throws {
        let (entry, opened) = try await system.make("f", in: root)
        let inode = entry.attributes.inode
        _ = try await system.put(opened.handle, [1, 2, 3], at: 4)
        #expect(try await system.attributes(of: inode, handle: nil).value().attributes.size == 7)
        var setting = AttributeSetting()
        setting.modified = .at(Timestamp(seconds: 1_000_000_000, nanoseconds: 5))
        setting.mode = 0o751
        setting.owner = 33
        _ = try await system.setAttributes(setting, of: inode, handle: nil).value()
        try await system.flush(opened.handle).value()
        system.release(opened.handle)
        try await fixture.restart()
        let attributes = try await system.attributes(of: inode, handle: nil).value().attributes
        #expect(attributes.modified == Timestamp(seconds: 1_000_000_000, nanoseconds: 5))
        #expect(attributes.mode == 0o751 && attributes.owner == 33)
        #expect(attributes.size == 7 && attributes.blocks == 1)
    }

    @Test("append writes at the end, truncating open empties, and both keep other handles right")
    func modes() async throws {
        let (entry, first) = try await system.make("f", in: root)
        _ = try await system.put(first.handle, [1, 2, 3], at: 0)
        let append = try await system.open(
            entry.attributes.inode,
            mode: OpenMode(reads: false, writes: true, appends: true)
        ).value()
        _ = try await system.put(append.handle, [4], at: 0)
        #expect(try await system.bytes(first.handle, 0, 9) == [1, 2, 3, 4])
        await fails(.badHandle, system.read(append.handle, at: 0, count: 1))
        let cut = try await system.open(
            entry.attributes.inode,
            mode: OpenMode(writes: true, truncates: true)
        ).value()
        #expect(!cut.keepsCache)
        #expect(try await system.bytes(first.handle, 0, 9) == [])
    }

    @Test("what is cut to the size that it has is modified all the same", arguments: [0, 3])
    func sameSize(size: Int64) async throws {
        let (entry, file) = try await system.make("f", in: root)
        _ = try await system.put(file.handle, [1, 2, 3].prefix(Int(size)).map { $0 }, at: 0)
        _ = system.flush(file.handle)
        system.release(file.handle)
        let inode = entry.attributes.inode
        let old = Timestamp(seconds: 1_000_000_000)
        var stamp = AttributeSetting()
        stamp.modified = .at(old)
        _ = try await system.setAttributes(stamp, of: inode, handle: nil).value()
        var cut = AttributeSetting()
        cut.size = size
        let shown = try await system.setAttributes(cut, of: inode, handle: nil).value().attributes
        #expect(shown.size == size && shown.modified > old)
        #expect(try fixture.catalog.node(inode).modified > old)
    }

    @Test("a copy of a whole clean file is left to the service; anything else is copied here")
    func copy() async throws {
        let source = try await remote("f", [1, 2, 3])
        let from = try await system.open(source.inode, mode: OpenMode()).value()
        let (entry, to) = try await system.make("g", in: root)
        fixture.service.isOffline.withLock { $0 = true }
        #expect(
            try await system.copyRange(
                from: from.handle,
                at: 0,
                to: to.handle,
                at: 0,
                count: 1 << 30
            ).value() == 3
        )
        #expect(
            try fixture.catalog.node(entry.attributes.inode).content
                == .revision(item: ItemID("id-f"), Revision("1"))
        )
        fixture.service.isOffline.withLock { $0 = false }
        #expect(try await system.bytes(to.handle, 0, 9) == [1, 2, 3])
        #expect(
            try await system.copyRange(
                from: from.handle,
                at: 1,
                to: to.handle,
                at: 3,
                count: 100
            ).value() == 2
        )
        #expect(try await system.bytes(to.handle, 0, 9) == [1, 2, 3, 2, 3])
        let (_, elsewhere) = try await system.make("g", in: fixture.other.root)
        await fails(
            .otherAccount,
            system.copyRange(
                from: from.handle,
                at: 0,
                to: elsewhere.handle,
                at: 0,
                count: 3
            )
        )
    }
}
