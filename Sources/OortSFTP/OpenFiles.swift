import OortModel
import SwiftSFTP
import Synchronization

/// A file that is open for reading at the server.
struct OpenFile: Sendable {
    let path: RemotePath
    /// The revision that the handle had when it was opened; each part that is read is compared with it.
    let revision: Revision?
    let session: SFTPSession
    let handle: SFTPHandle
}

/// Files of which a part was read a moment ago: who reads another part of one, as databases and players
/// do, saves the round trip of opening it.
///
/// Isolation: any thread.
final class OpenFiles: Sendable {
    private struct State {
        var kept: [(number: UInt64, file: OpenFile)] = []
        var last: UInt64 = 0
    }

    private let state = Mutex(State())

    /// How many are kept open, and for how long.
    private static let most = 16
    private static let length = Duration.seconds(5)

    /// Keeps a file that nobody reads now open for a moment.
    func keep(_ file: OpenFile) {
        let (number, eldest) = state.withLock { state in
            state.last += 1
            state.kept.append((state.last, file))
            return (state.last, state.kept.count > Self.most ? state.kept.removeFirst().file : nil)
        }
        eldest?.close()
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

    /// Closes what is kept open at a place and below: a server may refuse to rename or remove what is open.
    func close(at path: RemotePath) async {
        func isBelow(_ other: RemotePath) -> Bool {
            RemotePath(Array(other.parts.prefix(path.parts.count))) == path
        }
        while let file = take(where: { isBelow($0.file.path) }) {
            _ = try? await file.close().answer()
        }
    }
}

extension OpenFile {
    @discardableResult
    fileprivate func close() -> SFTPPendingAnswer { session.send(.close(handle)) }
}
