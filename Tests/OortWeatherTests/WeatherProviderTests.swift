import Foundation
import Logging
import OortModel
import OortTransport
import Synchronization
import Testing

@testable import OortWeather

/// Services that give prepared answers, and count.
private final class CannedClient: HTTPClient {
    struct State {
        var urls: [String] = []
        var headers: [[String: String]] = []
        var isDown = false
        var answerHeaders: [(name: String, value: String)] = []
        var status = 200
        var forecast = ForecastTests.openMeteo
    }
    let state = Mutex(State())

    func stream(
        _ request: HTTPRequest
    ) async throws(TransportError) -> HTTPStreamedResponse {
        let isSearch = request.url.contains("/v1/search")
        let (status, headers, body, isDown) = state.withLock { state in
            state.urls.append(request.url)
            state.headers.append(
                Dictionary(request.headers.map { ($0.name, $0.value) }) { first, _ in first }
            )
            let places = request.url.lowercased().contains("oslo") ? Self.oslo : "{}"
            return (
                isSearch ? 200 : state.status, state.answerHeaders,
                isSearch ? places : state.forecast, state.isDown
            )
        }
        guard !isDown else { throw .unreachable("no network") }
        let rest = Mutex<[UInt8]?>(status == 304 ? [] : Array(body.utf8))
        return HTTPStreamedResponse(
            head: HTTPResponseHead(status: status, headers: headers, httpVersion: "1.1"),
            body: ByteStream { () async throws(ProviderError) in
                rest.withLock { rest in
                    defer { rest = nil }
                    return rest
                }
            }
        )
    }

    var urls: [String] { state.withLock(\.urls) }

    static let oslo = """
        {"results":[{"name":"Oslo","latitude":59.912734567,"longitude":10.74609,
        "timezone":"Europe/Oslo","country":"Norway","country_code":"NO"}]}
        """
}

/// A clock that the tests move.
private final class HandClock: Sendable {
    let time = Mutex(noon)
}

@Suite("The weather as a provider")
final class WeatherProviderTests: Sendable {
    private let client = CannedClient()
    private let clock = HandClock()
    private let folder: URL

    init() throws {
        folder = FileManager.default.temporaryDirectory.appending(
            path: "oort-weather-\(UUID().uuidString)"
        )
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    private func provider(
        _ source: WeatherSourceName = .openMeteo
    ) throws -> WeatherProvider {
        try WeatherProvider(
            WeatherAccount(source: source),
            client: client,
            userAgent: "oort-tests/1",
            file: folder.appending(path: "places.list").path,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            now: { [clock] in clock.time.withLock(\.self) }
        )
    }

    private func pass(_ seconds: Int64) { clock.time.withLock { $0 += seconds } }

    private func add(_ name: String, to provider: WeatherProvider) async throws -> Item {
        try await provider.createFolder(NewFolder(parent: root, name: name))
    }

    private var root: ItemReference { ItemReference(id: WeatherProvider.rootID, path: .root) }

    private func text(
        _ document: WeatherDocument,
        of place: Item,
        _ provider: WeatherProvider
    ) async throws -> String {
        let number = try #require(Int(place.id.rawValue))
        let reference = ItemReference(id: document.id(in: number), path: .root)
        let stream = try await provider.export(reference, to: document.format)
        return String(decoding: try await stream.collect(atMost: 1 << 20), as: UTF8.self)
    }

    @Test("one call serves all files, and a day of looking costs fewer than it has hours")
    func calls() async throws {
        let provider = try provider()
        let place = try await add("Oslo", to: provider)
        #expect(client.urls.count == 1)
        // Every ten minutes for a day.
        for _ in 0..<144 {
            for document in WeatherDocument.allCases {
                _ = try await text(document, of: place, provider)
            }
            pass(600)
        }
        #expect(client.urls.count - 1 < 24)
        #expect(client.urls[1].contains("latitude=59.9127&longitude=10.7461&"))
        // Two at a time are one call.
        pass(86_400)
        let before = client.urls.count
        async let one = text(.now, of: place, provider)
        async let other = text(.hourly, of: place, provider)
        _ = try await (one, other)
        #expect(client.urls.count == before + 1)
    }

    @Test("what the service says of how long an answer holds is kept, within bounds")
    func freshness() {
        func kept(_ headers: [(name: String, value: String)]) -> Int64 {
            let head = HTTPResponseHead(status: 200, headers: headers, httpVersion: "1.1")
            return WeatherRequests.kept(until: head, now: noon) - noon
        }
        let date = (name: "Date", value: "Mon, 23 Nov 2026 11:00:00 GMT")
        #expect(kept([]) == 75 * 60)
        #expect(kept([date, ("Expires", "Mon, 23 Nov 2026 14:00:00 GMT")]) == 3 * 3600)
        #expect(kept([date, ("Expires", "Mon, 23 Nov 2026 11:30:00 GMT")]) == 75 * 60)
        #expect(kept([date, ("Expires", "Mon, 23 Nov 2099 11:30:00 GMT")]) == 12 * 3600)
        #expect(kept([("Expires", "soon")]) == 75 * 60)
        #expect(kept([("Cache-Control", "public, max-age=9000")]) == 9000)
        #expect(kept([("Cache-Control", "max-age=9223372036854775807")]) == 12 * 3600)
    }

    @Test("an unchanged forecast is not sent again")
    func unchanged() async throws {
        client.state.withLock { state in
            state.forecast = ForecastTests.metNorway
            state.answerHeaders = [("Last-Modified", "Mon, 23 Nov 2026 11:04:26 GMT")]
        }
        let provider = try provider(.metNorway)
        let place = try await add("Oslo", to: provider)
        let first = try await text(.hourly, of: place, provider)
        client.state.withLock { $0.status = 304 }
        pass(2 * 3600)
        let second = try await text(.forecast, of: place, provider)
        let sent = client.state.withLock(\.headers)
        #expect(sent[1]["If-Modified-Since"] == nil)
        #expect(sent[2]["If-Modified-Since"] == "Mon, 23 Nov 2026 11:04:26 GMT")
        #expect(sent.allSatisfy { $0["User-Agent"] == "oort-tests/1" })
        #expect(first.contains("20.7") && second.contains("\"is_old\" : false"))
    }

    @Test("without a network the last forecast is given with its age, and asked for once a minute")
    func offline() async throws {
        let first = try provider()
        let place = try await add("Oslo", to: first)
        _ = try await text(.now, of: place, first)
        client.state.withLock { $0.isDown = true }
        pass(3 * 3600)
        // Another process, later.
        let provider = try provider()
        let before = client.urls.count
        for _ in 0..<3 {
            let old = try await text(.now, of: place, provider)
            #expect(old.contains("3 hours ago: the service cannot be reached now"))
        }
        #expect(client.urls.count == before + 1)
        pass(61)
        client.state.withLock { $0.isDown = false }
        #expect(!(try await text(.now, of: place, provider)).contains("ago"))
        // An answer that is none does not take its place.
        pass(3 * 3600)
        client.state.withLock { $0.forecast = "<html>" }
        #expect(try await text(.now, of: place, provider).contains("ago"))
        client.state.withLock { ($0.status, $0.forecast) = (403, "no") }
        pass(61)
        #expect(try await text(.now, of: place, provider).contains("ago"))
    }

    @Test("a place that was never told gives the error of the service")
    func neverTold() async throws {
        let provider = try provider()
        let place = try await add("Oslo", to: provider)
        client.state.withLock { $0.isDown = true }
        await #expect { try await self.text(.now, of: place, provider) } throws: { error in
            (error as? ProviderError)?.kind == .offline
        }
        #expect(try await text(.sunAndMoon, of: place, provider).contains("sunrise"))
    }

    @Test("places come and go by the feed, over restarts")
    func feed() async throws {
        let one = try provider()
        let start = try await one.changes(since: nil)
        #expect(start.changes.isEmpty && start.isEnumeration && !start.hasMore)
        let place = try await add("Oslo", to: one)
        #expect(place.permissions == [.read, .delete])
        let other = try provider()
        let added = try await other.changes(since: start.cursor)
        #expect(added.changes.count == 1 + WeatherDocument.allCases.count)
        #expect(try await other.changes(since: added.cursor).changes.isEmpty)
        try await other.delete(Deletion(item: ItemReference(id: place.id, path: .root)))
        try await other.delete(Deletion(item: ItemReference(id: place.id, path: .root)))
        let gone = try await other.changes(since: added.cursor)
        #expect(gone.changes.contains(.removed(place.id)))
        let last = try provider()
        #expect(try await last.changes(since: nil).changes.isEmpty)
        // Its number is not used again.
        #expect(try await add("Oslo", to: last).id != place.id)
        for cursor in ["", "x", "x.1", "9.9.9"] {
            await #expect { _ = try await last.changes(since: Cursor(cursor)) } throws: { error in
                (error as? ProviderError)?.kind == .cursorLost
            }
        }
    }

    @Test("an opened document reads otherwise when its hour is over, and the feed says so")
    func hours() async throws {
        let provider = try provider()
        let place = try await add("Oslo", to: provider)
        let known = try await provider.changes(since: nil).cursor
        #expect(
            try await provider.waitForChanges(since: known, atMost: .zero) == .quiet(backoff: nil)
        )
        pass(7200)
        #expect(
            try await provider.waitForChanges(since: known, atMost: .zero) == .quiet(backoff: nil),
            "nobody opened it"
        )
        _ = try await text(.sunAndMoon, of: place, provider)
        pass(3600)
        #expect(try await provider.waitForChanges(since: known, atMost: .zero) == .changed)
        let page = try await provider.changes(since: known)
        guard case .changed(let folder)? = page.changes.first else {
            Issue.record("the place is not told")
            return
        }
        #expect(folder.clientModifiedTime == Timestamp(seconds: noon + 10_800))
    }

    @Test("what another process showed of an old forecast is made anew")
    func restart() async throws {
        let first = try provider()
        let place = try await add("Oslo", to: first)
        _ = try await text(.now, of: place, first)
        let known = try await first.changes(since: nil).cursor
        #expect(try await provider().changes(since: known).changes.isEmpty, "it is fresh")
        pass(3 * 3600)
        let second = try await provider().changes(since: known)
        let third = try await provider().changes(since: second.cursor)
        let times = [second, third].map { page -> Timestamp? in
            guard case .changed(let item)? = page.changes.last else { return nil }
            return item.clientModifiedTime
        }
        #expect(try #require(times[0]) < #require(times[1]))
    }

    @Test("a place is waited for and wakes who waits")
    func waiting() async throws {
        let provider = try provider()
        let known = try await provider.changes(since: nil).cursor
        async let news = provider.waitForChanges(since: known, atMost: .seconds(3600))
        _ = try await add("Oslo", to: provider)
        #expect(try await news == .changed)
    }

    @Test("what is no place is refused in words")
    func refusals() async throws {
        let provider = try provider()
        func kind(_ body: () async throws -> Void) async -> ProviderError? {
            do {
                try await body()
                return nil
            } catch { return error as? ProviderError }
        }
        let unknown = await kind { _ = try await add("Nowhereville", to: provider) }
        #expect(unknown?.kind == .nameRefused)
        #expect(unknown?.detail == "no place is called \"Nowhereville\"")
        let elsewhere = await kind { _ = try await add("Oslo, Spain", to: provider) }
        #expect(elsewhere?.detail == "no place is called \"Oslo, Spain\"; there is Oslo, Norway")
        let place = try await add("oslo, norway", to: provider)
        #expect(place.fileName == "oslo, norway" && place.description == "Oslo, Norway")
        #expect(await kind { _ = try await add("OSLO, Norway", to: provider) }?.kind == .nameTaken)
        let inside = ItemReference(id: place.id, path: .root)
        let nested = await kind {
            _ = try await provider.createFolder(NewFolder(parent: inside, name: "Oslo"))
        }
        #expect(nested?.kind == .noPermission)
        let document = ItemReference(id: WeatherDocument.now.id(in: 1), path: .root)
        try await provider.delete(Deletion(item: document))
        #expect(try await provider.children(of: inside, page: nil).items.count == 6)
        #expect(await kind { try await provider.delete(Deletion(item: root)) } != nil)
        #expect(provider.traits.names.refusal("a.txt", .file, 0) != nil)
        #expect(provider.traits.names.refusal("a", .folder, 1) != nil)
        #expect(provider.traits.names.refusal("a", .folder, 0) == nil)
    }

    @Test("a list that was damaged is told, not begun anew")
    func damagedList() throws {
        try Data("{".utf8).write(to: folder.appending(path: "places.list"))
        #expect(throws: ProviderError.self) { try self.provider() }
    }
}
