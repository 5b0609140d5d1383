import Foundation
import MountTesting
import Testing

@testable import SwiftFUSE

@Suite("The folder that a file system is mounted on")
struct MountPointTests {
    private func mode(of path: String) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        return try #require(attributes[.posixPermissions] as? Int)
    }

    @Test("what programs write there in the moment of mounting is moved beside it, each time")
    func writtenMeanwhile() throws {
        let temporary = try TemporaryFolder()
        defer { temporary.remove() }
        let path = temporary.path + "/clouds"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        for expected in ["found beneath", "found beneath 2"] {
            let point = try MountPoint(path, coversFiles: false)
            let found = try point.cover(sealing: true) { () throws(MountError) in
                try? FileManager.default.createDirectory(
                    atPath: point.path + "/account/backup",
                    withIntermediateDirectories: true
                )
                _ = FileManager.default.createFile(atPath: point.path + "/ü", contents: Data([1]))
            }
            let folder = try #require(found)
            #expect(folder == "\(point.path) (\(expected))")
            #expect(FileManager.default.fileExists(atPath: folder + "/account/backup"))
            #expect(FileManager.default.contents(atPath: folder + "/ü") == Data([1]))
            #expect(try FileManager.default.contentsOfDirectory(atPath: path).isEmpty)
            #expect(try mode(of: path) & 0o222 == 0)
        }
        let point = try MountPoint(path, coversFiles: false)
        let found = try point.cover(sealing: true) {}
        #expect(found == nil)
        #expect(try FileManager.default.contentsOfDirectory(atPath: temporary.path).count == 3)
    }

    @Test("where nothing is mounted after all, the folder is as it was")
    func notMounted() throws {
        let temporary = try TemporaryFolder()
        defer { temporary.remove() }
        for mode in [0o555, 0o755] {
            let path = temporary.path + "/clouds \(mode)"
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
            let point = try MountPoint(path, coversFiles: false)
            #expect(throws: MountError.self) {
                _ = try point.cover(sealing: true) { () throws(MountError) in
                    throw .notAFolder(path: path)
                }
            }
            #expect(try self.mode(of: path) == mode)
        }
    }
}
