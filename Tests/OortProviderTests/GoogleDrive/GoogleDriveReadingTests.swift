import OortModel
import OortSimulators
import OortTesting
import Testing

/// Ranges, exports and thumbnails.
@Suite("Reading from Google Drive")
struct GoogleDriveReadingTests {
    @Test("ranges are cut at the end, and an empty file reads as empty")
    func reading() async throws {
        try await GoogleDriveWorld.with { world, _ in
            let file = try await world.upload("0123456789", as: "f")
            let empty = try await world.upload("", as: "e")
            for (item, range, text) in [
                (file, 2..<5 as Range<Int64>, "234"), (file, 8..<100, "89"), (file, 10..<20, ""),
                (file, 0..<Int64.max, "0123456789"), (empty, 0..<100, ""),
            ] {
                let bytes = try await world.provider.read(
                    world.reference(item),
                    revision: item.rev,
                    range: range
                ).collect(atMost: 100)
                #expect(String(decoding: bytes, as: UTF8.self) == text)
            }
            let refusal = await world.failure {
                _ = try await world.provider.read(
                    world.reference(file),
                    revision: Revision("old"),
                    range: 0..<5
                )
            }
            #expect(refusal == .preconditionFailed)
        }
    }

    @Test("whose bytes a download gave is asked after it was answered, however often it was tried")
    func revisionOfDownload() async throws {
        try await GoogleDriveWorld.with { world, _ in
            let file = try await world.upload("0123456789", as: "f")
            world.simulator.add(
                FaultRule(.status(503, retryAfterSeconds: nil), at: "files.get")
            )
            let before = world.simulator.calls.count
            _ = try await world.provider.read(
                world.reference(file),
                revision: file.rev,
                range: 2..<5
            )
            .collect(atMost: 100)
            // Two tries of the download, the second of which gave a part; beside them the item, and
            // once more after the part.
            let calls = world.simulator.calls[before...].map(\.status)
            #expect(calls.count == 4 && calls.suffix(1) == [200], "\(calls)")
            #expect(calls.contains(206), "\(calls)")
        }
    }

    @Test("a content that is replaced while it is downloaded is refused after its first part")
    func replacedMeanwhile() async throws {
        try await GoogleDriveWorld.with { world, service in
            let text = String(repeating: "a", count: 3 << 20)
            let file = try await world.upload(text, as: "f")
            let stream = try await world.provider.read(
                world.reference(file),
                revision: file.rev,
                range: 0..<Int64(3 << 20)
            )
            #expect(stream.provisionalBytes > 0)
            _ = service.account.withTree { tree in
                tree.write(
                    SimulatedContent(String(repeating: "b", count: 3 << 20)),
                    to: file.id.rawValue
                )
            }
            let refusal = await world.failure { _ = try await stream.collect(atMost: 3 << 20) }
            #expect(refusal == .preconditionFailed)
            // From now on not even a first part is given.
            let next = await world.failure {
                _ = try await world.provider.read(
                    world.reference(file),
                    revision: file.rev,
                    range: 0..<10
                )
            }
            #expect(next == .preconditionFailed)
        }
    }

    @Test("native documents are exported, above 10 MB by their links")
    func export() async throws {
        try await GoogleDriveWorld.with { world, service in
            service.account.withTree { tree in
                for (name, size) in [("small", 10), ("large", 11_000_000)] {
                    tree.create(
                        name,
                        in: tree.rootID,
                        kind: .nativeDocument(.document),
                        content: SimulatedContent(String(repeating: "a", count: size))
                    )
                }
            }
            let items = try await world.provider.children(of: world.root, page: nil).items
            #expect(items.count == 2)
            for item in items {
                #expect(item.kind == .nativeDocument)
                let format = try #require(item.exports.first)
                #expect(format.fileExtension == "docx")
                let bytes = try await world.provider.export(world.reference(item), to: format)
                    .collect(atMost: 50 << 20)
                #expect(bytes.prefix(2).elementsEqual("PK".utf8))
            }
            #expect(world.simulator.counts["files.exportLink"]?.calls == 1)
        }
    }

    @Test(
        "what Drive has no export of is a file with its page's address",
        arguments: ["form", "map"]
    )
    func addresses(type: String) async throws {
        try await GoogleDriveWorld.with { world, service in
            let id = service.account.withTree { tree in
                tree.create("one", in: tree.rootID, kind: .nativeDocument(.document)) {
                    $0.mimeType = "application/vnd.google-apps.\(type)"
                }.id
            }
            let items = try await world.provider.children(of: world.root, page: nil).items
            let item = try #require(items.first)
            #expect(item.kind == .nativeDocument)
            #expect(item.exports.map(\.fileExtension) == ["url"])
            let bytes = try await world.provider.export(
                world.reference(item),
                to: try #require(item.exports.first)
            ).collect(atMost: 1 << 10)
            let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\r\n")
            #expect(
                lines == ["[InternetShortcut]", "URL=https://drive.google.com/file/d/\(id)/view"]
            )
        }
    }

    @Test("a thumbnail is fetched by its link")
    func thumbnail() async throws {
        try await GoogleDriveWorld.with(.sample()) { world, _ in
            let (items, _) = try await world.everything()
            let picture = try #require(items.values.first { $0.fileName == "IMG_0001.jpg" })
            #expect(picture.thumbnail == true)
            let bytes = try await world.provider.thumbnail(of: world.reference(picture), edge: 256)
                .collect(atMost: 1 << 20)
            #expect(!bytes.isEmpty)
            let text = try #require(items.values.first { $0.fileName == "Welcome.txt" })
            let refusal = await world.failure {
                _ = try await world.provider.thumbnail(of: world.reference(text), edge: 256)
            }
            #expect(refusal == .unsupported)
        }
    }
}
