import OortCatalog
import OortFileSystem
import OortModel
import OortTesting
import Synchronization
import Testing

@testable import OortContentStore

/// What several programs, uploads and the service do to one file at the same moment.
extension OperationTests {
    @Test("what two handles write is all there, however often uploads hold the file still")
    func writersAndUploads() async throws {
        let pages = 200
        let base = [UInt8](repeating: 7, count: pages / 2 * 4096)
        let node = try await remote("f", base)
        let (store, catalog, system) = (fixture.store, fixture.catalog, fixture.system)
        let writer: @Sendable (Int) async throws -> Void = { first in
            let file = try await system.open(node.inode, mode: CloudFileSystem.readWrite).value()
            for page in stride(from: first, to: pages, by: 2) {
                _ = try await system.put(file.handle, [UInt8(page)], at: Int64(page * 4096))
                await Task.yield()
            }
            system.release(file.handle)
        }
        let isWritten = Mutex(false)
        async let uploads: Void = {
            var count = 0
            while count == 0 || !isWritten.withLock({ $0 }) {
                await Task.yield()
                guard let staged = try catalog.node(node.inode).staged else { continue }
                guard let frozen = try? await store.freeze(staged) else { continue }
                store.release(frozen)
                count += 1
            }
        }()
        async let even: Void = writer(0)
        async let odd: Void = writer(1)
        _ = try await (even, odd)
        isWritten.withLock { $0 = true }
        try await uploads
        var expected = base + [UInt8](repeating: 0, count: (pages - pages / 2 - 1) * 4096 + 1)
        for page in 0..<pages { expected[page * 4096] = UInt8(page) }
        let size = try await system.attributes(of: node.inode, handle: nil).value().attributes.size
        #expect(size == expected.count)
        let file = try await system.open(node.inode, mode: OpenMode()).value()
        let shown = try await system.bytes(file.handle, 0, expected.count)
        let wrong = (0..<pages).filter { page in
            let range = page * 4096..<min((page + 1) * 4096, expected.count)
            return shown[range] != expected[range]
        }
        #expect(wrong == [])
    }

    @Test("who empties a file while a clone of it is made has it empty, and keeps what it writes")
    func emptiedDuringAClone() async throws {
        let (entry, opened) = try await system.make("f", in: root)
        let inode = entry.attributes.inode
        for round in 0..<4 {
            _ = try await system.put(opened.handle, [UInt8](repeating: 7, count: 100), at: 0)
            try await system.flush(opened.handle).value()
            let staged = try #require(try fixture.catalog.node(inode).staged)
            let frozen = try await fixture.store.freeze(staged)
            let (system, handle) = (system, opened.handle)
            let (begun, beginning) = AsyncStream.makeStream(of: Void.self)
            let (emptied, emptying) = AsyncStream.makeStream(of: Void.self)
            fixture.store.beforeClone.withLock {
                $0 = { () async throws(ContentError) in
                    beginning.finish()
                    for await _ in emptied {}
                }
            }
            let writer = Task { try await system.put(handle, [9], at: 5) }
            for await _ in begun {}
            let second = try await system.open(
                inode,
                mode: OpenMode(writes: true, truncates: true)
            ).value()
            _ = try await system.put(second.handle, [1, 2, 3], at: 0)
            emptying.finish()
            #expect(try await writer.value == 1)
            fixture.store.release(frozen)
            #expect(try await system.bytes(handle, 0, 9) == [1, 2, 3, 0, 0, 9], "round \(round)")
            system.release(second.handle)
            let node = try fixture.catalog.node(inode)
            #expect(node.size == 6 && node.staged != staged)
        }
        system.release(opened.handle)
    }

    @Test("who writes to a file that an upload holds still waits for room for the clone")
    func cloneWithoutRoom() async throws {
        var storing = ContentStoreSettings()
        storing.reserve = 1
        storing.freeBytes = { SmallDisk(capacity: 1000).freeBytes(below: $0) }
        let fixture = try FileSystemFixture(storing: storing)
        let (system, store, root) = (fixture.system, fixture.store, fixture.account.root)
        let (entry, f) = try await system.make("f", in: root)
        let (other, g) = try await system.make("g", in: root)
        _ = try await system.put(f.handle, [UInt8](repeating: 7, count: 400), at: 0)
        _ = try await system.put(g.handle, [UInt8](repeating: 8, count: 300), at: 0)
        try await system.flush(f.handle).value()
        let staged = try #require(try fixture.catalog.node(entry.attributes.inode).staged)
        let frozen = try await store.freeze(staged)
        let (begun, beginning) = AsyncStream.makeStream(of: Void.self)
        let isFull = Mutex(true)
        store.beforeClone.withLock {
            $0 = { () async throws(ContentError) in
                beginning.finish()
                let isFull = isFull.withLock { isFull in
                    defer { isFull = false }
                    return isFull
                }
                if isFull { throw .noSpace }
            }
        }
        let writer = Task { try await system.put(f.handle, [9], at: 0) }
        for await _ in begun {}
        let emptying = OpenMode(writes: true, truncates: true)
        system.release(try await system.open(other.attributes.inode, mode: emptying).value().handle)
        #expect(try await writer.value == 1)
        store.release(frozen)
        #expect(
            try await system.bytes(f.handle, 0, 500) == [9] + [UInt8](repeating: 7, count: 399)
        )
        for handle in [f.handle, g.handle] { system.release(handle) }
    }

    @Test("a clone that finds no room on a disk that has some again by then is made all the same")
    func cloneWithRoomAfterAll() async throws {
        let free = Atomic<Int64>(1000)
        var storing = ContentStoreSettings()
        storing.reserve = 1
        storing.freeBytes = { _ in free.load(ordering: .acquiring) }
        let fixture = try FileSystemFixture(storing: storing)
        let (system, store, root) = (fixture.system, fixture.store, fixture.account.root)
        let (entry, f) = try await system.make("f", in: root)
        _ = try await system.put(f.handle, [UInt8](repeating: 7, count: 400), at: 0)
        try await system.flush(f.handle).value()
        let staged = try #require(try fixture.catalog.node(entry.attributes.inode).staged)
        let frozen = try await store.freeze(staged)
        free.store(300, ordering: .releasing)
        store.beforeClone.withLock {
            $0 = { () async throws(ContentError) in
                // Another program removes something right after the disk refused.
                if free.exchange(1000, ordering: .acquiringAndReleasing) < 400 { throw .noSpace }
            }
        }
        #expect(try await system.put(f.handle, [9], at: 0) == 1)
        store.release(frozen)
        #expect(try await system.bytes(f.handle, 0, 2) == [9, 7])
        system.release(f.handle)
    }

    @Test(
        "who writes to a file that is held still, and finds no room for a clone, waits no longer than that"
    )
    func cloneNotNeeded() async throws {
        var storing = ContentStoreSettings()
        storing.reserve = 1
        storing.freeBytes = { SmallDisk(capacity: 500).freeBytes(below: $0) }
        let fixture = try FileSystemFixture(storing: storing)
        let (system, store, root) = (fixture.system, fixture.store, fixture.account.root)
        let (entry, f) = try await system.make("f", in: root)
        _ = try await system.put(f.handle, [UInt8](repeating: 7, count: 400), at: 0)
        try await system.flush(f.handle).value()
        let staged = try #require(try fixture.catalog.node(entry.attributes.inode).staged)
        let frozen = try await store.freeze(staged)
        let (begun, beginning) = AsyncStream.makeStream(of: Void.self)
        store.beforeClone.withLock {
            $0 = { () async throws(ContentError) in
                beginning.finish()
                throw .noSpace
            }
        }
        let writer = Task { try await system.put(f.handle, [9], at: 0) }
        for await _ in begun {}
        store.release(frozen)
        #expect(try await writer.value == 1)
        #expect(try fixture.catalog.node(entry.attributes.inode).staged == staged)
        #expect(try await system.bytes(f.handle, 0, 2) == [9, 7])
        system.release(f.handle)
    }

    @Test("who writes to a file that an upload holds still is told of a quota at once")
    func cloneBeyondAQuota() async throws {
        let (entry, opened) = try await system.make("f", in: root)
        _ = try await system.put(opened.handle, [1, 2, 3], at: 0)
        try await system.flush(opened.handle).value()
        let staged = try #require(try fixture.catalog.node(entry.attributes.inode).staged)
        let frozen = try await fixture.store.freeze(staged)
        fixture.store.beforeClone.withLock {
            $0 = { () async throws(ContentError) in throw .noSpace }
        }
        await #expect(throws: FileSystemError.noSpace) {
            _ = try await system.put(opened.handle, [9], at: 0)
        }
        fixture.store.release(frozen)
        #expect(try await system.put(opened.handle, [9], at: 0) == 1)
        #expect(try await system.bytes(opened.handle, 0, 9) == [9, 2, 3])
        system.release(opened.handle)
    }

    @Test("a document whose exported bytes are gone while it is open fails, and is not empty")
    func documentWithoutBytes() async throws {
        var item = Item(
            id: ItemID("doc"),
            kind: .nativeDocument,
            fileName: "Plan",
            parentID: try fixture.setRoot()
        )
        item.exports = [ExportFormat(mimeType: "x/docx", fileExtension: "docx")]
        try await fixture.observe(item)
        try await fixture.know()
        fixture.service.contents.withLock { $0["doc"] = [1, 2, 3] }
        let inode = try await system.lookup("Plan.docx", in: root).value().attributes.inode
        let opened = try await system.open(inode, mode: OpenMode()).value()
        // As when the cache's folder is emptied.
        for (content, _) in fixture.store.state.withLock({ $0.cached.values.map { $0 } }) {
            content.discard()
        }
        // Of a document no revision is given in parts.
        fixture.service.contents.withLock { $0["doc"] = nil }
        await fails(.revisionGone, system.read(opened.handle, at: 0, count: 10))
        fixture.service.contents.withLock { $0["doc"] = [4, 5] }
        let again = try await system.open(inode, mode: OpenMode()).value()
        #expect(try await system.bytes(again.handle, 0, 10) == [4, 5])
        for handle in [opened.handle, again.handle] { system.release(handle) }
    }

    @Test("what is written beyond a copy that the service is to make is there, too")
    func writtenDuringACopy() async throws {
        let source = try await remote("f", [1, 2, 3])
        let (system, root) = (system, root)
        let from = try await system.open(source.inode, mode: OpenMode()).value()
        for round in 0..<100 {
            let (entry, to) = try await system.make("g\(round)", in: root)
            let writer = Task { try await system.put(to.handle, [9], at: 4) }
            let copied = try await system.copyRange(
                from: from.handle,
                at: 0,
                to: to.handle,
                at: 0,
                count: 1 << 30
            ).value()
            #expect(copied == 3)
            #expect(try await writer.value == 1)
            #expect(try await system.bytes(to.handle, 0, 9) == [1, 2, 3, 0, 9])
            system.release(to.handle)
            #expect(try fixture.catalog.node(entry.attributes.inode).size == 5)
        }
    }

    @Test("who opens and reads a file while uploads end never fails, nor reads two states of it")
    func readersAndUploads() async throws {
        let size = 1 << 20
        let node = try await remote("f", [UInt8](repeating: 0, count: size))
        let (store, catalog, system) = (fixture.store, fixture.catalog, fixture.system)
        let (service, account) = (fixture.service, fixture.account)
        let reader: @Sendable () async throws -> Int = {
            var count = 0
            while !Task.isCancelled {
                let file = try await system.open(node.inode, mode: OpenMode()).value().handle
                defer { system.release(file) }
                let first = try await system.bytes(file, 0, 100)
                await Task.yield()
                let last = try await system.bytes(file, Int64(size - 100), 100)
                // Nothing is what is staged before it is written.
                try #require(Set(first + last).count <= 1)
                count += 1
            }
            return count
        }
        let readers = (0..<3).map { _ in Task { try await reader() } }
        for round in 1..<100 {
            let (content, _) = try store.stage(
                over: nil,
                of: node.inode,
                account: account.id,
                modified: .now
            )
            let bytes = [UInt8](repeating: UInt8(round), count: size)
            _ = try unsafe content.write(bytes.span.bytes, at: 0)
            try content.record(modified: .now)
            store.close(content)
            let frozen = try await store.freeze(content.id)
            let item = ItemID("round \(round)")
            service.contents.withLock { $0[item.rawValue] = bytes }
            let key = ContentKey(account: account.id, item: item, revision: Revision("1"))
            _ = try catalog.setCopiedContent(
                item: key.item,
                revision: key.revision,
                hash: nil,
                size: Int64(size),
                modified: .now,
                of: node.inode
            )
            await Task.yield()
            await store.uploaded(frozen, as: key)
        }
        for task in readers {
            task.cancel()
            #expect(try await task.value > 0)
        }
    }

    @Test("taking room ahead cuts nothing that another thread writes meanwhile")
    func writtenDuringAllocation() async throws {
        let (system, root) = (system, root)
        for round in 0..<100 {
            let (_, file) = try await system.make("f\(round)", in: root)
            let writer = Task {
                for page in 0..<20 {
                    _ = try await system.put(file.handle, [UInt8(page + 1)], at: Int64(page * 100))
                }
            }
            for end in stride(from: Int64(50), to: 2000, by: 100) {
                try await system.allocate(file.handle, range: 0..<end, extends: true).value()
            }
            try await writer.value
            let bytes = try await system.bytes(file.handle, 0, 4000)
            #expect((0..<20).allSatisfy { $0 * 100 < bytes.count && bytes[$0 * 100] == $0 + 1 })
            system.release(file.handle)
        }
    }

    @Test("what is written after the service has what was open is the file's")
    func writtenAfterwards() async throws {
        let (entry, opened) = try await system.make("f", in: root)
        let inode = entry.attributes.inode
        _ = try await system.put(opened.handle, [1, 2, 3], at: 0)
        try await system.flush(opened.handle).value()
        fixture.service.contents.withLock { $0["id-f"] = [1, 2, 3] }
        // As when the answer to the upload was lost: the content store does not learn of it.
        _ = try fixture.catalog.setCopiedContent(
            item: ItemID("id-f"),
            revision: Revision("1"),
            hash: nil,
            size: 3,
            modified: .now,
            of: inode
        )
        #expect(try fixture.catalog.node(inode).staged == nil)
        _ = try await system.put(opened.handle, [4], at: 3)
        system.release(opened.handle)
        let node = try fixture.catalog.node(inode)
        #expect(node.staged != nil && node.size == 4)
        let again = try await system.open(inode, mode: OpenMode()).value()
        #expect(try await system.bytes(again.handle, 0, 9) == [1, 2, 3, 4])
        system.release(again.handle)
    }
}
