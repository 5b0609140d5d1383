import OortModel
import OortTesting
import OortTransport
import Synchronization
import Testing

/// Counts the requests in flight of each kind, and holds some until as many have come as a test says.
private final class GatheringClient: HTTPClient {
    private struct State {
        var inFlight = 0
        var most = 0
        var arrived = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let next: any HTTPClient
    private let isCounted: @Sendable (HTTPRequest) -> Bool
    private let gathering: Int
    private let state = Mutex(State())

    /// Holds the first requests that are counted until `gathering` have come.
    init(
        _ next: any HTTPClient,
        gathering: Int = 1,
        counting isCounted: @escaping @Sendable (HTTPRequest) -> Bool
    ) {
        self.next = next
        self.gathering = gathering
        self.isCounted = isCounted
    }

    /// The most that were in flight at one time.
    var most: Int { state.withLock { $0.most } }
    var count: Int { state.withLock { $0.arrived } }

    func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPStreamedResponse {
        guard isCounted(request) else { return try await next.stream(request) }
        await withCheckedContinuation { continuation in
            let released = state.withLock { state -> [CheckedContinuation<Void, Never>] in
                state.arrived += 1
                state.inFlight += 1
                state.most = max(state.most, state.inFlight)
                state.waiting.append(continuation)
                guard state.arrived >= gathering else { return [] }
                defer { state.waiting = [] }
                return state.waiting
            }
            for continuation in released { continuation.resume() }
        }
        defer { state.withLock { $0.inFlight -= 1 } }
        return try await next.stream(request)
    }
}

/// Many small contents in one batch: what of it is under way at once.
@Suite("many small uploads", .timeLimit(.minutes(15)))
struct ManySmallUploadsTests {
    private func uploads(_ count: Int, in world: SimulatedWorld, _ prefix: String = "f") -> [Upload]
    {
        (0..<count).map { number in
            world.entry(
                Array("\(prefix) \(number)".utf8),
                to: .create(parent: world.root, name: "\(prefix)\(number)", reservedID: nil)
            )
        }
    }

    private func expectAll(_ results: [Result<Item, ProviderError>], _ prefix: String = "f") throws
    {
        for (number, result) in results.enumerated() {
            #expect(try result.get().fileName == "\(prefix)\(number)")
        }
    }

    @Test("OneDrive's contents of one batch travel side by side")
    func oneDrive() async throws {
        let client = Mutex<GatheringClient?>(nil)
        try await SimulatedKind.oneDrive.withWorld(onTheWire: { wire in
            let gathering = GatheringClient(wire, gathering: 6) { $0.method == "PUT" }
            client.withLock { $0 = gathering }
            return gathering
        }) { world in
            try expectAll(await world.provider.upload(uploads(10, in: world)))
        }
        #expect(client.withLock { $0?.count } == 10)
    }

    @Test("OneDrive's empty files of one batch travel side by side")
    func emptyFiles() async throws {
        try await SimulatedKind.oneDrive.withWorld(onTheWire: { wire in
            GatheringClient(wire, gathering: 3) { $0.method == "PUT" }
        }) { world in
            let empty = (0..<3).map { number in
                world.entry(
                    [],
                    to: .create(parent: world.root, name: "f\(number)", reservedID: nil)
                )
            }
            try expectAll(await world.provider.upload(empty))
        }
    }

    @Test("Dropbox's contents of one batch travel side by side, and are committed by one call")
    func dropbox() async throws {
        let commits = Mutex<GatheringClient?>(nil)
        try await SimulatedKind.dropbox.withWorld(onTheWire: { wire in
            let finishing = GatheringClient(wire) { $0.url.hasSuffix("finish_batch_v2") }
            commits.withLock { $0 = finishing }
            return GatheringClient(finishing, gathering: 3) { $0.url.hasSuffix("append_batch") }
        }) { world in
            try expectAll(await world.provider.upload(uploads(150, in: world)))
        }
        #expect(commits.withLock { $0?.count } == 1)
    }

    @Test("Dropbox's commits go one after the other, while the bytes of others travel")
    func commits() async throws {
        let client = Mutex<GatheringClient?>(nil)
        try await SimulatedKind.dropbox.withWorld(onTheWire: { wire in
            let committing = GatheringClient(wire) { request in
                ["finish_batch_v2", "files/upload", "_v2", "_batch", "/check"].contains {
                    request.url.hasSuffix($0)
                } && !request.url.hasSuffix("append_batch")
                    && !request.url.hasSuffix("start_batch")
            }
            client.withLock { $0 = committing }
            // The bytes of both batches are on their way before either commits.
            return GatheringClient(committing, gathering: 2) { $0.url.hasSuffix("append_batch") }
        }) { world in
            try await withThrowingTaskGroup { group in
                for prefix in ["a", "b"] {
                    group.addTask {
                        let results = await world.provider.upload(uploads(10, in: world, prefix))
                        try expectAll(results, prefix)
                    }
                }
                group.addTask {
                    let folders = (0..<5).map { NewFolder(parent: world.root, name: "d\($0)") }
                    for result in await world.provider.createFolders(folders) {
                        _ = try result.get()
                    }
                }
                for number in 0..<3 {
                    group.addTask {
                        _ = try await world.upload("single", as: "single\(number)")
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await world.names().count == 28)
        }
        #expect(client.withLock { $0?.most } == 1)
    }

    @Test("Drive's answers are asked for without indentation")
    func compactAnswers() async throws {
        let client = Mutex<GatheringClient?>(nil)
        try await SimulatedKind.googleDrive.withWorld(onTheWire: { wire in
            let indented = GatheringClient(wire) { request in
                !request.url.contains("prettyPrint=false") && request.url.contains("fields=")
            }
            client.withLock { $0 = indented }
            return indented
        }) { world in
            let item = try await world.upload("one", as: "f")
            let file = world.reference(item)
            _ = try await world.upload(Array("two".utf8), to: .replace(file, revision: item.rev))
            #expect(try await world.names() == ["f"])
        }
        #expect(client.withLock { $0?.count } == 0)
    }

    @Test("at Dropbox what cannot be read fails alone")
    func unreadable() async throws {
        try await SimulatedKind.dropbox.withWorld { world in
            var many = uploads(100, in: world)
            let bytes = Array("a disk fails".utf8)
            many[70] = world.entry(
                bytes,
                to: .create(parent: world.root, name: "f70", reservedID: nil)
            )
            many[70].content = BreakingSource(bytes: bytes, breaksAt: 3)
            let results = await world.provider.upload(many)
            for (number, result) in results.enumerated() {
                switch result {
                case .success(let item): #expect(item.fileName == "f\(number)" && number != 70)
                case .failure(let error):
                    #expect(error.kind == .localContent && number == 70, "\(error)")
                }
            }
        }
    }
}
