import Foundation
import Logging
import OortCatalog
import Testing

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
}
