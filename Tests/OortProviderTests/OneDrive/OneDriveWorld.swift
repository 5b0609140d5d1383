import Logging
import OortModel
import OortOneDrive
import OortSimulators
import OortTesting
import OortTransport

extension OneDriveEndpoints {
    /// A simulator's endpoints.
    static func simulated(by simulator: Simulator) -> OneDriveEndpoints {
        OneDriveEndpoints(
            graph: simulator.url(host: "graph.microsoft.com") + "/v1.0",
            signIn: simulator.url(host: "login.microsoftonline.com") + "/common/oauth2/v2.0"
        )
    }
}

/// A simulated OneDrive and Oort's provider on it, with what only OneDrive's own tests need.
struct OneDriveWorld {
    let service: OneDriveSimulator
    let simulator: Simulator
    let provider: OneDriveProvider
    private let client: CurlClient

    init(_ service: OneDriveSimulator, partSize: Int64 = OneDriveProvider.partMultiple) async throws
    {
        self.service = service
        simulator = try await Simulator.start(service)
        client = try CurlClient()
        var policy = RetryPolicy()
        policy.firstDelay = .milliseconds(10)
        provider = OneDriveProvider(
            client: AccountClient.make(
                wire: client,
                tokens: FixedToken(service.account.tokens.issue().access),
                requests: RequestLimit(RequestBounds(first: 8, most: 8)),
                policy: policy,
                logger: Logger(label: "test")
            ),
            endpoints: .simulated(by: simulator),
            partSize: partSize
        )
    }

    /// Runs a test on a service of its own.
    static func with(
        _ service: OneDriveSimulator = OneDriveSimulator(),
        _ body: (OneDriveWorld) async throws -> Void
    ) async throws {
        let world = try await OneDriveWorld(service)
        do {
            try await body(world)
        } catch {
            await world.stop()
            throw error
        }
        await world.stop()
    }

    private func stop() async {
        await client.shutdown()
        await simulator.stop()
    }

    // MARK: Short ways

    var root: ItemReference {
        get async throws {
            ItemReference(id: try await provider.identity().rootID, path: .root)
        }
    }

    func reference(_ item: Item, at path: String...) -> ItemReference {
        ItemReference(id: item.id, path: RemotePath(path.isEmpty ? [item.fileName] : path))
    }

    func upload(
        _ bytes: [UInt8],
        to target: UploadTarget,
        time: Timestamp? = nil,
        session: UploadSession? = nil,
        observer: any UploadObserver = SilentUploadObserver()
    ) async throws -> Item {
        try await provider.upload(
            upload(of: bytes, to: target, time: time, session: session),
            observer: observer
        )
    }

    func upload(
        of bytes: [UInt8],
        to target: UploadTarget,
        time: Timestamp? = nil,
        session: UploadSession? = nil
    ) -> Upload {
        var hasher = provider.makeHasher()
        hasher.update(bytes[...])
        return Upload(
            target: target,
            size: Int64(bytes.count),
            hash: hasher.finalize(),
            modifiedTime: time,
            mimeType: nil,
            content: BytesSource(bytes),
            session: session
        )
    }

    func create(_ name: String, _ text: String, time: Timestamp? = nil) async throws -> Item {
        try await upload(
            Array(text.utf8),
            to: .create(parent: root, name: name, reservedID: nil),
            time: time
        )
    }

    func text(_ item: Item, revision: Revision? = nil) async throws -> String {
        let stream = try await provider.read(
            reference(item),
            revision: revision ?? item.rev,
            range: 0..<(item.size ?? 0)
        )
        return String(decoding: try await stream.collect(atMost: 1 << 24), as: UTF8.self)
    }

    /// Reads the feed until it has no more.
    func changes(since start: Cursor?) async throws -> (changes: [Change], cursor: Cursor) {
        var changes: [Change] = []
        var cursor = start
        while true {
            let page = try await provider.changes(since: cursor)
            changes += page.changes
            cursor = page.cursor
            if !page.hasMore { return (changes, page.cursor) }
        }
    }
}

/// The kind of the error that a call throws; nil when it throws none.
func kind(of body: () async throws -> Void) async -> ProviderError.Kind? {
    do {
        try await body()
        return nil
    } catch {
        return (error as? ProviderError)?.kind
    }
}
