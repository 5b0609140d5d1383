import OortModel

extension GoogleDriveSimulator {
    /// The service over an empty account.
    public static func empty(seed: UInt64 = 1) -> GoogleDriveSimulator {
        GoogleDriveSimulator(account: SimulatedAccount(tree: makeTree(seed: seed)))
    }

    /// The service over the sample account, with what only Drive has: an item that others share, a
    /// shared drive, a document without any export.
    public static func sample(seed: UInt64 = 1) -> GoogleDriveSimulator {
        let service = empty(seed: seed)
        let sample = SampleAccount(
            allowsDuplicates: true,
            allowsSlashes: true,
            allowsShortcuts: true
        ) { title, type in
            type == .notebook ? nil : title
        }
        let drive = service.addDrive("Choir")
        service.account.withTree { tree in
            sample.fill(&tree)
            service.addNative(to: &tree)
            service.addShared(to: &tree)
            let songs = tree.create("Songs", in: drive, kind: .folder)
            tree.create(
                "Evening song.txt",
                in: songs.id,
                content: SimulatedContent("The day is done.\n")
            )
        }
        return service
    }

    private func addNative(to tree: inout SimulatedTree) {
        guard let documents = tree.item(at: ["Documents"]) else { return }
        tree.create(
            "Guest list form",
            in: documents.id,
            kind: .nativeDocument(.document),
            content: SimulatedContent("")
        ) { $0.mimeType = GoogleDriveType.prefix + "form" }
        tree.create(
            "Floor plan",
            in: documents.id,
            kind: .nativeDocument(.drawing),
            content: SimulatedContent("plan\n")
        )
    }

    private func addShared(to tree: inout SimulatedTree) {
        let time = Self.time(Timestamp(seconds: 1_772_352_000))
        let folder = tree.create("Grace's recipes", in: nil, kind: .folder) {
            $0.extra = ["sharedWithMeTime": time, "role": "reader"]
        }
        tree.create(
            "Onion soup.txt",
            in: folder.id,
            content: SimulatedContent("Onions, butter, time.\n")
        )
        tree.create(
            "Minutes.txt",
            in: nil,
            content: SimulatedContent("We met and talked.\n")
        ) {
            $0.extra = ["sharedWithMeTime": time, "role": "writer"]
        }
    }
}
