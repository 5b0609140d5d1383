import Foundation
import OortCatalog
import OortModel
import Testing

/// Whatever happens to a tree, a search finds what a look at every path finds, be the index behind or not.
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
                let words = (0...below(3)).map { _ in word() }
                var query = SearchQuery(words: words, limit: 10_000)
                if below(4) == 0 { query.folder = try folder() }
                let found = try await catalog.search(query).hits
                let paths = found.map { $0.path.joined(separator: "/") }
                let expected = try look(for: query)
                if Set(paths) != expected || paths.count != expected.count {
                    return "\(words) found \(paths.sorted()) instead of \(expected.sorted())"
                }
            }
        }
        return nil
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
            if !entry.isFolder { (item.rev, item.size) = (Revision("1"), 0) }
            changes.append(.changed(item))
        }
        story += " feed of \(changes.count);"
        try await fixture.page(changes)
        if below(2) == 0 { try await fixture.plan() }
    }

    // MARK: Looking at everything

    private func look(for query: SearchQuery) throws -> Set<String> {
        var found: Set<String> = []
        let folders = Dictionary(
            uniqueKeysWithValues: try nodes().map { ($0.path, $0.node.inode) }
        )
        for (path, _) in try nodes() {
            if let folder = query.folder {
                let above = (1..<max(path.count, 1)).map { folders[Array(path.prefix($0))] }
                guard above.contains(folder) else { continue }
            }
            let own = Self.words(of: path[path.count - 1])
            let above = path.dropLast().map(Self.words)
            let fits = query.words.map { word -> (Bool, Bool) in
                let word = Self.words(of: word)
                return (Self.fits(word, own), above.contains { Self.fits(word, $0) })
            }
            if fits.contains(where: \.0), fits.allSatisfy({ $0.0 || $0.1 }) {
                found.insert(path.joined(separator: "/"))
            }
        }
        return found
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
