import Foundation
import GRDB
import OortModel
import OortPlanner
import Synchronization
import Testing

@testable import OortCatalog

/// Items that have one name at the service: who gets which number.
@Suite("numbers are the same on every machine")
struct NumberingTests {
    /// SplitMix64, from a seed that is printed.
    private struct Numbers: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }
    }

    private func machine() throws -> TemporaryAccount {
        try TemporaryAccount(service: "drive", names: Rules.exact)
    }

    private func item(
        _ name: String,
        _ id: String,
        in folder: String = "root",
        made: Int64? = nil,
        isFolder: Bool = false
    ) -> Item {
        var item = Item(id: ItemID(id), kind: isFolder ? .folder : .file, fileName: name)
        item.parentID = ItemID(folder)
        item.createdTime = made.map { Timestamp(seconds: $0) }
        if !isFolder { (item.rev, item.size) = (Revision("1"), 0) }
        return item
    }

    /// Where each item is shown, by id.
    private func shown(_ machine: TemporaryAccount, _ items: [Item]) throws -> [String: String] {
        var paths: [String: String] = [:]
        for item in items {
            guard
                let node = try machine.catalog.node(remoteID: item.id, account: machine.account.id)
            else { continue }
            paths[item.id.rawValue] = try machine.catalog.shownPath(of: node.inode)?
                .joined(separator: "/")
        }
        return paths
    }

    @Test("the oldest has the name, whatever was heard of first; of one age the id decides")
    func order() async throws {
        let items = [
            item("f", "c", made: 3), item("f", "a", made: 7), item("f", "b", made: 3),
            item("f", "d", made: 1),
        ]
        let names = ["d": "f", "b": "f (2)", "c": "f (3)", "a": "f (4)"]
        for rotation in items.indices {
            let machine = try machine()
            let order = items[rotation...] + items[..<rotation]
            for item in order { try await machine.page([.changed(item)]) }
            #expect(try shown(machine, items) == names)
            try await machine.page([.removed(ItemID("b"))])
            #expect(try shown(machine, items) == ["d": "f", "c": "f (2)", "a": "f (3)"])
        }
    }

    @Test(
        "where ids are a machine's own, a file and a link of one name have the same numbers everywhere"
    )
    func ownIDs() async throws {
        for (file, link) in [("1-1", "1-2"), ("1-2", "1-1")] {
            for isFileFirst in [true, false] {
                let machine = try TemporaryAccount(service: "ftp", names: Rules.exact)
                try machine.catalog.setLinkPolicy(.all, of: machine.account.id)
                var items = [item("f", file), item("f.rclonelink", link)]
                items[1].size = 5
                for item in isFileFirst ? items : items.reversed() {
                    try await machine.page([.changed(item)])
                }
                #expect(try shown(machine, items) == [file: "f", link: "f (2)"])
            }
        }
    }

    @Test("what has a number in its own name keeps that from those that only are shown with it")
    func claims() async throws {
        let items = [
            item("f", "1", made: 1), item("f", "2", made: 2), item("f (2)", "3", made: 3),
            item("f (2)", "4", made: 4), item("f", "5", made: 5),
        ]
        let names = ["1": "f", "2": "f (3)", "3": "f (2)", "4": "f (2) (2)", "5": "f (4)"]
        for order in [items, items.reversed()] {
            let machine = try machine()
            for item in order { try await machine.page([.changed(item)]) }
            #expect(try shown(machine, items) == names)
        }
    }

    @Test("what a program has open for writing keeps its name until it is closed")
    func open() async throws {
        let machine = try machine()
        let items = (1...3).map { item("f", "\($0)", made: Int64($0)) }
        try await machine.page(items.map(Change.changed))
        let open = try #require(
            try machine.catalog.node(remoteID: ItemID("2"), account: machine.account.id)
        )
        machine.catalog.writers.opened(open.inode)
        try await machine.page([.removed(ItemID("1"))])
        #expect(try shown(machine, items) == ["2": "f (2)", "3": "f"])
        machine.catalog.writers.closed(open.inode, hasWritten: false)
        try await machine.plan()
        #expect(try shown(machine, items) == ["2": "f", "3": "f (2)"])
    }

    @Test("a saved document keeps its number, though the program's file is newer")
    func saved() async throws {
        let machine = try machine()
        let items = (1...3).map { item("f", "\($0)", made: Int64($0)) }
        try await machine.page(items.map(Change.changed))
        let root = machine.account.root
        for name in ["f", "f (2)", "f (3)"] {
            let new = try machine.catalog.create(.file, named: ".tmp", in: root)
            _ = try machine.catalog.rename(".tmp", in: root, to: name, in: root, mode: .replace)
            try await machine.plan()
            #expect(
                try machine.catalog.lookup(name, in: machine.catalog.node(root))?.inode == new.inode
            )
        }
        #expect(try shown(machine, items) == ["1": "f", "2": "f (2)", "3": "f (3)"])
    }

    /// With one that failed: what kept its name lost it to an item of another name.
    @Test(
        "machines that heard of the same items in any order and pages show the same names",
        arguments: [nil, 685_531_663_548]
    )
    func anyOrder(found: UInt64?) async throws {
        let given = ProcessInfo.processInfo.environment["OORT_SEED"].flatMap { UInt64($0) }
        let seed = found ?? given ?? .random(in: 0..<1 << 40)
        print("numbering: OORT_SEED=\(seed)")
        var numbers = Numbers(state: seed)
        for round in 0..<40 {
            let names = [
                "f", "f", "f (2)", "f (2) (2)", "g.txt", "g (2).txt", "a/b", "a∕b", "e\u{301}", "é",
            ]
            let folders = ["d1", "d2"].map {
                item("d", $0, made: Int64.random(in: 0...1, using: &numbers), isFolder: true)
            }
            func random(_ id: Int) -> Item {
                item(
                    names[Int.random(in: names.indices, using: &numbers)],
                    "\(id)",
                    in: ["root", "d1", "d2"][Int.random(in: 0...2, using: &numbers)],
                    made: Int.random(in: 0...9, using: &numbers) == 0
                        ? nil : Int64.random(in: 0...3, using: &numbers)
                )
            }
            let final = (0..<Int.random(in: 2...24, using: &numbers)).map { random($0) }
            var seen: [[String: String]] = []
            for _ in 0..<3 {
                let machine = try machine()
                // Some were elsewhere, or called otherwise, or are gone by the end.
                var told: [Change] = folders.map(Change.changed)
                var gone: [Change] = []
                for one in final.shuffled(using: &numbers) where Bool.random(using: &numbers) {
                    var before = random(0)
                    (before.id, before.createdTime) = (one.id, one.createdTime)
                    told.append(.changed(before))
                }
                for id in 100..<103 {
                    told.append(.changed(random(id)))
                    gone.append(.removed(ItemID("\(id)")))
                }
                told.shuffle(using: &numbers)
                told += (final.map(Change.changed) + gone).shuffled(using: &numbers)
                while !told.isEmpty {
                    let size = min(told.count, Int.random(in: 1...9, using: &numbers))
                    let isLast = size == told.count
                    try await machine.page(
                        Array(told.prefix(size)),
                        endsRun: isLast || Bool.random(using: &numbers)
                    )
                    told.removeFirst(size)
                    if Bool.random(using: &numbers) { try await machine.plan() }
                }
                try await machine.plan()
                #expect(try await machine.catalog.pending(machine.account.id).isEmpty)
                seen.append(try shown(machine, folders + final))
            }
            #expect(seen[0].count == final.count + 2)
            #expect(
                seen[0] == seen[1] && seen[1] == seen[2],
                "OORT_SEED=\(seed), round \(round): \(seen)"
            )
            guard seen[0] == seen[1], seen[1] == seen[2] else { return }
        }
    }

    // MARK: Many

    /// How many statements the catalog runs for so many new items of one name; with `isMoving` while
    /// something is asked of the service, so that they go by the planner.
    private func statements(of count: Int, isMoving: Bool) async throws -> Int {
        let machine = try machine()
        if isMoving {
            _ = try machine.catalog.create(.folder, named: "new", in: machine.account.root)
            let operation = try #require(try await machine.plan().first)
            _ = try await machine.catalog.begin(
                operation,
                account: machine.account.id,
                reservedID: nil
            )
        }
        let counter = Counter()
        try await machine.catalog.pool.writeWithoutTransaction { database in
            database.trace { _ in counter.count.add(1, ordering: .relaxed) }
        }
        let items = (0..<count).map { item("f", "\(count - $0)", made: Int64($0 % 7)) }
        try await machine.page(items.map(Change.changed)) { $0.folder = machine.account.root }
        try await machine.plan()
        #expect(
            try Set(shown(machine, items).values)
                == Set(["f"] + (2...count).map { "f (\($0))" })
        )
        return counter.count.load(ordering: .relaxed)
    }

    private final class Counter: Sendable {
        let count = Atomic(0)
    }

    @Test("four times as many items of one name cost four times as much", arguments: [false, true])
    func linear(isMoving: Bool) async throws {
        let few = try await statements(of: 300, isMoving: isMoving)
        let many = try await statements(of: 1200, isMoving: isMoving)
        #expect(many < few * 5, "\(few) and \(many) statements")
    }
}
