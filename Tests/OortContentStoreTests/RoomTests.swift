import Foundation
import OortCatalog
import OortModel
import OortTesting
import Synchronization
import Testing

@testable import OortContentStore

@Suite("Room for what programs write", .timeLimit(.minutes(15)))
struct RoomTests {
    /// What each staged content has on the disk, as the contents themselves say.
    private func ledger(of fixture: StoreFixture) throws -> [ContentID: Int64] {
        var ledger: [ContentID: Int64] = [:]
        for row in try fixture.catalog.stagedContents() {
            let content = try fixture.store.open(staged: row.id)
            defer { fixture.store.close(content) }
            let bytes = content.state.withLock { $0.cached == nil ? $0.own.byteCount : 0 }
            if bytes > 0 { ledger[row.id] = bytes }
        }
        return ledger
    }

    @Test("the limit of the cache is none of what a program writes")
    func largerThanTheCache() async throws {
        var settings = ContentStoreSettings()
        settings.limit = 1000
        let fixture = try StoreFixture(settings: settings)
        let content = try fixture.stage(of: try fixture.file("f"))
        let bytes = [UInt8](repeating: 7, count: 100_000)
        #expect(try content.write(bytes, at: 0) == .done(offset: 0))
        let frozen = try await fixture.store.freeze(content.id)
        #expect(frozen.size == 100_000)
        fixture.store.release(frozen)
        #expect(fixture.store.freeBytes > 1 << 20 && fixture.store.trouble == nil)
    }

    @Test("of several that are completed at once one finds room, and none fills the disk")
    func severalCompleted() async throws {
        let mib = Int64(1) << 20
        let size = 12 * mib
        let capacity = Mutex(Int64.max / 2)
        let least = Mutex(Int64.max)
        var settings = ContentStoreSettings()
        settings.reserve = 16 * mib
        let folder = Mutex("")
        @Sendable func free(_ capacity: Int64, below folder: String) -> Int64 {
            SmallDisk(capacity: capacity).freeBytes(below: folder + "/state")
                + SmallDisk(capacity: 0).freeBytes(below: folder + "/cache")
        }
        settings.freeBytes = { _ in
            let free = free(capacity.withLock { $0 }, below: folder.withLock { $0 })
            least.withLock { $0 = min($0, free) }
            return free
        }
        let fixture = try StoreFixture(settings: settings)
        folder.withLock { $0 = fixture.folder.path }
        var contents: [StagedContent] = []
        for number in 0..<3 {
            let bytes = [UInt8](repeating: UInt8(number), count: Int(size))
            let content = try fixture.stage(
                over: try fixture.remote("\(number)", bytes),
                of: try fixture.file("\(number)")
            )
            _ = try content.write([7, 7, 7], at: 6 * mib)
            contents.append(content)
        }
        // Room for what one lacks and what is fetched for it, and not for two: 4 MiB stay free.
        let used = -free(0, below: fixture.folder.path)
        capacity.withLock { $0 = used + 4 * mib + 2 * size + 2 * mib }
        fixture.service.hold()
        let store = fixture.store
        let tasks = contents.map(\.id).map { id in
            Task { () -> Bool in
                do throws(ProviderError) {
                    store.release(try await store.freeze(id))
                    return true
                } catch { return false }
            }
        }
        // Only one of them fetches; none begins what it could not end.
        try await until { fixture.service.waiting > 0 }
        #expect(store.room.hasPromises(toOthersThan: ContentID(0)))
        fixture.service.letGo()
        var done = 0
        for task in tasks where await task.value { done += 1 }
        // What was cached of the first gave way to the others, as far as it could.
        #expect(done >= 1)
        #expect(least.withLock { $0 } > 3 * mib)
        #expect(!store.room.hasPromises(toOthersThan: ContentID(0)))
        // Somebody makes room.
        capacity.withLock { $0 += 10 * size }
        for content in contents {
            let frozen = try await store.freeze(content.id)
            #expect(frozen.size == size)
            store.release(frozen)
        }
        for content in contents { store.close(content) }
    }

    @Test("what was written only in part stays here until the rest is written or it is cut there")
    func unkept() async throws {
        let fixture = try StoreFixture()
        let content = try fixture.stage(of: try fixture.file("f"))
        let id = content.id
        _ = try content.write([1, 2, 3], at: 0)
        func refuse() { content.refused(at: 3, count: 3, cause: "there was no room") }
        func isSent() async throws -> Bool {
            do throws(ProviderError) {
                fixture.store.release(try await fixture.store.freeze(id))
                return true
            } catch {
                #expect(error.kind == .localContent && error.detail.contains("no room"))
                return false
            }
        }
        #expect(try await isSent())
        refuse()
        #expect(try await !isSent())
        _ = try content.write([4], at: 3)
        #expect(try await !isSent())
        _ = try content.write([5, 6, 7], at: nil)
        #expect(try await isSent())
        refuse()
        _ = try content.truncate(to: 3)
        #expect(try await isSent())
        content.refused(at: nil, count: 5, cause: "there was no room")
        #expect(try await !isSent())
        _ = try content.truncate(to: 0)
        #expect(try await isSent())
        refuse()
        try content.record(modified: .now)
        #expect(try await fixture.restart().damaged == [id.rawValue])
        #expect(try await !isSent())
        let again = try fixture.store.open(staged: id)
        _ = try again.truncate(to: 0)
        #expect(try await isSent())
    }

    @Test(
        "what is staged is counted once, whatever happens to it",
        arguments: [31, 32, 33, 34] as [UInt64]
    )
    func ledger(seed: UInt64) async throws {
        var random = SeededNumbers(seed: seed)
        let fixture = try StoreFixture()
        var nodes: [Node] = []
        for number in 0..<4 { nodes.append(try fixture.file("\(number)")) }
        let base = try fixture.remote("base", random.bytes(200_000))
        var contents: [Inode: StagedContent] = [:]
        for step in 0..<400 {
            let node = nodes[Int.random(in: 0..<4, using: &random)]
            let content = contents[node.inode]
            let offset = Int64.random(in: 0..<300_000, using: &random)
            switch Int.random(in: 0..<11, using: &random) {
            case 0..<4:
                guard let content else { continue }
                let bytes = random.bytes(Int.random(in: 1...20_000, using: &random))
                _ = try content.write(bytes, at: Bool.random(using: &random) ? offset : nil)
            case 4: _ = try content?.truncate(to: offset)
            case 5:
                // As `fallocate`: room on the disk in which nothing was written.
                _ = try content?.truncate(to: offset + 100_000, onlyExtends: true)
                _ = try content?.allocate(offset..<offset + 100_000)
            case 6, 7:
                if let content { fixture.store.close(content) }
                let isOver = Bool.random(using: &random)
                contents[node.inode] = try fixture.stage(over: isOver ? base : nil, of: node)
            case 8:
                guard let content else { continue }
                let frozen = try await fixture.store.freeze(content.id)
                if Bool.random(using: &random) {
                    let clone = try fixture.store.stage(
                        try await fixture.store.thaw(content),
                        of: node.inode,
                        account: fixture.account.id,
                        modified: .now
                    ).content
                    contents[node.inode] = clone
                    fixture.store.close(content)
                    let key = fixture.key("up\(step)", "1")
                    await fixture.store.uploaded(frozen, as: key)
                } else {
                    fixture.store.release(frozen)
                }
            case 9: await fixture.store.collectGarbage()
            default:
                guard Int.random(in: 0..<4, using: &random) == 0 else { continue }
                for content in contents.values { fixture.store.close(content) }
                contents = [:]
                _ = try await fixture.restart()
                for node in nodes {
                    guard let id = try fixture.catalog.node(node.inode).staged else { continue }
                    contents[node.inode] = try fixture.store.open(staged: id)
                }
            }
            let sum = fixture.store.room.ledger.values.reduce(0, +)
            guard fixture.store.usage.staged == sum else {
                Issue.record("seed \(seed), step \(step): \(fixture.store.usage), not \(sum)")
                return
            }
        }
        await fixture.store.endCompletions()
        await fixture.store.collectGarbage()
        #expect(fixture.store.room.ledger == (try ledger(of: fixture)), "seed \(seed)")
        for content in contents.values { fixture.store.close(content) }
    }
}
