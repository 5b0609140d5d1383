import OortCatalog
import OortContentStore
import OortModel
import Synchronization
import Testing

/// A program that writes to a file again and again, as a log's or a mailbox's does.
@Suite("a file that is written while it is sent", .timeLimit(.minutes(15)))
struct WrittenWhileSentTests {
    @Test("arrives as it was when its upload began, although it is written at each of its parts")
    func appended() async throws {
        let cloud = MemoryCloud { ($0.largestSimpleUpload, $0.uploadPartSize) = (5, 3) }
        let text = "0123456789"
        try await World.run(cloud) { world in
            let inode = try world.write("f", text).inode
            let (store, catalog, account) = (world.store, world.catalog, world.account.id)
            let appends = Mutex(0)
            cloud.beforeParts { () async throws(ProviderError) in
                guard appends.withLock({ $0 < 12 }) else { return }
                do {
                    try await Self.append(".", to: inode, store, catalog, account)
                    appends.withLock { $0 += 1 }
                } catch { throw ProviderError(.localContent, detail: "\(error)") }
            }
            try await world.settle()
            #expect(cloud.history.first == [UInt8](text.utf8))
            #expect(cloud.tree == ["f": text + String(repeating: ".", count: 12)])
        }
    }

    /// As a program does that opens the file, writes at its end and closes it.
    private static func append(
        _ text: String,
        to inode: Inode,
        _ store: ContentStore,
        _ catalog: Catalog,
        _ account: AccountID
    ) async throws {
        var content = try store.open(staged: try #require(try catalog.node(inode).staged))
        let bytes = [UInt8](text.utf8)
        if try unsafe content.write(bytes.span.bytes, at: nil) == .frozen {
            let clone = try store.stage(
                try await store.thaw(content),
                of: inode,
                account: account,
                modified: .now
            ).content
            store.close(content)
            content = clone
            let end = content.size
            #expect(try unsafe content.write(bytes.span.bytes, at: nil) == .done(offset: end))
        }
        try content.record(modified: .now)
        store.close(content)
    }
}
