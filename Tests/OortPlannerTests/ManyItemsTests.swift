import OortModel
import Testing

@testable import OortPlanner

/// Plans of very many items: in as many passes as of few, and the same each time.
@Suite("plans of many items")
struct ManyItemsTests {
    private static let root = Inode(2)

    private func file(_ name: String, _ content: String, staged: Int64? = nil) -> Entry {
        Entry(
            place: Place(parent: Self.root, name: name),
            content: ContentIdentity(
                revision: staged == nil ? Revision(content) : nil,
                staged: staged,
                hash: ContentHash(algorithm: .md5, value: content),
                size: 1
            )
        )
    }

    private func born(_ number: Int, _ content: String) -> ItemState {
        ItemState(
            inode: Inode(UInt64(10 + number)),
            isFolder: false,
            local: file("f\(number)", content, staged: Int64(number + 1)),
            synced: nil,
            remote: nil
        )
    }

    private func newcomer(_ number: Int, of count: Int, _ content: String) -> ItemState {
        ItemState(
            inode: Inode(UInt64(10 + count + number)),
            isFolder: false,
            local: nil,
            synced: nil,
            remote: file("f\(number)", content)
        )
    }

    @Test(
        "ten thousand files that were made on both sides are merged in a few passes",
        arguments: ["equal", "different", "not hashed"]
    )
    func bothSides(_ kind: String) {
        let count = 10_000
        var items = (0..<count).map { born($0, "here") }
        items += (0..<count).map { newcomer($0, of: count, kind == "different" ? "there" : "here") }
        if kind == "not hashed" { for number in 0..<count { items[number].isSettled = false } }
        let traits = PlannerTraits(comparison: .caseInsensitive, allowsDuplicates: false)
        var merge = Merge(Trees(items, traits: traits), allowsDuplicates: false)
        let steps = merge.steps()
        #expect(merge.passes <= 3)
        switch kind {
        case "equal":
            let pairs = (0..<count).map { (items[$0].inode, items[count + $0].inode) }
            #expect(steps == pairs.map { .adopt($0, from: $1) })
        case "different":
            #expect(steps.count { if case .renumber = $0 { true } else { false } } == count)
        default: #expect(steps.isEmpty)
        }
    }

    @Test("many circles of moves, made by the service against ours, are undone in a few passes")
    func circles() {
        func folder(_ number: Int, in parent: Inode) -> Entry {
            Entry(place: Place(parent: parent, name: "d\(number)"))
        }
        var items: [ItemState] = []
        for number in stride(from: 0, to: 2000, by: 2) {
            let (one, two) = (Inode(UInt64(10 + number)), Inode(UInt64(11 + number)))
            items.append(
                ItemState(
                    inode: one,
                    isFolder: true,
                    local: folder(number, in: two),
                    synced: folder(number, in: Self.root),
                    remote: folder(number, in: Self.root)
                )
            )
            items.append(
                ItemState(
                    inode: two,
                    isFolder: true,
                    local: folder(number + 1, in: Self.root),
                    synced: folder(number + 1, in: Self.root),
                    remote: folder(number + 1, in: one)
                )
            )
        }
        let traits = PlannerTraits(comparison: .exact, allowsDuplicates: false)
        var merge = Merge(Trees(items, traits: traits), allowsDuplicates: false)
        let steps = merge.steps()
        #expect(merge.passes <= 3)
        #expect(steps.count { if case .place = $0 { true } else { false } } == 2000)
    }

    @Test("the same items give the same plan, whatever order a dictionary has")
    func deterministic() {
        // A folder that goes, out of which everything is moved to names that others free.
        let count = 200
        let folder = Entry(place: Place(parent: Self.root, name: "old"))
        var items = [
            ItemState(inode: Inode(9), isFolder: true, local: nil, synced: folder, remote: folder)
        ]
        for number in 0..<count {
            var remote = file("g\(number)", "c\(number)")
            remote.place.parent = Inode(9)
            var local = remote
            local.place = Place(parent: Self.root, name: "f\((number + 1) % count)")
            items.append(
                ItemState(
                    inode: Inode(UInt64(10 + number)),
                    isFolder: false,
                    local: local,
                    synced: remote,
                    remote: remote
                )
            )
        }
        let planner = Planner(
            traits: PlannerTraits(comparison: .exact, allowsDuplicates: false)
        )
        let plans = Set((0..<10).map { _ in planner.plan(items) })
        #expect(plans.count == 1)
        #expect(plans.first?.remote.count == count + 1)
    }
}
