import OortModel
import SwiftSFTP
import Synchronization

/// A file that is open for reading at the server.
struct OpenFile: Sendable {
    let path: RemotePath
    /// The revision that was asked for, with which each part that is read is compared; nil for any.
    let revision: Revision?
    let session: SFTPSession
    let handle: SFTPHandle
    /// How often places had changed when it was opened (`OpenFiles.changes`).
    let changes: UInt64
}

/// Files of which a part was read a moment ago: who reads another part of one, as databases and players
/// do, saves the round trip of opening it.
///
/// Isolation: any thread.
final class OpenFiles: Sendable {
    private struct State {
        var kept: [(number: UInt64, file: OpenFile)] = []
        var last: UInt64 = 0
        var changes: UInt64 = 0
    }

    private let state = Mutex(State())

    /// How many are kept open, and for how long.
    private static let most = 16
    private static let length = Duration.seconds(5)

    /// How often this program was about to change places.
    var changes: UInt64 { state.withLock(\.changes) }

    /// Keeps a file that nobody reads now open for a moment; one that was opened before places changed is
    /// closed, since another file may lie at its place.
    func keep(_ file: OpenFile) {
        let (number, closing) = state.withLock { state -> (UInt64?, OpenFile?) in
            guard file.revision != nil, file.changes == state.changes else { return (nil, file) }
            state.last += 1
            state.kept.append((state.last, file))
            return (state.last, state.kept.count > Self.most ? state.kept.removeFirst().file : nil)
        }
        closing?.close()
        guard let number else { return }
        Task { [weak self] in
            try? await Task.sleep(for: Self.length)
            self?.take { $0.number == number }?.close()
        }
    }

    /// A file of a revision that is open at a place, for the caller alone; nil where there is none.
    func take(_ path: RemotePath, _ revision: Revision) -> OpenFile? {
        take { $0.file.path == path && $0.file.revision == revision }
    }

    private func take(
        where isWanted: ((number: UInt64, file: OpenFile)) -> Bool
    ) -> OpenFile? {
        state.withLock { state in
            state.kept.lastIndex(where: isWanted).map { state.kept.remove(at: $0).file }
        }
    }

    /// Closes what is kept open at a place and below, which this program is about to change; the server's
    /// answers are not waited for.
    func close(at path: RemotePath) {
        state.withLock { $0.changes += 1 }
        func isBelow(_ other: RemotePath) -> Bool {
            RemotePath(Array(other.parts.prefix(path.parts.count))) == path
        }
        while let file = take(where: { isBelow($0.file.path) }) { file.close() }
    }
}

extension OpenFile {
    func close() { _ = session.send(.close(handle)) }
}
