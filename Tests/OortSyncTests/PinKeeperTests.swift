import Foundation
import Logging
import OortCatalog
import OortContentStore
import OortModel
import OortSync
import Synchronization
import Testing

@Suite("What brings what is to be kept", .timeLimit(.minutes(15)))
struct PinKeeperTests {
    /// A service that gives one byte for each file, and counts them.
    private final class Service: ContentFetcher {
        private let fetched = Atomic<Int>(0)

        var count: Int { fetched.load(ordering: .sequentiallyConsistent) }
        var largestRangeRequest: Int64 { 1 << 20 }
        var rangesAhead: Int { 12 }

        func fetch(
            _ key: ContentKey,
            range: Range<Int64>
        ) async throws(ProviderError) -> ByteStream {
            fetched.add(1, ordering: .sequentiallyConsistent)
            let isRead = Mutex(false)
            let box = Box(isRead)
            return ByteStream { () async throws(ProviderError) -> [UInt8]? in
                box.value.withLock { isRead in
                    defer { isRead = true }
                    return isRead ? nil : [1]
                }
            }
        }

        func export(_ item: ItemID) async throws(ProviderError) -> ByteStream {
            throw ProviderError(.unsupported, detail: "no documents here")
        }

        func makeHasher() -> any ContentHasher { Sum() }

        private final class Box: Sendable {
            let value: Mutex<Bool>
            init(_ value: consuming Mutex<Bool>) { self.value = value }
        }

        private struct Sum: ContentHasher {
            private var sum = 0
            mutating func update(_ bytes: ArraySlice<UInt8>) { sum += bytes.count }
            func finalize() -> ContentHash { ContentHash(algorithm: .sha256, value: "\(sum)") }
        }
    }

    @Test("what nobody keeps any longer is not fetched, though the list was under way")
    func unpinnedMeanwhile() async throws {
        let world = try World()
        let root = ItemID("root")
        try world.catalog.setIdentity(
            AccountIdentity(id: "me", displayName: "Me", email: nil, rootID: root),
            of: world.account.id
        )
        let folder = ItemID("folder")
        var told = [Change.changed(Item(id: folder, kind: .folder, fileName: "a", parentID: root))]
        for number in 0..<4000 {
            var item = Item(
                id: ItemID("\(number)"),
                kind: .file,
                fileName: "\(number)",
                parentID: folder
            )
            (item.size, item.rev) = (1, Revision("1"))
            told.append(.changed(item))
        }
        _ = try await world.catalog.apply(Observations(changes: told), to: world.account.id)
        let service = Service()
        world.store.setFetcher(service, for: world.account.id)
        let inode = try world.node("a").inode
        let clock = ContinuousClock()
        try await world.catalog.pin(inode, until: nil)
        let look = try await clock.measure {
            _ = try await world.catalog.surveyKept(
                of: world.account.id,
                at: Timestamp.now.inMilliseconds,
                limit: 2048
            ) { _ in true }
        }
        _ = try await world.catalog.unpin(inode)
        // Each time the pin goes at another moment of the look at all that is to be kept.
        for part in 0..<8 {
            let keeper = PinKeeper(
                account: world.account.id,
                catalog: world.catalog,
                store: world.store,
                look: { _ in },
                logger: Logger(label: "test")
            )
            try await world.catalog.pin(inode, until: nil)
            let life = Task { await keeper.run() }
            try await clock.sleep(for: look * part / 8)
            _ = try await world.catalog.unpin(inode)
            await keeper.pinsChanged()
            let before = service.count
            // A look of its own, after which nothing of what was read before may go on.
            try await clock.sleep(for: look * 3 + .milliseconds(100))
            #expect(service.count <= before + 8, "\(part)")
            life.cancel()
            await life.value
        }
        await world.end()
    }
}
