import OortModel
import Testing

@testable import OortPlanner

@Suite("what is pushed, and in which order")
struct PushRuleTests {
    private let root = Inode(2)

    private func planner(
        duplicates: Bool = false,
        _ change: (inout PlannerTraits) -> Void = { _ in }
    ) -> Planner {
        var traits = PlannerTraits(comparison: .caseInsensitive, allowsDuplicates: duplicates)
        change(&traits)
        return Planner(traits: traits)
    }

    private func content(_ number: Int) -> ContentIdentity {
        ContentIdentity(
            revision: Revision("r\(number)"),
            hash: ContentHash(algorithm: .md5, value: "\(number)"),
            size: Int64(number)
        )
    }

    private func item(
        _ number: UInt64,
        local: (String, UInt64)?,
        remote: (String, UInt64)?,
        content: Int? = nil,
        remoteContent: Int? = nil
    ) -> ItemState {
        func entry(_ place: (String, UInt64)?, _ number: Int?) -> Entry? {
            place.map {
                Entry(
                    place: Place(parent: Inode($0.1), name: $0.0),
                    content: number.map { self.content($0) }
                )
            }
        }
        let there = entry(remote, remoteContent ?? content)
        return ItemState(
            inode: Inode(number),
            isFolder: content == nil,
            local: entry(local, content),
            synced: there,
            remote: there
        )
    }

    @Test("a deleted tree is one deletion of its top folder")
    func treeDeletion() {
        var items = [
            item(10, local: nil, remote: ("top", 2)), item(11, local: nil, remote: ("sub", 10)),
        ]
        for number in 0..<1000 {
            items.append(
                item(UInt64(100 + number), local: nil, remote: ("\(number)", 11), content: 1)
            )
        }
        let plan = planner().plan(items)
        #expect(plan.remote == [RemoteOperation(inode: Inode(10), action: .delete)])
    }

    @Test("what moves out of a deleted folder moves before the folder goes")
    func moveOut() {
        let plan = planner().plan([
            item(10, local: nil, remote: ("top", 2)), item(11, local: nil, remote: ("sub", 10)),
            item(12, local: ("saved", 2), remote: ("f", 11), content: 1),
        ])
        #expect(
            plan.remote == [
                RemoteOperation(
                    inode: Inode(12),
                    action: .move(to: Place(parent: root, name: "saved"), isDetour: false)
                ),
                RemoteOperation(inode: Inode(10), action: .delete, after: [0]),
            ]
        )
    }

    @Test("a folder comes before what goes into it")
    func folderFirst() {
        let plan = planner().plan([
            item(11, local: ("f", 10), remote: nil, content: 1),
            item(10, local: ("new", 2), remote: nil),
        ])
        #expect(plan.remote.map(\.inode) == [Inode(10), Inode(11)])
        #expect(plan.remote[1].after == [0])
    }

    @Test("two files that change places take a temporary name")
    func swap() {
        let items = [
            item(10, local: ("b", 2), remote: ("a", 2), content: 1),
            item(11, local: ("a", 2), remote: ("b", 2), content: 2),
        ]
        let plan = planner().plan(items)
        #expect(plan.remote.count == 2)
        #expect(
            plan.remote[0].action
                == .move(
                    to: Place(parent: root, name: Planner.detourName(of: plan.remote[0].inode)),
                    isDetour: true
                )
        )
        #expect(plan.remote[1].after == [0])
        #expect(planner(duplicates: true).plan(items).remote.allSatisfy { $0.after.isEmpty })
    }

    /// A link of a service that keeps links.
    private func link(
        _ number: UInt64,
        local: (String, UInt64)?,
        remote: (String, UInt64)?
    ) -> ItemState {
        let name = LinkName.file
        var item = item(
            number,
            local: local.map { (name($0.0), $0.1) },
            remote: remote.map { (name($0.0), $0.1) },
            content: Int(number)
        )
        item.isLink = true
        item.remote?.content?.revision = Revision("link.\(number)")
        item.local?.content?.revision = item.remote?.content?.revision
        item.synced = item.remote
        return item
    }

    @Test("a link and a file that change places, where links are kept as links")
    func linkSwap() {
        let planner = planner { $0.linkMark = "link." }
        let items = [
            link(10, local: ("b", 2), remote: ("a", 2)),
            item(11, local: ("a", 2), remote: ("b", 2), content: 2),
        ]
        for items in [items, items.reversed()] {
            let plan = planner.plan(items)
            #expect(plan.local.isEmpty)
            #expect(plan.remote.count == 2)
            let first = plan.remote[0].inode
            let name = first == Inode(10) ? "a.rclonelink" : "b"
            let detour = Planner.detourName(of: first, named: name)
            let place = Place(parent: root, name: detour)
            #expect(plan.remote[0].action == .move(to: place, isDetour: true))
            #expect(plan.remote[1].after == [0])
        }
        // Elsewhere both names are free.
        let free = self.planner().plan(items)
        #expect(free.remote.count == 2)
        #expect(free.remote.allSatisfy { $0.after.isEmpty })
    }

    @Test("two links that change places stay links meanwhile")
    func linksSwap() {
        let plan = planner { $0.linkMark = "link." }
            .plan([
                link(10, local: ("b", 2), remote: ("a", 2)),
                link(11, local: ("a", 2), remote: ("b", 2)),
            ])
        guard case .move(let place, true) = plan.remote.first?.action else {
            Issue.record("\(plan)")
            return
        }
        #expect(LinkName.link(place.name) != nil)
        #expect(Planner.isDetour(place.name))
    }

    @Test("a file takes a link's name after the link is gone, and not its identity")
    func fileOverLink() {
        let items = [
            link(10, local: nil, remote: ("a", 2)),
            item(11, local: ("a", 2), remote: nil, content: 2),
        ]
        let plan = planner { $0.linkMark = "link." }.plan(items)
        #expect(plan.local.isEmpty)
        #expect(plan.remote.map(\.inode) == [Inode(10), Inode(11)])
        #expect(plan.remote.first?.action == .delete)
        #expect(plan.remote.last?.after == [0])
    }

    @Test("a plain file that ends like a link leaves the name before its ending free")
    func plainFileOfAnEnding() {
        for showsAsLink in [false, true] {
            let place = ("a.rclonelink", UInt64(2))
            var plain = item(10, local: place, remote: place, content: 1)
            plain.isLink = showsAsLink
            let plan = planner { $0.linkMark = "link." }
                .plan([plain, item(11, local: ("a", 2), remote: nil, content: 2)])
            #expect(plan.remote.map(\.inode) == [Inode(11)])
            #expect(plan.remote.first?.after == [])
        }
    }

    @Test("a temporary name that somebody has is not taken")
    func takenDetour() {
        let circle = [
            item(10, local: ("b", 2), remote: ("a", 2), content: 1),
            item(11, local: ("a", 2), remote: ("b", 2), content: 2),
        ]
        let others = [UInt64(10), 11].map { number in
            let name = Planner.detourName(of: Inode(number))
            return item(number + 10, local: (name, 2), remote: (name, 2), content: 3)
        }
        let plan = planner().plan(circle + others)
        let moved = plan.remote[0].inode
        #expect(
            plan.remote[0].action
                == .move(
                    to: Place(parent: root, name: Planner.detourName(of: moved, number: 1)),
                    isDetour: true
                )
        )
        #expect(plan.remote.count == 2)
    }

    @Test("two folders that change places with one another's insides")
    func nestedSwap() {
        let plan = planner().plan([
            item(10, local: ("a", 11), remote: ("a", 2)),
            item(11, local: ("b", 2), remote: ("b", 10)),
        ])
        #expect(plan.remote.map(\.inode) == [Inode(11), Inode(10)])
    }

    @Test("a rename of case only takes a detour where the service needs one")
    func caseRename() {
        let items = [item(10, local: ("Foo", 2), remote: ("foo", 2), content: 1)]
        let direct = planner().plan(items).remote.map(\.action)
        #expect(direct == [.move(to: Place(parent: root, name: "Foo"), isDetour: false)])
        let detour = planner { $0.caseRenameNeedsDetour = true }.plan(items).remote.map(\.action)
        #expect(
            detour == [
                .move(
                    to: Place(parent: root, name: Planner.detourName(of: Inode(10))),
                    isDetour: true
                )
            ]
        )
    }

    @Test("the file that was saved over another takes over its identity")
    func saveDance() {
        let plan = planner().plan([
            item(10, local: nil, remote: ("f", 2), content: 1),
            item(11, local: ("f", 2), remote: nil, content: 2),
        ])
        #expect(plan.local == [.handOver(from: Inode(10), to: Inode(11))])
    }

    @Test("while the original is busy, the content that takes over its identity goes nowhere else")
    func busyOriginal() {
        var original = item(10, local: nil, remote: ("f", 2), content: 1)
        var temporary = item(11, local: ("f", 2), remote: (".tmp", 2), content: 2)
        temporary.local?.content = ContentIdentity(staged: 3, size: 3)
        temporary.isRecent = true
        original.isBusy = true
        let waiting = planner().plan([original, temporary])
        #expect(waiting.local == [] && waiting.remote.isEmpty)
        original.isBusy = false
        let plan = planner().plan([original, temporary])
        #expect(plan.local == [.handOver(from: Inode(10), to: Inode(11))])
        // Of an old file it is an edit, and its own.
        original.isBusy = true
        temporary.isRecent = false
        #expect(planner().plan([original, temporary]).remote.map(\.inode) == [Inode(11)])
    }

    @Test(
        "not as a new file of that name either where the service allows two",
        arguments: [true, false]
    )
    func busyOriginalBesideNew(isBackup: Bool) {
        var original = item(10, local: isBackup ? ("f~", 2) : nil, remote: ("f", 2), content: 1)
        let new = item(11, local: ("f", 2), remote: nil, content: 2)
        original.isBusy = true
        #expect(planner(duplicates: true).plan([original, new]) == Plan())
        original.isBusy = false
        let plan = planner(duplicates: true).plan([original, new])
        #expect(!plan.local.isEmpty || plan.remote.contains { $0.inode == Inode(10) })
        #expect(!plan.remote.contains { $0.inode == Inode(11) })
    }

    @Test("also when the temporary file had been uploaded before, but not an old file's")
    func uploadedTemporary() {
        let original = item(10, local: nil, remote: ("f", 2), content: 1)
        var temporary = item(11, local: ("f", 2), remote: (".tmp", 2), content: 2)
        let old = planner().plan([original, temporary])
        #expect(old.remote.map(\.inode) == [Inode(10), Inode(11)])
        temporary.isRecent = true
        let plan = planner().plan([original, temporary])
        #expect(plan.local == [.handOver(from: Inode(10), to: Inode(11))])
    }

    @Test("a backup made by renaming becomes the copy, the new file keeps the identity")
    func backup() {
        let plan = planner().plan([
            item(10, local: ("f~", 2), remote: ("f", 2), content: 1),
            item(11, local: ("f", 2), remote: nil, content: 2),
        ])
        #expect(
            plan.remote == [
                RemoteOperation(
                    inode: Inode(10),
                    action: .duplicate(at: Place(parent: root, name: "f~"), heir: Inode(11))
                )
            ]
        )
    }

    @Test("also when the new file had been uploaded as a temporary file, but not an old one")
    func backupWithUploadedTemporary() {
        let original = item(10, local: ("f~", 2), remote: ("f", 2), content: 1)
        var temporary = item(11, local: ("f", 2), remote: (".tmp", 2), content: 2)
        let old = planner().plan([original, temporary])
        #expect(old.local.isEmpty)
        #expect(old.remote.map(\.inode) == [Inode(10), Inode(11)])
        temporary.isRecent = true
        #expect(planner().plan([original, temporary]).local == [.renounce(Inode(11))])
        // The original changed, or went elsewhere: not a backup.
        let changed = item(10, local: ("f~", 2), remote: ("f", 2), content: 3, remoteContent: 1)
        let moved = item(10, local: ("f", 3), remote: ("f", 2), content: 1)
        for other in [changed, moved] {
            #expect(planner().plan([other, temporary]).local.isEmpty)
        }
    }

    /// Why a file that has another's name is not ready to take over its identity.
    enum Delay: CaseIterable {
        case unsettled, open, busy, waitsForNextTry

        func apply(to item: inout ItemState) {
            switch self {
            case .unsettled: item.isSettled = false
            case .open: item.isBeingWritten = true
            case .busy: item.isBusy = true
            case .waitsForNextTry: item.isPushable = false
            }
        }
    }

    @Test("an identity waits for the file that is to take it over", arguments: Delay.allCases)
    func awaitedHeir(delay: Delay) {
        let deleted = item(10, local: nil, remote: ("f", 2), content: 1)
        let backup = item(10, local: ("f~", 2), remote: ("f", 2), content: 1)
        var heir = item(11, local: ("F", 2), remote: nil, content: 2)
        delay.apply(to: &heir)
        var temporary = item(11, local: ("f", 2), remote: (".f.tmp", 2), content: 2)
        temporary.isRecent = true
        delay.apply(to: &temporary)
        for items in [
            [deleted, heir], [backup, heir], [deleted, temporary], [backup, temporary],
        ] {
            let plan = planner().plan(items)
            #expect(plan.local.isEmpty)
            #expect(plan.remote.isEmpty)
        }
        // An old file that was moved over it takes over nothing.
        temporary.isRecent = false
        #expect(planner().plan([deleted, temporary]).remote.map(\.action) == [.delete])
    }

    @Test("two normal forms of a name are two names where the service compares exactly")
    func normalForms() {
        let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}")
        var traits = PlannerTraits(comparison: .exact, allowsDuplicates: false)
        let renamed = item(10, local: (composed, 2), remote: (decomposed, 2), content: 1)
        #expect(
            Planner(traits: traits).plan([renamed]).remote.map(\.action)
                == [.move(to: Place(parent: root, name: composed), isDetour: false)]
        )
        let two = [
            item(10, local: (composed, 2), remote: nil, content: 1),
            item(11, local: (decomposed, 2), remote: nil, content: 2),
        ]
        #expect(Planner(traits: traits).plan(two).remote.count == 2)
        #expect(Planner(traits: traits).plan(two).local.isEmpty)
        // Somebody else renamed it from one form to the other.
        var news = item(10, local: (decomposed, 2), remote: (decomposed, 2), content: 1)
        news.remote?.place.name = composed
        #expect(
            Planner(traits: traits).plan([news]).local.first
                == .place(Inode(10), Place(parent: root, name: composed))
        )
        traits.comparison = .composedCaseInsensitive
        #expect(Planner(traits: traits).plan([renamed]).remote.count == 1)
    }

    @Test("what is unsettled, held back or open is not pushed, and nobody takes its name")
    func unsettled() {
        var first = item(10, local: ("b", 2), remote: ("a", 2), content: 1)
        first.isSettled = false
        let second = item(11, local: ("a", 2), remote: ("c", 2), content: 2)
        #expect(planner().plan([first, second]).remote.isEmpty)
    }

    @Test("a changed file names the revision that it replaces, after its move")
    func replace() {
        let plan = planner().plan([
            item(10, local: ("b", 2), remote: ("a", 2), content: 2, remoteContent: 1)
        ])
        #expect(plan.remote.count == 2)
        #expect(plan.remote[1].action == .replace(Revision("r1"), with: content(2)))
        #expect(plan.remote[1].after == [0])
    }

    @Test("what is made of another file's bytes is sent before that one goes or is changed")
    func borrower() {
        let gone = item(10, local: nil, remote: ("a", 2), content: 1)
        let changed = item(10, local: ("a", 2), remote: ("a", 2), content: 2, remoteContent: 1)
        let folder = item(9, local: nil, remote: ("d", 2))
        let below = item(10, local: nil, remote: ("a", 9), content: 1)
        for (source, last) in [([gone], 10), ([changed], 10), ([folder, below], 9)] {
            var copy = item(11, local: ("b", 2), remote: nil, content: 3)
            copy.borrowed = BorrowedContent(owner: Inode(10), revision: Revision("r1"))
            let operations = planner().plan(source + [copy]).remote
            #expect(operations.map(\.inode) == [Inode(11), Inode(UInt64(last))])
            #expect(operations.last?.after == [0])
            copy.isSettled = false
            #expect(planner().plan(source + [copy]).remote.isEmpty)
            // What the other one has by now is another revision: nothing is to be kept of it.
            copy.borrowed?.revision = Revision("r0")
            #expect(planner().plan(source + [copy]).remote.count == 1)
        }
    }

    private func borrows(_ number: Int, of owner: UInt64) -> BorrowedContent {
        BorrowedContent(owner: Inode(owner), revision: Revision("r\(number)"))
    }

    @Test("of two that are made of each other's bytes neither is first")
    func borrowersOfEachOther() {
        var one = item(10, local: ("a", 2), remote: ("a", 2), content: 2, remoteContent: 1)
        var other = item(11, local: ("b", 2), remote: ("b", 2), content: 3, remoteContent: 4)
        (one.borrowed, other.borrowed) = (borrows(4, of: 11), borrows(1, of: 10))
        #expect(planner().plan([one, other]).remote.count == 2)
    }

    @Test("of two files that are made of each other's originals only one takes over an identity")
    func heirsOfEachOther() {
        let originals = [
            item(10, local: nil, remote: ("a", 2), content: 1),
            item(11, local: nil, remote: ("b", 2), content: 2),
        ]
        var heir = item(12, local: ("a", 2), remote: nil, content: 3)
        var other = item(13, local: ("b", 2), remote: nil, content: 4)
        (heir.borrowed, other.borrowed) = (borrows(2, of: 11), borrows(1, of: 10))
        let plan = planner().plan(originals + [heir, other])
        #expect(plan.local == [.handOver(from: Inode(10), to: Inode(12))])
        heir = item(12, local: ("a", 2), remote: ("a", 2), content: 3, remoteContent: 1)
        (heir.borrowed, other.borrowed) = (borrows(2, of: 11), borrows(1, of: 12))
        let next = planner().plan([originals[1], heir, other])
        #expect(next.local == [])
        #expect(next.remote.map(\.inode) == [Inode(13), Inode(12), Inode(11)])
    }

    @Test("what is sent already, or waits for a borrower of its own, holds nobody up by mistake")
    func borrowersOfBorrowers() {
        // A document that was saved without a change through a temporary file, whose item is deleted.
        var saved = item(10, local: ("f", 2), remote: ("f", 2), content: 1)
        saved.borrowed = borrows(2, of: 11)
        let temporary = item(11, local: nil, remote: ("t", 2), content: 2)
        #expect(planner().plan([saved, temporary]).remote.map(\.action) == [.delete])
        // Changed by that, and its old content is copied: the copy, then the file, then the deletion.
        var changed = item(10, local: ("f", 2), remote: ("f", 2), content: 3, remoteContent: 1)
        changed.borrowed = borrows(2, of: 11)
        var copy = item(12, local: ("g", 2), remote: nil, content: 4)
        copy.borrowed = borrows(1, of: 10)
        let all = planner().plan([changed, temporary, copy]).remote
        #expect(all.map(\.inode) == [Inode(12), Inode(10), Inode(11)])
        copy.isSettled = false
        #expect(planner().plan([changed, temporary, copy]).remote.isEmpty)
    }

    @Test("a copy that takes the place of its original's folder goes by a temporary name")
    func borrowerInPlaceOfTheFolder() {
        var copy = item(11, local: ("d", 2), remote: nil, content: 2)
        copy.borrowed = borrows(1, of: 10)
        let operations = planner().plan([
            item(9, local: nil, remote: ("d", 2)),
            item(10, local: nil, remote: ("s", 9), content: 1),
            copy,
        ]).remote
        let detour = Place(parent: root, name: Planner.detourName(of: Inode(11)))
        #expect(operations.map(\.action) == [.upload(at: detour, content(2)), .delete])
    }

    @Test("a file is restored from its backup, while the damaged one takes the backup's name")
    func restoredFromBackup() {
        let backup = item(10, local: nil, remote: ("f~", 2), content: 1)
        let damaged = item(11, local: ("f~", 2), remote: ("f", 2), content: 2)
        var restored = item(12, local: ("f", 2), remote: nil, content: 3)
        restored.borrowed = borrows(1, of: 10)
        let operations = planner().plan([backup, damaged, restored]).remote
        #expect(operations.map(\.inode) == [Inode(12), Inode(10), Inode(11)])
        let detour = Place(parent: root, name: Planner.detourName(of: Inode(12)))
        #expect(operations.first?.action == .upload(at: detour, content(3)))
    }

    @Test("the same over others that take each other's names, and where the backup lay in a folder")
    func restoredOverOthers() {
        var restored = item(12, local: ("b", 2), remote: nil, content: 3)
        restored.borrowed = borrows(1, of: 10)
        let damaged = item(11, local: ("c", 2), remote: ("b", 2), content: 2)
        let between = item(13, local: ("a", 2), remote: ("c", 2), content: 4)
        let gone = item(10, local: nil, remote: ("a", 2), content: 1)
        let all = planner().plan([gone, damaged, restored, between]).remote
        #expect(Set(all.map(\.inode)) == Set([10, 11, 12, 13].map { Inode($0) }))
        let folder = item(9, local: nil, remote: ("a", 2))
        let below = item(10, local: nil, remote: ("x", 9), content: 1)
        let more = planner().plan([folder, below, damaged, restored, between]).remote
        #expect(Set(more.map(\.inode)) == Set([9, 11, 12, 13].map { Inode($0) }))
    }

    @Test("what is only open goes out, but for its deletion; what is written waits")
    func open() {
        let changed = item(10, local: ("a", 2), remote: ("a", 2), content: 2, remoteContent: 1)
        let removed = item(10, local: nil, remote: ("a", 2), content: 1)
        for (one, isSent) in [(changed, true), (removed, false)] {
            var file = one
            file.isOpen = true
            #expect(planner().plan([file]).remote.isEmpty != isSent)
            file.isBeingWritten = true
            #expect(planner().plan([file]).remote.isEmpty)
        }
    }

    @Test("only attributes that the service keeps are sent")
    func attributes() {
        var state = item(10, local: ("a", 2), remote: ("a", 2), content: 1)
        state.local?.modified = Timestamp(seconds: 5, nanoseconds: 7)
        #expect(planner().plan([state]).remote.isEmpty)
        let plan = planner { $0.setsModifiedTime = true }.plan([state])
        #expect(
            plan.remote.map(\.action) == [
                .setAttributes(modified: Timestamp(seconds: 5, nanoseconds: 7), description: nil)
            ]
        )
    }
}
