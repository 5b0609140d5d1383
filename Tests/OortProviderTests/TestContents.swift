import OortModel
import Synchronization

/// A content of which the end cannot be read, as when a disk fails.
struct BreakingSource: ContentSource {
    let bytes: [UInt8]
    let breaksAt: Int64

    var size: Int64 { Int64(bytes.count) }

    func read(at offset: Int64, count: Int) async throws(ProviderError) -> [UInt8] {
        guard offset + Int64(count) <= breaksAt else {
            throw ProviderError(.localContent, detail: "scripted")
        }
        return Array(bytes[Int(offset)..<Int(offset) + count])
    }
}

/// Remembers the session as a catalog would.
final class RecordingObserver: UploadObserver {
    private let state = Mutex<UploadSession?>(nil)

    var session: UploadSession? { state.withLock { $0 } }

    func sessionChanged(_ session: UploadSession?) async { state.withLock { $0 = session } }
    func sent(_ bytes: Int64) {}
}
