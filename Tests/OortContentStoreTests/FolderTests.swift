import Foundation
import OortCatalog
import OortModel
import Testing

@testable import OortContentStore

@Suite("Folders of contents", .timeLimit(.minutes(15)))
struct FolderTests {
    @Test("are made with the first file in them, and again where somebody took them away")
    func madeWhenNeeded() async throws {
        let fixture = try StoreFixture()
        #expect(try fixture.folders() == [])
        #expect(try await fixture.remote("a", [1, 2, 3]).bytes(0..<3) == [1, 2, 3])
        let first = try fixture.stage(over: nil, of: try fixture.file("f"))
        #expect(try first.write([4, 5], at: 0) == .done(offset: 0))
        let made = try fixture.folders()
        #expect(made.count == 2, "\(made)")

        for folder in made where folder.hasPrefix("cache/") {
            try FileManager.default.removeItem(at: fixture.folder.appending(path: folder))
        }
        // As many as there are folders, so that one needs the folder that is gone.
        for number in 0..<256 {
            #expect(try await fixture.remote("b\(number)", [6, 7]).bytes(0..<2) == [6, 7])
        }
        let second = try fixture.stage(over: nil, of: try fixture.file("g"))
        #expect(try second.write([8], at: 0) == .done(offset: 0))
        try first.record(modified: .now)
        try second.record(modified: .now)
        _ = try await fixture.restart()
        #expect(try await fixture.store.open(staged: first.id).bytes(0..<9) == [4, 5])
        #expect(try await fixture.store.open(staged: second.id).bytes(0..<9) == [8])
    }

    @Test("are not made where what they lie in is gone: its disk may come back over them")
    func goneDisk() async throws {
        let fixture = try StoreFixture()
        let state = fixture.folder.appending(path: "state")
        let aside = fixture.folder.appending(path: "unmounted")
        try FileManager.default.moveItem(at: state, to: aside)
        #expect(throws: (any Error).self) {
            try fixture.stage(over: nil, of: try fixture.file("f")).write([1], at: 0)
        }
        #expect(!FileManager.default.fileExists(atPath: state.path))
        try FileManager.default.moveItem(at: aside, to: state)
        let staged = try fixture.stage(over: nil, of: try fixture.file("g"))
        #expect(try staged.write([2], at: 0) == .done(offset: 0))
        #expect(try await staged.bytes(0..<9) == [2])
    }
}

extension StoreFixture {
    /// The folders that contents lie in, as paths below the fixture's folder.
    fileprivate func folders() throws -> [String] {
        try ["cache/content", "state/staged"].flatMap { place in
            try FileManager.default.contentsOfDirectory(
                at: folder.appending(path: place),
                includingPropertiesForKeys: [.isDirectoryKey]
            )
            .filter { try $0.resourceValues(forKeys: [.isDirectoryKey]).isDirectory == true }
            .map { "\(place)/\($0.lastPathComponent)" }
        }
    }
}
