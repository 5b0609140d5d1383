import OortCatalog
import OortModel
import OortSync
import Testing

/// A file whose bytes only another item has, here or at the service, until its own are sent.
@Suite("bytes that are another item's still", .timeLimit(.minutes(15)))
struct BorrowedBytesTests {
    /// What becomes of the original before its copy is made.
    enum Fate: CaseIterable { case removed, removedWithItsFolder, changed }

    @Test(
        "a copy is made before its original goes or is changed, by the service where it can",
        arguments: Fate.allCases,
        [false, true]
    )
    func copiedBefore(fate: Fate, copiesFiles: Bool) async throws {
        let cloud = MemoryCloud { $0.copiesFiles = copiesFiles }
        cloud.put("d", nil)
        // So many that some would be too late.
        let names = (0..<20).map { "f\($0)" }
        for name in names { cloud.put("d/\(name)", "the bytes of \(name)") }
        try await World.run(cloud) { world in
            try await until { try world.catalog.node(atPath: ["work", "d", "f19"]) != nil }
            for name in names {
                try world.copy("d/\(name)", to: "copy of \(name)")
                switch fate {
                case .removed: try world.remove("d/\(name)")
                case .changed: try world.write("d/\(name)", "new")
                case .removedWithItsFolder: break
                }
            }
            if fate == .removedWithItsFolder { try world.remove("d") }
            try await world.settle()
            #expect(cloud.takeCalls()["copy"] == (copiesFiles ? names.count : nil))
            for name in names {
                #expect(cloud.tree["copy of \(name)"] == "the bytes of \(name)")
                #expect(cloud.tree["d/\(name)"] == (fate == .changed ? "new" : nil))
            }
        }
    }

    @Test("the original stays for as long as its copy is refused")
    func refused() async throws {
        let cloud = MemoryCloud()
        cloud.put("f", "bytes")
        try await World.run(cloud) { world in
            try await until { try world.catalog.node(atPath: ["work", "f"]) != nil }
            try world.copy("f", to: "g")
            try world.remove("f")
            // Until it was seen: an upload that is tried again succeeds.
            cloud.refuse("upload", with: .quotaExceeded, times: 10_000)
            _ = try await world.pushUntilRefused()
            #expect(cloud.tree == ["f": "bytes"])
            cloud.refuse("upload", with: .quotaExceeded, times: 0)
            try await world.settle()
            #expect(cloud.tree == ["g": "bytes"])
        }
    }
}
