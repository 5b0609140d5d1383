import OortCatalog
import OortModel
import Testing

@Suite("What is to be kept here", .timeLimit(.minutes(5)))
struct PinTests {
    private static let moment: Int64 = 1_800_000_000_000

    private let world: TemporaryAccount
    private var catalog: Catalog { world.catalog }

    init() throws { world = try TemporaryAccount() }

    /// A file of some bytes that is reported by its path.
    private func told(_ path: String, _ id: String, rev: String = "1", size: Int64 = 10) -> Change {
        guard case .changed(var item) = Change.told(path, id) else { return .told(path, id) }
        (item.rev, item.size) = (Revision(rev), size)
        return .changed(item)
    }

    private func node(_ path: String...) throws -> Node {
        try #require(try catalog.node(atPath: ["work"] + path))
    }

    private func kept(at moment: Int64 = moment) async throws -> KeepSurvey {
        try await catalog.surveyKept(of: world.account.id, at: moment, limit: 100) { _ in true }
    }

    /// Stores all bytes of an item's revision.
    private func cache(_ item: String, rev: String = "1", size: Int64 = 10) async throws
        -> ContentID
    {
        let key = ContentKey(
            account: world.account.id,
            item: ItemID(item),
            revision: Revision(rev)
        )
        let id = try await catalog.insertCachedContent(
            { key },
            size: size,
            hash: nil
        )
        let record = CacheRecord(id: id, present: [1], isComplete: true, bytesOnDisk: size)
        try await catalog.saveCache([record])
        return id
    }

    @Test("a folder's pin holds for what lies in it, comes into it, and is new of it")
    func folders() async throws {
        try await world.page([
            .told("/a/", "a"), .told("/a/b/", "b"), told("/a/b/one", "1"), told("/two", "2"),
        ])
        #expect(try await kept().sums == Pin.Sums())
        try await catalog.pin(try node("a").inode, until: nil)
        var survey = try await kept()
        #expect(survey.missing.map(\.item.rawValue) == ["1"])
        #expect(survey.sums.files == 1 && survey.sums.bytesMissing == 10)
        _ = try await cache("1")
        survey = try await kept()
        #expect(survey.missing.isEmpty && survey.sums.filesHere == 1)

        try await world.page([told("/a/b/one", "1", rev: "2", size: 20), told("/a/three", "3")])
        survey = try await kept()
        #expect(Set(survey.missing.map(\.revision.rawValue)) == ["1", "2"])
        #expect(survey.sums.bytes == 30 && survey.sums.bytesHere == 0)

        // What leaves is kept no longer, what comes is.
        let folder = try node("a").inode
        _ = try catalog.rename(
            "three",
            in: folder,
            to: "3",
            in: world.account.root,
            mode: .replace
        )
        _ = try catalog.rename("two", in: world.account.root, to: "2", in: folder, mode: .replace)
        #expect(Set(try await kept().missing.map(\.item.rawValue)) == ["1", "2"])
    }

    @Test("a pin survives renames, moves and restarts, and ends with its time or its item")
    func ends() async throws {
        try await world.page([.told("/a/", "a"), told("/a/one", "1"), .told("/b/", "b")])
        try await catalog.pin(try node("a").inode, until: Self.moment)
        try await catalog.pin(try node("a", "one").inode, until: nil)
        _ = try catalog.rename(
            "a",
            in: world.account.root,
            to: "c",
            in: try node("b").inode,
            mode: .replace
        )
        try world.temporary.reopen()
        #expect(try await catalog.pins(at: Self.moment - 1).count == 2)
        #expect(
            try catalog.nearestPin(of: try node("b", "c", "one").inode, at: Self.moment - 1)
                == node("b", "c", "one").inode
        )
        let before = try await catalog.forgetPastPins(at: Self.moment - 1)
        #expect(!before.hasEnded && before.nextEnd == Self.moment)
        #expect(try await catalog.pins(at: Self.moment).count == 1)
        let after = try await catalog.forgetPastPins(at: Self.moment)
        #expect(after.hasEnded && after.nextEnd == nil)
        #expect(try await kept().sums.files == 1)
        _ = try catalog.unlink("one", in: try node("b", "c").inode)
        #expect(try await kept().sums.files == 0)
        #expect(try await catalog.pins(at: Self.moment).isEmpty)
        #expect(try await !catalog.unpin(try node("b").inode))
    }

    @Test(
        "of two pins that come together the one that ends later holds",
        arguments: [nil, moment + 1] as [Int64?],
        [true, false]
    )
    func handedOver(until: Int64?, isFirst: Bool) async throws {
        try await world.page([told("/one", "1"), told("/two", "2")])
        let (one, two) = try (node("one").inode, node("two").inode)
        try await catalog.pin(isFirst ? one : two, until: until)
        try await catalog.pin(isFirst ? two : one, until: Self.moment)
        _ = try catalog.rename(
            "one",
            in: world.account.root,
            to: "two",
            in: world.account.root,
            mode: .replace
        )
        let pins = try await catalog.pins(at: Self.moment - 1)
        #expect(pins.map(\.inode) == [one] && pins.map(\.until) == [until])
    }

    @Test("what is saved over a pinned file is pinned in its stead")
    func replaced() async throws {
        try await world.page([told("/one", "1")])
        try await catalog.pin(try node("one").inode, until: nil)
        let new = try catalog.create(.file, named: "tmp", in: world.account.root)
        _ = try catalog.rename(
            "tmp",
            in: world.account.root,
            to: "one",
            in: world.account.root,
            mode: .replace
        )
        #expect(try await catalog.pins(at: Self.moment).map(\.inode) == [new.inode])
        try await world.plan()
        #expect(try await catalog.pins(at: Self.moment).map(\.inode) == [new.inode])

        // The original steps aside and goes.
        let aside = try catalog.rename(
            "one",
            in: world.account.root,
            to: "one~",
            in: world.account.root,
            mode: .replace
        )
        let second = try catalog.create(.file, named: "one", in: world.account.root)
        _ = try catalog.unlink("one~", in: world.account.root)
        #expect(aside.node.inode == new.inode)
        try await world.plan()
        #expect(try await catalog.pins(at: Self.moment).map(\.inode) == [second.inode])
    }

    @Test("what is kept is not evicted, older revisions of it are")
    func eviction() async throws {
        try await world.page([.told("/a/", "a"), told("/a/one", "1", rev: "2"), told("/two", "2")])
        let old = try await cache("1", rev: "1")
        let now = try await cache("1", rev: "2")
        let other = try await cache("2")
        let all = try await catalog.evictableContents(limit: 10).map(\.id)
        #expect(Set(all) == [old, now, other])
        try await catalog.pin(try node("a").inode, until: nil)
        for _ in 0..<2 {
            let found = try await catalog.evictableContents(limit: 10).map(\.id)
            #expect(Set(found) == [old, other])
        }
        #expect(try await catalog.evictableContents(limit: 10, after: 1).count == 1)
        // No more are looked up than give the room that is needed.
        #expect(try await catalog.evictableContents(limit: 10, of: 10).count == 1)
        #expect(try await catalog.evictableContents(limit: 10, of: 11).count == 2)
        let below = try await catalog.cachedContents(below: try node("a").inode, unusedSince: nil)
        #expect(below.free.map(\.id) == [old] && below.kept.count == 1 && below.kept.bytes == 10)
        let everything = try await catalog.cachedContents(below: nil, unusedSince: nil)
        #expect(Set(everything.free.map(\.id)) == [old, other])
        let unused = try await catalog.cachedContents(below: nil, unusedSince: 1)
        #expect(unused.free.isEmpty && unused.kept.count == 0)
    }

    @Test("availability says what is here, of a folder as far as it was looked at")
    func availability() async throws {
        try await world.page([
            .told("/a/", "a"), told("/a/one", "1"), told("/a/two", "2"),
            told("/a/none", "3", size: 0),
        ])
        func of(_ path: String...) throws -> Availability {
            let node = try #require(try catalog.node(atPath: ["work"] + path))
            return try catalog.availability(of: node, at: Self.moment, bound: 5)
        }
        #expect(try of("a") == .online && of("a", "one") == .online && of("a", "none") == .cached)
        _ = try await cache("1")
        #expect(try of("a") == .partly && of("a", "one") == .cached)
        _ = try await cache("2")
        #expect(try of("a") == .cached)
        try await catalog.pin(try node("a").inode, until: nil)
        #expect(try of("a") == .pinned && of("a", "one") == .pinned)
        try await world.page([told("/a/four", "4", size: 0), told("/a/five", "5", size: 0)])
        #expect(try of("a") == .partly)
    }

    @Test("sizes that no file has are counted without an overflow")
    func absurdSizes() async throws {
        try await world.page([
            .told("/a/", "a"), told("/a/one", "1", size: .max), told("/a/two", "2", size: .max),
            told("/a/three", "3", size: -1),
        ])
        #expect(try node("a", "one").size == ReportedSize.largest)
        let folder = try node("a")
        try await catalog.pin(folder.inode, until: nil)
        let survey = try await kept()
        #expect(survey.sums.files == 3 && survey.sums.bytes == ReportedSize.largest * 2)
        #expect(survey.missing.allSatisfy { $0.size <= ReportedSize.largest })
        #expect(try await catalog.keepSums(of: folder.inode) == survey.sums)
        #expect(try catalog.availability(of: folder, at: Self.moment) == .online)
        // News of a clean file come in another way.
        try await world.page([told("/a/one", "1", rev: "2", size: .max)])
        #expect(try await kept().sums == survey.sums)
    }
}
