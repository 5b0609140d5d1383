import OortCatalog
import OortContentStore
import OortFileSystem
import OortModel
import Testing

extension OperationTests {
    @Test(
        "blocks are those of the size, for every size",
        arguments: [
            (0, 0), (1, 1), (511, 1), (512, 1), (513, 2), (1 << 40, 1 << 31),
            // No service reports these: what an older version stored of them is taken for the nearest.
            (.max, 1 << 44), (.max - 511, 1 << 44), (-1, 0), (.min, 0),
        ] as [(Int64, Int64)]
    )
    func blocks(_ size: Int64, _ blocks: Int64) async throws {
        var item = Item(
            id: ItemID("big"),
            kind: .file,
            fileName: "big",
            parentID: try fixture.setRoot()
        )
        item.size = size
        item.rev = Revision("1")
        try await fixture.observe(item)
        let entry = try await system.lookup("big", in: root).value()
        #expect(entry.attributes.blocks == blocks)
        #expect(entry.attributes.size == min(max(size, 0), ReportedSize.largest))
        let listed = try await system.list(root, after: 0, limit: 10).value()
        #expect(listed.map(\.entry.attributes.blocks) == [blocks])
        let opened = try await system.open(entry.attributes.inode, mode: OpenMode()).value()
        let again = try await system.attributes(of: entry.attributes.inode, handle: opened.handle)
            .value()
        #expect(again.attributes.blocks == blocks)
        system.release(opened.handle)
        try await system.unlink("big", in: root).value()
    }

    @Test("nothing grows beyond what the service takes, by no way")
    func largestFile() async throws {
        let largest = FakeService.traits.largestFile
        let (entry, opened) = try await system.make("f", in: root)
        let inode = entry.attributes.inode
        func resize(to size: Int64, _ handle: FileHandle?) -> Outcome<Entry> {
            var setting = AttributeSetting()
            setting.size = size
            return system.setAttributes(setting, of: inode, handle: handle)
        }
        for handle in [nil, opened.handle] {
            for size in [largest + 1, Int64.max - 510, .max] {
                await fails(.tooLarge, resize(to: size, handle))
            }
        }
        for range in [0..<largest + 1, largest..<largest + 1, Int64.max - 1..<Int64.max] {
            await fails(.tooLarge, system.allocate(opened.handle, range: range, extends: true))
        }
        for offset in [largest, largest - 1, .max - 2] as [Int64] {
            await #expect(throws: FileSystemError.tooLarge) {
                _ = try await system.put(opened.handle, [1, 2], at: offset)
            }
        }
        #expect(try await system.attributes(of: inode, handle: nil).value().attributes.size == 0)
        _ = try await resize(to: largest - 1, opened.handle).value()
        let appending = OpenMode(reads: true, writes: true, appends: true)
        let appender = try await system.open(inode, mode: appending).value()
        #expect(try await system.put(appender.handle, [1], at: 0) == 1)
        await #expect(throws: FileSystemError.tooLarge) {
            _ = try await system.put(appender.handle, [1], at: 0)
        }
        let (_, source) = try await system.make("g", in: root)
        _ = try await system.put(source.handle, [1], at: 0)
        await fails(
            .tooLarge,
            system.copyRange(
                from: source.handle,
                at: 0,
                to: opened.handle,
                at: largest,
                count: 1
            )
        )
        let size = try await system.attributes(of: inode, handle: nil).value().attributes.size
        #expect(size == largest)
        for handle in [opened.handle, appender.handle, source.handle] { system.release(handle) }
    }

    @Test("the room of all accounts together ends at the end of its range")
    func roomWithoutBounds() async throws {
        for account in [fixture.account, fixture.other] {
            try fixture.catalog.setQuota(Quota(used: 0, total: .max), of: account.id)
        }
        let most = try await system.room(of: .root).value()
        #expect(most.total == .max && most.free == .max)
        for account in [fixture.account, fixture.other] {
            try fixture.catalog.setQuota(Quota(used: .max, total: nil), of: account.id)
        }
        #expect(try await system.room(of: .root).value().total == .max)
    }
}
