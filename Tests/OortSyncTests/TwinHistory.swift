import OortCatalog
import OortModel
import OortSync
import OortTesting

/// A history of machines that make folders of a few names, put files into them, move some, and die,
/// while new folders are held up so that others make the same ones.
///
/// In the end all show one tree, in which every folder is there once and every file that nobody removed.
final class TwinHistory {
    private static let names = ["d", "e"]

    private let seed: UInt64
    private var numbers: SeededNumbers
    private let cloud: MemoryCloud
    private let worlds: [World]
    /// What happened, in words.
    private var story: [String] = []
    /// All texts that were written and not removed.
    private var texts: Set<String> = []
    /// Whether something is moved: then folders may be there twice, as they were made elsewhere.
    private let isRough: Bool
    private var pushes: [Task<SyncOutcome, Never>] = []
    private let time: SeededTime
    private var failure: String?

    private init(seed: UInt64, time: SeededTime) throws {
        (self.seed, self.time) = (seed, time)
        numbers = SeededNumbers(seed: seed)
        // As Drive does, the only service that takes a name twice.
        cloud = MemoryCloud(duplicates: true) { $0.takesClientIDs = true }
        isRough = numbers.next() % 3 == 0
        let count = 2 + Int(numbers.next() % 2)
        let cloud = cloud
        worlds = try (0..<count).map { _ in
            try World(cloud, clock: TaskClock(time: time))
        }
    }

    /// How many steps a history has.
    static let length = 40

    /// Runs some steps of a seed's history, all of them unless said otherwise, on the calling thread.
    static func run(seed: UInt64, steps: [Int] = Array(0..<length)) -> HistoryOutcome {
        HistoryOutcome.ofRun(seed: seed) { time in
            do {
                let history = try TwinHistory(seed: seed, time: time)
                do { try await history.run(steps) } catch { history.failure = "it throws \(error)" }
                return HistoryOutcome(failure: history.failure, story: history.words)
            } catch { return HistoryOutcome(failure: "it throws \(error)", story: "") }
        }
    }

    private func below(_ bound: Int) -> Int { Int(numbers.next() % UInt64(bound)) }
    private func oneIn(_ bound: Int) -> Bool { below(bound) == 0 }

    private func run(_ steps: [Int]) async throws {
        for world in worlds {
            world.start()
            try await world.settle()
        }
        for number in steps {
            numbers = SeededNumbers(seed: seed, step: number)
            do { try await step() } catch let error as CatalogError {
                // Another machine's news came before it, or it makes no sense.
                guard [.exists, .notFound, .moveIntoItself].contains(error) else { throw error }
                story.append("that fails: \(error)")
            }
        }
        cloud.release(.folders)
        for push in pushes { push.cancel() }
        try await end()
        for world in worlds { await world.end() }
    }

    // MARK: What happens

    private func step() async throws {
        let number = below(worlds.count)
        let world = worlds[number]
        switch below(12) {
        case 0..<4:
            let (path, folder) = try anyFolder(of: world)
            let name = Self.names[below(2)]
            story.append("\(number) mkdir \(path + name)")
            _ = try world.catalog.create(
                NewNode(kind: .folder, mode: 0o755, owner: 0, group: 0),
                named: name,
                in: folder
            )
        case 4..<7:
            let text = "text \(story.count)"
            let (path, folder) = try anyFolder(of: world)
            let name = oneIn(2) ? "f" : "f\(story.count)"
            story.append("\(number) write \(path + name): \(text)")
            let file = try world.catalog.create(
                NewNode(kind: .file, mode: 0o644, owner: 0, group: 0),
                named: name,
                in: folder
            )
            texts.insert(text)
            try world.write(to: file, text)
        case 7:
            guard isRough else { return }
            try moveAnything(in: world, number)
        case 8:
            let isKilled = oneIn(2)
            story.append("\(number) \(isKilled ? "is killed" : "ends")")
            if isKilled { try await world.crash(after: below(300)) }
            await world.restart()
        case 9:
            if oneIn(2) {
                story.append("folders wait")
                cloud.hold(.folders)
            } else {
                story.append("folders go on")
                cloud.release(.folders)
            }
        default:
            let wait = below(60)
            story.append("\(number) syncs for \(wait) ms")
            let engine = world.engine
            if oneIn(2) {
                pushes.append(Task { await engine.sync(timeout: .seconds(60)) })
            } else {
                _ = await engine.sync(timeout: .milliseconds(wait))
            }
        }
    }

    /// The path of a folder, with a slash, and its number; the path of the top is empty.
    private func anyFolder(of world: World) throws -> (path: String, inode: Inode) {
        var found = [(path: "", inode: world.account.root)]
        var next = 0
        while next < found.count {
            let (path, folder) = found[next]
            next += 1
            guard path.split(separator: "/").count < 2 else { continue }
            for node in try world.catalog.children(of: folder, after: nil, limit: 1000)
            where node.kind == .folder {
                found.append((path + node.name + "/", node.inode))
            }
        }
        return found[below(found.count)]
    }

    private func moveAnything(in world: World, _ number: Int) throws {
        let from = try anyFolder(of: world)
        let to = try anyFolder(of: world)
        let children = try world.catalog.children(of: from.inode, after: nil, limit: 1000)
        guard !children.isEmpty else { return }
        let name = children[below(children.count)].name
        story.append("\(number) mv \(from.path + name) \(to.path + name)")
        _ = try world.catalog.rename(name, in: from.inode, to: name, in: to.inode, mode: .noReplace)
    }

    // MARK: What must hold

    private func end() async throws {
        var failure = ""
        let end = time.now.advanced(by: .seconds(60))
        repeat {
            for world in worlds { _ = await world.engine.sync(timeout: .milliseconds(300)) }
            try await time.sleep(for: .milliseconds(300))
            failure = try await difference()
        } while !failure.isEmpty && time.now < end
        if !failure.isEmpty { self.failure = failure }
    }

    private var words: String { story.joined(separator: "\n  ") }

    /// What is not as it must be in the end; nothing where all is.
    private func difference() async throws -> String {
        var trees: [[String: String]] = []
        for world in worlds {
            let pending = try await world.catalog.pendingCount(world.account.id)
            guard pending == 0 else { return "\(pending) are pending" }
            guard let tree = try? await world.tree() else { return "a file cannot be read" }
            trees.append(tree)
        }
        guard trees.allSatisfy({ $0 == trees[0] }) else { return "they differ: \(trees)" }
        guard trees[0].count == cloud.count else {
            return "\(trees[0]) is not what the service has: \(cloud.count)"
        }
        let files = trees[0].filter { !$0.key.hasSuffix("/") }.values.sorted()
        guard files == texts.sorted() else { return "\(files) in place of \(texts.sorted())" }
        let folders = cloud.folders
        guard isRough || Set(folders).count == folders.count else { return "twins: \(folders)" }
        return ""
    }
}
