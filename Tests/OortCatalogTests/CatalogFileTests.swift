import Foundation
import GRDB
import Logging
import Testing

@testable import OortCatalog

@Suite("the catalog's files")
struct CatalogFileTests {
    @Test("they are their owner's alone, those of an older version, too")
    func modes() throws {
        let folder = NSTemporaryDirectory() + "oort-catalog-\(UUID().uuidString)"
        let files = FileManager.default
        try files.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? files.removeItem(atPath: folder) }
        let path = folder + "/catalog.sqlite"
        for _ in 0..<2 {
            let catalog = try Catalog(path: path, logger: Logger(label: "test"))
            for name in try files.contentsOfDirectory(atPath: folder) {
                let attributes = try files.attributesOfItem(atPath: folder + "/" + name)
                #expect(attributes[.posixPermissions] as? Int == 0o600, "\(name)")
            }
            try catalog.close()
            try files.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
        }
    }

    @Test("a damaged page is reported before anybody reads it, and stays reported")
    func damagedPage() async throws {
        let temporary = try TemporaryCatalog()
        try await temporary.catalog.checkPages()
        #expect(temporary.catalog.trouble == nil)
        // An index that no call of this test uses.
        let page = try temporary.catalog.read { database in
            try database.number(
                "SELECT rootpage FROM sqlite_master WHERE name = 'node_by_hash'",
                []
            )
        }
        let offset = UInt64(try #require(page) - 1) * 4096
        try temporary.reopen {
            let file = try FileHandle(forUpdating: URL(filePath: temporary.path))
            try file.seek(toOffset: offset)
            try file.write(contentsOf: Data(repeating: 0xA5, count: 4096))
            try file.close()
        }
        #expect(temporary.catalog.trouble == nil)
        let error = await #expect(throws: CatalogError.self) {
            try await temporary.catalog.checkPages()
        }
        #expect(temporary.catalog.trouble == error)
        guard case .corrupt = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        try temporary.catalog.setStamps(["a transaction that succeeds"])
        #expect(temporary.catalog.trouble == error)
    }

    @Test("a disk without room for the catalog is reported until a transaction finds some")
    func full() throws {
        let catalog = try TemporaryCatalog()
        func limit(to pages: Int) throws {
            try catalog.catalog.pool.writeWithoutTransaction { database in
                try database.execute(sql: "PRAGMA max_page_count = \(pages)")
            }
        }
        // Not below what the file has.
        try limit(to: 1)
        let long = String(repeating: "x", count: 1 << 20)
        #expect(throws: CatalogError.diskFull) { try catalog.catalog.setStamps([long]) }
        #expect(catalog.catalog.trouble == .diskFull)
        try limit(to: 1 << 30)
        try catalog.catalog.setStamps([long])
        #expect(catalog.catalog.trouble == nil)
    }

    @Test("how many requests an account's service bears is kept over restarts")
    func requestLimit() async throws {
        let temporary = try TemporaryCatalog()
        for name in ["work", "home"] {
            let account = try temporary.catalog.registerAccount(
                name: name,
                service: "memory",
                names: Rules.exact
            )
            #expect(account.requestLimit == nil)
        }
        try await temporary.catalog.setRequestLimit(12, ofAccountNamed: "work")
        try await temporary.catalog.setRequestLimit(7, ofAccountNamed: "work")
        try temporary.reopen()
        let limits = try temporary.catalog.accounts().map { ($0.name, $0.requestLimit) }
        #expect(limits.map(\.0) == ["home", "work"])
        #expect(limits.map(\.1) == [nil, 7])
    }
}
