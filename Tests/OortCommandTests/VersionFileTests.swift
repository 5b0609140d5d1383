import Foundation
import Synchronization
import Testing

@testable import oort

@Suite("a version over a file", .timeLimit(.minutes(5)))
struct VersionFileTests {
    private func content(_ text: String, in folder: TemporaryFolder) throws -> FetchedVersion {
        let file = folder.path + "/fetched"
        try Data(text.utf8).write(to: URL(filePath: file))
        return FetchedVersion(file: file, size: Int64(text.utf8.count), modified: nil)
    }

    private func text(_ path: String) throws -> String {
        String(decoding: try Data(contentsOf: URL(filePath: path)), as: UTF8.self)
    }

    @Test("its content takes the file's place, with the permissions that the file had")
    func replaced() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/file"
        try Data("now".utf8).write(to: URL(filePath: path))
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: path)
        let version = try content("version", in: folder)
        try await VersionFile(version).replace(path, as: FileIdentity(path)) {}
        #expect(try text(path) == "version")
        #expect(FileIdentity(path)?.mode == 0o640)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["file"])
    }

    @Test("beside, it is never more open than the file, and replaces nothing")
    func beside() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/file"
        try Data("now".utf8).write(to: URL(filePath: path))
        for (mode, target) in [(mode_t(0o600), "private"), (0o640, "group"), (0o500, "program")] {
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
            let version = try content("version", in: folder)
            let put = try VersionFile(version).put(at: "\(folder.path)/\(target)", namedAs: path)
            #expect(try text(put) == "version")
            #expect(try #require(FileIdentity(put)).mode & ~mode == 0, "\(target)")
        }
        let version = try content("another", in: folder)
        #expect(throws: Failure.self) {
            try VersionFile(version).put(at: "\(folder.path)/group", namedAs: path)
        }
        #expect(try text(folder.path + "/group") == "version")
        let left = try Set(FileManager.default.contentsOfDirectory(atPath: folder.path))
        #expect(left.subtracting(["fetched"]) == ["file", "group", "private", "program"])
    }

    @Test("the file's name may be as long as names can be")
    func longName() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/" + String(repeating: "n", count: 255)
        try Data("now".utf8).write(to: URL(filePath: path))
        try await VersionFile(try content("version", in: folder))
            .replace(path, as: FileIdentity(path)) {}
        #expect(try text(path) == "version")
    }

    @Test("a save at any moment stays, and nothing else is left")
    func savedMeanwhile() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/file"
        let saved = folder.path + "/saved"
        for round in 0..<600 {
            try Data("now \(round)".utf8).write(to: URL(filePath: path))
            try Data("saved \(round)".utf8).write(to: URL(filePath: saved))
            let version = try content("version", in: folder)
            let go = Signal()
            let done = AsyncStream<Void>.makeStream()
            Thread.detachNewThread {
                while !go.isSet {}
                // Between the comparison and what follows it, sooner or later.
                for _ in 0..<(round % 300) * 8 { _ = go.isSet }
                _ = unsafe rename(saved, path)
                done.continuation.finish()
            }
            do throws(Failure) {
                try await VersionFile(version).replace(path, as: FileIdentity(path)) { go.set() }
            } catch {
                #expect(error.message.contains("changed meanwhile"))
            }
            for await _ in done.stream {}
            #expect(try text(path) == "saved \(round)", "round \(round)")
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["file"])
        }
    }
}

/// What one thread tells another that waits for it awake.
private final class Signal: Sendable {
    private let value = Atomic(false)
    var isSet: Bool { value.load(ordering: .sequentiallyConsistent) }
    func set() { value.store(true, ordering: .sequentiallyConsistent) }
}
