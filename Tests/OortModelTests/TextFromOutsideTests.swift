import Foundation
import OortModel
import Testing

@Suite("texts from outside are bytes")
struct TextFromOutsideTests {
    /// What joins the character before it.
    static let marks = ["\u{301}", "\u{200D}", "\u{FE0F}", "\u{1F3FF}", "\n", ""]

    @Test("a separator is one whatever follows it", arguments: marks)
    func separators(_ mark: String) {
        let text = "/a/\(mark)b/\(mark)"
        #expect(text.begins(with: "/"))
        #expect(text.has("/"))
        #expect(
            text.parts(between: "/").map { Array($0.utf8) } == [
                [], Array("a".utf8), Array("\(mark)b".utf8), Array(mark.utf8),
            ]
        )
        #expect(
            text.dropping(beginning: "/").map { Array($0.utf8) } == Array("a/\(mark)b/\(mark)".utf8)
        )
        #expect(
            text.cut(atFirst: "a").map { Array($0.after.utf8) } == Array("/\(mark)b/\(mark)".utf8)
        )
        #expect(text.cut(atLast: "/").map { Array($0.after.utf8) } == Array(mark.utf8))
        #expect("/\(mark)x"[...].dropping(beginning: "/")?.isSameText(as: mark + "x") == true)
    }

    @Test("an ending is one whatever precedes it")
    func endings() {
        // A prepended mark joins the character behind it.
        let text = "\u{600}.rclonelink"
        #expect(text.ends(with: ".rclonelink"))
        #expect(
            text.dropping(ending: ".rclonelink").map { Array($0.utf8) } == Array("\u{600}".utf8)
        )
        #expect(!"link".ends(with: ".rclonelink"))
        #expect("".parts(between: "/").count == 1)
        #expect("a".cut(atFirst: "/") == nil)
    }

    @Test("canonically equivalent texts are two ids, revisions, paths and keys")
    func identities() {
        let (one, two) = ("\u{e9}", "e\u{301}")
        #expect(one == two)
        #expect(ItemID(one) != ItemID(two))
        #expect(Revision(one) != Revision(two))
        #expect(Cursor(one) != Cursor(two))
        #expect(RemotePath([one]) != RemotePath([two]))
        #expect(Set([ExactText(one), ExactText(two), ExactText(one)]).count == 2)
        #expect(
            ContentHash(algorithm: .md5, value: one) != ContentHash(algorithm: .md5, value: two)
        )
        #expect(ContentHash(description: "md5:\u{301}")?.value.isSameText(as: "\u{301}") == true)
    }

    /// Where Swift's characters are right: texts of ours, and fields of a protocol that are ASCII and
    /// mean nothing else than refusal where they are not.
    static let fine: [String: String] = [
        "OortContentStore/ContentPaths.swift": "names of the store's own files",
        "OortModel/IgnoreRules.swift": "a pattern as an array of scalars",
        "OortOneDrive/OneDriveReading.swift": "a Content-Range",
        "OortS3/S3Profile.swift": "a program that the user names, whole",
        "oort/Pictures/ThumbnailFolder.swift": "a folder that the user names, whole",
        "OortS3/S3Signer.swift": "the scope of a signature",
        "OortSimulators/DAV/DAVSimulator.swift": "a path before it is percent-decoded",
        "OortSimulators/GoogleDrive/GoogleDriveSimulator+Uploads.swift": "a Content-Range",
        "OortSimulators/Box/BoxSimulator+Uploads.swift": "a Content-Range",
        "OortSimulators/OneDrive/OneDriveUploadSessions.swift": "a Content-Range",
        "OortSimulators/OneDrive/GraphTarget.swift": "a path before it is percent-decoded",
        "OortSimulators/OneDrive/OneDriveBatchAnswers.swift": "an address, percent-encoded",
        "OortSimulators/Dropbox/DropboxSimulator.swift": "the name of a route",
        "OortSimulators/GoogleDrive/GoogleDriveSimulator+Account.swift": "the name of a route",
        "OortSimulators/OneDrive/OneDriveSimulator.swift": "the name of a route",
        "OortSimulators/Simulator.swift": "a path before it is percent-decoded",
        "OortSimulators/SimulatorMessages.swift": "a path before it is percent-decoded",
        "oort/Daemon/MountPoint.swift": "a folder that the user names, whole",
        "oort/Service/ServiceUnit.swift": "a line of /proc that ends with a name of ours",
        "oort/Services.swift": "addresses of the settings",
        "oort/Settings/Folders.swift": "a folder that the user names, whole",
        "oort/Settings/SettingsFile.swift": "a folder that the user names, whole",
    ]

    @Test("no path is split by Swift's characters")
    func sources() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Sources")
        let refused = [
            "split(separator: \"/\"", "hasPrefix(\"/", "hasSuffix(\"/", "irstIndex(of: \"/\"",
            "astIndex(of: \"/\"", " contains(\"/", ".contains(\"/",
        ]
        let files = try #require(
            FileManager.default.enumerator(at: root, includingPropertiesForKeys: nil)
        )
        var used: Set<String> = []
        var seen = 0
        for case let file as URL in files where file.pathExtension == "swift" {
            seen += 1
            let name = String(file.path.dropFirst(root.path.count + 1))
            for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
            where refused.contains(where: { line.contains($0) })
                && !line.contains("unicodeScalars") && !line.contains("utf8")
            {
                used.insert(name)
                #expect(Self.fine[name] != nil, "\(name): \(line)")
            }
        }
        #expect(seen > 100)
        #expect(Set(Self.fine.keys) == used, "every exception is one")
    }
}
