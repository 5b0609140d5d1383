import Foundation
@testable import OortCatalog
import OortModel
import Testing

/// Whatever happens to a tree, a search finds what a look at every path finds, in its order, be the index
/// behind or not.
@Suite("random searches", .timeLimit(.minutes(15)))
struct RandomSearchTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let count = environment["OORT_TREES"].flatMap { Int($0) } ?? 60
    private static let seed =
        environment["OORT_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0..<1 << 40)

    @Test("after each transaction the index finds what there is")
    func exact() async throws {
        print("search: \(Self.count) histories from OORT_SEED=\(Self.seed)")
        for number in 0..<Self.count {
            let own = Self.seed &+ UInt64(number)
            let history = try SearchHistory(seed: own)
            var failure: String?
            do { failure = try await history.difference() } catch { failure = "\(error)" }
            if let failure {
                Issue.record("OORT_SEED=\(own) OORT_TREES=1: \(failure):\(history.story)")
                return
            }
        }
    }
}

private final class SearchHistory {
    private static let words = [
        "report", "Report", "port", "work", "a", "ab", "2024", "ÄRZTE", "arzte", "会议", "会", "e",
        "jpg", "Straße",
    ]
    private static let marks = [" ", "_", "-", ".", ""]

    private(set) var story = ""
    private var numbers: RandomNumbers
    private let fixture: TemporaryAccount
    private var catalog: Catalog { fixture.catalog }
    private var nextID = 0
    private var told: [(id: String, isFolder: Bool)] = [("root", true)]
    /// When contents of items were read, milliseconds since 1970.
    private var used: [String: Int64] = [:]
    private static let sizes: [Int64] = [0, 100, 1 << 20, 3 << 20]

    /// Times that items have and that searches ask for.
    private static func time(_ number: Int) -> Int64 { 1_700_000_000 + Int64(number) * 40_000_000 }

    init(seed: UInt64) throws {
        numbers = RandomNumbers(state: seed)
        fixture = try TemporaryAccount(service: "drive", names: Rules.exact)
    }

    private func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &numbers) }

    private func word() -> String { Self.words[below(Self.words.count)] }

    private func name() -> String {
        (0...below(3)).map { _ in word() }.joined(separator: Self.marks[below(Self.marks.count)])
    }

    func difference() async throws -> String? {
        for _ in 0..<25 {
            try await change()
            if below(3) == 0 {
                let count = 1 + below(4)
                story += " index \(count);"
                try await catalog.advanceSearchIndex(by: count)
            }
            if below(20) == 0 { while try await catalog.advanceSearchIndex() {} }
            for _ in 0..<3 {
                let query = try query()
                let expected = try look(for: query)
                if let difference = difference(
                    between: try await catalog.search(query),
                    and: expected,
                    of: query,
                    isWhole: true
                ) {
                    return "\(query): \(difference)"
                }
                // Every way of looking, as in trees of a million names.
                var bounds = SearchBounds(enough: 1 + below(9), few: below(9), listed: below(30))
                (bounds.some, bounds.most) = (below(9), .max)
                bounds.folders = below(15)
                if let difference = difference(
                    between: try await catalog.search(query, within: bounds),
                    and: expected,
                    of: query,
                    isWhole: false
                ) {
                    return "\(query) within \(bounds): \(difference)"
                }
            }
        }
        return nil
    }

    private func query() throws -> SearchQuery {
        let words = (0...below(3)).map { _ in word() }
        var query = SearchQuery(words: words, limit: below(2) == 0 ? 10_000 : 1 + below(8))
        if below(4) == 0 { query.folder = try folder() }
        if below(6) == 0 { query.kind = below(2) == 0 ? .folder : .image }
        if below(6) == 0 { query.largerThan = Self.sizes[below(Self.sizes.count)] }
        if below(6) == 0 { query.modifiedSince = Timestamp(seconds: Self.time(below(4))) }
        return query
    }

    /// How an answer differs from the scores of all that fits; one that is whole has the best of these.
    private func difference(
        between answer: SearchAnswer,
        and expected: [Inode: Double],
        of query: SearchQuery,
        isWhole: Bool
    ) -> String? {
        let hits = answer.hits
        let found = Set(hits.map(\.inode))
        guard found.count == hits.count else { return "one is there twice" }
        guard found.isSubset(of: expected.keys) else { return "one does not fit" }
        let scores = hits.map { expected[$0.inode] ?? 0 }
        // The clock goes on between the two.
        for (better, worse) in zip(scores, scores.dropFirst()) where better < worse - 0.01 {
            return "\(scores) are not in order"
        }
        guard hits.count == min(query.limit, expected.count) else {
            return "\(hits.count) instead of \(expected.count)"
        }
        guard answer.isCut || hits.count == expected.count else { return "it does not say so" }
        guard isWhole else { return nil }
        let left = expected.filter { !found.contains($0.key) }.values.max() ?? 0
        return left > (scores.last ?? 0) + 0.01 ? "a better one is not shown" : nil
    }

    // MARK: What happens

    private func nodes() throws -> [(path: [String], node: Node)] {
        var found: [(path: [String], node: Node)] = []
        var queue: [(path: [String], node: Node)] = [
            (["work"], try catalog.node(fixture.account.root))
        ]
        while let next = queue.popLast() {
            found.append(next)
            guard next.node.kind == .folder else { continue }
            for child in try catalog.children(of: next.node.inode, after: nil, limit: 1000) {
                queue.append((next.path + [child.name], child))
            }
        }
        return found.sorted { $0.node.inode < $1.node.inode }
    }

    private func folder() throws -> Inode {
        let folders = try nodes().filter { $0.node.kind == .folder }
        return folders[below(folders.count)].node.inode
    }

    private func change() async throws {
        do {
            switch below(6) {
            case 0, 1:
                let (name, kind) = (name(), below(3) == 0 ? NewNode.folder : .file)
                story += " make \(name);"
                _ = try catalog.create(kind, named: name, in: folder())
            case 2:
                let all = try nodes().dropFirst()
                guard let (_, node) = all.randomElement(using: &numbers), let parent = node.parent
                else { return }
                let name = name()
                story += " rename \(node.name) to \(name);"
                _ = try catalog.rename(
                    node.name,
                    in: parent,
                    to: name,
                    in: below(2) == 0 ? parent : folder(),
                    mode: .replace
                )
            case 3:
                let all = try nodes().dropFirst()
                guard let (_, node) = all.randomElement(using: &numbers), let parent = node.parent
                else { return }
                story += " remove \(node.name);"
                if node.kind == .folder {
                    _ = try catalog.removeFolder(node.name, in: parent)
                } else {
                    _ = try catalog.unlink(node.name, in: parent)
                }
            default: try await tell()
            }
        } catch is CatalogError {
            // Taken, not empty, into itself: nothing changed.
            story += " not;"
        }
    }

    private func tell() async throws {
        var changes: [Change] = []
        for _ in 0...below(5) {
            let isNew = told.count == 1 || below(2) == 0
            if isNew {
                nextID += 1
                told.append(("\(nextID)", below(3) == 0))
            }
            let entry = isNew ? told[told.count - 1] : told[1 + below(told.count - 1)]
            if !isNew, below(3) == 0 {
                changes.append(.removed(ItemID(entry.id)))
                continue
            }
            let folders = told.filter(\.isFolder)
            var item = Item(
                id: ItemID(entry.id),
                kind: entry.isFolder ? .folder : .file,
                fileName: name(),
                parentID: ItemID(folders[below(folders.count)].id)
            )
            item.clientModifiedTime = Timestamp(seconds: Self.time(below(4)))
            // Not every report says something of tags.
            if below(2) == 0 { item.tags = TextList((0..<below(3)).map { _ in name() }) }
            if !entry.isFolder {
                (item.rev, item.size) = (Revision("1"), Self.sizes[below(Self.sizes.count)] + 1)
                item.mimeType = below(4) == 0 ? "image/x-other" : nil
            }
            changes.append(.changed(item))
        }
        story += " feed of \(changes.count);"
        try await fixture.page(changes)
        if let read = told.dropFirst().randomElement(using: &numbers), !read.isFolder {
            let key = ContentKey(
                account: fixture.account.id,
                item: ItemID(read.id),
                revision: Revision("1")
            )
            let id = try await catalog.insertCachedContent(
                { key },
                size: 1,
                hash: nil
            )
            story += " read \(read.id);"
            let moment = Timestamp.now.inMilliseconds
            try await catalog.markUsed([id: moment])
            used[read.id] = moment
        }
        if below(2) == 0 { try await fixture.plan() }
    }

    // MARK: Looking at everything

    /// What fits, with how well: by its words, by how lately it was modified and read, and by its depth.
    private func look(for query: SearchQuery) throws -> [Inode: Double] {
        var found: [Inode: Double] = [:]
        let nodes = try nodes()
        let folders = Dictionary(uniqueKeysWithValues: nodes.map { ($0.path, $0.node.inode) })
        let words = Set(query.words.map(Self.words))
        let now = Double(Timestamp.now.seconds)
        for (path, node) in nodes {
            if let folder = query.folder {
                let above = (1..<max(path.count, 1)).map { folders[Array(path.prefix($0))] }
                guard above.contains(folder) else { continue }
            }
            if let kind = query.kind {
                guard SearchKind.of(node.kind, name: node.name, type: node.mimeType) == kind else {
                    continue
                }
            }
            if let size = query.largerThan {
                guard node.kind != .folder, node.size > size else { continue }
            }
            if let time = query.modifiedSince, node.modified < time { continue }
            let own = Self.words(of: path[path.count - 1])
            let tags = Self.words(of: try catalog.details(of: node.inode)?.tags ?? "")
            let above = path.dropLast().map(Self.words)
            let worths = words.map { word -> Double? in
                if Self.fits(word, own) { return Self.worth(of: word, in: own) }
                if Self.fits(word, tags) { return 50 }
                return above.contains { Self.fits(word, $0) } ? 20 : nil
            }
            guard words.contains(where: { Self.fits($0, own) || Self.fits($0, tags) }),
                !worths.contains(nil)
            else { continue }
            var score = worths.compactMap(\.self).reduce(0, +) / Double(worths.count)
            score += 15 / (1 + max(now - Double(node.modified.seconds), 0) / 2_592_000)
            score -= 0.2 * Double(path.count - 1)
            if let used = node.remoteID.flatMap({ used[$0.rawValue] }) {
                score += 15 / (1 + max(now - Double(used) / 1000, 0) / 604_800)
            }
            found[node.inode] = score
        }
        return found
    }

    private static func worth(of word: String, in name: String) -> Double {
        let inner = word.dropLast()
        if name == word { return 90 }
        return name.hasPrefix(inner) ? 70 : name.contains(inner) ? 60 : 40
    }

    /// The words of a name between spaces, a Chinese letter each for itself.
    private static func words(of name: String) -> String {
        let plain = name.replacingOccurrences(of: "ß", with: "ss")
            .folding(options: [.caseInsensitive, .diacriticInsensitive], locale: nil)
        var text = " "
        for character in plain {
            if character == "会" || character == "议" {
                text += " \(character) "
            } else {
                text += character.isLetter || character.isNumber ? String(character) : " "
            }
        }
        return " " + text.split(separator: " ").joined(separator: " ") + " "
    }

    private static func fits(_ word: String, _ name: String) -> Bool {
        let inner = word.dropFirst().dropLast()
        return name.contains(" " + inner) || inner.count >= 3 && name.contains(inner)
    }
}
