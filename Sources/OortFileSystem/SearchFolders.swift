import OortCatalog
import OortModel
import Synchronization

/// What an inode of the mount's searches stands for.
///
/// Their numbers have the highest bit, which no row of the catalog has. A link's number includes that of
/// the item that it leads to, so that nothing has to be stored for it.
enum SearchPlace: Hashable {
    /// `.search`, which nothing lists.
    case top
    /// `.search/WORDS`, by its number.
    case folder(UInt64)
    /// A result in such a folder: a link to this item.
    case link(Inode)

    private static let mark: UInt64 = 1 << 63
    private static let folderMark: UInt64 = 1 << 62

    /// What a number stands for; nil for one of the catalog.
    init?(_ inode: Inode) {
        guard inode.rawValue & Self.mark != 0 else { return nil }
        let rest = inode.rawValue & ~Self.mark
        if rest == 0 {
            self = .top
        } else if rest & Self.folderMark != 0 {
            self = .folder(rest & ~Self.folderMark)
        } else {
            self = .link(Inode(rest))
        }
    }

    /// The number.
    var inode: Inode {
        switch self {
        case .top: Inode(Self.mark)
        case .folder(let number): Inode(Self.mark | Self.folderMark | number)
        case .link(let item): Inode(Self.mark | item.rawValue)
        }
    }
}

extension Inode {
    /// Whether an inode belongs to the mount and to no account: the top folder, and those of searches.
    var isOfMount: Bool { self == .root || SearchPlace(self) != nil }
}

/// The folders of searches that the kernel knows; each is dropped when the kernel forgets it.
final class SearchFolders: Sendable {
    /// The name below the mount's top.
    static let name = ".search"
    /// The most results that a folder shows.
    static let mostResults = 200
    /// For how long a search is not repeated.
    static let freshness = Duration.seconds(1)
    /// If the kernel knows more folders, the oldest are searched again.
    private static let most = 4096

    /// One result, under the name that it has in its folder.
    struct Result: Hashable {
        var name: String
        var item: Inode
    }

    /// A folder as it was last.
    struct Folder {
        /// Its name: the words.
        var words: String
        /// What was found, the best first.
        var results: [Result]
        /// When the results last changed.
        var changed: Timestamp
        fileprivate var searched: ContinuousClock.Instant?
        fileprivate var lookups: UInt64

        /// Whether the results are fresh.
        var isFresh: Bool {
            searched.map { ContinuousClock.now - $0 < SearchFolders.freshness } ?? false
        }
    }

    private struct State {
        var folders: [UInt64: Folder] = [:]
        var numbers: [String: UInt64] = [:]
        var last: UInt64 = 0
    }

    private let state = Mutex(State())

    /// How many folders are known.
    var count: Int { state.withLock { $0.folders.count } }

    /// The folder of a number; nil for one that was forgotten.
    subscript(number: UInt64) -> Folder? { state.withLock { $0.folders[number] } }

    /// The number of the folder for words, with one more lookup.
    func lookUp(_ words: String) -> UInt64 {
        state.withLock { state in
            if let number = state.numbers[words] {
                state.folders[number]?.lookups += 1
                return number
            }
            if state.folders.count >= Self.most, let oldest = state.folders.keys.min() {
                Self.drop(oldest, &state)
            }
            state.last += 1
            state.numbers[words] = state.last
            state.folders[state.last] = Folder(
                words: words,
                results: [],
                changed: .now,
                searched: nil,
                lookups: 1
            )
            return state.last
        }
    }

    /// Stores the results of a search.
    func keep(_ results: [Result], of number: UInt64) {
        state.withLock { state in
            guard var folder = state.folders[number] else { return }
            folder.searched = .now
            if folder.results != results {
                folder.results = results
                // Another time than before, which shows the kernel that its cached listing is old.
                folder.changed = max(.now, folder.changed.later)
            }
            state.folders[number] = folder
        }
    }

    /// The kernel takes back lookups.
    func forget(_ number: UInt64, lookups: UInt64) {
        state.withLock { state in
            guard let folder = state.folders[number] else { return }
            if folder.lookups <= lookups {
                Self.drop(number, &state)
            } else {
                state.folders[number]?.lookups -= lookups
            }
        }
    }

    private static func drop(_ number: UInt64, _ state: inout State) {
        guard let folder = state.folders.removeValue(forKey: number) else { return }
        state.numbers[folder.words] = nil
    }
}

extension Timestamp {
    /// The next moment that is distinguishable from this one.
    var later: Timestamp {
        nanoseconds < 999_999_999
            ? Timestamp(seconds: seconds, nanoseconds: nanoseconds + 1)
            : Timestamp(seconds: seconds + 1, nanoseconds: 0)
    }
}
