import OortModel
import Synchronization

/// The bytes of a file that may be moved while they come.
///
/// Some servers know a file by its path only, also at the end of a transfer. If we move it meanwhile, the
/// reader does not notice: it goes on where the file is then.
final class MovableReading: Sendable {
    /// Bytes on their way from a place.
    struct Opened: Sendable {
        var stream: ByteStream
        var path: RemotePath
    }

    private struct State {
        var current: Opened
        /// How many bytes were handed on.
        var count: Int64 = 0
    }

    private let state: Mutex<State>
    private let open: @Sendable (_ count: Int64) async throws(ProviderError) -> Opened

    /// Continues with `open`, which gets the count of bytes that came already, and finds the file where it
    /// is then.
    init(
        _ first: Opened,
        goingOnBy open: @escaping @Sendable (Int64) async throws(ProviderError) -> Opened
    ) {
        state = Mutex(State(current: first))
        self.open = open
    }

    func next() async throws(ProviderError) -> [UInt8]? {
        while true {
            let current = state.withLock { $0.current }
            do throws(ProviderError) {
                let part = try await current.stream.next()
                state.withLock { $0.count += Int64(part?.count ?? 0) }
                return part
            } catch {
                guard error.kind == .notFound else { throw error }
                let again = try await open(state.withLock { $0.count })
                guard again.path != current.path else { throw error }
                state.withLock { $0.current = again }
            }
        }
    }
}
