import Foundation
import Logging
import OortModel
import OortPlaces
import OortTesting
import Synchronization
import Testing

/// What a reader of the feed of a service of places learns, whatever others and we do.
@Suite("the feed of a service of places", .timeLimit(.minutes(15)))
struct RandomPlacesTests {
    typealias Kind = MemoryPlaces.Kind

    @Test(
        "others and we change things, answers get lost, we die: the feed ends at the truth",
        arguments: Kind.allCases
    )
    func histories(kind: Kind) async throws {
        let environment = ProcessInfo.processInfo.environment
        let first = environment["OORT_SEED"].flatMap { UInt64($0) } ?? .random(in: 0..<1 << 40)
        let count = environment["OORT_SEED"] == nil ? 12 : 1
        for seed in first..<first + UInt64(count) {
            try await history(kind, in: PlacesWorld(kind.client), seed: seed)
        }
    }

    @Test(
        "a change within the second of a folder's stamp is seen though the stamp stays",
        arguments: [false, true]
    )
    func historiesWithinSeconds(mayHaveDisks: Bool) async throws {
        let environment = ProcessInfo.processInfo.environment
        let first = environment["OORT_SEED"].flatMap { UInt64($0) } ?? .random(in: 0..<1 << 40)
        let count = environment["OORT_SEED"] == nil ? 4 : 1
        for seed in first..<first + UInt64(count) {
            // Some rounds come within one second, and nothing is listed for its age alone.
            let clock = PlacesWorld.Clock(looksPerSecond: 40)
            let client = MemoryPlaces(
                .folderStamps,
                mayHaveDisks: mayHaveDisks,
                freshness: .seconds(1_000_000_000),
                second: clock.second
            )
            let world = try PlacesWorld(client, clock: clock)
            // What others rewrite in place changes no stamp, and is seen by a folder's age alone.
            try await history(
                mayHaveDisks ? .disks : .sftp,
                in: world,
                seed: seed,
                comparesBytes: false
            )
        }
    }

    private func history(
        _ kind: Kind,
        in world: PlacesWorld,
        seed: UInt64,
        comparesBytes: Bool = true
    ) async throws {
        defer { world.end() }
        var numbers = SeededNumbers(seed: seed)
        world.client.write("/kept/for ever", "kept")
        if seed % 2 == 0 { world.client.fail(oneIn: 8, seed: seed) }
        for step in 0..<30 {
            for _ in 0..<Int.random(in: 0...2, using: &numbers) {
                world.others(&numbers, step)
            }
            // We act, in several ways at once, while the feed is read; some of it we die in.
            let acts = (0..<Int.random(in: 1...4, using: &numbers)).map {
                PlacesWorld.Act.random(&numbers, step * 10 + $0, knowing: world.replica)
            }
            let dies = Int.random(in: 0..<8, using: &numbers) == 0
            let provider = world.provider
            try await withThrowingDiscardingTaskGroup { group in
                for act in acts { group.addTask { await act.perform(with: provider) } }
                await world.readFeed()
                if dies { try world.restart() }
            }
            let kept = world.replica.items.values.filter { $0.fileName == "for ever" }
            if world.replica.cursor != nil, world.hasRead {
                #expect(kept.count == 1, "\(kind) OORT_SEED=\(seed): step \(step)")
            }
        }
        world.client.fail(oneIn: 0, seed: seed)
        // What is missing in one round is gone with the next; a list of several pages is read every so
        // many looks. Nothing happens within the second of a look any more.
        world.clock.goOn(seconds: 5)
        for _ in 0..<20 { await world.readFeed() }
        let (seen, there) = (world.paths, world.client.contents)
        let ghosts = seen.keys.filter { there[$0] == nil }.sorted()
        let unseen = there.keys.filter { seen[$0] == nil }.sorted()
        #expect(ghosts.isEmpty && unseen.isEmpty, "\(kind) OORT_SEED=\(seed): \(ghosts) \(unseen)")
        for (path, item) in seen where item.kind == .file && comparesBytes {
            let stream = try await world.provider.read(
                ItemReference(id: item.id, path: .root),
                revision: item.rev,
                range: 0..<1 << 20
            )
            let bytes = try await stream.collect(atMost: 1 << 20)
            #expect(
                String(decoding: bytes, as: UTF8.self) == there[path],
                "\(kind) OORT_SEED=\(seed): \(path)"
            )
        }
    }
}

/// A provider over a service of places, and a reader of its feed.
final class PlacesWorld {
    let client: MemoryPlaces
    private var path: String
    private var map: PlaceMap
    private(set) var provider: PlaceProvider
    private(set) var replica: FeedReplica
    /// Whether the feed was read to its end since the last restart.
    private(set) var hasRead = false

    init(_ client: MemoryPlaces, clock: Clock = Clock()) throws {
        self.client = client
        self.clock = clock
        path = NSTemporaryDirectory() + "oort-places-\(UUID().uuidString).sqlite"
        map = try PlaceMap(path: path)
        provider = PlaceProvider(
            client: client,
            map: map,
            logger: Self.logger,
            now: { Timestamp(seconds: clock.second()) }
        )
        replica = FeedReplica(of: provider)
    }

    /// A clock in seconds since 1970, which goes on with each look at it.
    final class Clock: Sendable {
        private let looks = Atomic<Int64>(0)
        private let looksPerSecond: Int64

        init(looksPerSecond: Int64 = 1) { self.looksPerSecond = looksPerSecond }

        func second() -> Int64 {
            1_800_000_000 + looks.add(1, ordering: .relaxed).newValue / looksPerSecond
        }

        func goOn(seconds: Int64) { looks.add(seconds * looksPerSecond, ordering: .relaxed) }
    }

    let clock: Clock

    private var now: @Sendable () -> Timestamp {
        { [clock] in Timestamp(seconds: clock.second()) }
    }

    private static let logger = Logger(label: "places") { _ in SwiftLogNoOpLogHandler() }

    /// The process dies and begins anew.
    func restart() throws {
        map.close()
        map = try PlaceMap(path: path)
        provider = PlaceProvider(client: client, map: map, logger: Self.logger, now: now)
    }

    /// The process dies, the map's file is no database any more, and the process begins anew.
    func damageMap() throws {
        end()
        path += "-damaged"
        try String(repeating: "no database at all", count: 1000)
            .write(toFile: path, atomically: true, encoding: .utf8)
        map = try PlaceMap(path: path)
        provider = PlaceProvider(client: client, map: map, logger: Self.logger, now: now)
        replica.loseCursor()
    }

    func end() {
        map.close()
        for ending in ["", "-wal", "-shm", ".damaged"] {
            try? FileManager.default.removeItem(atPath: path + ending)
        }
    }

    /// Reads the feed until it reports something; not where the service is away.
    func readFeed() async {
        do {
            if let cursor = replica.cursor {
                _ = try await provider.waitForChanges(since: cursor, atMost: .zero)
            }
            try await replica.catchUp(with: provider)
            hasRead = true
        } catch { hasRead = false }
    }

    /// What the reader of the feed believes: items by path, a slash at the end of folders.
    var paths: [String: Item] {
        var all: [String: Item] = [:]
        for item in replica.items.values {
            var (path, next) = ("", Optional(item))
            while let current = next {
                path = "/" + current.fileName + path
                next = current.parentID.flatMap { replica.items[$0] }
            }
            all[path + (item.kind == .folder ? "/" : "")] = item
        }
        return all
    }

    /// Somebody else does something at random.
    func others(_ numbers: inout SeededNumbers, _ step: Int) {
        let (one, other) = (Self.place(&numbers), Self.place(&numbers))
        switch Int.random(in: 0..<8, using: &numbers) {
        case 0...3: client.write(one, "theirs \(step)")
        case 4: client.makeFolder(one)
        case 5: client.remove(one)
        default: client.move(one, to: other)
        }
    }

    private static func place(_ numbers: inout SeededNumbers) -> String {
        let names = ["a", "b", "c"]
        let depth = Int.random(in: 1...3, using: &numbers)
        return (0..<depth).map { _ in "/" + names[Int.random(in: 0..<3, using: &numbers)] }.joined()
    }

    /// Something that we do, of what the feed said.
    enum Act: Sendable {
        case makeFolder(in: ItemReference, String)
        case create(in: ItemReference, String, String)
        case replace(ItemReference, Revision?, String)
        case move(ItemReference, from: ItemReference, to: ItemReference, String)
        case delete(ItemReference, Revision?)
        case list(ItemReference)
        case look(ItemReference)
        case copy(ItemReference, to: ItemReference, String)
        case setTime(ItemReference, Int64)
        case nothing

        static func random(
            _ numbers: inout SeededNumbers,
            _ step: Int,
            knowing replica: FeedReplica
        ) -> Act {
            let items = replica.items.values.sorted { $0.id.rawValue < $1.id.rawValue }
                .filter { $0.fileName != "for ever" && $0.fileName != "kept" }
            let root = ItemReference(id: ItemID("root"), path: .root)
            let reference = { (item: Item) in ItemReference(id: item.id, path: .root) }
            let folders = [root] + items.filter { $0.kind == .folder }.map(reference)
            let folder = folders[Int.random(in: 0..<folders.count, using: &numbers)]
            let name = ["a", "b", "c"][Int.random(in: 0..<3, using: &numbers)]
            let draw = Int.random(in: 0..<11, using: &numbers)
            guard let item = items.randomElement(using: &numbers), draw > 1 else {
                return draw % 2 == 0
                    ? .makeFolder(in: folder, name) : .create(in: folder, name, "ours \(step)")
            }
            switch draw {
            case 2: return .create(in: folder, name, "ours \(step)")
            case 3 where item.kind == .file:
                return .replace(reference(item), item.rev, "ours \(step)")
            case 4, 10:
                let old = ItemReference(id: item.parentID ?? root.id, path: .root)
                return .move(reference(item), from: old, to: folder, name)
            case 5: return .delete(reference(item), item.rev)
            case 6: return .list(folder)
            case 7: return .look(reference(item))
            case 8 where item.kind == .file: return .copy(reference(item), to: folder, name)
            case 9: return .setTime(reference(item), 1_600_000_000 + Int64(step))
            default: return .nothing
            }
        }

        /// Does it; what the service refuses is not done.
        func perform(with provider: PlaceProvider) async {
            do throws(ProviderError) {
                switch self {
                case .makeFolder(let parent, let name):
                    _ = try await provider.createFolder(NewFolder(parent: parent, name: name))
                case .create(let parent, let name, let text):
                    try await Self.send(
                        text,
                        to: .create(parent: parent, name: name, reservedID: nil),
                        provider
                    )
                case .replace(let item, let revision, let text):
                    try await Self.send(text, to: .replace(item, revision: revision), provider)
                case .move(let item, let from, let to, let name):
                    _ = try await provider.move(
                        Move(item: item, oldParent: from, parent: to, name: name, modifiedTime: nil)
                    )
                case .delete(let item, let revision):
                    try await provider.delete(Deletion(item: item, revision: revision))
                case .list(let folder): _ = try await provider.children(of: folder, page: nil)
                case .look(let item): _ = try await provider.item(item)
                case .copy(let item, let folder, let name):
                    _ = try await provider.copy(Copy(item: item, parent: folder, name: name))
                case .setTime(let item, let seconds):
                    let change = AttributeChange(modifiedTime: Timestamp(seconds: seconds))
                    _ = try await provider.setAttributes(of: item, to: change)
                case .nothing: break
                }
            } catch {}
        }

        static func send(
            _ text: String,
            to target: UploadTarget,
            _ provider: PlaceProvider
        ) async throws(ProviderError) {
            let bytes = Array(text.utf8)
            var hasher = provider.makeHasher()
            hasher.update(bytes[...])
            _ = try await provider.upload(
                Upload(
                    target: target,
                    size: Int64(bytes.count),
                    hash: hasher.finalize(),
                    modifiedTime: Timestamp(seconds: 1_600_000_000),
                    mimeType: nil,
                    content: BytesSource(bytes)
                ),
                observer: SilentUploadObserver()
            )
        }
    }
}
