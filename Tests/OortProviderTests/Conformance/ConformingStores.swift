import Foundation
import Logging
import OortModel
import OortPlaces
import OortS3
import OortSimulators
import OortTesting
import OortTransport
import ServerTesting

/// Foreign stores of S3; another client sends them requests of its own.
extension ConformingKind {
    static let seaweedFS = store(.seaweedFS)

    private static func store(_ store: Store) -> ConformingKind {
        ConformingKind(
            store.rawValue,
            abilities: [
                .counts, .faults, .suffers(.lostSessions), .refuses("back\\slash", .file),
                .refuses("back\\slash", .folder),
            ]
        ) { content, body in
            let running = try await Stores.shared.running(store)
            var account = running.finding.account
            account.place.prefix = "world-\(UUID().uuidString)/"
            let visitor = StoreVisitor(running: running, prefix: account.place.prefix)
            if content == .sample { try await visitor.fill(from: .sampleOfFiles()) }
            var settings = S3Client.Settings()
            // The least that stores take of a part.
            settings.largestSimpleUpload = 5 << 20
            settings.partSize = 5 << 20
            let network = FaultyClient(running.wire)
            let client = S3Client.make(
                account: account,
                wire: network,
                tokens: S3FixedTokens(Store.keys),
                logger: Logger(label: "conformance") { _ in SwiftLogNoOpLogHandler() },
                settings: settings,
                policy: .hasty(patience: .seconds(600))
            )
            let outcome: Result<Void, any Error>
            do {
                try await withPlaces(of: client) { provider in
                    try await body(
                        StoreWorld(provider: provider, visitor: visitor, network: network)
                    )
                }
                outcome = .success(())
            } catch { outcome = .failure(error) }
            // What is left ends with the store.
            try outcome.get()
        }
    }
}

/// A provider and a real store.
struct StoreWorld: ProviderWorld {
    let provider: any Provider
    let visitor: StoreVisitor
    let network: FaultyClient

    var rootID: ItemID { PlaceProvider.rootID }

    func somebodyElse(_ edit: SimulatorEdit) async throws { try await visitor.apply(edit) }
    func truth() async throws -> [RemotePath: TrueItem] { try await visitor.truth() }

    func bytes(at path: RemotePath) async throws -> [UInt8]? {
        try await visitor.bytes(path.parts.joined(separator: "/"))
    }

    var traffic: Traffic { network.traffic }
    func add(_ fault: Fault, times: Int?) { network.add(fault, times: times) }
    func clearFaults() { network.clearFaults() }

    func befall(_ misfortune: Misfortune) async throws {
        guard misfortune == .lostSessions else { throw NoSuchAbility() }
        try await visitor.abortUploads()
    }
}

extension StoreVisitor {
    /// Somebody else changes something; folders need nothing but a marker.
    func apply(_ edit: SimulatorEdit) async throws {
        func key(_ path: [String]) -> String { path.joined(separator: "/") }
        switch edit {
        case .write(let path, let content, _):
            try await send("PUT", key(path), body: content.bytes)
        case .share, .tag, .lend: throw NoSuchAbility()
        case .makeFolder(let path): try await send("PUT", key(path) + "/")
        case .move(let from, let to):
            for name in try await objects().keys
            where name == key(from) || name.hasPrefix(key(from) + "/") {
                let bytes = try await bytes(name) ?? []
                try await send("PUT", key(to) + name.dropFirst(key(from).count), body: bytes)
                try await send("DELETE", name)
            }
        case .trash(let path), .remove(let path):
            try await send("DELETE", key(path))
            try await remove(key(path) + "/")
        }
    }

    /// Puts a whole tree below the prefix.
    func fill(from tree: SimulatedTree) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, entry) in tree.portable.enumerated() {
                if index >= 16 { try await group.next() }
                let key = entry.path.parts.joined(separator: "/")
                group.addTask {
                    guard let content = entry.content else { return }
                    try await self.send("PUT", key, body: content.bytes)
                }
            }
            try await group.waitForAll()
        }
    }

    /// All that is there; folders are what keys begin with.
    func truth() async throws -> [RemotePath: TrueItem] {
        var found: [RemotePath: TrueItem] = [:]
        for (key, size) in try await objects() {
            var parts = key.components(separatedBy: "/")
            if parts.last == "" {
                parts.removeLast()
                found[RemotePath(parts)] = .folder
            } else {
                found[RemotePath(parts)] = .file(size: size)
            }
            while parts.count > 1 {
                parts.removeLast()
                found[RemotePath(parts)] = .folder
            }
        }
        return found
    }
}
