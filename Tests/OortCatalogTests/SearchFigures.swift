import Foundation
import GRDB
import OortCatalog
import OortModel
import Testing

/// How large and how fast the index of names is, with `OORT_SEARCH_ITEMS` items.
@Suite("figures of the search")
struct SearchFigures {
    private static let items =
        ProcessInfo.processInfo.environment["OORT_SEARCH_ITEMS"].flatMap { Int($0) } ?? 0

    private static let words = [
        "report", "invoice", "holiday", "scan", "budget", "meeting", "notes", "final", "photo",
        "contract", "letter", "project", "plan", "export", "backup", "readme", "test", "config",
        "Müller", "Rechnung", "会议", "отчёт",
    ]
    private static let endings = ["pdf", "docx", "xlsx", "txt", "png", "py", "md", "mp4", "zip"]

    @Test("sizes and times", .enabled(if: items > 0))
    func figures() async throws {
        let fixture = try TemporaryAccount(service: "drive", names: Rules.exact)
        let catalog = fixture.catalog
        var numbers = RandomNumbers(state: 5)
        func pick(_ all: [String]) -> String { all[Int.random(in: 0..<all.count, using: &numbers)] }
        let clock = ContinuousClock()
        var applied = Duration.zero
        var number = 0
        while number < Self.items {
            var changes: [Change] = []
            for _ in 0..<1000 where number < Self.items {
                let isFolder = number % 20 == 0
                let name =
                    isFolder
                    ? "\(pick(Self.words)) \(number / 20)"
                    : number % 3 == 0
                        ? "IMG_2024\(1000 + number % 365)_\(100_000 + number % 900_000).jpg"
                        : [
                            pick(Self.words), pick(Self.words),
                            "\(number % 3000).\(pick(Self.endings))",
                        ].joined(separator: " ")
                let parent =
                    number < 20 ? "root" : "id\(number / 20 * 20 / 400 * 20)-of-the-service"
                var item = Item(
                    id: ItemID("id\(number)-of-the-service"),
                    kind: isFolder ? .folder : .file,
                    fileName: name,
                    parentID: ItemID(number / 20 * 20 / 400 * 20 == number ? "root" : parent)
                )
                if !isFolder {
                    (item.rev, item.size) = (Revision("0B6Xrevision\(number)"), Int64(number))
                    item.contentHash = ContentHash(
                        algorithm: .md5,
                        value: String(repeating: "0", count: 24) + String(10_000_000 + number)
                    )
                    item.mimeType = "application/octet-stream"
                }
                item.clientModifiedTime = Timestamp(seconds: 1_700_000_000 + Int64(number))
                changes.append(.changed(item))
                number += 1
            }
            let page = changes
            applied += try await clock.measure { try await fixture.page(page) }
        }
        print("\(number) items applied in \(applied), \(applied / number) each")
        let before = try size(catalog.path)
        let building = try await clock.measure {
            while try await catalog.advanceSearchIndex() {}
        }
        let after = try size(catalog.path)
        print(
            "index built in \(building), \(building / number) each; "
                + "\(before / Int64(number)) bytes an item before, "
                + "\((after - before) / Int64(number)) more"
        )
        for words in [
            ["report"], ["contract", "holiday"], ["img"], ["jpg"], ["jpg", "holiday 77"], ["a"],
            ["pd"], ["2024"], ["会议"], ["отчет"], ["555"], ["img_20241001_100365"], ["zzzz"],
        ] {
            var answer: SearchAnswer?
            var times: [Duration] = []
            for _ in 0..<5 {
                times.append(
                    try await clock.measure {
                        answer = try await catalog.search(SearchQuery(words: words))
                    }
                )
            }
            print("\(words): \(answer?.hits.count ?? 0) in \(times.sorted()[2])")
        }
    }

    private func size(_ path: String) throws -> Int64 {
        let database = try DatabaseQueue(path: path)
        defer { try? database.close() }
        return try database.read {
            try Int64.fetchOne($0, sql: "SELECT sum(pgsize) FROM dbstat") ?? 0
        }
    }
}
