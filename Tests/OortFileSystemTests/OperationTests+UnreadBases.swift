import OortCatalog
import OortContentStore
import OortFileSystem
import OortModel
import Synchronization
import Testing

/// A part of a large file is changed, and the service has another revision before the rest is fetched.
extension OperationTests {
    private static let before = [UInt8](repeating: 1, count: 6_000_000)
    private static let after = [UInt8](repeating: 2, count: 6_000_000)

    /// A file of revision 1 that the feed reported.
    private func reported(_ name: String) async throws -> Inode {
        try await fixture.observe(name, Self.before)
        let node = try fixture.catalog.node(
            remoteID: ItemID("id-\(name)"),
            account: fixture.account.id
        )
        return try #require(node).inode
    }

    /// The service has revision 2 and gives that only; the feed reports it.
    private func replaced(_ name: String) async throws {
        fixture.service.gone.withLock { _ = $0.insert(Revision("1")) }
        try await fixture.observe(name, Self.after, revision: "2")
    }

    @Test("the rest is the other revision's where nobody read a byte of the file")
    func unread() async throws {
        let inode = try await reported("f")
        let mode = CloudFileSystem.readWrite
        let handle = try await system.open(inode, mode: mode).value().handle
        #expect(try await system.put(handle, [9, 9], at: 1_000) == 2)
        try await replaced("f")
        #expect(try await system.bytes(handle, 998, 6) == [2, 2, 9, 9, 2, 2])
        system.release(handle)
    }

    @Test("before the feed reports it, the service is asked for the file")
    func unreported() async throws {
        let inode = try await reported("f")
        let mode = CloudFileSystem.readWrite
        let handle = try await system.open(inode, mode: mode).value().handle
        #expect(try await system.put(handle, [9, 9], at: 1_000) == 2)
        fixture.service.gone.withLock { _ = $0.insert(Revision("1")) }
        await fails(.revisionGone, system.read(handle, at: 998, count: 6))
        #expect(fixture.service.looks.withLock { $0 } == [inode])
        try await replaced("f")
        #expect(try await system.bytes(handle, 998, 6) == [2, 2, 9, 9, 2, 2])
        system.release(handle)
    }

    @Test("what the kernel may have of a file is of one revision, whatever is cached here")
    func readBefore() async throws {
        let inode = try await reported("f")
        let reader = try await system.open(inode, mode: OpenMode()).value().handle
        #expect(try await system.bytes(reader, 0, 4) == [1, 1, 1, 1])
        system.release(reader)
        await fixture.store.save()
        #expect(try await fixture.store.free(below: nil, unusedSince: nil).freed.count == 1)
        let mode = CloudFileSystem.readWrite
        let opened = try await system.open(inode, mode: mode).value()
        #expect(opened.keepsCache)
        #expect(try await system.put(opened.handle, [9, 9], at: 1_000) == 2)
        try await replaced("f")
        await fails(.revisionGone, system.read(opened.handle, at: 998, count: 6))
        #expect(try await system.bytes(opened.handle, 1_000, 2) == [9, 9])
        system.release(opened.handle)
    }

    @Test("a copy stays a copy of what the original was")
    func partOfACopy() async throws {
        let inode = try await reported("f")
        let source = try await system.open(inode, mode: OpenMode()).value().handle
        let (entry, target) = try await system.make("copy", in: root)
        let count = Int64(Self.before.count)
        let copied = try await system.copyRange(
            from: source,
            at: 0,
            to: target.handle,
            at: 0,
            count: count
        ).value()
        #expect(copied == count)
        #expect(try fixture.catalog.node(entry.attributes.inode).contentItem == ItemID("id-f"))
        #expect(try await system.put(target.handle, [9, 9], at: 1_000) == 2)
        try await replaced("f")
        await fails(.revisionGone, system.read(target.handle, at: 998, count: 6))
        for handle in [source, target.handle] { system.release(handle) }
    }
}
