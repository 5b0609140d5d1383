import Foundation
import Logging
import OortCatalog
import OortModel
import Testing

@testable import oort

@Suite("who watches a mount", .timeLimit(.minutes(15)))
struct WatchersTests {
    private let folder: TemporaryFolder
    private let catalog: Catalog
    private let account: Account

    init() throws {
        folder = try TemporaryFolder()
        catalog = try Catalog(
            path: folder.path + "/catalog.sqlite",
            logger: Logger(label: "test")
        )
        account = try catalog.registerAccount(
            name: "work",
            service: "dropbox",
            names: NameRules(comparison: .exact, allowsDuplicates: false) { _, _, _ in nil }
        )
    }

    private func make(_ name: String) throws {
        let folder = NewNode(kind: .folder, mode: 0o755, owner: 0, group: 0)
        _ = try catalog.create(folder, named: name, in: account.root)
    }

    private func watch(
        _ watchers: Watchers,
        below folder: [String] = []
    ) throws -> AsyncStream<WatchEvent> {
        try watchers.add(below: folder, of: "/clouds", catalog, settle: {})
    }

    /// The next events: the kind, and the path or what stands for it.
    private func next(_ count: Int, _ events: AsyncStream<WatchEvent>) async -> [String] {
        var words: [String] = []
        for await event in events {
            words.append([event.event.rawValue, event.path ?? ""].joined(separator: " "))
            if words.count == count { break }
        }
        return words
    }

    @Test("each hears of what happens from its beginning on, in order, to the mount's end")
    func order() async throws {
        let watchers = Watchers()
        let one = try watch(watchers)
        try make("a")
        let other = try watch(watchers)
        try make("b")
        watchers.end()
        #expect(
            await next(9, one)
                == ["ready ", "created /clouds/work/a", "created /clouds/work/b", "end "]
        )
        #expect(await next(9, other) == ["ready ", "created /clouds/work/b", "end "])
        #expect(throws: Failure.self) { try watch(watchers) }
    }

    @Test("who is too slow loses what waits, is told so once, and hears what comes after")
    func overflow() async throws {
        let watchers = Watchers(longestQueue: 5)
        let events = try watch(watchers)
        #expect(await next(1, events) == ["ready "])
        for number in 0..<9 { try make("\(number)") }
        try make("last")
        watchers.end()
        let told = await next(99, events)
        #expect(told.first == "overflow ")
        #expect(Array(told.suffix(2)) == ["created /clouds/work/last", "end "])
        #expect(told.filter { $0 == "overflow " }.count == 1)
    }

    @Test("nothing is compared when nobody watches any longer, and places are free again")
    func places() async throws {
        let watchers = Watchers()
        for _ in 0..<3 {
            var all: [AsyncStream<WatchEvent>] = []
            for _ in 0..<Watchers.most { all.append(try watch(watchers)) }
            #expect(throws: Failure.self) { try watch(watchers) }
            all = []
            #expect(watchers.isEmpty)
        }
    }

    @Test("a line for people cannot act on the terminal, and JSON has the name as it is")
    func names() throws {
        let change = TreeChange(
            kind: .moved(from: ["work", "a\u{1B}[2J"]),
            inode: Inode(7),
            item: .file,
            path: ["work", "b\n"],
            isNews: true
        )
        let event = try #require(
            WatchEvent(change, below: [], top: "/clouds", time: Date(timeIntervalSince1970: 0))
        )
        let line = try #require(event.line)
        #expect(line.hasSuffix("moved     /clouds/work/a\\u{1b}[2J -> /clouds/work/b\\n"))
        let data = try ControlCoding.encode(event)
        #expect(try ControlCoding.decode(WatchEvent.self, from: data) == event)
    }

    @Test(
        "a move across the border of what is watched is a coming or a going",
        arguments: [
            (["in", "a"], ["out"], "deleted /c/in/a"), (["out"], ["in", "a"], "created /c/in/a"),
            (["in", "a"], ["in", "b"], "moved /c/in/b"), (["in"], ["new"], "deleted /c/in"),
            (["x"], ["in"], "created /c/in"), (["out"], ["other"], nil),
        ] as [([String], [String], String?)]
    )
    func border(from: [String], to: [String], told: String?) {
        let change = TreeChange(
            kind: .moved(from: from),
            inode: Inode(7),
            item: .file,
            path: to,
            isNews: false
        )
        let event = WatchEvent(change, below: ["in"], top: "/c", time: Date())
        #expect(event.map { "\($0.event.rawValue) \($0.path ?? "")" } == told)
    }
}
