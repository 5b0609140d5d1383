import OortModel
import Synchronization

/// The bytes of a file that may be moved while they come.
///
/// Some servers tell of a file only by its path, at the end of a transfer, too: a move of ours in between
/// is none of the reader's, who goes on where the file is then.
final class MovableReading: Sendable {
    /// Bytes on their way from a place.
    struct Opened: Sendable {
        var stream: ByteStream
        var path: RemotePath
    }

    private struct State {
        var current: Opened
        /// The bytes that were given.
        var count: Int64 = 0
    }

    private let state: Mutex<State>
    private let open: @Sendable (_ count: Int64) async throws(ProviderError) -> Opened

    /// Goes on by `open`, which is given how many bytes came already, and finds the file where it is.
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
