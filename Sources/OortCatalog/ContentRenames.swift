import GRDB
import OortModel
import Synchronization

/// The key of a content under which the service has the same bytes now: another revision, where the file was
/// touched, moved or locked, or another item, where it took over that one's identity.
struct RenamedContent: Sendable {
    var old: ContentKey
    var new: ContentKey
}

/// The present keys of contents that may be open here under former ones.
///
/// They are kept for the life of the process: a content that is opened later has the newest key.
final class ContentRenames: Sendable {
    private struct State {
        var newer: [ContentKey: ContentKey] = [:]
        var former: [ContentKey: Set<ContentKey>] = [:]
    }

    private let state = Mutex(State())

    func note(_ renamed: [RenamedContent]) {
        state.withLock { state in
            for content in renamed where content.old != content.new {
                state.newer[content.old] = content.new
                state.former[content.new, default: []].insert(content.old)
                // A key that returns is the newest again.
                guard let next = state.newer.removeValue(forKey: content.new) else { continue }
                state.former[next]?.remove(content.new)
            }
        }
    }

    /// The newest key of the same content.
    func current(_ key: ContentKey) -> ContentKey {
        state.withLock { state in
            var key = key
            while let next = state.newer[key] { key = next }
            return key
        }
    }

    /// The former keys of the same content.
    func former(of key: ContentKey) -> Set<ContentKey> {
        state.withLock { state in
            guard var found = state.former[key] else { return [] }
            var waiting = Array(found)
            while let next = waiting.popLast() {
                for older in state.former[next] ?? [] where found.insert(older).inserted {
                    waiting.append(older)
                }
            }
            return found
        }
    }
}

extension Catalog {
    /// The present key of a content that was opened under a former one; the same one where no other is
    /// known.
    public func currentKey(of key: ContentKey) -> ContentKey { renames.current(key) }

    /// The keys that a content had before, under which it may be open.
    public func formerKeys(of key: ContentKey) -> Set<ContentKey> { renames.former(of: key) }
}

extension CatalogTransaction {
    /// Gives a cached content, of which no file has the old key any longer, the key under which the service
    /// has the same bytes now.
    ///
    /// Where the new key has a content already, that one is read from now on.
    mutating func renameContent(_ old: ContentKey, to new: ContentKey) throws {
        guard old != new else { return }
        let isKnown = try database.has(
            "SELECT 1 FROM content WHERE account = ? AND item = ? AND revision = ?",
            [old.account.rawValue, old.item.rawValue, old.revision.rawValue]
        )
        guard isKnown else { return }
        try database.run(
            """
            UPDATE OR IGNORE content SET item = ?, revision = ?
            WHERE account = ? AND item = ? AND revision = ?
            """,
            [
                new.item.rawValue, new.revision.rawValue, old.account.rawValue,
                old.item.rawValue, old.revision.rawValue,
            ]
        )
        effects.renamed.append(RenamedContent(old: old, new: new))
    }
}
