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

    /// A folder where no tree has content for it.
    private func state(
        _ inode: Inode,
        local: Entry? = nil,
        synced: Entry? = nil,
        remote: Entry? = nil
    ) -> ItemState {
        ItemState(
            inode: inode,
            isFolder: [local, synced, remote].allSatisfy { $0?.content == nil },
            local: local,
            synced: synced,
            remote: remote
        )
    }

    /// An item that is the same in the three trees.
    private func clean(_ inode: Inode, _ entry: Entry) -> ItemState {
        state(inode, local: entry, synced: entry, remote: entry)
    }

    /// What the news of these items become in the local tree.
    private func merge(_ items: ItemState...) -> [LocalStep] { planner.plan(items).local }

    /// The steps by which an item goes where the service has it, and that is agreed on.
    private func placed(
        _ inode: Inode,
        _ name: String,
        in parent: Inode = Inode(2)
    ) -> [LocalStep] {
        [.place(inode, Place(parent: parent, name: name)), .agree(inode, content: true)]
    }

    @Test("a remote change to a clean item is applied")
    func cleanChange() {
        let changed = state(item, local: file("a", 1), synced: file("a", 1), remote: file("a", 2))
        #expect(merge(changed) == [.takeContent(item), .agree(item, content: true)])
        let gone = state(item, local: file("a", 1), synced: file("a", 1))
        #expect(merge(gone) == [.forget(item)])
        let moved = state(item, local: file("a", 1), synced: file("a", 1), remote: file("b", 1))
        #expect(merge(moved) == placed(item, "b"))
    }

    @Test("what neither side has is forgotten, but not while something lies in it at the service")
    func nothing() {
        #expect(merge(state(other)) == [.forget(other)])
        let inside = folder("b", in: other)
        var busy = state(item, synced: inside, remote: inside)
        busy.isBusy = true
        #expect(merge(busy, state(other)) == [])
    }

    @Test("content changed on both sides: both are kept, the same content is agreed on")
    func bothChanged() {
        let conflict = state(item, local: file("a", 2), synced: file("a", 1), remote: file("a", 3))
        #expect(merge(conflict) == [.keepBoth(item), .agree(item, content: true)])
        let same = state(item, local: file("a", 2), synced: file("a", 1), remote: file("a", 2))
        #expect(merge(same) == [.takeContent(item), .agree(item, content: true)])
    }

    @Test("moved at the service and changed on both sides: the copy is made where it moved to")
    func conflictAfterMove() {
        let moved = file("b", 3, in: Inode(3))
        let both = state(item, local: file("a", 2), synced: file("a", 1), remote: moved)
        #expect(
            merge(both) == [
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
            merge(open) == [
                .place(item, Place(parent: Inode(2), name: "b")), .agree(item, content: false),
            ]
        )
    }

    @Test("deleted on one side and changed on the other: the change wins")
    func deletedAndChanged() {
        let deletedHere = state(item, synced: file("a", 1), remote: file("a", 2))
        #expect(merge(deletedHere) == placed(item, "a"))
        let deletedThere = state(item, local: file("a", 2), synced: file("a", 1))
        #expect(merge(deletedThere) == [.detach(item)])
    }

    @Test("deleted on both sides: forgotten")
    func bothDeleted() {
        let gone = state(item, synced: file("a", 1))
        #expect(merge(gone) == [.forget(item)])
    }

    @Test("moved on both sides: the remote move wins, attribute by attribute")
    func bothMoved() {
        let both = state(item, local: file("l", 1), synced: file("a", 1), remote: file("r", 1))
        #expect(merge(both) == placed(item, "r"))
        let apart = state(
            item,
            local: file("l", 1),
            synced: file("a", 1),
            remote: file("a", 1, in: Inode(3))
        )
        #expect(merge(apart) == placed(item, "l", in: Inode(3)))
    }

    @Test("a new remote child saves a locally deleted folder")
    func childSavesFolder() {
        let steps = merge(
            state(item, synced: folder("d"), remote: folder("d")),
            state(other, remote: file("new", 1, in: item))
        )
        #expect(
            steps == [
                .place(item, Place(parent: Inode(2), name: "d"))
            ] + placed(other, "new", in: item)
        )
    }

    @Test("local work keeps the folder that was deleted at the service")
    func workSavesFolder() {
        let steps = merge(
            state(item, local: folder("d"), synced: folder("d")),
            state(other, local: file("new", 1, in: item))
        )
        #expect(steps == [.detach(item)])
    }

    @Test("a folder kept for local work becomes the one that has its place at the service now")
    func keptAndReplaced() {
        let child = Inode(12)
        let mine = state(child, local: file("x", 1, in: item))
        let new = state(other, remote: folder("D"))
        let gone = state(item, local: folder("d"), synced: folder("d"))
        #expect(merge(gone, new, mine) == [.detach(item)])
        let detached = state(item, local: folder("d"))
        #expect(merge(detached, new, mine) == [.adopt(item, from: other)])
    }

    @Test("while a folder may be gone, what has its place waits with all that lies in it")
    func mayBeGone() {
        let child = Inode(12)
        var old = clean(item, folder("d"))
        old.isBusy = true
        old.mayBeGone = true
        let new = state(other, remote: folder("D"))
        let entry = file("x", 1, in: item)
        let moved = state(child, local: entry, synced: entry, remote: file("x", 1, in: other))
        #expect(planner.plan([old, new, moved]) == Plan())
        let gone = state(item, local: folder("d"), synced: folder("d"))
        #expect(
            merge(gone, new, moved) == [.forget(item)] + placed(other, "D")
                + placed(child, "x", in: other)
        )
    }

    @Test("a folder gone at the service waits for what moved out of it and cannot yet")
    func whatIsToLeave() {
        let folder = Inode(20)
        let gone = state(folder, local: self.folder("folder"), synced: self.folder("folder"))
        // Its place is that of an item which waits for an answer.
        let leaving = state(
            item,
            local: file("a", 1, in: folder),
            synced: file("a", 1, in: folder),
            remote: file("b", 1)
        )
        var taken = state(other, local: file("b", 2), synced: file("b", 2))
        taken.isBusy = true
        #expect(merge(gone, leaving, taken).isEmpty)
        taken.isBusy = false
        #expect(
            merge(gone, leaving, taken)
                == [.forget(folder)] + placed(item, "b") + [.forget(other)]
        )
        // Changed here, it is local work: the folder stays for it.
        var mine = leaving
        mine.local = file("a", 3, in: folder)
        taken.isBusy = true
        #expect(merge(gone, mine, taken) == [.detach(folder)])
    }

    @Test("both created the same: adopted; different: the local one gets a number")
    func bothCreated() {
        let remote = state(other, remote: file("A", 1))
        let same = state(item, local: file("a", 1))
        #expect(merge(same, remote) == [.adopt(item, from: other)])
        let different = state(item, local: file("a", 2))
        #expect(merge(different, remote) == [.renumber(item)] + placed(other, "A"))
        let folders = merge(state(item, local: folder("d")), state(other, remote: folder("D")))
        #expect(folders == [.adopt(item, from: other)])
    }

    @Test(
        "a folder that moves to where another one of its name came keeps it where both can have it"
    )
    func movedFolders() {
        let mine = state(
            item,
            local: folder("d"),
            synced: folder("d", in: Inode(3)),
            remote: folder("d", in: Inode(3))
        )
        let theirs = state(other, remote: folder("d"))
        let unique = planner.plan([mine, theirs]).local
        #expect(unique == [.renumber(item)] + placed(other, "d"))
        let planner = Planner(traits: PlannerTraits(comparison: .exact, allowsDuplicates: true))
        #expect(planner.plan([mine, theirs]).local == placed(other, "d"))
        // So does one that is made here where another one is moved to.
        let born = state(item, local: folder("d"))
        let moved = state(
            other,
            local: folder("d", in: Inode(3)),
            synced: folder("d", in: Inode(3)),
            remote: folder("d")
        )
        #expect(!planner.plan([born, moved]).local.contains(.renumber(item)))
        // What is renamed, too, has no name there that it could keep.
        let renamed = state(
            item,
            local: folder("d"),
            synced: folder("e", in: Inode(3)),
            remote: folder("e", in: Inode(3))
        )
        #expect(planner.plan([renamed, theirs]).local == [.renumber(item)] + placed(other, "d"))
    }

    @Test("a name that the service gave to another item while this one had it there, too")
    func displaced() {
        let entry = file("a", 1)
        var displaced = clean(other, entry)
        let mine = state(item, local: file("a", 2))
        displaced.isDisplaced = true
        #expect(merge(mine, displaced) == [.renumber(item)])
        // Both have it there: half of a change that the feed has yet to complete.
        let still = clean(item, file("a", 2))
        #expect(planner.plan([still, displaced]) == Plan())
    }

    @Test("moves that close a circle: the local one is undone")
    func circle() {
        let (one, two) = (Inode(20), Inode(21))
        let steps = merge(
            state(
                one,
                local: folder("one", in: two),
                synced: folder("one"),
                remote: folder("one")
            ),
            state(
                two,
                local: folder("two"),
                synced: folder("two"),
                remote: folder("two", in: one)
            )
        )
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
