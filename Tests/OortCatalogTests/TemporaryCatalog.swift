import Foundation
import Logging
import OortCatalog
import OortModel

/// A catalog in a folder of its own, taken away with the value.
final class TemporaryCatalog {
    let folder: URL
    private(set) var catalog: Catalog

    init() throws {
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("oort-catalog-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        catalog = try Catalog(
            path: folder.appendingPathComponent("catalog.sqlite").path,
            checks: .afterEach,
            logger: Logger(label: "test")
        )
    }

    var path: String { catalog.path }

    /// Closes and opens again, as a restart does; `between` happens to the files meanwhile.
    func reopen(between: () throws -> Void = {}) throws {
        try catalog.close()
        try between()
        catalog = try Catalog(
            path: catalog.path,
            checks: .afterEach,
            logger: Logger(label: "test")
        )
    }

    deinit {
        try? catalog.close()
        try? FileManager.default.removeItem(at: folder)
    }
}

/// Name rules as the three kinds of services have them.
enum Rules {
    static let exact = NameRules(
        comparison: .exact,
        allowsDuplicates: true,
        allowsSlash: true
    ) { _, _, _ in nil }
    static let composed = NameRules(
        comparison: .composedCaseInsensitive,
        allowsDuplicates: false
    ) { _, _, _ in nil }
    static let folding = NameRules(
        comparison: .caseInsensitive,
        allowsDuplicates: false
    ) { _, _, _ in nil }
}

extension NewNode {
    static let file = NewNode(kind: .file, mode: 0o644, owner: 1000, group: 1000)
    static let folder = NewNode(kind: .folder, mode: 0o755, owner: 1000, group: 1000)
}
