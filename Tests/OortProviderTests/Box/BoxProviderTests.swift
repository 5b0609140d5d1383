import Foundation
import OortModel
import OortSimulators
import OortTesting
import OortTransport
import Testing

@testable import OortBox

/// What only Box does.
@Suite("Box", .timeLimit(.minutes(5)))
struct BoxProviderTests {
    // MARK: Wire

    @Test(
        "huge numbers come as floats",
        arguments: [
            ("1.0e+18", ReportedSize.largest, true), ("12", 12, false), ("\"12\"", 12, false),
            ("2.0", 2, false), ("0", 0, false), ("1e400", ReportedSize.largest, true),
        ]
    )
    func numbers(_ text: String, _ value: Int64, _ isHuge: Bool) throws {
        // What no Double holds is no JSON number here; a text of one is.
        let json = text == "1e400" ? "\"\(text)\"" : text
        let number = try JSONDecoder().decode(BoxNumber.self, from: Data(json.utf8))
        #expect(number.value == value && number.isHuge == isHuge)
    }

    @Test("a number below nothing is none", arguments: ["-1", "\"x\"", "\"nan\"", "null"])
    func badNumbers(_ text: String) {
        #expect(throws: (any Error).self) {
            try JSONDecoder().decode([BoxNumber].self, from: Data("[\(text)]".utf8))
        }
    }

    @Test("times have any offset, and the place in the stream is a number or a text")
    func texts() throws {
        let json = #"""
            {"type":"file","id":7,"name":"a.txt","size":3,"etag":"1","file_version":{"id":"9"},
            "content_modified_at":"2013-04-17T09:12:36-07:00","sequence_id":"4",
            "owned_by":{"id":"me"},"modified_by":{"id":"me"}}
            """#
        let wire = try BoxAPI.decode(Array(json.utf8), as: BoxWire.Item.self)
        let item = try #require(wire.item(me: "me"))
        #expect(item.id == ItemID("f7") && item.parentID == ItemID("d0"))
        #expect(item.clientModifiedTime == Timestamp(seconds: 1_366_215_156))
        #expect(item.isOwn && item.permissions == .all)
        #expect(wire.item(me: "other")?.isOwn == false)
        for text in ["18446744073709551615", "\"18446744073709551615\""] {
            let events = try BoxAPI.decode(
                Array(#"{"next_stream_position":\#(text),"entries":[]}"#.utf8),
                as: BoxWire.Events.self
            )
            #expect(events.next_stream_position.text == "18446744073709551615")
        }
    }

    @Test(
        "a refusal is known by its code",
        arguments: [
            (400, "item_name_invalid", ProviderError.Kind.nameRefused),
            (400, "cyclical_folder_structure", .moveIntoItself),
            (403, "access_denied_item_locked", .locked),
            (403, "storage_limit_exceeded", .quotaExceeded),
            (409, "storage_limit_exceeded", .quotaExceeded),
            (403, "file_size_limit_exceeded", .tooLarge),
            (400, "terms_of_service_required", .signedOut),
            (404, "trashed", .notFound), (410, "session_expired", .sessionLost),
            (409, "operation_blocked_temporary", .locked),
            (409, "name_temporarily_reserved", .outcomeUnknown(retryAfter: .seconds(1))),
            (503, "unavailable", .outcomeUnknown(retryAfter: nil)),
        ]
    )
    func refusals(_ status: Int, _ code: String, _ kind: ProviderError.Kind) {
        let body = #"{"type":"error","status":\#(status),"code":"\#(code)","request_id":"r1"}"#
        let failure = BoxFailure(
            HTTPResponse(
                head: HTTPResponseHead(status: status, headers: [], httpVersion: "1.1"),
                body: Array(body.utf8)
            )
        )
        #expect(failure.error.kind == kind)
        #expect(failure.error.detail.contains("r1"))
    }

    @Test("tokens go to Box alone, and permissions by address over TLS alone")
    func trust() {
        let live = BoxEndpoints.live
        #expect(live.isTrusted("https://upload.box.com/api/2.0/files/upload_sessions/1"))
        #expect(live.isTrusted("https://fupload-sjc1.app.box.com/x"))
        #expect(!live.isTrusted("https://upload.box.com.example.org/x"))
        #expect(!live.isTrusted("http://upload.box.com/x"))
        #expect(!live.isTrusted("https://upload.box.com@example.org/x"))
        #expect(live.isSafe("https://2.realtime.services.box.net/subscribe"))
        #expect(!live.isSafe("http://2.realtime.services.box.net/subscribe"))
    }

    // MARK: Uploads

    @Test("a commit is repeated until Box has put the parts together")
    func commits() async throws {
        var habits = BoxSimulator.Habits()
        habits.commitWaits = 3
        habits.partsMismatches = 2
        habits.smallestSession = 1
        habits.partSize = 100_000
        try await BoxWorld.with(habits: habits, simpleUpload: 1) { box in
            let bytes = SimulatedContent(seed: 2, size: 950_000).bytes
            let item = try await box.world.upload(
                bytes,
                to: .create(parent: box.world.root, name: "parts.bin", reservedID: nil)
            )
            #expect(item.size == 950_000)
            #expect(box.calls("files/upload_sessions/put") == 10)
            #expect(box.calls("files/upload_sessions/commit/post") == 6)
            #expect(box.box.openUploadSessions == 0)
            let next = SimulatedContent(seed: 3, size: 450_000).bytes
            let replaced = try await box.world.upload(
                next,
                to: .replace(box.world.reference(item), revision: item.rev)
            )
            #expect(replaced.id == item.id && replaced.rev != item.rev)
            #expect(try await box.world.read(box.world.reference(item)) == next)
        }
    }

    @Test("an upload whose answer was lost is known when it is sent again")
    func lostUpload() async throws {
        try await BoxWorld.with { box in
            let world = box.world
            world.simulator.add(FaultRule(.doneButNoAnswer, at: "upload/new"))
            let kind = await world.failure { _ = try await world.upload("text", as: "a.txt") }
            #expect(kind == .outcomeUnknown(retryAfter: nil))
            let item = try await world.upload("text", as: "a.txt")
            #expect(item.fileName == "a.txt")
            let other = await world.failure { _ = try await world.upload("other", as: "a.txt") }
            #expect(other == .nameTaken)
        }
    }

    @Test("the same content is no new version")
    func sameContent() async throws {
        try await BoxWorld.with { box in
            let item = try await box.world.upload("text", as: "a.txt")
            let again = try await box.world.upload(
                Array("text".utf8),
                to: .replace(box.world.reference(item), revision: item.rev)
            )
            #expect(again.rev == item.rev)
            #expect(box.calls("upload/version") == 0)
        }
    }

    @Test("a name only changes the tag, and a save goes on")
    func renamedMeanwhile() async throws {
        try await BoxWorld.with { box in
            let world = box.world
            let item = try await world.upload("text", as: "a.txt")
            world.somebodyElse(.move(from: ["a.txt"], to: ["b.txt"]))
            let saved = try await world.upload(
                Array("more".utf8),
                to: .replace(world.reference(item), revision: item.rev)
            )
            #expect(saved.id == item.id && saved.fileName == "b.txt")
        }
    }

    @Test("what a plan does not take is refused before it is sent")
    func largestFile() async throws {
        var habits = BoxSimulator.Habits()
        habits.largestFile = 250_000_000
        try await BoxWorld.with(habits: habits) { box in
            var upload = box.world.entry(
                [],
                to: .create(parent: box.world.root, name: "film", reservedID: nil)
            )
            upload.size = 250_000_001
            let entry = upload
            let kind = await box.world.failure {
                _ = try await box.world.provider.upload(
                    entry,
                    observer: SilentUploadObserver()
                )
            }
            #expect(kind == .tooLarge)
            #expect(box.calls("files/upload_sessions/post") == 0)
        }
    }

    @Test("a name that Box would change is refused, and nothing stays")
    func changedNames() async throws {
        var habits = BoxSimulator.Habits()
        habits.droppedCharacters = ":"
        try await BoxWorld.with(habits: habits) { box in
            let world = box.world
            #expect(
                await world.failure { _ = try await world.upload("x", as: "a:b") } == .nameRefused
            )
            #expect(
                await world.failure {
                    _ = try await world.provider.createFolder(
                        NewFolder(parent: world.root, name: "c:d")
                    )
                } == .nameRefused
            )
            let names = try await world.names()
            #expect(names.isEmpty)
        }
    }

    @Test("uploads are spread over the minute")
    func pace() async throws {
        let clock = SleptTime()
        let pace = BoxPace(burst: 40, perMinute: 200, clock: clock)
        for _ in 0..<40 { try await pace.take() }
        #expect(clock.sleeps.isEmpty)
        for _ in 0..<200 { try await pace.take() }
        let slept = clock.sleeps.reduce(.zero, +)
        #expect(slept > .seconds(59) && slept < .seconds(61))
    }

    // MARK: Trees

    @Test("an act that meets another one in its tree is done after it")
    func blocked() async throws {
        let clock = SleptTime()
        try await BoxWorld.with(clock: clock) { box in
            let folder = try await box.world.folder("folder")
            box.box.habits.blockedTreeActs = 3
            try await box.world.provider.delete(Deletion(item: folder))
            #expect(clock.sleeps == [.seconds(1), .seconds(2), .seconds(4)])
            #expect(try await box.world.names().isEmpty)
        }
    }

    @Test("a folder in which nothing is known to lie goes only if nobody put anything there")
    func emptied() async throws {
        try await BoxWorld.with { box in
            let world = box.world
            let folder = try await world.folder("folder")
            _ = try await world.upload("theirs", as: "theirs.txt", in: folder)
            let deletion = Deletion(item: folder, expectsNothing: true)
            #expect(
                await world.failure { try await world.provider.delete(deletion) }
                    == .preconditionFailed
            )
            #expect(try await world.names(in: folder) == ["theirs.txt"])
            try await world.provider.delete(Deletion(item: folder))
            #expect(try await world.names().isEmpty)
            let empty = try await world.folder("empty")
            try await world.provider.delete(Deletion(item: empty, expectsNothing: true))
            #expect(try await world.names().isEmpty)
        }
    }

    @Test("a creation that meets an equal one looks, and is done once")
    func reserved() async throws {
        try await BoxWorld.with { box in
            box.box.habits.reservedNames = 1
            _ = try await box.world.folder("folder")
            box.box.habits.reservedNames = 1
            _ = try await box.world.upload("x", as: "x.txt")
            #expect(try await box.world.names() == ["folder", "x.txt"])
        }
    }

    @Test("a folder comes back where it is wished, not only where it lay")
    func restoring() async throws {
        try await BoxWorld.with { box in
            let world = box.world
            let folder = try await world.folder("folder")
            let item = try await world.upload("x", as: "x.txt", in: folder)
            let other = try await world.folder("other")
            try await world.provider.delete(Deletion(item: world.reference(item, in: folder)))
            let undeletion = try #require(world.provider.undeletion)
            try await undeletion.restore(
                item.id,
                revision: item.rev,
                to: Placement(folder: other, name: "y.txt")
            )
            #expect(try await world.names(in: other) == ["y.txt"])
            #expect(try await world.names(in: folder).isEmpty)
        }
    }

    // MARK: Reading

    @Test("addresses run out, and contents are not ready at once")
    func downloads() async throws {
        try await BoxWorld.with { box in
            let world = box.world
            let item = try await world.upload("the text", as: "a.txt")
            let place = world.reference(item)
            box.box.habits.unreadyDownloads = 2
            #expect(try await world.read(place, revision: item.rev) == Array("the text".utf8))
            #expect(box.calls("files/content/get") == 3)
            // The address is kept.
            #expect(
                try await world.read(place, revision: item.rev, range: 4..<8)
                    == Array("text".utf8)
            )
            #expect(box.calls("files/content/get") == 3)
            box.box.expireDownloads()
            #expect(try await world.read(place, revision: item.rev) == Array("the text".utf8))
            #expect(box.calls("files/content/get") == 4)
        }
    }

    @Test("a plan without versions has the current one, and says when another is gone")
    func withoutVersions() async throws {
        var habits = BoxSimulator.Habits()
        habits.keepsVersions = false
        try await BoxWorld.with(habits: habits) { box in
            let world = box.world
            let first = try await world.upload("first", as: "a.txt")
            let place = world.reference(first)
            let second = try await world.upload(
                Array("second".utf8),
                to: .replace(place, revision: first.rev)
            )
            #expect(
                await world.failure { _ = try await world.read(place, revision: first.rev) }
                    == .preconditionFailed
            )
            let history = try #require(world.provider.versions)
            let page = try await history.versions(of: place, page: nil)
            #expect(page.versions.map(\.id) == [second.rev?.rawValue] && page.next == nil)
        }
    }

    @Test("a web link is read as the file by which desktops keep an address")
    func webLinks() async throws {
        try await BoxWorld.with(.sample) { box in
            let world = box.world
            var replica = FeedReplica(of: world.provider)
            try await replica.catchUp(with: world.provider)
            let link = try #require(replica.named("Harbour webcam").first)
            #expect(link.kind == .nativeDocument && link.rev == nil)
            let format = try #require(link.exports.first)
            #expect(format.fileExtension == "url")
            let bytes = try await world.provider.export(
                ItemReference(id: link.id, path: .root),
                to: format
            ).collect(atMost: 1000)
            #expect(
                String(decoding: bytes, as: UTF8.self)
                    == "[InternetShortcut]\r\nURL=https://example.com/harbour\r\n"
            )
            #expect(
                AddressFile.content(of: "https://x\r\nIconFile=y").count
                    == "[InternetShortcut]\r\nURL=https://xIconFile=y\r\n".utf8.count
            )
        }
    }

    @Test("a Box Note is for reading")
    func notes() async throws {
        try await BoxWorld.with { box in
            let note = try await box.world.upload("{}", as: "Plan.boxnote")
            #expect(!note.permissions.contains(.write) && note.permissions.contains(.read))
        }
    }
}
