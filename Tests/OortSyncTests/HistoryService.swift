import Foundation
import Logging
import OortModel
import OortPlaces
import OortTesting
import OrderedCollections
import Synchronization

/// The services of histories that the shipped code runs.
enum HistoryServiceKind: String, CaseIterable, Sendable {
    /// A feed that reports places by path, names that are compared without case, revisions that moves make,
    /// parts of uploads.
    case paths
    /// A feed, several items of one name, ids that the client chooses.
    case twins
    /// A feed, hashes that some contents share; every content is a large one.
    case weakHashes
    /// A feed, no hashes at all; every content is a large one.
    case noHashes
    case sftp, webDAV, nextcloud, s3, disks

    /// Whether folders are moved piece by piece.
    var movesByPieces: Bool { self == .s3 || self == .disks }

    /// Whether the feed may lag behind.
    ///
    /// Dropbox's and Box's are not known to.
    var lags: Bool { [.twins, .weakHashes, .noHashes].contains(self) }

    var service: any HistoryService {
        switch self {
        case .paths:
            let cloud = MemoryCloud { traits in
                (traits.largestSimpleUpload, traits.uploadPartSize) = (5, 3)
            }
            cloud.makeRevisionsOfMoves()
            cloud.tellPaths(atOnce: 3)
            return cloud
        case .twins:
            return MemoryCloud(duplicates: true) {
                ($0.takesClientIDs, $0.lag) = (true, .seconds(60))
            }
        case .weakHashes:
            let cloud = MemoryCloud {
                $0.batchSizes.largestUpload = 5
                $0.lag = .seconds(60)
            }
            cloud.tellWeakHashes()
            return cloud
        case .noHashes:
            let cloud = MemoryCloud {
                $0.batchSizes.largestUpload = 5
                $0.lag = .seconds(60)
            }
            cloud.tellNoHashes()
            return cloud
        case .sftp: return MemoryPlaces.Kind.sftp.client
        case .webDAV: return MemoryPlaces.Kind.webDAV.client
        case .nextcloud: return MemoryPlaces.Kind.nextcloud.client
        case .s3: return MemoryPlaces.Kind.s3.client
        case .disks: return MemoryPlaces.Kind.disks.client
        }
    }
}

/// A service in memory as a history sees it: what somebody else does there, and how it fails.
protocol HistoryService: Sendable {
    /// What a machine keeps of the service beside its catalog.
    func makeConnection() throws -> any HistoryConnection

    /// All there is, as `World.tree` names it; where one name stands for several items, one of them.
    var tree: [String: String] { get }
    /// How many items there are.
    var count: Int { get }
    /// Whether several items of one folder may have one name.
    var hasTwins: Bool { get }
    /// The contents of files that went with a folder and can be had back.
    var trashed: Set<String> { get }

    func text(of revision: Revision) -> String?
    func fail(oneIn number: Int, seed: UInt64)
    /// Reports each change to a listener, in words.
    func listen(_ listener: @escaping @Sendable (String) -> Void)
    /// Whether it could be, and what the file held before.
    func write(_ text: String, to path: String) -> (isDone: Bool, before: String?)
    func addFolder(_ path: String)
    /// What the files held that went.
    func take(_ path: String) -> [String]
    /// Nothing happens where that cannot be.
    func relocate(_ path: String, to new: String)
    func forgetCursors()
    /// From now on answers about many items may miss so many of the newest changes, where that can be.
    func lag(upTo count: Int)
}

extension HistoryService {
    func lag(upTo count: Int) {}
}

/// One machine's way to the service, over restarts.
protocol HistoryConnection: AnyObject {
    /// The provider for the next process.
    func provider() throws -> any Provider
    /// The process ended.
    func close()
    func end()
}

// MARK: Items with a feed

extension MemoryCloud: HistoryService {
    private final class Connection: HistoryConnection {
        let cloud: MemoryCloud
        init(_ cloud: MemoryCloud) { self.cloud = cloud }
        func provider() -> any Provider { cloud }
        func close() {}
        func end() {}
    }

    func makeConnection() -> any HistoryConnection { Connection(self) }

    var hasTwins: Bool { traits.names.allowsDuplicates }

    var trashed: Set<String> {
        state.withLock { state in
            Set(state.trash.values.map { String(decoding: $0.bytes, as: UTF8.self) })
        }
    }

    func write(_ text: String, to path: String) -> (isDone: Bool, before: String?) {
        guard isFree(path, for: .file) else { return (false, nil) }
        return put(path, text)
    }

    func addFolder(_ path: String) {
        guard id(path) == nil, isFree(path, for: nil) else { return }
        put(path, nil)
    }

    func take(_ path: String) -> [String] { remove(path) }

    func relocate(_ path: String, to new: String) {
        guard let id = id(path), !(new + "/").hasPrefix(path + "/"), isFree(new, for: nil, but: id)
        else { return }
        move(path, to: new)
    }

    func forgetCursors() { loseCursors() }

    /// Whether something may get a name that is taken by nothing, or by what is of a kind.
    private func isFree(_ path: String, for kind: ItemKind?, but own: ItemID? = nil) -> Bool {
        let parts = path.split(separator: "/").map(String.init)
        guard let name = parts.last, let folder = id(parts.dropLast().joined(separator: "/"))
        else { return false }
        return state.withLock { state in
            guard folder == Self.rootID || state.entries[folder]?.item.kind == .folder else {
                return false
            }
            let key = traits.names.key(name)
            return state.entries.values.allSatisfy { entry in
                entry.item.parentID != folder || entry.item.id == own
                    || !traits.names.key(entry.item.fileName).isSameText(as: key)
                    || entry.item.kind == kind && entry.item.fileName.isSameText(as: name)
            }
        }
    }
}

// MARK: Places

extension MemoryPlaces: HistoryService {
    private final class Connection: HistoryConnection {
        private let client: MemoryPlaces
        private let path = NSTemporaryDirectory() + "oort-places-\(UUID().uuidString).sqlite"
        private var map: PlaceMap?

        init(_ client: MemoryPlaces) { self.client = client }

        func provider() throws -> any Provider {
            let map = try PlaceMap(path: path)
            self.map = map
            return PlaceProvider(
                client: client,
                map: map,
                logger: Logger(label: "places") { _ in SwiftLogNoOpLogHandler() }
            )
        }

        func close() {
            map?.close()
            map = nil
        }

        func end() {
            close()
            for ending in ["", "-wal", "-shm"] {
                try? FileManager.default.removeItem(atPath: path + ending)
            }
        }
    }

    func makeConnection() -> any HistoryConnection { Connection(self) }

    var tree: [String: String] {
        Dictionary(uniqueKeysWithValues: contents.map { (String($0.key.dropFirst()), $0.value) })
    }
    var count: Int { contents.count }
    var hasTwins: Bool { false }

    func write(_ text: String, to path: String) -> (isDone: Bool, before: String?) {
        write("/" + path, text)
    }
    func addFolder(_ path: String) { makeFolder("/" + path) }
    func take(_ path: String) -> [String] { remove("/" + path) }
    func relocate(_ path: String, to new: String) { move("/" + path, to: "/" + new) }
    func forgetCursors() {}
}
