import OortModel
import Testing

@testable import OortCatalog
@testable import OortSync

@Suite("the values that an engine decides by") struct EngineValueTests {
    private func content(_ number: Int64, _ size: Int64) -> UnhashedContent {
        UnhashedContent(content: ContentID(number), size: size)
    }

    private func hashes(largestUpload: Int64 = 1000, together: Int = 2) -> HashQueue {
        var traits = ProviderTraits(
            names: NameRules(comparison: .exact, allowsDuplicates: false) { _, _, _ in nil },
            hashAlgorithm: .md5,
            largestSimpleUpload: .max,
            largestFile: .max,
            uploadPartMultiple: 1,
            uploadPartSize: 1 << 20
        )
        traits.batchSizes.upload = together
        traits.batchSizes.largestUpload = largestUpload
        traits.maximumWritesInFlight = 1
        return HashQueue(traits)
    }

    @Test("four contents are read at once, the smallest first, and none twice")
    func reading() {
        var queue = hashes()
        queue.load([content(1, 50), content(2, 10), content(3, 40), content(4, 20), content(5, 30)])
        let first = queue.next(at: 0)
        #expect(first.map(\.rawValue) == [2, 4, 5, 3])
        queue.load([content(1, 50), content(2, 10)])
        let none = queue.next(at: 0)
        #expect(none.isEmpty)
        _ = queue.ended(ContentID(4), at: 1)
        let next = queue.next(at: 1)
        #expect(next.map(\.rawValue) == [1])
    }

    @Test("a plan waits for small contents, not for long, and not for large ones")
    func waiting() {
        var queue = hashes()
        queue.load([content(1, 10), content(2, 20), content(3, 30), content(4, 5000)])
        _ = queue.next(at: 100)
        #expect(queue.delaysPlan(at: 100) == 1100)
        #expect(queue.delaysPlan(at: 1101) == nil)
        let isDue = [1, 2].map { queue.ended(ContentID($0), at: 200) }
        // As many as go up in one call.
        #expect(isDue == [false, true])
        #expect(queue.delaysPlan(at: 300) == nil)
        let isDueAfterAll = queue.ended(ContentID(3), at: 400)
        #expect(isDueAfterAll)
        #expect(queue.delaysPlan(at: 400) == nil)
        #expect(!queue.isEmpty)
    }

    @Test("what could not be read is read again at its moment, or when all is tried again")
    func again() {
        var queue = hashes()
        queue.delay(ContentID(1), until: 1000)
        queue.load([content(1, 10)])
        let early = queue.next(at: 999)
        #expect(early.isEmpty)
        queue.load([content(1, 10)])
        queue.retryAll()
        let again = queue.next(at: 999)
        #expect(again.map(\.rawValue) == [1])
    }

    @Test("an answer is suspect of what was changed after it was asked for, or is being changed")
    func order() {
        let order = RequestOrder()
        order.touch(ItemID("before"))
        let began = order.next()
        order.touch(ItemID("after"))
        let found = order.suspects(since: began, underWay: [ItemID("now")])
        #expect(found == [ItemID("after"), ItemID("now")])
    }

    @Test("changes are remembered for as long as an older page may be under way")
    func oldPage() {
        let order = RequestOrder()
        let page = order.next()
        order.readsPage(page)
        for number in 0..<12_000 { order.touch(ItemID("\(number)")) }
        let later = order.next()
        let ofLater = order.suspects(since: later, underWay: [])
        #expect(ofLater.isEmpty)
        let ofPage = order.suspects(since: page, underWay: [])
        #expect(ofPage.count == 12_000)
        order.readsNoPage()
        let withoutPage = order.suspects(since: later, underWay: [])
        #expect(withoutPage.isEmpty)
        let forgotten = order.suspects(since: page, underWay: [])
        #expect(forgotten.count < 12_000)
    }

    @Test("content is damaged for good when three arrivals of the same bytes say so")
    func damages() {
        var failures = PushFailures()
        let inode = Inode(7)
        let isForGood = ["a", "a", "b", "b", "b"].map { failures.arrivedDamaged(inode, hash: $0) }
        #expect(isForGood == [false, false, false, false, true])
        failures.succeeded(inode)
        let isAfterSuccess = failures.arrivedDamaged(inode, hash: "b")
        #expect(!isAfterSuccess)
    }

    @Test("a file that was not found waits for a run of the feed that began later")
    func missing() {
        var unanswered = UnansweredIntents(largeAbove: 10)
        let inode = Inode(7)
        func isAsked(at now: Int64, lastRun: UInt64) -> Bool {
            unanswered.mayExist = false
            let open = [OpenIntent(inode: inode, size: 1)]
            let rounds = unanswered.next(of: open, underWay: [], at: now, lastRun: lastRun)
            unanswered.ended(inode)
            // What is not asked about is not forgotten.
            #expect(rounds.isEmpty == unanswered.mayExist)
            return !rounds.isEmpty
        }
        let since = [5, 9].map { unanswered.isMissing(inode, since: $0) }
        #expect(since == [5, 5])
        #expect(!isAsked(at: 0, lastRun: 4))
        #expect(isAsked(at: 0, lastRun: 5))
        unanswered.delay(inode, until: 100)
        #expect(!isAsked(at: 99, lastRun: 5))
        unanswered.settled(inode)
        #expect(isAsked(at: 0, lastRun: 0))
    }

    @Test("large contents are asked about beside each other and small ones, which take turns")
    func rounds() {
        var unanswered = UnansweredIntents(largeAbove: 10)
        func rounds(_ open: [(UInt64, Int64)], underWay: Set<Inode> = []) -> [[UInt64]] {
            unanswered.mayExist = false
            return unanswered.next(
                of: open.map { OpenIntent(inode: Inode($0.0), size: $0.1) },
                underWay: underWay,
                at: 0,
                lastRun: 0
            ).map { $0.map(\.rawValue) }
        }
        let open: [(UInt64, Int64)] = [(1, 11), (2, 10), (3, 0), (4, 99)]
        let first = rounds(open, underWay: [Inode(3)])
        #expect(first == [[1], [4], [2]])
        #expect(unanswered.mayExist)
        // A small one waits for those that are asked about.
        let second = rounds(open + [(5, 11), (6, 11), (7, 11)])
        #expect(second == [[5], [6]])
        #expect(unanswered.mayExist)
        for inode in [2, 4] as [UInt64] { unanswered.ended(Inode(inode)) }
        let third = rounds([(1, 11), (3, 0), (5, 11), (6, 11), (7, 11)])
        #expect(third == [[7], [3]])
        #expect(!unanswered.mayExist)
    }

    @Test("somebody else's moment stays when an earlier one comes")
    func moments() {
        var moments = Moments()
        let isNext = [100, 200, 100, 50].map { moments.add($0) }
        #expect(isNext == [true, false, false, true])
        moments.came(at: 100)
        #expect(moments.next == 200)
        #expect(moments.has(after: 199, through: 200) && !moments.has(after: 200, through: 300))
    }
}
