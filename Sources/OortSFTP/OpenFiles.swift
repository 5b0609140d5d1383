import OortModel
import SwiftSFTP
import Synchronization

/// A file that is open for reading at the server; closed with its last user.
///
/// Isolation: any thread.
final class OpenFile: Sendable {
    let path: RemotePath
    /// The revision that was asked for, against which each part is checked; nil for any.
    let revision: Revision?
    let session: SFTPSession
    let handle: SFTPHandle
    /// How often places had changed when it was opened (`OpenFiles.changes`).
    let changes: UInt64
    /// How many small parts of it are being read.
    let smallReads = Mutex(0)

    init(
        path: RemotePath,
        revision: Revision?,
        session: SFTPSession,
        handle: SFTPHandle,
        changes: UInt64
    ) {
        self.path = path
        self.revision = revision
        self.session = session
        self.handle = handle
        self.changes = changes
    }

    // The server's answer is not waited for.
    deinit { _ = session.send(.close(handle)) }
}

/// Files that were read a moment ago: a program that reads another part, as databases and players do, saves
/// the round trip of opening the file.
///
/// Isolation: any thread.
final class OpenFiles: Sendable {
    private struct State {
        var kept: [(number: UInt64, file: OpenFile)] = []
        var last: UInt64 = 0
        var changes: UInt64 = 0
    }

    private let state = Mutex(State())

    /// How many are kept open, and for how long after the last read.
    private static let most = 16
    private static let length = Duration.seconds(5)

    /// How often this program began to change places.
    var changes: UInt64 { state.withLock(\.changes) }

    /// Keeps a file open for a moment from now on; not one that was opened before places changed, since
    /// another file may lie at its place.
    func keep(_ file: OpenFile) {
        guard file.revision != nil else { return }
        // What goes out of the list is closed outside of the lock.
        let (number, _) = state.withLock { state -> (UInt64?, OpenFile?) in
            guard file.changes == state.changes else { return (nil, nil) }
            state.kept.removeAll { $0.file === file }
            state.last += 1
            state.kept.append((state.last, file))
            return (state.last, state.kept.count > Self.most ? state.kept.removeFirst().file : nil)
        }
        guard let number else { return }
        Task { [weak self] in
            try? await Task.sleep(for: Self.length)
            self?.drop { $0.number == number }
        }
    }

    /// A file of a revision that is open at a place; nil where there is none.
    func file(at path: RemotePath, _ revision: Revision) -> OpenFile? {
        state.withLock { state in
            state.kept.last { $0.file.path == path && $0.file.revision == revision }?.file
        }
    }

    /// Keeps a file open no longer than it is being read.
    func drop(_ file: OpenFile) { drop { $0.file === file } }

    /// As `drop`, of all at a place and below, which this program is about to change.
    func close(at path: RemotePath) {
        state.withLock { $0.changes += 1 }
        drop { RemotePath(Array($0.file.path.parts.prefix(path.parts.count))) == path }
    }

    private func drop(where isDropped: ((number: UInt64, file: OpenFile)) -> Bool) {
        // Closed outside of the lock.
        _ = state.withLock { state -> [(number: UInt64, file: OpenFile)] in
            let dropped = state.kept.filter(isDropped)
            state.kept.removeAll(where: isDropped)
            return dropped
        }
    }
}
