import OortModel
import Testing

@testable import OortSync

@Suite("how the reading of the feed stands") struct FeedStateTests {
    private func error(_ kind: ProviderError.Kind) -> ProviderError {
        ProviderError(kind, detail: "scripted")
    }

    /// A run of one page.
    private func read(
        _ feed: inout FeedState,
        _ run: UInt64,
        from start: Int64 = 0,
        to end: Int64 = 0
    ) {
        feed.begins(run, at: start)
        feed.applied(hasMore: false, isEnumeration: false)
        feed.completes(at: end)
        feed.ends()
        feed.succeeded()
    }

    @Test("a run that was wanted before it began is not wanted any more, and one since is")
    func wanted() {
        var feed = FeedState()
        feed.want()
        #expect(!feed.isQuiet)
        feed.begins(1, at: 0)
        #expect(!feed.isWanted && feed.isReading)
        feed.want()
        feed.completes(at: 0)
        feed.ends()
        #expect(feed.isWanted && !feed.isReading && feed.lastRun == 1)
        read(&feed, 2)
        #expect(feed.isQuiet)
    }

    @Test("a run that breaks between two pages is no last run, and no plan is made before the next")
    func broken() {
        var feed = FeedState()
        read(&feed, 1)
        feed.begins(2, at: 0)
        feed.applied(hasMore: true, isEnumeration: false)
        feed.ends()
        #expect(feed.lastRun == 1 && feed.isMidRun && !feed.isQuiet)
        // Pages of an enumeration say nothing of what else there is.
        feed.begins(3, at: 0)
        feed.applied(hasMore: true, isEnumeration: true)
        #expect(!feed.isMidRun)
    }

    @Test("why the feed cannot be read is known until a page of it is, but for a wish to wait")
    func unreadable() {
        var feed = FeedState()
        _ = feed.failed(error(.rateLimited(retryAfter: nil)))
        #expect(feed.unreadable == nil)
        for kind in [.outcomeUnknown(retryAfter: nil), .noPermission] as [ProviderError.Kind] {
            _ = feed.failed(error(kind))
            feed.forgetFailures()
            #expect(feed.unreadable == .offline("scripted"))
            feed.begins(1, at: 0)
            feed.applied(hasMore: true, isEnumeration: true)
            #expect(feed.unreadable == nil)
        }
    }

    @Test("what fails on this machine, such as a locked keyring, is trouble as well")
    func local() {
        var feed = FeedState()
        guard case .rest = feed.failed(error(.localContent)) else {
            Issue.record("it is not tried again")
            return
        }
        #expect(feed.unreadable == .local("scripted"))
        feed.succeeded()
        #expect(feed.unreadable == nil)
    }

    @Test("an answer that is none may be that of a network's login page")
    func portal() {
        var feed = FeedState()
        _ = feed.failed(error(.malformedAnswer))
        let words = "look whether the network wants you to log in first: scripted"
        #expect(feed.unreadable == .offline(words))
    }

    @Test("failures in a row are counted until one run is read; a lost place is none")
    func failures() {
        var feed = FeedState()
        let first = [error(.offline), error(.malformedAnswer)].map { feed.failed($0) }
        #expect(first == [.rest(tries: 1), .rest(tries: 2)])
        feed.begins(1, at: 0)
        feed.applied(hasMore: true, isEnumeration: false)
        feed.ends()
        let lost = feed.failed(error(.cursorLost))
        #expect(lost == .beginAnew && feed.hasLostPlace && !feed.isMidRun)
        feed.beganAnew()
        read(&feed, 2)
        #expect(!feed.hasLostPlace)
        let lostTwice = [error(.cursorLost), error(.cursorLost)].map { feed.failed($0) }
        #expect(lostTwice == [.beginAnew, .rest(tries: 2)] && feed.hasLostPlace)
        read(&feed, 3)
        let refused = [error(.clientRefused), error(.offline)].map { feed.failed($0) }
        #expect(refused == [.rest(tries: 6), .rest(tries: 7)])
        feed.forgetFailures()
        let last = [error(.offline), error(.signedOut)].map { feed.failed($0) }
        #expect(last == [.rest(tries: 1), .end])
    }

    @Test("a folder's operation waits for a run that began after it was planned first")
    func waiting() {
        var feed = FeedState()
        let folder = Inode(7)
        let first = feed.waits(folder, at: 100, 5)
        // Planned again, it waits since then.
        let second = feed.waits(folder, at: 200, 9)
        #expect(first == 100 && second == 100)
        read(&feed, 4)
        let early = feed.waits(folder, at: 300, 10)
        #expect(early == 100 && !feed.isQuiet)
        read(&feed, 6)
        let done = feed.waits(folder, at: 300, 10)
        #expect(done == nil && feed.isQuiet)
        // What was not planned for a while waits anew.
        feed.keepWaiting([Inode(8)])
        let again = feed.waits(folder, at: 400, 11)
        #expect(again == 400)
    }

    @Test("a run that has grown old is none, for what waited for it and for what comes to wait")
    func grownOld() {
        var feed = FeedState()
        let (one, other) = (Inode(7), Inode(8))
        _ = feed.waits(one, at: 100, 1)
        read(&feed, 2, from: 1000, to: 4000)
        let first = feed.waits(one, at: 4100, 3)
        #expect(first == nil && !feed.isOld(at: 30_000, planning: 0))
        // As long as twice the run and the plan after it took, and some more.
        #expect(feed.isOld(at: 30_001, planning: 0) && !feed.isOld(at: 30_001, planning: 1))
        // The clock was set back.
        #expect(feed.isOld(at: 3999, planning: 0))
        feed.growsOld(4)
        let (again, new) = (feed.waits(one, at: 5000, 5), feed.waits(other, at: 5000, 3))
        #expect(again == 100 && new == 5000 && feed.hasGrownOld && !feed.isQuiet)
        read(&feed, 6, from: 6000, to: 6001)
        let (done, newDone) = (feed.waits(one, at: 6002, 7), feed.waits(other, at: 6002, 7))
        #expect(done == nil && newDone == nil && !feed.hasGrownOld && feed.isQuiet)
        // Nothing waits: nothing can be too old for it.
        feed.keepWaiting([])
        #expect(!feed.isOld(at: 1 << 40, planning: 0))
    }

    @Test("a run for what may be gone is begun when nothing of ours is under way")
    func owed() {
        var feed = FeedState()
        let isBegun = feed.needsRun(true, isAnythingOpen: true)
        #expect(!isBegun && feed.owesLooks && !feed.isQuiet)
        let isBegunNow = feed.needsRun(true, isAnythingOpen: false)
        #expect(isBegunNow && !feed.owesLooks)
        feed.owesLook(at: ItemID("i"))
        #expect(feed.owesLooks)
        feed.looks()
        #expect(!feed.owesLooks && feed.isQuiet)
        // The rest of the run that is under way shows it as well.
        feed.begins(1, at: 0)
        feed.applied(hasMore: true, isEnumeration: false)
        let isBegunMidRun = feed.needsRun(true, isAnythingOpen: false)
        #expect(!isBegunMidRun && !feed.owesLooks)
    }
}
