import OortModel

extension BoxSimulator {
    /// The sample account: what all services have, and a web link.
    public static func sample() -> BoxSimulator {
        var tree = makeTree(seed: 4)
        let sample = SampleAccount(
            allowsDuplicates: false,
            allowsSlashes: false,
            allowsShortcuts: false,
            nativeName: { _, _ in nil }
        )
        sample.fill(&tree)
        if sample.largeFileSize == 300_000_000,
            let film = tree.item(at: ["Videos", "Northern lights.mov"])?.head?.content
        {
            // Known beforehand, so that the first listing need not make and hash 300 MB.
            _ = film.digest("sha1") { _ in largeFileHash }
        }
        if let documents = tree.item(at: ["Documents"]) {
            tree.create(
                "Harbour webcam",
                in: documents.id,
                kind: .nativeDocument(.document),
                content: SimulatedContent("https://example.com/harbour")
            )
        }
        return BoxSimulator(account: SimulatedAccount(tree: tree, totalBytes: 2_000_000_000_000))
    }

    /// The SHA-1 of the sample's large file.
    static let largeFileHash = "5ad5e5c53d88a9374c0692bbc2059fd3d6224573"
}
