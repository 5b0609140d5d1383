import OortModel
import Testing

@testable import OortPlanner

/// The table of `docs/sync.md`, row by row.
@Suite("merge rules")
struct MergeRuleTests {
    private let planner = Planner(
        traits: PlannerTraits(comparison: .caseInsensitive, allowsDuplicates: false)
    )
    private let item = Inode(10)
    private let other = Inode(11)

    private func file(_ name: String, _ content: Int, in parent: Inode = Inode(2)) -> Entry {
        Entry(
            place: Place(parent: parent, name: name),
            content: ContentIdentity(
                revision: Revision("r\(content)"),
                hash: ContentHash(algorithm: .md5, value: "\(content)"),
                size: Int64(content)
            )
        )
    }

    private func folder(_ name: String, in parent: Inode = Inode(2)) -> Entry {
        Entry(place: Place(parent: parent, name: name))
    }

    private func state(
        _ inode: Inode,
        local: Entry?,
        synced: Entry?,
        remote: Entry?,
        isFolder: Bool = false
    ) -> ItemState {
        ItemState(inode: inode, isFolder: isFolder, local: local, synced: synced, remote: remote)
    }

    @Test("a remote change to a clean item is applied")
    func cleanChange() {
        let clean = state(item, local: file("a", 1), synced: file("a", 1), remote: file("a", 2))
        #expect(planner.plan([clean]).local == [.takeContent(item), .agree(item, content: true)])
        let gone = state(item, local: file("a", 1), synced: file("a", 1), remote: nil)
        #expect(planner.plan([gone]).local == [.forget(item)])
        let moved = state(item, local: file("a", 1), synced: file("a", 1), remote: file("b", 1))
        #expect(
            planner.plan([moved]).local == [
                .place(item, Place(parent: Inode(2), name: "b")), .agree(item, content: true),
            ]
        )
    }

    @Test("content changed on both sides: both are kept, the same content is agreed on")
    func bothChanged() {
        let conflict = state(item, local: file("a", 2), synced: file("a", 1), remote: file("a", 3))
        #expect(planner.plan([conflict]).local == [.keepBoth(item), .agree(item, content: true)])
        let same = state(item, local: file("a", 2), synced: file("a", 1), remote: file("a", 2))
        #expect(planner.plan([same]).local == [.takeContent(item), .agree(item, content: true)])
    }

    @Test("moved at the service and changed on both sides: the copy is made where it moved to")
    func conflictAfterMove() {
        let moved = file("b", 3, in: Inode(3))
        let both = state(item, local: file("a", 2), synced: file("a", 1), remote: moved)
        #expect(
            planner.plan([both]).local == [
                .place(item, Place(parent: Inode(3), name: "b")), .keepBoth(item),
                .agree(item, content: true),
            ]
        )
    }

    @Test("what a program has open keeps its content until it is closed")
    func openFile() {
        var open = state(item, local: file("a", 2), synced: file("a", 1), remote: file("b", 3))
        open.isOpen = true
        #expect(
            planner.plan([open]).local == [
                .place(item, Place(parent: Inode(2), name: "b")), .agree(item, content: false),
            ]
        )
    }

    @Test("deleted on one side and changed on the other: the change wins")
    func deletedAndChanged() {
        let deletedHere = state(item, local: nil, synced: file("a", 1), remote: file("a", 2))
        #expect(
            planner.plan([deletedHere]).local == [
                .place(item, Place(parent: Inode(2), name: "a")), .agree(item, content: true),
            ]
        )
        let deletedThere = state(item, local: file("a", 2), synced: file("a", 1), remote: nil)
        #expect(planner.plan([deletedThere]).local == [.detach(item)])
    }

    @Test("deleted on both sides: forgotten")
    func bothDeleted() {
        let gone = state(item, local: nil, synced: file("a", 1), remote: nil)
        #expect(planner.plan([gone]).local == [.forget(item)])
    }

    @Test("moved on both sides: the remote move wins, attribute by attribute")
    func bothMoved() {
        let both = state(item, local: file("l", 1), synced: file("a", 1), remote: file("r", 1))
        #expect(
            planner.plan([both]).local == [
                .place(item, Place(parent: Inode(2), name: "r")), .agree(item, content: true),
            ]
        )
        let apart = state(
            item,
            local: file("l", 1),
            synced: file("a", 1),
            remote: file("a", 1, in: Inode(3))
        )
        #expect(
            planner.plan([apart]).local == [
                .place(item, Place(parent: Inode(3), name: "l")), .agree(item, content: true),
            ]
        )
    }

    @Test("a new remote child saves a locally deleted folder")
    func childSavesFolder() {
        let steps = planner.plan([
            state(item, local: nil, synced: folder("d"), remote: folder("d"), isFolder: true),
            state(other, local: nil, synced: nil, remote: file("new", 1, in: item)),
        ]).local
        #expect(
            steps == [
                .place(item, Place(parent: Inode(2), name: "d")),
                .place(other, Place(parent: item, name: "new")), .agree(other, content: true),
            ]
        )
    }

    @Test("local work keeps the folder that was deleted at the service")
    func workSavesFolder() {
        let steps = planner.plan([
            state(item, local: folder("d"), synced: folder("d"), remote: nil, isFolder: true),
            state(other, local: file("new", 1, in: item), synced: nil, remote: nil),
        ]).local
        #expect(steps == [.detach(item)])
    }

    @Test("a folder kept for local work becomes the one that has its place at the service now")
    func keptAndReplaced() {
        let child = Inode(12)
        let mine = state(child, local: file("x", 1, in: item), synced: nil, remote: nil)
        let new = state(other, local: nil, synced: nil, remote: folder("D"), isFolder: true)
        let gone = state(
            item,
            local: folder("d"),
            synced: folder("d"),
            remote: nil,
            isFolder: true
        )
        #expect(planner.plan([gone, new, mine]).local == [.detach(item)])
        let detached = state(item, local: folder("d"), synced: nil, remote: nil, isFolder: true)
        #expect(planner.plan([detached, new, mine]).local == [.adopt(item, from: other)])
    }

    @Test("while a folder may be gone, what has its place waits with all that lies in it")
    func mayBeGone() {
        let child = Inode(12)
        var old = state(
            item,
            local: folder("d"),
            synced: folder("d"),
            remote: folder("d"),
            isFolder: true
        )
        old.isBusy = true
        old.mayBeGone = true
        let new = state(other, local: nil, synced: nil, remote: folder("D"), isFolder: true)
        let entry = file("x", 1, in: item)
        let moved = state(child, local: entry, synced: entry, remote: file("x", 1, in: other))
        #expect(planner.plan([old, new, moved]) == Plan())
        let gone = state(
            item,
            local: folder("d"),
            synced: folder("d"),
            remote: nil,
            isFolder: true
        )
        #expect(
            planner.plan([gone, new, moved]).local == [
                .forget(item), .place(other, Place(parent: Inode(2), name: "D")),
                .agree(other, content: true), .place(child, Place(parent: other, name: "x")),
                .agree(child, content: true),
            ]
        )
    }

    @Test("both created the same: adopted; different: the local one gets a number")
    func bothCreated() {
        let remote = state(other, local: nil, synced: nil, remote: file("A", 1))
        let same = state(item, local: file("a", 1), synced: nil, remote: nil)
        #expect(planner.plan([same, remote]).local == [.adopt(item, from: other)])
        let different = state(item, local: file("a", 2), synced: nil, remote: nil)
        #expect(
            planner.plan([different, remote]).local == [
                .renumber(item), .place(other, Place(parent: Inode(2), name: "A")),
                .agree(other, content: true),
            ]
        )
        let folders = planner.plan([
            state(item, local: folder("d"), synced: nil, remote: nil, isFolder: true),
            state(other, local: nil, synced: nil, remote: folder("D"), isFolder: true),
        ])
        #expect(folders.local == [.adopt(item, from: other)])
    }

    @Test("a name that the service gave to another item while this one had it there, too")
    func displaced() {
        let entry = file("a", 1)
        var displaced = state(other, local: entry, synced: entry, remote: entry)
        let mine = state(item, local: file("a", 2), synced: nil, remote: nil)
        displaced.isDisplaced = true
        #expect(planner.plan([mine, displaced]).local == [.renumber(item)])
        // Both have it there: half of a change that the feed has yet to complete.
        let still = state(item, local: file("a", 2), synced: file("a", 2), remote: file("a", 2))
        #expect(planner.plan([still, displaced]) == Plan())
    }

    @Test("moves that close a circle: the local one is undone")
    func circle() {
        let (one, two) = (Inode(20), Inode(21))
        let steps = planner.plan([
            state(
                one,
                local: folder("one", in: two),
                synced: folder("one"),
                remote: folder("one"),
                isFolder: true
            ),
            state(
                two,
                local: folder("two"),
                synced: folder("two"),
                remote: folder("two", in: one),
                isFolder: true
            ),
        ]).local
        #expect(steps.contains(.place(one, Place(parent: Inode(2), name: "one"))))
        #expect(steps.contains(.place(two, Place(parent: one, name: "two"))))
    }

    @Test("what has an operation under way is left alone")
    func busy() {
        var busy = state(item, local: file("a", 1), synced: file("a", 1), remote: file("a", 2))
        busy.isBusy = true
        #expect(planner.plan([busy]) == Plan())
    }
}
