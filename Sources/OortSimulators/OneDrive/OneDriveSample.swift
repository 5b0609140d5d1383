import OortModel

extension OneDriveSimulator {
    /// The sample account: what all services have, a notebook, and a folder of another person's
    /// drive that was added to this one.
    public static func sample() -> OneDriveSimulator {
        var tree = makeTree(seed: 3)
        fill(&tree)
        return OneDriveSimulator(
            account: SimulatedAccount(tree: tree, totalBytes: 1_104_880_336_896)
        )
    }

    /// Fills an empty tree with the sample account.
    static func fill(_ tree: inout SimulatedTree) {
        let sample = SampleAccount(
            allowsDuplicates: false,
            allowsSlashes: false,
            allowsShortcuts: false,
            nativeName: { title, type in type == .notebook ? title : nil }
        )
        sample.fill(&tree)
        if sample.largeFileSize == 300_000_000,
            let film = tree.item(at: ["Videos", "Northern lights.mov"])?.head?.content
        {
            // Known beforehand, so that the first listing need not make and hash 300 MB.
            _ = film.digest("quickXor") { _ in largeFileHash }
        }
        let shared = tree.create(
            "Choir",
            in: otherRootID,
            kind: .folder,
            id: "\(otherAccountNumber)!s\(tree.random.hex(32))"
        )
        for (name, text) in [
            ("Programme.txt", "1. Kyrie\n2. Gloria\n"), ("Rehearsals.txt", "Tuesdays at seven.\n"),
        ] {
            tree.create(
                name,
                in: shared.id,
                content: SimulatedContent(text),
                id: "\(otherAccountNumber)!s\(tree.random.hex(32))"
            )
        }
        tree.create("Choir (Grace)", in: rootID, kind: .shortcut(target: shared.id))
    }

    /// The QuickXorHash of the sample's large file.
    static let largeFileHash = "CQSRCF0BJai0JN5D3oyGchmuICM="
}
