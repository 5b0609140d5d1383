import Foundation
import GRDB
import OortModel
import Synchronization
import Testing

@testable import OortCatalog

@Suite("Search", .timeLimit(.minutes(15)))
struct SearchTests {
    private let fixture: TemporaryAccount
    private var catalog: Catalog { fixture.catalog }

    init() throws { fixture = try TemporaryAccount(service: "drive", names: Rules.exact) }

    @discardableResult
    private func make(_ path: String) throws -> Node {
        var folder = try catalog.node(fixture.account.root)
        let isFolder = path.hasSuffix("/")
        let parts = path.split(separator: "/").map(String.init)
        for (number, part) in parts.enumerated() {
            let isLast = number == parts.count - 1
            folder =
                try catalog.lookup(part, in: folder)
                ?? catalog.create(
                    isLast && !isFolder ? .file : .folder,
                    named: part,
                    in: folder.inode
                )
        }
        return folder
    }

    /// What is found, as paths below the account, the best first; by the index and, before it has
    /// anything, without.
    private func find(
        _ words: String...,
        with change: (inout SearchQuery) -> Void = { _ in }
    ) async throws -> [String] {
        var query = SearchQuery(words: words)
        change(&query)
        func path(_ hit: SearchHit) -> String { hit.path.dropFirst().joined(separator: "/") }
        let before = try await catalog.search(query).hits.map(path)
        while try await catalog.advanceSearchIndex() {}
        let answer = try await catalog.search(query)
        let after = answer.hits.map(path)
        #expect(answer.unindexed == 0 && !answer.isCut)
        #expect(before == after, "\(words)")
        return after
    }

    @Test(
        "a name is found by what people type of it",
        arguments: [
            ("Quarterly Report 2024.pdf", "report"), ("Quarterly Report 2024.pdf", "QUART"),
            ("Quarterly Report 2024.pdf", "eport"), ("Quarterly Report 2024.pdf", "2024.pdf"),
            ("Quarterly Report 2024.pdf", "Report-2024"), ("Quarterly Report 2024.pdf", "pd"),
            ("Müllerstraße.txt", "mullerstrasse"), ("Mu\u{308}ller.txt", "müller"),
            ("Zürich – Łódź.doc", "lodz"), ("ŒUVRE.odt", "oeuvre"), ("Smørrebrød", "smorre"),
            ("会议记录.docx", "会"), ("会议记录.docx", "记录"), ("会议记录.docx", "议"),
            ("議事録がある.txt", "がある"), ("東京タワー.jpg", "ﾀﾜｰ"), ("회의록.hwp", "의록"),
            ("รายงานประจำปี.pdf", "ประจำ"), ("отчёт.xlsx", "ОТЧЕТ"), ("Τελικός.txt", "τελικοσ"),
            ("שָׁלוֹם.txt", "שלום"), ("كِتَاب.txt", "كتاب"), ("a.txt", "a"), ("x", "X"),
            ("🎉 party.png", "🎉"), ("c++ notes", "c++"), ("50€.txt", "€"), ("ﬁnal.txt", "final"),
            ("report(1).txt", "report 1"), ("snake_case_name", "case"), ("Ａｂｃ.txt", "abc"),
        ]
    )
    func names(_ name: String, _ word: String) async throws {
        try make(name)
        try make("something else.bin")
        #expect(try await find(word) == [name])
    }

    @Test(
        "a name is not found by what it does not have",
        arguments: [
            ("report.pdf", "reports"), ("report.pdf", "ep"), ("か.txt", "が"), ("cab.txt", "ab"),
            ("會.txt", "会"), ("report.pdf", "!?"), ("report.pdf", "pdf.report"),
        ]
    )
    func others(_ name: String, _ word: String) async throws {
        try make(name)
        #expect(try await find(word).isEmpty)
    }

    @Test("words may be of the folders above, but for one")
    func paths() async throws {
        try make("bank/2024/report.pdf")
        try make("bank/2024/notes.txt")
        try make("private/report.txt")
        #expect(try await find("report", "bank") == ["bank/2024/report.pdf"])
        #expect(try await find("bank", "report") == ["bank/2024/report.pdf"])
        #expect(try await find("bank") == ["bank"])
        #expect(try await find("2024", "bank", "notes") == ["bank/2024/notes.txt"])
        #expect(try await find("report", "elsewhere").isEmpty)
        // The account's name is a folder's, too.
        #expect(try await find("report", "private", "work") == ["private/report.txt"])
        let old = try #require(try catalog.lookup("bank", in: catalog.node(fixture.account.root)))
        _ = try catalog.rename(
            "bank",
            in: fixture.account.root,
            to: "archive",
            in: fixture.account.root,
            mode: .replace
        )
        #expect(try catalog.node(old.inode).name == "archive")
        #expect(try await find("report", "bank").isEmpty)
        #expect(try await find("report", "archive") == ["archive/2024/report.pdf"])
    }

    @Test("what fits better comes first")
    func order() async throws {
        for name in ["plan", "airplane.txt", "the plan.txt", "plan of the year.txt"] {
            try make("a/\(name)")
        }
        #expect(
            try await find("plan")
                == ["a/plan", "a/plan of the year.txt", "a/the plan.txt", "a/airplane.txt"]
        )
        let few = try await catalog.search(SearchQuery(words: ["plan"], limit: 2))
        #expect(few.hits.map(\.path.last) == ["plan", "plan of the year.txt"] && few.isCut)
    }

    @Test("only what is wanted is found")
    func filters() async throws {
        let folder = try make("pictures/summer/")
        try make("pictures/summer/beach.jpg")
        try make("pictures/winter/beach house.JPG")
        try make("beach.mp4")
        try make("beach")
        #expect(try await find("beach").count == 4)
        #expect(
            try await find("beach") { $0.kind = .image }.sorted()
                == ["pictures/summer/beach.jpg", "pictures/winter/beach house.JPG"]
        )
        #expect(try await find("beach") { $0.kind = .video } == ["beach.mp4"])
        #expect(try await find("summer") { $0.kind = .folder } == ["pictures/summer"])
        #expect(
            try await find("beach") { $0.folder = folder.inode } == ["pictures/summer/beach.jpg"]
        )
        #expect(try await find("beach") { $0.largerThan = 0 }.isEmpty)
        let tomorrow = Timestamp(seconds: Timestamp.now.seconds + 86_400)
        #expect(try await find("beach") { $0.modifiedSince = tomorrow }.isEmpty)
        #expect(try await find("beach") { $0.modifiedSince = Timestamp(seconds: 0) }.count == 4)
    }

    @Test("a description is searched, and what it says no longer is not")
    func descriptions() async throws {
        func item(_ text: String?) -> Change {
            var item = Item(
                id: ItemID("1"),
                kind: .file,
                fileName: "scan.pdf",
                parentID: ItemID("root")
            )
            (item.rev, item.size, item.description) = (Revision("1"), 3, text)
            return .changed(item)
        }
        try await fixture.page([item("Rental contract for the attic")])
        #expect(try await find("contract") == ["scan.pdf"])
        #expect(try await find("attic", "scan") == ["scan.pdf"])
        try await fixture.page([item("paid")])
        #expect(try await find("contract").isEmpty)
        #expect(try await find("paid") == ["scan.pdf"])
    }

    @Test("tags are searched, and those that were taken away are not")
    func tags() async throws {
        func item(_ tags: [String]?, name: String = "scan.pdf") -> Change {
            var item = Item(
                id: ItemID("1"),
                kind: .file,
                fileName: name,
                parentID: ItemID("root")
            )
            (item.rev, item.size) = (Revision("1"), 3)
            item.tags = tags.map { TextList($0) }
            return .changed(item)
        }
        func shown() throws -> String? {
            let node = try catalog.node(remoteID: ItemID("1"), account: fixture.account.id)
            return try catalog.details(of: #require(node).inode)?.tags
        }
        try await fixture.page([item(["Dringend", "Steuer 2026", "税"])])
        #expect(try await find("dringend") == ["scan.pdf"])
        #expect(try await find("steuer", "2026") == ["scan.pdf"])
        #expect(try await find("ring") == ["scan.pdf"])
        #expect(try await find("税") == ["scan.pdf"])
        #expect(try shown() == "Dringend; Steuer 2026; 税")
        // A report that says nothing of tags takes none away.
        try await fixture.page([item(nil, name: "letter.pdf")])
        #expect(try await find("steuer", "letter") == ["letter.pdf"])
        #expect(try shown() == "Dringend; Steuer 2026; 税")
        try await fixture.page([item(["paid"])])
        #expect(try await find("steuer").isEmpty)
        #expect(try await find("paid") == ["scan.pdf"])
        try await fixture.page([item([])])
        #expect(try await find("paid").isEmpty)
        #expect(try shown() == nil)
    }

    @Test("a word in a name counts more than in a tag, and there more than in a description")
    func tagsAmongOthers() async throws {
        for (name, tags, text) in [
            ("described", nil, "about a glacier"), ("tagged", ["glacier"], nil),
            ("glacier", nil, nil),
        ] as [(String, [String]?, String?)] {
            var item = Item(
                id: ItemID(name),
                kind: .folder,
                fileName: name,
                parentID: ItemID("root")
            )
            (item.tags, item.description) = (tags.map { TextList($0) }, text)
            item.clientModifiedTime = Timestamp(seconds: 5)
            try await fixture.page([.changed(item)])
        }
        #expect(try await find("glacier") == ["glacier", "tagged", "described"])
    }

    @Test("an item that is gone is not found, and one that came back is")
    func removal() async throws {
        try make("report.pdf")
        #expect(try await find("report") == ["report.pdf"])
        _ = try catalog.unlink("report.pdf", in: fixture.account.root)
        #expect(try await find("report").isEmpty)
        try make("report.pdf")
        #expect(try await find("report") == ["report.pdf"])
        try catalog.removeAccount(fixture.account.id)
        #expect(try await find("report").isEmpty)
    }

    @Test("of very many of one name a folder's are found by the folder's name")
    func common() async throws {
        var changes: [Change] = []
        for folder in ["holiday", "other"] {
            changes.append(
                .changed(
                    Item(
                        id: ItemID(folder),
                        kind: .folder,
                        fileName: folder,
                        parentID: ItemID("root")
                    )
                )
            )
        }
        for number in 0..<12_000 {
            var item = Item(
                id: ItemID("\(number)"),
                kind: .file,
                fileName: "IMG_\(number).jpg",
                parentID: ItemID(number < 20 ? "holiday" : "other")
            )
            (item.rev, item.size) = (Revision("1"), 0)
            changes.append(.changed(item))
        }
        try await fixture.page(changes)
        while try await catalog.advanceSearchIndex(by: 5000) {}
        let found = try await catalog.search(SearchQuery(words: ["jpg", "holiday"]))
        #expect(found.hits.count == 20)
        #expect(found.hits.allSatisfy { $0.path[1] == "holiday" })
        let many = try await catalog.search(SearchQuery(words: ["jpg"], limit: 50))
        #expect(many.hits.count == 50 && many.isCut)
        #expect(try await catalog.search(SearchQuery(words: ["img 17"])).hits.count == 100)
        #expect(try await catalog.search(SearchQuery(words: ["img_11999"])).hits.count == 1)
        // Before the index knows of the folder's new name, too.
        _ = try catalog.rename(
            "holiday",
            in: fixture.account.root,
            to: "vacation",
            in: fixture.account.root,
            mode: .replace
        )
        #expect(try await catalog.search(SearchQuery(words: ["jpg", "vacation"])).hits.count == 20)
        #expect(try await catalog.search(SearchQuery(words: ["jpg", "holiday"])).hits.isEmpty)
    }

    @Test("what is looked for is found below the newest names, too, of which it is none")
    func newer() async throws {
        let here = try make("here/")
        for number in 0..<20 { try make("here/2024 \(number % 12)/invoice \(number)") }
        for number in 0..<8 { try make("there/invoice new \(number)") }
        while try await catalog.advanceSearchIndex() {}
        // More names and folders than are listed, and more newer names than are looked at where enough
        // was found.
        let bounds = SearchBounds(few: 2, some: 5, listed: 10, folders: 10)
        func find(
            _ words: String...,
            limit: Int = 100,
            in folder: Inode? = nil
        ) async throws -> SearchAnswer {
            var query = SearchQuery(words: words, limit: limit)
            query.folder = folder
            return try await catalog.search(query, within: bounds)
        }
        #expect(try await find("invoice", in: here.inode).hits.count == 20)
        #expect(try await find("invoice", "2024").hits.count == 20)
        #expect(try await find("invoice").hits.count == 28)
        let few = try await find("invoice", limit: 3)
        #expect(few.hits.count == 3 && few.isCut)
    }

    /// Files of the same name but for their numbers.
    private func makeReports(_ count: Int) async throws {
        let items = (0..<count).map { number in
            var item = Item(
                id: ItemID("\(number)"),
                kind: .file,
                fileName: "report \(number).txt",
                parentID: ItemID("root")
            )
            (item.rev, item.size) = (Revision("1"), 0)
            item.clientModifiedTime = Timestamp(seconds: 1_600_000_000)
            return item
        }
        try await fixture.page(items.map { .changed($0) })
    }

    /// Reads some of these; their names.
    private func read(_ numbers: [Int]) async throws -> Set<String> {
        for number in numbers {
            let key = ContentKey(
                account: fixture.account.id,
                item: ItemID("\(number)"),
                revision: Revision("1")
            )
            let id = try await catalog.insertCachedContent(
                { key },
                size: 0,
                hash: nil
            )
            try await catalog.markUsed([id: Timestamp.now.inMilliseconds])
        }
        return Set(numbers.map { "report \($0).txt" })
    }

    @Test("what was read lately comes first however many fit as well")
    func use() async throws {
        try await makeReports(600)
        while try await catalog.advanceSearchIndex() {}
        let read = try await read([7, 300, 599])
        let hits = try await catalog.search(SearchQuery(words: ["report"], limit: 3)).hits
        #expect(Set(hits.compactMap(\.path.last)) == read)
    }

    @Test("when something was read is not asked of each name that fits where less is here")
    func costOfUse() async throws {
        final class Counter: Sendable {
            let count = Atomic(0)
        }
        try await makeReports(600)
        let read = try await read([7, 300, 599])
        let counter = Counter()
        let queue = try DatabaseQueue(path: fixture.temporary.path)
        let answer = try await queue.read { database in
            database.trace { _ in counter.count.add(1, ordering: .relaxed) }
            let query = SearchQuery(words: ["report"], limit: 3)
            return try Search(database, query, without: []).answer(usingIndex: false)
        }
        try queue.close()
        #expect(answer.unindexed > 600)
        #expect(Set(answer.hits.compactMap(\.path.last)) == read)
        #expect(counter.count.load(ordering: .relaxed) < 60)
    }

    @Test(
        "an index that is damaged or missing is made anew, and meanwhile everything is found",
        arguments: [
            "DROP TABLE search_index", "DELETE FROM search_index_data",
            "UPDATE search_index_data SET block = X'00FF00FF'", "DELETE FROM search_index_idx",
            "UPDATE search_state SET version = 12345",
        ]
    )
    func damage(_ damage: String) async throws {
        try make("work/report.pdf")
        try make("work/notes.txt")
        #expect(try await find("report") == ["work/report.pdf"])
        try fixture.temporary.reopen {
            let database = try DatabaseQueue(path: fixture.temporary.path)
            try database.write { try $0.execute(sql: damage) }
            try database.close()
        }
        try make("work/report 2.pdf")
        let folder = try #require(try catalog.node(atPath: ["work", "work"]))
        _ = try catalog.unlink("notes.txt", in: folder.inode)
        let keeping = Task { [catalog] in await catalog.keepSearchIndex() }
        defer { keeping.cancel() }
        let deadline = ContinuousClock.now + .seconds(60)
        while ContinuousClock.now < deadline {
            let answer = try await catalog.search(SearchQuery(words: ["report"]))
            let isFound = Set(answer.hits.map(\.path.last)) == ["report.pdf", "report 2.pdf"]
            // Rows of an index that lost them are not missed by it; only who looks at all finds them.
            if isFound, answer.unindexed == 0 { return }
            try await Task.sleep(for: .milliseconds(20))
        }
        Issue.record("the index is not mended")
    }
}
