import Foundation
import OortCatalog
import OortModel

/// What the client asks when it looks for items.
struct SearchRequest: ControlRequest, Hashable {
    static let fields: Set = ["words", "in", "kind", "since", "larger", "content", "limit"]

    /// The words, all of which must be found.
    var words: [String]
    /// An absolute path under the mount point, of a folder; nil for everywhere.
    var `in`: String?
    /// What it must be.
    var kind: SearchKind?
    /// The time since which it must have been modified.
    var since: Date?
    /// Bytes that it must have more than.
    var larger: Int64?
    /// Whether the services are asked that search inside files.
    var content: Bool?
    /// The most results.
    var limit: Int?

    /// The most results unless the request says otherwise.
    static let usualLimit = 100
    /// The most results that anybody may ask for.
    static let mostResults = 10_000

    /// The search of the catalog below a folder.
    ///
    /// - Throws: `Failure` for words with nothing to look for, and for what is no limit.
    func query(in folder: Inode?) throws(Failure) -> SearchQuery {
        guard words.count <= SearchQuery.mostWords else {
            throw Failure(
                "\(words.count) words are too many for one search.",
                advice: "Name \(SearchQuery.mostWords) at most."
            )
        }
        let limit = limit ?? Self.usualLimit
        guard (1...Self.mostResults).contains(limit) else {
            throw Failure("limit must be from 1 to \(Self.mostResults).")
        }
        var query = SearchQuery(words: words, limit: limit)
        guard query.hasWords else {
            throw Failure(
                "There is nothing to look for in \(Self.shown(words)).",
                advice: "Name some letters or digits of a name."
            )
        }
        query.folder = folder
        query.kind = kind
        query.modifiedSince = since.map {
            Timestamp(seconds: Int64($0.timeIntervalSince1970.rounded(.down)))
        }
        query.largerThan = larger
        return query
    }

    /// Words for people, in one line.
    static func shown(_ words: [String]) -> String {
        "\"" + TerminalText.line(words.joined(separator: " ")) + "\""
    }
}

/// One line of the answer to a `SearchRequest`: a result, a remark, or the end.
struct SearchLine: Codable, Hashable, Sendable {
    /// Something that was found.
    var result: SearchResult?
    /// What a person should know of an account or of the index.
    var note: String?
    /// The search is over.
    var end: SearchEnd?
}

/// How a search ended.
struct SearchEnd: Codable, Hashable, Sendable {
    /// How many results there were.
    var count: Int
    /// Whether there may be more.
    var isCut: Bool
}

/// One result of a search.
struct SearchResult: Codable, Hashable, Sendable {
    /// Where it was found.
    enum Source: String, Codable, Hashable, Sendable {
        /// In names, paths and descriptions.
        case name
        /// By the service, which looks inside files, too.
        case content
    }

    /// The path under the mount point; without a mount it begins with the account's name.
    var path: String
    /// The account's name.
    var account: String
    /// What it is; nil for what is of no known kind.
    var kind: SearchKind?
    /// Whether it is a folder.
    var isFolder: Bool
    /// Bytes of content.
    var size: Int64
    /// When it was modified.
    var modified: Date
    /// Where it was found.
    var found: Source
}

extension SearchResult {
    /// A hit below `top`, the mount point; with an empty one the path begins with the account's name.
    init(_ hit: SearchHit, below top: String, found: Source = .name) {
        self.init(
            path: ((top.isEmpty ? [] : [top]) + hit.path).joined(separator: "/"),
            account: hit.path.first ?? "",
            kind: SearchKind.of(hit.node, name: hit.path.last ?? "", type: nil),
            isFolder: hit.node == .folder,
            size: hit.size,
            modified: hit.modified.date,
            found: found
        )
    }

    /// What is said of an index that is not made yet, or is made anew; nil where it has all but the
    /// last few.
    static func note(unindexed: Int) -> String? {
        guard unindexed > 1000 else { return nil }
        return "The search index is still being built: \(unindexed) names were looked at one by "
            + "one."
    }
}
