import OortModel
import Synchronization

/// What stays of one folder that is moved piece by piece.
final class StayingPieces: Sendable {
    private let found = Mutex<[(path: RemotePath, reason: String)]>([])

    /// A piece stays at its old place.
    func note(_ path: RemotePath, reason: String) {
        found.withLock { found in
            // A folder is looked at several times.
            found.removeAll { $0.path == path }
            found.append((path, reason))
        }
    }

    /// The pieces, in the order in which they were refused.
    var all: [(path: RemotePath, reason: String)] { found.withLock(\.self) }
}

/// Folders that were moved lately and of which something stays at the old place, for a person to read;
/// forgotten with the process.
///
/// Isolation: any thread.
final class SplitMoves: Sendable {
    private let found = Mutex<[(old: RemotePath, words: String, time: Timestamp)]>([])

    private static let most = 20
    private static let longestAge: Int64 = 86_400

    /// Notes that a folder was moved, but for some pieces, or for what is not shown of it.
    func add(
        from old: RemotePath,
        to new: RemotePath,
        _ pieces: StayingPieces,
        at time: Timestamp
    ) {
        let all = pieces.all
        let what =
            switch all.count {
            case 0: "what is not shown of it stays there"
            case 1: "\(Self.shown(all[0].path)) stays there: \(all[0].reason)"
            default:
                "\(all.count) of its entries stay there, \(Self.shown(all[0].path)) among them: "
                    + all[0].reason
            }
        let words = "\(Self.shown(old)) was moved to \(Self.shown(new)), but \(what)"
        found.withLock { found in
            found.removeAll { $0.old == old }
            found.append((old, words, time))
            found.removeFirst(max(0, found.count - Self.most))
        }
    }

    /// A path from the account's folder.
    private static func shown(_ path: RemotePath) -> String { path.parts.joined(separator: "/") }

    /// What was split in the last day, in words; the newest first.
    func words(at now: Timestamp) -> [String] {
        found.withLock { found in
            found.reversed().filter { now.seconds - $0.time.seconds < Self.longestAge }.map(\.words)
        }
    }
}
