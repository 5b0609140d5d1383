import Foundation
import OortCatalog
import OortContentStore
import OortFileSystem
import OortModel
import Synchronization
import Testing

/// What is open and has no name any longer.
extension OperationTests {
    @Test("a file that is forgotten can be opened again while it is open")
    func forgotten() async throws {
        let (entry, opened) = try await system.make("f", in: root)
        _ = try await system.put(opened.handle, [1, 2], at: 0)
        try await system.unlink("f", in: root).value()
        let again = try await system.open(entry.attributes.inode, mode: OpenMode()).value()
        #expect(try await system.bytes(opened.handle, 0, 10) == [1, 2])
        system.release(again.handle)
    }

    @Test("an unlinked file stays readable and writable while it is open")
    func unlinked() async throws {
        let (entry, opened) = try await system.make("f", in: root)
        _ = try await system.put(opened.handle, [1, 2, 3], at: 0)
        try await system.unlink("f", in: root).value()
        await fails(.notFound, system.lookup("f", in: root))
        _ = try await system.put(opened.handle, [9], at: 1)
        #expect(try await system.bytes(opened.handle, 0, 9) == [1, 9, 3])
        let attributes = try await system.attributes(
            of: entry.attributes.inode,
            handle: opened.handle
        ).value().attributes
        #expect(attributes.linkCount == 0 && attributes.size == 3)
        await fixture.store.collectGarbage()
        #expect(try await system.bytes(opened.handle, 0, 9) == [1, 9, 3])
        system.release(opened.handle)
    }

    @Test("what one handle wrote to a forgotten file and closed is what another one shows")
    func unlinkedTwice() async throws {
        let (entry, first) = try await system.make("f", in: root)
        let inode = entry.attributes.inode
        _ = try await system.put(first.handle, [1, 2, 3], at: 0)
        let second = try await system.open(inode, mode: CloudFileSystem.readWrite).value()
        try await system.unlink("f", in: root).value()
        try await fixture.plan()
        #expect(throws: CatalogError.notFound) { try fixture.catalog.node(inode) }
        _ = try await system.put(second.handle, [4, 5], at: 3)
        system.release(second.handle)
        let attributes = try await system.attributes(of: inode, handle: first.handle).value()
            .attributes
        #expect(attributes.size == 5)
        #expect(attributes.inode == inode && attributes.linkCount == 0)
        #expect(try await system.bytes(first.handle, 0, 9) == [1, 2, 3, 4, 5])
        // No other file has it, and no clone is made for what was recorded.
        let staged = fixture.store.usage.staged
        for byte in 6..<9 {
            _ = try await system.put(first.handle, [UInt8(byte)], at: 0)
            try await system.flush(first.handle).value()
        }
        #expect(try await system.bytes(first.handle, 0, 9) == [8, 2, 3, 4, 5])
        #expect(fixture.store.usage.staged == staged)
        #expect(try await fixture.catalog.orphanedContents().count == 1)
        system.release(first.handle)
        await fails(.notFound, system.attributes(of: inode, handle: nil))
    }

    @Test("who has a removed file open changes nothing of what comes back under its name")
    func comesBack() async throws {
        try await fixture.know()
        try await fixture.observe("f", [1, 2, 3])
        let removed = try await system.lookup("f", in: root).value().attributes.inode
        let written = try await system.open(removed, mode: CloudFileSystem.readWrite).value().handle
        _ = try await system.put(written, [9], at: 0)
        let clean = try await system.open(removed, mode: CloudFileSystem.readWrite).value().handle
        let name = Array("user.colour".utf8)
        try await system.setExtendedAttribute(
            "user.colour",
            to: name,
            of: removed,
            mustExist: nil
        ).value()
        try await system.unlink("f", in: root).value()

        // Somebody else changed it: their change wins over the removal.
        let item = try await fixture.observe("f", [4, 5], revision: "2")
        try await fixture.plan()
        let inode = try await system.lookup("f", in: root).value().attributes.inode
        #expect(inode != removed)
        #expect(try await system.extendedAttribute("user.colour", of: inode).value() == name)
        let file = try await system.open(inode, mode: CloudFileSystem.readWrite).value().handle
        #expect(try await system.bytes(file, 0, 9) == [4, 5])
        _ = try await system.put(file, [6], at: 2)

        var cut = AttributeSetting()
        cut.size = 1
        _ = try await system.setAttributes(cut, of: removed, handle: written).value()
        _ = try await system.put(clean, [8], at: 1)
        for handle in [written, clean] {
            #expect(try await system.bytes(handle, 0, 9) == [9, 8])
            let attributes = try await system.attributes(of: removed, handle: handle).value()
                .attributes
            #expect(attributes.linkCount == 0 && attributes.size == 2)
            try await system.synchronise(handle).value()
            system.release(handle)
        }
        #expect(try await system.bytes(file, 0, 9) == [4, 5, 6])
        system.release(file)
        let node = try fixture.catalog.node(inode)
        #expect(node.remoteID == item.id && node.revision == item.rev && node.size == 3)
        #expect(throws: CatalogError.notFound) { try fixture.catalog.node(removed) }
    }
}
