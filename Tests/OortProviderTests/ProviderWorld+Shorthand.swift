import OortModel
import OortSimulators
import OortTesting
import Testing

extension ProviderWorld {
    /// The hash of bytes by the provider's own algorithm.
    func hash(_ bytes: [UInt8]) -> ContentHash {
        var hasher = provider.makeHasher()
        hasher.update(bytes[...])
        return hasher.finalize()
    }

    func upload(
        _ text: String,
        as name: String,
        in parent: ItemReference? = nil
    ) async throws -> Item {
        try await upload(
            Array(text.utf8),
            to: .create(parent: parent ?? root, name: name, reservedID: nil)
        )
    }

    func upload(_ bytes: [UInt8], to target: UploadTarget) async throws -> Item {
        try await provider.upload(
            entry(bytes, to: target),
            observer: SilentUploadObserver()
        )
    }

    func entry(_ bytes: [UInt8], to target: UploadTarget) -> Upload {
        Upload(
            target: target,
            size: Int64(bytes.count),
            hash: hash(bytes),
            modifiedTime: Timestamp(seconds: 1_700_000_000),
            mimeType: nil,
            content: BytesSource(bytes)
        )
    }

    func folder(_ name: String, in parent: ItemReference? = nil) async throws -> ItemReference {
        let item = try await provider.createFolder(NewFolder(parent: parent ?? root, name: name))
        #expect(item.kind == .folder)
        #expect(item.fileName == name)
        return reference(item, in: parent)
    }

    func read(
        _ item: ItemReference,
        revision: Revision? = nil,
        range: Range<Int64> = 0..<(1 << 40)
    ) async throws -> [UInt8] {
        try await provider.read(item, revision: revision, range: range).collect(atMost: 1 << 28)
    }

    /// All names in a folder.
    func names(in folder: ItemReference? = nil) async throws -> [String] {
        var names: [String] = []
        var page: PageToken?
        repeat {
            let listing = try await provider.children(of: folder ?? root, page: page)
            names += listing.items.map(\.fileName)
            page = listing.next
        } while page != nil
        return names.filter { !$0.isEmpty }.sorted()
    }

    /// The kind of error that a call throws; nil when it does not.
    func failure(_ body: () async throws -> Void) async -> ProviderError.Kind? {
        do {
            try await body()
            return nil
        } catch let error as ProviderError {
            return error.kind
        } catch {
            Issue.record("another error: \(error)")
            return nil
        }
    }
}
