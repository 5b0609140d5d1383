import Foundation
import Logging
import OortModel
import OortPlaces
import OortWebDAV
import Testing

extension RemotePath {
    init(text: String) { self.init(text.parts(between: "/").map(String.init)) }
}

extension ItemReference {
    /// What lies at a place, without an id.
    static func at(_ path: String) -> ItemReference {
        ItemReference(id: ItemID(""), path: RemotePath(text: path))
    }

    static var root: ItemReference { ItemReference(id: ItemID(""), path: .root) }
}

extension WebDAVClient {
    /// Uploads a text as the engine would.
    @discardableResult
    func put(
        _ text: String,
        to path: String,
        before: PlaceUpload.Before = .nothing,
        time: Timestamp? = Timestamp(seconds: 1_700_000_000)
    ) async throws -> PlaceEntry {
        try await put(Array(text.utf8), to: RemotePath(text: path), before: before, time: time)
    }

    @discardableResult
    func put(
        _ bytes: [UInt8],
        to path: RemotePath,
        before: PlaceUpload.Before = .nothing,
        time: Timestamp? = Timestamp(seconds: 1_700_000_000),
        content: (any ContentSource)? = nil,
        session: UploadSession? = nil,
        observer: any UploadObserver = SilentUploadObserver()
    ) async throws -> PlaceEntry {
        var hasher = makeHasher()
        hasher.update(bytes[...])
        return try await upload(
            PlaceUpload(
                path: path,
                before: before,
                size: Int64(bytes.count),
                hash: hasher.finalize(),
                modifiedTime: time,
                mimeType: nil,
                content: content ?? BytesSource(bytes),
                session: session
            ),
            observer: observer
        )
    }

    func text(
        _ path: String,
        revision: Revision? = nil,
        range: Range<Int64> = 0..<Int64.max
    ) async throws -> String {
        String(
            decoding: try await read(RemotePath(text: path), revision: revision, range: range)
                .collect(atMost: 64 << 20),
            as: UTF8.self
        )
    }

    func names(_ path: RemotePath = .root) async throws -> Set<String> {
        let listing = try await listing(of: path)
        #expect(listing.unknown.isEmpty)
        return Set(listing.entries.map(\.name))
    }
}

extension WebDAVClient {
    /// Does something with a provider of the account, whose map is removed afterwards.
    func withProvider(
        now: @escaping @Sendable () -> Timestamp = { .now },
        _ body: (PlaceProvider) async throws -> Void
    ) async throws {
        let file = NSTemporaryDirectory() + "oort-places-\(UUID().uuidString).sqlite"
        let map = try PlaceMap(path: file)
        defer {
            map.close()
            for ending in ["", "-wal", "-shm"] {
                try? FileManager.default.removeItem(atPath: file + ending)
            }
        }
        try await body(
            PlaceProvider(
                client: self,
                map: map,
                logger: Logger(label: "places") { _ in SwiftLogNoOpLogHandler() },
                now: now
            )
        )
    }
}

/// The kind of the error that `body` ends with; nil for none.
func failure(_ body: () async throws -> Void) async -> ProviderError.Kind? {
    do {
        try await body()
        return nil
    } catch let error as ProviderError {
        return error.kind
    } catch {
        Issue.record(error)
        return nil
    }
}

/// A content that cannot be read past its middle: the upload is cut off.
struct BrokenContent: ContentSource {
    let size: Int64
    /// The bytes before the middle; ones without them.
    var good: [UInt8] = []

    func read(at offset: Int64, count: Int) async throws(ProviderError) -> [UInt8] {
        guard offset + Int64(count) <= size / 2 else {
            try? await Task.sleep(for: .milliseconds(300))
            throw ProviderError(.localContent, detail: "broken on purpose")
        }
        return good.isEmpty
            ? [UInt8](repeating: 1, count: count) : Array(good[Int(offset)..<Int(offset) + count])
    }
}
