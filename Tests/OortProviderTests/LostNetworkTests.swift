import OortModel
import OortSimulators
import OortTesting
import OortTransport
import Synchronization
import Testing

/// The network goes after any request of an operation, with that request's answer: what the service did
/// must not be reported as certainly not done.
@Suite("a network that goes in the midst of an operation", .timeLimit(.minutes(15)))
struct LostNetworkTests {
    /// An operation of a provider, as the engine asks for it; some have several forms.
    enum Operation: String, CaseIterable {
        case folder, folders, small, smalls, large, replacement, largeReplacement, move, moves
        case deletion, deletions, copy
    }

    @Test(
        "what was done is told as done or unknown",
        arguments: servicesWithIDs,
        Operation.allCases
    )
    func lost(_ service: SimulatedKind, _ operation: Operation) async throws {
        var passing = 0
        var isOver = false
        while !isOver {
            let wire = Mutex<CutWire?>(nil)
            try await service.withWorld(patience: .milliseconds(100)) { client in
                let cut = CutWire(client)
                wire.withLock { $0 = cut }
                return cut
            } _: { world in
                let cut = try #require(wire.withLock { $0 })
                let items = try await prepare(world)
                let before = tree(world)
                cut.cut(after: passing)
                let results = await perform(operation, on: items, in: world)
                isOver = !cut.isCut
                // As long as nothing was lost, all of it was done.
                #expect(!isOver || results.allSatisfy { $0 == nil }, "\(results)")
                let after = tree(world)
                for (part, error) in results.enumerated() {
                    guard let error, isDone(operation, part, before, after) else { continue }
                    #expect(
                        error.isOutcomeUnknown || error.item != nil,
                        "after \(passing) requests: \(error)"
                    )
                }
            }
            passing += 1
            try #require(passing < 80, "so many requests are not worth it")
        }
    }

    @Test(
        "what was done and moved away by somebody is told as unknown",
        arguments: servicesWithIDs,
        [Operation.small, .large]
    )
    func lostAndMoved(_ service: SimulatedKind, _ operation: Operation) async throws {
        var passing = 0
        var isOver = false
        while !isOver {
            let wire = Mutex<CutWire?>(nil)
            try await service.withWorld { client in
                let cut = CutWire(client)
                wire.withLock { $0 = cut }
                return cut
            } _: { world in
                let cut = try #require(wire.withLock { $0 })
                let items = try await prepare(world)
                let before = tree(world)
                cut.lose(after: passing) {
                    world.simulator.account.withTree { tree in
                        guard let item = tree.item(at: ["folder", "a"]) else { return }
                        tree.move(item.id, to: tree.rootID, name: "moved")
                    }
                }
                let errors = await perform(operation, on: items, in: world).compactMap(\.self)
                isOver = !cut.hasLost
                #expect(!isOver || errors.isEmpty, "\(errors)")
                let after = tree(world)
                #expect(after["a"] == nil || after["moved"] == nil, "sent twice: \(after)")
                for error in errors where after != before {
                    #expect(error.isOutcomeUnknown, "after \(passing) requests: \(error)")
                }
            }
            passing += 1
            try #require(passing < 80, "so many requests are not worth it")
        }
    }

    private struct Items {
        var files: [ItemReference]
        var revisions: [Revision?]
        var folder: ItemReference
    }

    private func prepare(_ world: SimulatedWorld) async throws -> Items {
        var items = Items(files: [], revisions: [], folder: try await world.folder("folder"))
        for number in 0..<3 {
            let item = try await world.upload("content \(number)", as: "\(number).txt")
            items.files.append(world.reference(item))
            items.revisions.append(item.rev)
        }
        return items
    }

    /// What the service has: the ids, places and revisions of items by name.
    private func tree(_ world: SimulatedWorld) -> [String: String] {
        world.simulator.account.withTree { tree in
            let items = tree.descendants(of: tree.rootID).filter { $0.trashedTime == nil }
            return Dictionary(
                items.map { ($0.name, "\($0.id) \($0.parentID ?? "") \($0.revisions.count)") },
                uniquingKeysWith: { "\($0), \($1)" }
            )
        }
    }

    private static let names = ["a", "b", "c"]

    /// Whether the service did an operation's part.
    private func isDone(
        _ operation: Operation,
        _ part: Int,
        _ before: [String: String],
        _ after: [String: String]
    ) -> Bool {
        switch operation {
        case .folders, .smalls, .moves: after[Self.names[part]] != nil
        case .deletions: after["\(part).txt"] == nil
        case .folder, .small, .large, .replacement, .largeReplacement, .move, .deletion, .copy:
            before != after
        }
    }

    /// The errors of the operation's parts; nil for a part that was done.
    private func perform(
        _ operation: Operation,
        on items: Items,
        in world: SimulatedWorld
    ) async -> [ProviderError?] {
        let provider = world.provider
        func failure(_ body: () async throws(ProviderError) -> Void) async -> [ProviderError?] {
            do throws(ProviderError) {
                try await body()
                return [nil]
            } catch { return [error] }
        }
        func failures<T>(_ results: [Result<T, ProviderError>]) -> [ProviderError?] {
            results.map { if case .failure(let error) = $0 { error } else { nil } }
        }
        func new(_ name: String, _ bytes: [UInt8]) -> Upload {
            world.entry(bytes, to: .create(parent: items.folder, name: name, reservedID: nil))
        }
        let traits = provider.traits
        // Some parts of a session, and a rest.
        let large = [UInt8](
            repeating: 7,
            count: Int(max(traits.largestSimpleUpload, 2 * traits.uploadPartSize)) + 5
        )
        let names = Self.names
        let silent = SilentUploadObserver()
        let moves = zip(items.files, names).map {
            Move(
                item: $0,
                oldParent: world.root,
                parent: items.folder,
                name: $1,
                modifiedTime: Timestamp(seconds: 1_600_000_000)
            )
        }
        let deletions = items.files.map { Deletion(item: $0, revision: nil) }
        switch operation {
        case .folder:
            return await failure { () throws(ProviderError) in
                _ = try await provider.createFolder(NewFolder(parent: items.folder, name: "a"))
            }
        case .folders:
            return failures(
                await provider.createFolders(
                    names.map { NewFolder(parent: items.folder, name: $0) }
                )
            )
        case .small:
            return await failure { () throws(ProviderError) in
                _ = try await provider.upload(new("a", [1, 2, 3]), observer: silent)
            }
        case .smalls:
            return failures(await provider.upload(names.map { new($0, Array($0.utf8)) }))
        case .large:
            return await failure { () throws(ProviderError) in
                _ = try await provider.upload(new("a", large), observer: silent)
            }
        case .replacement, .largeReplacement:
            let target = UploadTarget.replace(items.files[0], revision: items.revisions[0])
            let bytes = operation == .replacement ? [1, 2, 3] : large
            return await failure { () throws(ProviderError) in
                _ = try await provider.upload(world.entry(bytes, to: target), observer: silent)
            }
        case .move:
            return await failure { () throws(ProviderError) in
                _ = try await provider.move(moves[0])
            }
        case .moves: return failures(await provider.move(moves))
        case .deletion:
            return await failure { () throws(ProviderError) in
                try await provider.delete(deletions[0])
            }
        case .deletions: return failures(await provider.delete(deletions))
        case .copy:
            return await failure { () throws(ProviderError) in
                _ = try await provider.copy(
                    Copy(
                        item: items.files[0],
                        parent: items.folder,
                        name: "a",
                        modifiedTime: Timestamp(seconds: 1_600_000_000)
                    )
                )
            }
        }
    }
}

/// Lets some requests pass; the answer to the next one is lost, and nothing is reached afterwards, or
/// all that follows is.
final class CutWire: HTTPClient {
    private let wire: any HTTPClient
    /// How many more requests are answered; nil for all.
    private let left = Mutex<Int?>(nil)
    /// What happens while the answer is lost, where the network comes back at once.
    private let accident = Mutex<(@Sendable () -> Void)?>(nil)

    init(_ wire: any HTTPClient) { self.wire = wire }

    /// Cuts the network for good.
    func cut(after requests: Int) { left.withLock { $0 = requests } }

    /// Loses one answer; `accident` happens between the request and what follows it.
    func lose(after requests: Int, _ accident: @escaping @Sendable () -> Void) {
        self.accident.withLock { $0 = accident }
        left.withLock { $0 = requests }
    }

    /// Everything is answered again.
    func mend() { left.withLock { $0 = nil } }

    var isCut: Bool { left.withLock { $0.map { $0 < 0 } ?? false } }

    /// Whether the answer that was to be lost has been.
    var hasLost: Bool { accident.withLock { $0 == nil } }

    func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPStreamedResponse {
        let place = left.withLock { left -> Int in
            guard let now = left else { return 1 }
            left = max(now - 1, -1)
            return now
        }
        guard place >= 0 else { throw .unreachable("cut") }
        let answer = try await wire.send(request)
        guard place > 0 else {
            let accident = accident.withLock { accident in
                defer { accident = nil }
                return accident
            }
            if let accident {
                mend()
                accident()
            }
            throw .broken("cut")
        }
        return HTTPStreamedResponse(answer)
    }
}
