import Foundation
import OortCatalog
import OortModel
import Testing

/// A feed may report any parents page by page: circles, unknown folders, folders that are gone.
///
/// What an enumeration then names is the tree.
@Suite("trees of random parents", .timeLimit(.minutes(15)))
struct RandomTreesTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let count = environment["OORT_TREES"].flatMap { Int($0) } ?? 200
    private static let seed =
        environment["OORT_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0..<1 << 40)

    @Test("a complete enumeration heals any tree in which nothing is changed here")
    func healed() async throws {
        print("catalog: \(Self.count) trees from OORT_SEED=\(Self.seed)")
        for number in 0..<Self.count {
            let own = Self.seed &+ UInt64(number)
            let tree = try RandomTree(seed: own)
            var failure: String?
            do { failure = try await tree.difference() } catch { failure = "\(error)" }
            if let failure {
                Issue.record("OORT_SEED=\(own) OORT_TREES=1: \(failure):\(tree.story)")
                return
            }
        }
    }
}

/// The reports of a feed on an account, and an enumeration after them.
private final class RandomTree {
    private static let folders = (0..<6).map { "d\($0)" }
    private static let files = (0..<6).map { "f\($0)" }

    /// What happened, in words.
    private(set) var story = ""
    private var numbers: RandomNumbers
    private let fixture: TemporaryAccount

    init(seed: UInt64) throws {
        numbers = RandomNumbers(state: seed)
        fixture = try TemporaryAccount(service: "drive", names: Rules.folding)
    }

    private func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &numbers) }

    /// What is wrong at the end; nil when nothing is.
    func difference() async throws -> String? {
        try await tellAnything()
        let expected = try await enumerate()
        try await fixture.plan()
        let found = try paths()
        if found != expected { return "\(found) is not \(expected)" }
        let pending = try await fixture.catalog.pendingCount(fixture.account.id)
        return pending == 0 ? nil : "\(pending) pending"
    }

    /// Twelve pages of anything, with a plan after some.
    private func tellAnything() async throws {
        let all = Self.folders + Self.files
        for _ in 0..<12 {
            var changes: [Change] = []
            for _ in 0...below(4) {
                let id = all[below(all.count)]
                let parent = (Self.folders + ["root", "unknown"])[below(8)]
                changes.append(below(4) == 0 ? .removed(ItemID(id)) : told(id, in: parent))
            }
            try await page(changes, endsRun: true)
            if below(2) == 0 {
                story += " plan;"
                try await fixture.plan()
            }
        }
    }

    /// Enumerates a tree in which each folder lies in one before it, or at the top; its paths.
    private func enumerate() async throws -> [String] {
        var paths: [String: String] = [:]
        var named: [Change] = []
        for id in Self.folders.shuffled(using: &numbers) + Self.files where below(5) > 0 {
            let folders = paths.keys.filter { $0.hasPrefix("d") }.sorted() + ["root"]
            let parent = folders[below(folders.count)]
            paths[id] = (paths[parent] ?? "") + "/" + id
            named.append(told(id, in: parent))
        }
        named.shuffle(using: &numbers)
        story += " enumeration:"
        try await fixture.catalog.beginEnumeration(of: fixture.account.id)
        let half = named.count / 2
        try await page(Array(named[..<half]), endsRun: false)
        try await page(Array(named[half...]), endsRun: true, endsEnumeration: true)
        return paths.values.sorted()
    }

    private func told(_ id: String, in parent: String) -> Change {
        let isFolder = id.hasPrefix("d")
        var item = Item(
            id: ItemID(id),
            kind: isFolder ? .folder : .file,
            fileName: id,
            parentID: ItemID(parent)
        )
        if !isFolder { (item.rev, item.size) = (Revision("1"), 0) }
        return .changed(item)
    }

    private func page(
        _ changes: [Change],
        endsRun: Bool,
        endsEnumeration: Bool = false
    ) async throws {
        for change in changes {
            switch change {
            case .changed(let item):
                story += " \(item.id.rawValue) in \(item.parentID?.rawValue ?? ""),"
            case .removed(let id): story += " no \(id.rawValue),"
            case .removedPath: break
            }
        }
        story += ";"
        try await fixture.page(changes, endsRun: endsRun) { $0.endsEnumeration = endsEnumeration }
    }

    private func paths() throws -> [String] {
        var paths: [String] = []
        var queue = [("", fixture.account.root)]
        while let (path, folder) = queue.popLast() {
            for node in try fixture.catalog.children(of: folder, after: nil, limit: 100) {
                paths.append(path + "/" + node.name)
                if node.kind == .folder { queue.append((path + "/" + node.name, node.inode)) }
            }
        }
        return paths.sorted()
    }
}

/// The numbers of a seed (SplitMix64).
struct RandomNumbers: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}
