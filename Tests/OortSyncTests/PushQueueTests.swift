import OortModel
import OortPlanner
import Testing

@testable import OortSync

@Suite("the plan that is carried out") final class PushQueueTests {
    private static let sizes: ProviderTraits.BatchSizes = {
        var sizes = ProviderTraits.BatchSizes()
        (sizes.createFolder, sizes.upload, sizes.delete) = (3, 3, 3)
        sizes.largestUpload = 1000
        return sizes
    }()

    private var queue = PushQueue(PushQueueTests.sizes, mostInFlight: 6)

    private func upload(_ inode: UInt64, size: Int64 = 10, after: [Int] = []) -> RemoteOperation {
        let content = ContentIdentity(revision: nil, staged: 1, hash: nil, size: size)
        let place = Place(parent: .root, name: "\(inode)")
        return RemoteOperation(
            inode: Inode(inode),
            action: .upload(at: place, content),
            after: after
        )
    }

    private func deletion(_ inode: UInt64, after: [Int] = []) -> RemoteOperation {
        RemoteOperation(inode: Inode(inode), action: .delete, after: after)
    }

    /// The numbers of what is begun next, and when to ask again.
    private func next(at now: Int64 = 0) -> (inodes: [UInt64]?, moment: Int64?) {
        var moment: Int64?
        let batch = queue.next(at: now, waitsUntil: &moment)
        return (batch?.members.map(\.operation.inode.rawValue), moment)
    }

    private func batch(at now: Int64 = 0) throws -> PushQueue.Batch {
        var moment: Int64?
        return try #require(queue.next(at: now, waitsUntil: &moment))
    }

    private func hears(_ news: UInt64) -> Bool { queue.hears(news) }

    private func leaveDeletions() -> Bool { queue.leave { $0.action == .delete } }

    private func end(_ batch: PushQueue.Batch, isDone: Bool) -> Bool {
        for member in batch.members {
            queue.ended(member.operation.inode)
            if isDone { queue.done(member.index, of: batch) }
        }
        return queue.ended(batch)
    }

    @Test("what comes after something is begun when that is done, and not when it failed")
    func order() throws {
        queue.load([deletion(1), deletion(2, after: [0])], newsNumber: 1)
        let first = try batch()
        #expect(first.members.map(\.index) == [0])
        #expect(next().inodes == nil)
        #expect(!queue.hasWork)
        #expect(!end(first, isDone: true))
        #expect(queue.hasWork)
        #expect(next().inodes == [2])

        queue.load([deletion(3), deletion(4, after: [0])], newsNumber: 1)
        _ = end(try batch(), isDone: false)
        #expect(next().inodes == nil)
        #expect(!queue.hasDone)
    }

    @Test("operations of a kind go out together, as many as the service takes and bytes allow")
    func together() {
        let operations = (1...4).map { upload($0) } + [deletion(5), deletion(6)]
        queue.load(operations, newsNumber: 1)
        #expect(next().inodes == [1, 2, 3])
        // The fourth waits for others to share its call with; what is no upload goes out.
        let second = next()
        #expect(second.inodes == [5, 6])
        #expect(second.moment == 5000)
        #expect(next(at: 5000).inodes == [4])
    }

    @Test("of large contents four are under way, each by itself, beside the small ones")
    func large() throws {
        queue.load((1...5).map { upload($0, size: 5000) } + [upload(6)], newsNumber: 1)
        let first = try batch()
        #expect(first.isLarge)
        for inode: UInt64 in 2...4 { #expect(next().inodes == [inode]) }
        #expect(next().inodes == [6])
        #expect(next().inodes == nil)
        #expect(!end(first, isDone: true))
        #expect(next().inodes == [5])
        #expect(queue.running[Inode(5)]?.size == 5000)
    }

    @Test("no more calls are under way than the service takes, of several plans together")
    func mostInFlight() throws {
        queue = PushQueue(ProviderTraits.BatchSizes(), mostInFlight: 2)
        queue.load([deletion(1), deletion(2), deletion(3)], newsNumber: 1)
        let first = try batch()
        #expect(next().inodes == [2])
        queue.load([deletion(2), deletion(3)], newsNumber: 1)
        #expect(next().inodes == nil)
        // The other plan left the item alone that was under way.
        #expect(end(first, isDone: true))
        #expect(!queue.hasDone)
        #expect(next().inodes == [3])
    }

    @Test("what the news spoil is left to a later plan, with what comes after it")
    func spoilt() {
        queue.load([deletion(1), deletion(2, after: [0]), upload(3)], newsNumber: 7)
        #expect(!hears(7))
        #expect(hears(8))
        #expect(!hears(8))
        #expect(leaveDeletions())
        #expect(next().inodes == [3])
        #expect(next().inodes == nil)
        #expect(!leaveDeletions())
    }

    @Test("what is sent of a content only grows, and is forgotten with its end")
    func progress() throws {
        queue.load([upload(1, size: 5000)], newsNumber: 1)
        let first = try batch()
        queue.changes(ItemID("x"), in: Inode(1))
        queue.sent(2000, of: Inode(1))
        queue.sent(1000, of: Inode(1))
        #expect(queue.running[Inode(1)]?.sent == 2000)
        #expect(queue.itemsUnderWay == [ItemID("x")])
        #expect(!end(first, isDone: false))
        queue.sent(3000, of: Inode(1))
        #expect(queue.running.isEmpty && queue.itemsUnderWay.isEmpty && queue.isExhausted)
    }
}
