import Foundation
import Testing

@Suite("a disk that fails is not an absence")
struct FailingDiskTests {
    /// Where `try?` asks nothing of the catalog or the content store: by the words of its line.
    private static let fine = [
        // A sleep fails when its task is cancelled, and for no other reason.
        ".sleep(for:",
        // A descriptor that was only read, or of a temporary copy.
        "handle.close()",
        // Temporary copies: what is left of them the next one looks for again.
        ".attributesOfItem(atPath: old)",
        ".removeItem(atPath: old)",
        "FileManager.default.removeItem(atPath: path)",
        // A database that was only read.
        "database.close()",
        // An unmounted mount.
        "?.unmount(within: .zero)",
    ]
    /// Files that try what a disk can do, where a failure is the answer.
    private static let probes: Set = ["OortContentStore/DiskFile.swift"]
    /// Where everything that may fail is the catalog, the store, or what asks them.
    private static let core = [
        "OortCatalog/", "OortContentStore/", "OortSync/", "OortFileSystem/", "OortPlanner/",
        "OortFUSE/", "oort/Mount/", "oort/Daemon/RestingState.swift",
    ]

    @Test("no failure of the catalog or of the content store is dropped")
    func sources() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Sources")
        let files = try #require(
            FileManager.default.enumerator(at: root, includingPropertiesForKeys: nil)
        )
        var used: Set<String> = []
        var seen = 0
        for case let file as URL in files where file.pathExtension == "swift" {
            seen += 1
            let name = String(file.path.dropFirst(root.path.count + 1))
            guard !Self.probes.contains(name) else { continue }
            let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
            func drops(_ code: some StringProtocol) -> Bool {
                code.contains("(try? ") || code.contains(" try? ")
            }
            for (number, line) in lines.enumerated() where drops(line) {
                // Without the comment; with the next line, where the call may go on.
                let next = number + 1 < lines.count ? lines[number + 1] : ""
                let code = line.prefix { $0 != "/" } + next
                guard drops(code) else { continue }
                let isCore = Self.core.contains { name.hasPrefix($0) }
                let asks = ["catalog.", "Catalog(", "ContentStore("].contains {
                    code.contains($0)
                }
                guard isCore || asks else { continue }
                let reason = Self.fine.first { line.contains($0) }
                #expect(reason != nil, "\(name): \(line)")
                if let reason { used.insert(reason) }
            }
        }
        #expect(seen > 100)
        #expect(used == Set(Self.fine), "every exception is one")
    }
}
