import Foundation
import OortModel
import OortSimulators
import OortTesting
import OortTransport
import Testing

@testable import OortBox

/// A service that gives notice of news without encryption only.
private struct ClearNews: HTTPClient {
    func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPStreamedResponse {
        let body = #"{"entries":[{"type":"realtime_server","url":"http://news.example/"}]}"#
        let head = HTTPResponseHead(status: 200, headers: [], httpVersion: "1.1")
        return HTTPStreamedResponse(HTTPResponse(head: head, body: Array(body.utf8)))
    }
}

/// An item that was not reported, or not in full, is never taken for gone.
@Suite("Box: incomplete answers", .timeLimit(.minutes(5)))
struct BoxWalkTests {
    // MARK: Folders whose content no event tells

    @Test("a folder that is moved to where the walk was already is named with all that lies in it")
    func movedMeanwhile() async throws {
        try await BoxWorld.with { box in
            let world = box.world
            let early = try await world.folder("early")
            let late = try await world.folder("late")
            let moved = try await world.folder("moved", in: late)
            _ = try await world.upload("deep", as: "deep.txt", in: moved)
            let first = try await world.provider.changes(since: nil)
            // The walk has been in one folder, and not in the other.
            var place = try BoxCursor(first.cursor)
            place.listings = [.init(folder: try BoxID(early.id).id)]
            let second = try await world.provider.changes(since: try place.cursor())
            place = try BoxCursor(second.cursor)
            #expect(place.listings.isEmpty && second.hasMore)
            _ = try await world.provider.move(
                Move(
                    item: moved,
                    oldParent: late,
                    parent: early,
                    name: "moved",
                    modifiedTime: nil
                )
            )
            place.listings = [.init(folder: try BoxID(late.id).id)]
            var cursor = try place.cursor()
            var names: Set<String> = []
            while true {
                let page = try await world.provider.changes(since: cursor)
                // What is named on none of these pages is gone.
                #expect(page.isEnumeration)
                for case .changed(let item) in page.changes { names.insert(item.fileName) }
                cursor = page.cursor
                guard page.hasMore else { break }
            }
            #expect(names.isSuperset(of: ["moved", "deep.txt"]))
            #expect(try BoxCursor(cursor).isEnumeration == false)
        }
    }

    @Test("a folder that others moved is listed, one that was moved from here is not")
    func moves() async throws {
        try await BoxWorld.with { box in
            let world = box.world
            let folder = try await world.folder("folder")
            let other = try await world.folder("other")
            _ = try await world.upload("deep", as: "deep.txt", in: folder)
            var replica = FeedReplica(of: world.provider)
            try await replica.catchUp(with: world.provider)
            let listings = box.calls("folders/items/get")
            let moved = try await world.provider.move(
                Move(
                    item: folder,
                    oldParent: world.root,
                    parent: other,
                    name: "folder",
                    modifiedTime: nil
                )
            )
            try await replica.catchUp(with: world.provider)
            #expect(replica.items[folder.id]?.parentID == other.id)
            #expect(box.calls("folders/items/get") == listings)
            let later = Int(moved.version ?? "").map { String($0 + 1) } ?? ""
            box.box.tell(
                box.event("ITEM_MOVE", id: "m1", of: folder.id, ["sequence_id": .string(later)])
            )
            let cursor = try #require(replica.cursor)
            try await replica.catchUp(with: world.provider)
            #expect(box.calls("folders/items/get") == listings + 1)
            #expect(replica.cursor != cursor && replica.named("deep.txt").count == 1)
        }
    }

    @Test("a folder that comes back and is renamed brings what lies in it")
    func restoredAndRenamed() async throws {
        try await BoxWorld.with { box in
            let world = box.world
            let folder = try await world.folder("papers")
            _ = try await world.upload("deep", as: "deep.txt", in: folder)
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
            _ = try await world.provider.move(
                Move(
                    item: folder,
                    oldParent: world.root,
                    parent: world.root,
                    name: "new",
                    modifiedTime: nil
                )
            )
            try await replica.catchUp(with: world.provider)
            #expect(Set(replica.items.values.map(\.fileName)) == ["new", "deep.txt"])
        }
    }

    // MARK: Refusals

    @Test(
        "a folder that something on the way refuses ends the enumeration, which goes on later",
        arguments: [Fault.html(status: 403), .html(status: 404)]
    )
    func refusedOnTheWay(_ fault: Fault) async throws {
        try await BoxWorld.with { box in
            let world = box.world
            let folder = try await world.folder("folder")
            _ = try await world.upload("deep", as: "deep.txt", in: folder)
            var replica = FeedReplica(of: world.provider)
            // The root's, and then the folder's.
            world.simulator.add(FaultRule(fault, at: "folders/items/get", skipping: 1))
            do {
                try await replica.catchUp(with: world.provider)
                Issue.record("the enumeration went on")
            } catch let error as ProviderError {
                #expect(error.kind == .outcomeUnknown(retryAfter: nil))
            }
            try await replica.catchUp(with: world.provider)
            #expect(Set(replica.items.values.map(\.fileName)) == ["folder", "deep.txt"])
        }
    }

    @Test("a folder that can be seen and not listed stops no news; what was known in it stays")
    func refusedListing() async throws {
        try await BoxWorld.with { box in
            let world = box.world
            let folder = try await world.folder("folder")
            _ = try await world.upload("deep", as: "deep.txt", in: folder)
            let gone = try await world.upload("gone", as: "gone.txt")
            var replica = FeedReplica(of: world.provider)
            try await replica.catchUp(with: world.provider)
            // What follows is in no event that is read.
            box.box.habits.repeatsEvents = false
            try await world.provider.delete(Deletion(item: world.reference(gone)))
            _ = try await world.upload("new", as: "new.txt", in: folder)
            replica.loseCursor()
            // The root's, and then the folder's.
            let refusal = Fault.status(403, retryAfterSeconds: nil)
            world.simulator.add(FaultRule(refusal, at: "folders/items/get", skipping: 1))
            try await replica.catchUp(with: world.provider)
            #expect(Set(replica.items.values.map(\.fileName)) == ["folder", "deep.txt"])
            #expect(replica.items[folder.id]?.permissions.contains(.read) == false)
            world.somebodyElse(.makeFolder(path: ["news"]))
            try await replica.catchUp(with: world.provider)
            #expect(replica.named("news").count == 1)
            // After a day it is asked for once more.
            var place = try BoxCursor(try #require(replica.cursor))
            #expect(place.untold == [folder.id.rawValue])
            place.untoldAsked -= 2 * BoxCursor.untoldRest
            #expect(try await names(since: place, box) == ["folder", "deep.txt", "new.txt"])
        }
    }

    /// What all pages of the feed name from a place on.
    private func names(since place: BoxCursor, _ box: BoxWorld) async throws -> Set<String> {
        var cursor = try place.cursor()
        var names: Set<String> = []
        while true {
            let page = try await box.world.provider.changes(since: cursor)
            for case .changed(let item) in page.changes { names.insert(item.fileName) }
            cursor = page.cursor
            guard page.hasMore else { return names }
        }
    }

    @Test("a folder that Box misses once is listed again, one that it misses always stops nothing")
    func missedListing() async throws {
        try await BoxWorld.with { box in
            let world = box.world
            let missing = Fault.status(404, retryAfterSeconds: nil)
            let folder = try await world.folder("folder")
            _ = try await world.upload("deep", as: "deep.txt", in: folder)
            world.simulator.add(FaultRule(missing, at: "folders/items/get", skipping: 1))
            var replica = FeedReplica(of: world.provider)
            try await replica.catchUp(with: world.provider)
            #expect(Set(replica.items.values.map(\.fileName)) == ["folder", "deep.txt"])
            // By an event, too.
            try await world.provider.delete(Deletion(item: folder))
            try await replica.catchUp(with: world.provider)
            let undeletion = try #require(world.provider.undeletion)
            try await undeletion.restore(
                folder.id,
                revision: nil,
                to: Placement(folder: world.root, name: "folder")
            )
            world.simulator.add(FaultRule(missing, at: "folders/items/get"))
            try await replica.catchUp(with: world.provider)
            #expect(Set(replica.items.values.map(\.fileName)) == ["folder", "deep.txt"])
            replica.loseCursor()
            world.simulator.add(
                FaultRule(missing, at: "folders/items/get", skipping: 1, times: 5)
            )
            try await replica.catchUp(with: world.provider)
            #expect(Set(replica.items.values.map(\.fileName)) == ["folder", "deep.txt"])
            #expect(replica.items[folder.id]?.permissions.contains(.read) == false)
            let place = try BoxCursor(try #require(replica.cursor))
            #expect(place.untold == [folder.id.rawValue] && !place.isEnumeration)
        }
    }

    @Test("where many folders wait, those of a wide folder are listed before its next page")
    func wideFolder() async throws {
        try await BoxWorld.with { box in
            let world = box.world
            for number in 0..<6 { _ = try await world.folder("\(number)") }
            var place = try BoxCursor(try await world.provider.changes(since: nil).cursor)
            // The root's other pages come last where few wait.
            #expect(place.listings.last?.folder == BoxID.root.id)
            #expect(place.listings.last?.marker != nil)
            let many = 900_000..<(900_010 + BoxCursor.manyListings)
            place.listings = many.map { .init(folder: "\($0)") }
            place.listings.append(.init(folder: BoxID.root.id))
            let page = try await world.provider.changes(since: try place.cursor())
            let before = page.changes.count
            place = try BoxCursor(page.cursor)
            let root = try #require(
                place.listings.firstIndex { $0.folder == BoxID.root.id && $0.marker != nil }
            )
            #expect(place.listings.count - root - 1 == before && before > 0)
            // A marker that did not outlive that has the folder read at one go.
            place.listings[root].marker = "forgotten"
            place.listings.removeSubrange((root + 1)...)
            var isAnew = false
            for _ in 0..<2 {
                let cursor = try place.cursor()
                place = try BoxCursor(try await world.provider.changes(since: cursor).cursor)
                isAnew = place.listings.last?.folder == BoxID.root.id
            }
            #expect(isAnew && place.listings.last?.marker != nil)
        }
    }

    @Test("a root that is refused is not an empty one", arguments: [403, 404])
    func refusedRoot(_ status: Int) async throws {
        try await BoxWorld.with { box in
            let fault = Fault.status(status, retryAfterSeconds: nil)
            box.world.simulator.add(FaultRule(fault, at: "folders/items/get"))
            let kind = await box.world.failure {
                _ = try await box.world.provider.changes(since: nil)
            }
            #expect(kind == (status == 403 ? .noPermission : .notFound))
        }
    }

    // MARK: Odd items

    @Test("an item that may not be seen, or cannot be read, does not stop the stream")
    func oddEvents() async throws {
        try await BoxWorld.with { box in
            let world = box.world
            let item = try await world.upload("abc", as: "kept.txt")
            var replica = FeedReplica(of: world.provider)
            try await replica.catchUp(with: world.provider)
            let stranger: JSON = ["type": "user", "id": "1"]
            for fault in [
                Fault.status(403, retryAfterSeconds: nil), .truncatedAnswer(bytes: 5),
            ] {
                world.simulator.add(FaultRule(fault, at: "files/get"))
                box.box.tell(
                    box.event(
                        "ITEM_MODIFY",
                        id: "odd \(fault.name)",
                        of: item.id,
                        ["owned_by": stranger]
                    )
                )
                try await replica.catchUp(with: world.provider)
                #expect(replica.named("kept.txt").map(\.id) == [item.id])
            }
            // A field that cannot be read: asked for by itself.
            let asked = box.calls("files/get")
            box.box.tell(box.event("ITEM_MODIFY", id: "odd3", of: item.id, ["name": 7]))
            box.box.tell(7)
            try await replica.catchUp(with: world.provider)
            #expect(replica.named("kept.txt").map(\.id) == [item.id])
            #expect(box.calls("files/get") == asked + 1)
        }
    }

    @Test("what an event leaves out stays")
    func thinEvents() async throws {
        try await BoxWorld.with { box in
            let world = box.world
            let folder = try await world.folder("folder")
            let item = try await world.upload("abc", as: "a.txt", in: folder)
            _ = try await world.provider.setAttributes(
                of: world.reference(item, in: folder),
                to: AttributeChange(description: "words")
            )
            var replica = FeedReplica(of: world.provider)
            try await replica.catchUp(with: world.provider)
            let whole: [String: JSON] = [
                "parent": [
                    "type": "folder", "id": .string(try BoxID(folder.id).id),
                ], "description": "words", "name": "a.txt",
            ]
            for field in ["parent", "description", "sha1"] {
                var changes = whole
                changes[field] = .null
                box.box.tell(box.event("ITEM_MODIFY", id: "thin \(field)", of: item.id, changes))
                try await replica.catchUp(with: world.provider)
                let told = try #require(replica.items[item.id])
                #expect(told.parentID == folder.id && told.description == "words")
                #expect(told.contentHash == item.contentHash)
            }
        }
    }

    @Test("an entry of a listing that cannot be read is asked for by itself, and hides no other")
    func oddEntries() async throws {
        try await BoxWorld.with { box in
            let world = box.world
            let item = try await world.upload("abc", as: "kept.txt")
            let provider = try #require(world.provider as? BoxProvider)
            let id = try BoxID(item.id)
            func entries(_ entries: String) async throws -> BoxProvider.Entries {
                let bytes = Array(#"{"entries":\#(entries)}"#.utf8)
                return try await provider.entries(of: try BoxAPI.decode(bytes), in: .root)
            }
            let strange = #"{"type":"file","id":"\#(id.id)","name":7}"#
            let readable = try await entries(#"[\#(strange),{"type":"other","id":"1"}]"#)
            #expect(readable.items.map(\.fileName) == ["kept.txt"] && readable.refusals.isEmpty)
            // One without what a file has.
            let thin = try await entries(
                #"[{"type":"file","id":"\#(id.id)","name":"kept.txt"}]"#
            )
            #expect(thin.items.map(\.contentHash) == [item.contentHash])
            for text in ["7", "null"] {
                let bad = try await entries("[\(text),\(strange)]")
                #expect(bad.items.map(\.fileName) == ["kept.txt"])
                #expect(bad.refusals.map(\.of) == [.root])
                #expect(bad.refusals.map(\.error.kind) == [.malformedAnswer])
            }
            let refusal = Fault.status(403, retryAfterSeconds: nil)
            world.simulator.add(FaultRule(refusal, at: "files/get"))
            let refused = try await entries("[\(strange),\(strange)]")
            #expect(refused.items.map(\.fileName) == ["kept.txt"])
            #expect(refused.refusals.map(\.of) == [id])
        }
    }

    // MARK: Waiting and beginning anew

    @Test("a server of news that does not wait is asked more and more seldom, until events come")
    func shortPolls() async throws {
        try await BoxWorld.with(clock: ContinuousClock()) { box in
            let world = box.world
            var replica = FeedReplica(of: world.provider)
            try await replica.catchUp(with: world.provider)
            box.box.habits.shortPolls = 6
            func poll() async throws -> FeedNews {
                let cursor = try #require(replica.cursor)
                return try await world.provider.waitForChanges(since: cursor, atMost: .seconds(60))
            }
            var news: [FeedNews] = []
            for _ in 0..<5 { news.append(try await poll()) }
            let growing: [Duration?] = [
                nil, .seconds(1), .seconds(2), .seconds(4), .seconds(8),
            ]
            #expect(news == growing.map { .quiet(backoff: $0) })
            box.box.tell(["event_id": "n1", "event_type": "SOMETHING_NEW"])
            try await replica.catchUp(with: world.provider)
            #expect(try await poll() == .quiet(backoff: nil))
        }
    }

    @Test("the stream is read every five minutes, however short the waits are")
    func longQuiet() async throws {
        try await BoxWorld.with { box in
            var replica = FeedReplica(of: box.world.provider)
            try await replica.catchUp(with: box.world.provider)
            for _ in 0..<2 {
                let cursor = try #require(replica.cursor)
                var news: [FeedNews] = []
                for _ in 0..<5 {
                    news.append(
                        try await box.world.provider.waitForChanges(
                            since: cursor,
                            atMost: .seconds(60)
                        )
                    )
                }
                #expect(news == Array(repeating: .quiet(backoff: nil), count: 4) + [.changed])
                try await replica.catchUp(with: box.world.provider)
            }
        }
    }

    @Test("an account whose news would come without encryption is read after each wait")
    func clearNews() async throws {
        let provider = BoxProvider(client: ClearNews(), clock: SleptTime())
        let cursor = try BoxCursor(position: "1", now: Timestamp.now.seconds).cursor()
        #expect(try await provider.waitForChanges(since: cursor, atMost: .seconds(60)) == .changed)
    }

    @Test("a change of groups that is told once more does not have all listed once more")
    func repeatedGroups() async throws {
        try await BoxWorld.with { box in
            let world = box.world
            let event: JSON = ["event_id": "g1", "event_type": "GROUP_ADD_USER", "source": .null]
            var replica = FeedReplica(of: world.provider)
            try await replica.catchUp(with: world.provider)
            box.box.tell(event)
            let cursor = replica.cursor
            let kind = await world.failure { _ = try await world.provider.changes(since: cursor) }
            #expect(kind == .cursorLost)
            var anew = FeedReplica(of: world.provider)
            box.box.tell(event)
            try await anew.catchUp(with: world.provider)
            box.box.tell(event)
            try await anew.catchUp(with: world.provider)
        }
    }
}
