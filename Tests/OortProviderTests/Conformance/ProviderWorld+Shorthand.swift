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

    /// What the service has and what the feed reported, by names and sizes.
    private func compare(_ replica: FeedReplica) async throws -> (there: [String], told: [String]) {
        let there = try await truth().map { path, item in
            switch item {
            case .file(let size): "\(path.name ?? ""), \(size) bytes"
            default: path.name ?? ""
            }
        }
        let told = replica.items.values.map { item in
            item.kind == .file ? "\(item.fileName), \(item.size ?? -1) bytes" : item.fileName
        }
        return (there.sorted(), told.sorted())
    }

    /// Reads the feed, and expects that it reported all that the other client did: at once, or,
    /// where folders are scanned, as often as it is asked within a minute.
    func expectNews(
        in replica: inout FeedReplica,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        // On a busy machine a look may take many seconds, and a change some looks.
        let end = ContinuousClock.now + .seconds(60)
        var looks = 0
        while true {
            try await look(&replica)
            looks += 1
            let (there, told) = try await compare(replica)
            guard there != told, provider.traits.feed == .scan, looks < 20 || .now < end else {
                #expect(there == told, sourceLocation: sourceLocation)
                return
            }
        }
    }

    /// Reads the feed once more; where folders are scanned, they are looked at for it.
    func look(_ replica: inout FeedReplica) async throws {
        if let cursor = replica.cursor, provider.traits.feed == .scan {
            _ = try await provider.waitForChanges(since: cursor, atMost: .milliseconds(10))
        }
        try await replica.catchUp(with: provider)
    }

    /// What the service has, without folders.
    func files() async throws -> Set<RemotePath> {
        try await Set(truth().filter { $0.value != .folder }.keys)
    }
}
