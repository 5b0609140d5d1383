import Foundation
import OortModel
import OortSimulators
import OortTesting
import Testing

@testable import OortBox

/// Events that come at least once, late, in no order and without what is below.
@Suite("Box: the stream of events", .timeLimit(.minutes(5)))
struct BoxChangesTests {
    @Test("a late event of an older state changes nothing")
    func lateEvents() async throws {
        try await BoxWorld.with { box in
            let world = box.world
            let item = try await world.upload("abc", as: "first.txt")
            var replica = FeedReplica(of: world.provider)
            try await replica.catchUp(with: world.provider)
            world.somebodyElse(.move(from: ["first.txt"], to: ["second.txt"]))
            try await replica.catchUp(with: world.provider)
            #expect(replica.named("second.txt").count == 1)
            box.box.tell(
                box.event(
                    "ITEM_RENAME",
                    id: "late1",
                    of: item.id,
                    [
                        "sequence_id": "1", "name": "first.txt",
                    ]
                )
            )
            try await replica.catchUp(with: world.provider)
            #expect(replica.named("first.txt").isEmpty)
            #expect(replica.named("second.txt").map(\.id) == [item.id])
        }
    }

    @Test("what an item was told to be last counts, whatever the order within a page")
    func order() async throws {
        try await BoxWorld.with { box in
            let world = box.world
            let item = try await world.upload("abc", as: "real.txt")
            var replica = FeedReplica(of: world.provider)
            try await replica.catchUp(with: world.provider)
            for (id, sequence, name) in [("o3", "30", "third"), ("o1", "10", "first")] {
                box.box.tell(
                    box.event(
                        "ITEM_RENAME",
                        id: id,
                        of: item.id,
                        [
                            "sequence_id": .string(sequence), "name": .string(name),
                            "permissions": [:],
                        ]
                    )
                )
            }
            try await replica.catchUp(with: world.provider)
            #expect(replica.items[item.id]?.fileName == "third")
        }
    }

    @Test("a late event of a deletion does not take an item that is back")
    func lateDeletion() async throws {
        try await BoxWorld.with { box in
            let world = box.world
            let item = try await world.upload("abc", as: "kept.txt")
            var replica = FeedReplica(of: world.provider)
            try await replica.catchUp(with: world.provider)
            box.box.tell(
                box.event("ITEM_TRASH", id: "late2", of: item.id, ["sequence_id": "90"])
            )
            try await replica.catchUp(with: world.provider)
            #expect(replica.named("kept.txt").map(\.id) == [item.id])
        }
    }

    @Test("events without a source, of other things and of unknown types are passed over")
    func strangeEvents() async throws {
        try await BoxWorld.with { box in
            let world = box.world
            _ = try await world.upload("abc", as: "kept.txt")
            var replica = FeedReplica(of: world.provider)
            try await replica.catchUp(with: world.provider)
            let calls = world.simulator.calls.count
            box.box.tell(["event_id": "s1", "event_type": "ITEM_TRASH", "source": .null])
            box.box.tell([
                "event_id": "s2", "event_type": "ITEM_MODIFY",
                "source": ["type": "user", "id": "1"],
            ])
            box.box.tell(["event_id": "s3", "event_type": "SOMETHING_NEW", "source": 7])
            box.box.tell(["event_type": "ITEM_MODIFY"])
            try await replica.catchUp(with: world.provider)
            #expect(replica.items.count == 1)
            // Nothing but the events was asked for.
            #expect(world.simulator.calls.count == calls + 2)
        }
    }

    @Test("listings have tags, an event reports a new one, and other events take none away")
    func tags() async throws {
        try await BoxWorld.with { box in
            let world = box.world
            let item = try await world.upload("abc", as: "a.txt")
            _ = try await world.upload("abc", as: "plain.txt")
            world.somebodyElse(.tag(path: ["a.txt"], ["urgent", "Steuer\n2026", "urgent"]))
            var replica = FeedReplica(of: world.provider)
            try await replica.catchUp(with: world.provider)
            #expect(replica.items[item.id]?.tags?.joined == "urgent; Steuer 2026")
            #expect(replica.named("plain.txt").first?.tags?.isEmpty == true)
            world.somebodyElse(.tag(path: ["a.txt"], ["paid"]))
            try await replica.catchUp(with: world.provider)
            #expect(replica.items[item.id]?.tags?.joined == "paid")
            world.somebodyElse(.move(from: ["a.txt"], to: ["b.txt"]))
            try await replica.catchUp(with: world.provider)
            // Nothing is said of them: what is known holds.
            #expect(replica.named("b.txt").map(\.tags) == [nil])
            #expect(try await world.provider.item(world.reference(item)).tags?.joined == "paid")
        }
    }

    @Test("a folder that comes back brings all that lies in it, by one event")
    func restoredFolder() async throws {
        try await BoxWorld.with { box in
            let world = box.world
            let folder = try await world.folder("papers")
            let below = try await world.folder("old", in: folder)
            _ = try await world.upload("deep", as: "deep.txt", in: below)
            var replica = FeedReplica(of: world.provider)
            try await replica.catchUp(with: world.provider)
            try await world.provider.delete(Deletion(item: folder))
            try await replica.catchUp(with: world.provider)
            #expect(replica.items.isEmpty)
            let undeletion = try #require(world.provider.undeletion)
            try await undeletion.restore(
                folder.id,
                revision: nil,
                to: Placement(folder: world.root, name: "papers")
            )
            try await replica.catchUp(with: world.provider)
            #expect(Set(replica.items.values.map(\.fileName)) == ["papers", "old", "deep.txt"])
        }
    }

    @Test("a folder that is shared with us no more is gone, one that is there comes with all in it")
    func sharing() async throws {
        try await BoxWorld.with { box in
            let world = box.world
            let folder = try await world.folder("shared")
            _ = try await world.upload("one", as: "one.txt", in: folder)
            var replica = FeedReplica(of: world.provider)
            try await replica.catchUp(with: world.provider)
            world.somebodyElse(.remove(path: ["shared"]))
            box.box.tell(box.event("COLLAB_REMOVE_COLLABORATOR", id: "c1", of: folder.id))
            try await replica.catchUp(with: world.provider)
            #expect(replica.items.isEmpty)

            let other = try await world.folder("other")
            _ = try await world.upload("two", as: "two.txt", in: other)
            let cursor = try #require(replica.cursor)
            box.box.habits.repeatsEvents = false
            box.box.tell(box.event("COLLAB_ADD_COLLABORATOR", id: "c2", of: other.id))
            var page = try await world.provider.changes(since: cursor)
            var names: Set<String> = []
            while true {
                for case .changed(let item) in page.changes { names.insert(item.fileName) }
                guard page.hasMore else { break }
                page = try await world.provider.changes(since: page.cursor)
            }
            #expect(names == ["other", "two.txt"])
            #expect(box.calls("folders/items/get") > 3)
        }
    }

    @Test("the server of news hears no token")
    func waiting() async throws {
        try await BoxWorld.with(clock: ContinuousClock()) { box in
            let world = box.world
            var replica = FeedReplica(of: world.provider)
            try await replica.catchUp(with: world.provider)
            let cursor = try #require(replica.cursor)
            async let news = world.provider.waitForChanges(since: cursor, atMost: .seconds(60))
            world.somebodyElse(.makeFolder(path: ["news"]))
            #expect(try await news == .changed)
            #expect(box.calls("poll") == 1 && box.box.tokensAtNews == 0)
        }
    }

    @Test("when our groups change all is listed again")
    func groups() async throws {
        try await BoxWorld.with { box in
            let world = box.world
            var replica = FeedReplica(of: world.provider)
            try await replica.catchUp(with: world.provider)
            box.box.tell(["event_id": "g1", "event_type": "GROUP_REMOVE_USER", "source": .null])
            let cursor = replica.cursor
            let kind = await world.failure { _ = try await world.provider.changes(since: cursor) }
            #expect(kind == .cursorLost)
        }
    }

    @Test("a cursor that is too old, or an enumeration, is not relied on")
    func age() throws {
        let now: Int64 = 1_800_000_000
        let day: Int64 = 24 * 3600
        var place = BoxCursor(position: "1", now: now)
        try place.check(now: now + 13 * day)
        #expect(throws: ProviderError.self) { try place.check(now: now + 15 * day) }
        place.read = now + 27 * day
        try place.check(now: now + 27 * day)
        #expect(throws: ProviderError.self) { try place.check(now: now + 29 * day) }
    }

    @Test("a position that Box does not take is a lost cursor")
    func damagedPosition() async throws {
        try await BoxWorld.with { box in
            let world = box.world
            let place = BoxCursor(position: "12x", now: Timestamp.now.seconds)
            let cursor = try place.cursor()
            let kind = await world.failure { _ = try await world.provider.changes(since: cursor) }
            #expect(kind == .cursorLost)
        }
    }

    @Test("the newest events and items are remembered, and no more")
    func bounds() throws {
        var place = BoxCursor(position: "1", now: 0)
        for number in 0..<3000 {
            let json = #"[{"event_id":"event-\#(number)","event_type":"ITEM_MODIFY"}]"#
            let events = try JSONDecoder().decode([BoxWire.Event].self, from: Data(json.utf8))
            let fresh = [place.unseen(events).count, place.unseen(events).count]
            #expect(fresh == [1, 0])
            let id = BoxID(kind: .file, id: String(number))
            let isNews = ["2", "2", "1"].map { place.isNews(of: id, sequence: $0) }
            #expect(isNews == [true, false, false])
        }
        #expect(place.seen.count == BoxCursor.seenKept && place.told.count == BoxCursor.toldKept)
        let again = try BoxCursor(try place.cursor())
        #expect(again == place)
    }

    @Test("a marker that Box has forgotten begins the folder anew")
    func oldMarker() async throws {
        try await BoxWorld.with { box in
            let world = box.world
            for number in 0..<6 { _ = try await world.upload("\(number)", as: "\(number).txt") }
            let first = try await world.provider.changes(since: nil)
            #expect(first.hasMore && first.isEnumeration)
            var place = try BoxCursor(first.cursor)
            #expect(place.listings.count == 1)
            place.listings[0].marker = "forgotten"
            var cursor = try place.cursor()
            var names: Set<String> = []
            while true {
                let page = try await world.provider.changes(since: cursor)
                for case .changed(let item) in page.changes { names.insert(item.fileName) }
                cursor = page.cursor
                guard page.hasMore else { break }
            }
            #expect(names == Set((0..<6).map { "\($0).txt" }))
        }
    }
}
