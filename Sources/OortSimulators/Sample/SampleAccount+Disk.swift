import Foundation
import OortModel

extension SampleAccount {
    /// The sample account as a disk can hold it, with a small file where the others have one of 300 MB.
    public static var onDisk: SampleAccount {
        var account = SampleAccount(
            allowsDuplicates: false,
            allowsSlashes: false,
            allowsShortcuts: false,
            nativeName: { _, _ in nil }
        )
        account.largeFileSize = 3_000_000
        return account
    }

    /// Writes the account into a folder of this machine, for a server that has no simulator.
    ///
    /// - Throws: What Foundation throws, where the disk takes a file or a folder not.
    public func write(to folder: String) throws {
        let rules = SimulatedTreeRules(
            comparison: .exact,
            keepsPathLog: false,
            makeID: { _, random in random.hex(16) },
            makeRevisionID: { $0.hex(16) }
        )
        var tree = SimulatedTree(rules: rules, rootID: "root", rootName: "", seed: 1)
        fill(&tree)
        // Folders come before what they hold.
        for item in tree.descendants(of: tree.rootID) {
            let parts = tree.path(of: item.id) ?? []
            let path = ([folder] + parts).joined(separator: "/")
            guard let content = item.head?.content else {
                try FileManager.default.createDirectory(
                    atPath: path,
                    withIntermediateDirectories: true
                )
                continue
            }
            try Data(content.bytes).write(to: URL(filePath: path))
            try FileManager.default.setAttributes(
                [.modificationDate: item.modifiedTime.date],
                ofItemAtPath: path
            )
        }
    }
}
