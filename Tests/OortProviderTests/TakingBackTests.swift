import OortModel
import OortSimulators
import OortTesting
import Testing

/// What services keep of what was deleted and overwritten, and the links that they make.
@Suite("taking back and sharing", .timeLimit(.minutes(15)))
struct TakingBackTests {
    private func entries(_ world: SimulatedWorld, _ trash: any Trash) async throws -> [TrashEntry] {
        var found: [TrashEntry] = []
        var page: PageToken?
        repeat {
            let answer = try await trash.entries(below: world.root, page: page)
            found += answer.entries
            page = answer.next
        } while page != nil
        return found
    }

    private func versions(
        _ history: any VersionHistory,
        of item: ItemReference
    ) async throws -> [ItemVersion] {
        var found: [ItemVersion] = []
        var page: PageToken?
        repeat {
            let answer = try await history.versions(of: item, page: page)
            found += answer.versions
            page = answer.next
        } while page != nil
        return found
    }

    private func links(
        _ sharing: any LinkSharing,
        of item: ItemReference?
    ) async throws -> [SharedLink] {
        var found: [SharedLink] = []
        var page: PageToken?
        repeat {
            let answer = try await sharing.links(of: item, page: page)
            found += answer.links
            page = answer.next
        } while page != nil
        return found
    }

    private func text(_ stream: ByteStream) async throws -> String {
        String(decoding: try await stream.collect(atMost: 1 << 20), as: UTF8.self)
    }

    // MARK: Trash

    @Test("what was deleted is listed and comes back", arguments: servicesWithIDs)
    func trash(_ service: SimulatedKind) async throws {
        try await service.withWorld { world in
            guard let trash = world.provider.trash else {
                #expect(service.description == "onedrive")
                return
            }
            let folder = try await world.folder("papers")
            let note = try await world.upload("the note", as: "note.txt", in: folder)
            let gone = try await world.folder("gone", in: folder)
            let deep = try await world.folder("deep", in: gone)
            let inside = try await world.upload("inside", as: "inside.txt", in: deep)
            _ = try await world.upload("stays", as: "stays.txt", in: folder)
            for name in ["a", "b", "c", "d", "e", "f"] {
                let item = try await world.upload(name, as: "\(name).txt")
                try await world.provider.delete(Deletion(item: world.reference(item)))
            }
            #expect(try await entries(world, trash).count == 6)
            try await world.provider.delete(Deletion(item: world.reference(note, in: folder)))
            try await world.provider.delete(Deletion(item: gone))

            let all = try await entries(world, trash)
            #expect(all.map(\.name).filter { $0.count > 5 }.sorted() == ["note.txt"])
            let entry = try #require(all.first { $0.name == "note.txt" })
            #expect(entry.kind == .file)
            #expect(entry.size == 8)
            #expect(entry.deletedTime != nil)
            #expect(entry.item == note.id)
            #expect(
                entry.path == RemotePath(["papers", "note.txt"]) || entry.folder == folder.id
            )
            try await trash.restore(entry, to: Placement(folder: folder, name: "note.txt"))
            let back = try await world.provider.item(world.reference(note, in: folder))
            #expect(back.id == note.id)
            let content = try await world.read(world.reference(back, in: folder))
            #expect(content == Array("the note".utf8))

            // The folder is one entry, and comes back with all that lay in it, elsewhere if need be.
            let top = try #require(try await entries(world, trash).first { $0.name == "gone" })
            try await trash.restore(top, to: Placement(folder: world.root, name: "found again"))
            let found = try #require(
                try await world.provider.items(named: "found again", in: world.root).first
            )
            let place = world.reference(found)
            let below = try #require(
                try await world.provider.items(named: "deep", in: place).first
            )
            let file = try #require(
                try await world.provider.items(
                    named: "inside.txt",
                    in: world.reference(below, in: place)
                ).first
            )
            #expect(file.id == inside.id)
            // At Dropbox the path stays a deleted one, of which all files lie elsewhere now.
            let left = try await entries(world, trash).filter { $0.name != "gone" }
            #expect(left.count == 6)
        }
    }

    @Test("a folder comes back without what was deleted in it before")
    func deletedBefore() async throws {
        let service = try #require(servicesWithIDs.first { $0.description == "dropbox" })
        try await service.withWorld { world in
            let trash = try #require(world.provider.trash)
            let folder = try await world.folder("papers")
            let keys = try await world.upload("secret", as: "keys.txt", in: folder)
            let note = try await world.upload("note", as: "note.txt", in: folder)
            let other = try await world.upload("other", as: "other.txt", in: folder)
            for item in [keys, note, other] {
                try await world.provider.delete(
                    Deletion(item: world.reference(item, in: folder))
                )
            }
            // One program deletes a folder file by file, which takes its time.
            world.simulator.service.account.withTree { tree in
                for (item, seconds) in [(keys, 604_800), (note, 60), (other, 30)] {
                    tree.update(item.id.rawValue) { item in
                        item.trashedTime = item.trashedTime.map {
                            Timestamp(seconds: $0.seconds - Int64(seconds))
                        }
                    }
                }
            }
            let last = try await world.upload("last", as: "last.txt", in: folder)
            try await world.provider.delete(Deletion(item: world.reference(last, in: folder)))
            try await world.provider.delete(Deletion(item: folder))
            let entry = try #require(try await entries(world, trash).first)
            #expect(entry.name == "papers")
            try await trash.restore(entry, to: Placement(folder: world.root, name: "papers"))
            let again = try #require(
                try await world.provider.items(named: "papers", in: world.root).first
            )
            #expect(
                try await world.names(in: world.reference(again))
                    == ["last.txt", "note.txt", "other.txt"]
            )
            #expect(try await entries(world, trash).map(\.name) == ["keys.txt"])
        }
    }

    @Test("a file that was only moved is in no trash", arguments: servicesWithIDs)
    func movedAway(_ service: SimulatedKind) async throws {
        try await service.withWorld { world in
            guard let trash = world.provider.trash else { return }
            let folder = try await world.folder("from")
            let item = try await world.upload("here", as: "here.txt", in: folder)
            world.somebodyElse(.move(from: ["from", "here.txt"], to: ["there.txt"]))
            try await world.provider.delete(Deletion(item: folder))
            let all = try await entries(world, trash)
            #expect(all.map(\.name) == ["from"])
            let entry = try #require(all.first)
            try await trash.restore(entry, to: Placement(folder: world.root, name: "from"))
            #expect(try await world.names() == ["from", "there.txt"])
            let again = try #require(
                try await world.provider.items(named: "from", in: world.root).first
            )
            #expect(try await world.names(in: world.reference(again)).isEmpty)
            #expect(try await world.provider.item(world.reference(item)).fileName == "there.txt")
        }
    }

    // MARK: Versions

    @Test("versions are listed, read and made current", arguments: servicesWithIDs)
    func versions(_ service: SimulatedKind) async throws {
        try await service.withWorld { world in
            let history = try #require(world.provider.versions)
            var item = try await world.upload("content 0", as: "report.txt")
            for number in 1...5 {
                item = try await world.upload(
                    Array("content \(number)".utf8),
                    to: .replace(world.reference(item), revision: item.rev)
                )
            }
            let reference = world.reference(item)
            let all = try await versions(history, of: reference)
            #expect(all.count == 6)
            #expect(all.map(\.isCurrent) == [true, false, false, false, false, false])
            #expect(all.allSatisfy { $0.size == 9 && $0.modifiedTime != nil })
            for (index, version) in all.enumerated() where index > 0 {
                let content = try await text(history.read(version, of: reference))
                #expect(content == "content \(5 - index)")
            }
            let old = all[4]
            guard history.restoresAtService else {
                #expect(history.readingCost != nil)
                return
            }
            #expect(
                await world.failure {
                    try await history.restore(old, of: reference, current: Revision("another"))
                } == .preconditionFailed
            )
            try await history.restore(old, of: reference, current: item.rev)
            let now = try await world.provider.item(reference)
            #expect(now.id == item.id)
            #expect(try await world.read(reference) == Array("content 1".utf8))
            // Nothing is lost by it.
            #expect(try await versions(history, of: reference).count == 7)
        }
    }

    // MARK: Links

    @Test("links are made, listed and taken back", arguments: servicesWithIDs)
    func links(_ service: SimulatedKind) async throws {
        try await service.withWorld { world in
            let sharing = try #require(world.provider.links)
            let folder = try await world.folder("shared")
            let item = try await world.upload("for all", as: "for all.txt", in: folder)
            let reference = world.reference(item, in: folder)
            #expect(try await links(sharing, of: reference).isEmpty)
            let made = try await sharing.share(LinkWish(item: reference, isFolder: false))
            #expect(made.url.hasPrefix("https://"))
            #expect(!made.mayEdit && !made.hasPassword && made.expires == nil)
            #expect(try await links(sharing, of: reference).map(\.url) == [made.url])
            #expect(try await links(sharing, of: folder).isEmpty)
            try await sharing.withdraw(made)
            // Once more is no error.
            try await sharing.withdraw(made)
            #expect(try await links(sharing, of: reference).isEmpty)

            guard sharing.abilities.edits else { return }
            let edit = try await sharing.share(
                LinkWish(item: folder, isFolder: true, mayEdit: true)
            )
            #expect(edit.mayEdit)
            let known = try #require(try await links(sharing, of: folder).first)
            #expect(known.mayEdit && known.url == edit.url)
            guard sharing.abilities.listsAll else { return }
            for number in 0..<12 {
                let one = try await world.upload("\(number)", as: "\(number).txt")
                _ = try await sharing.share(
                    LinkWish(item: world.reference(one), isFolder: false)
                )
            }
            #expect(try await links(sharing, of: nil).count == 13)
        }
    }

    @Test("an end and a password are the plan's", arguments: servicesWithIDs)
    func plans(_ service: SimulatedKind) async throws {
        try await service.withWorld { world in
            let sharing = try #require(world.provider.links)
            guard sharing.abilities.expires else {
                #expect(!sharing.abilities.takesPasswords)
                return
            }
            let item = try await world.upload("secret", as: "secret.txt")
            let reference = world.reference(item)
            let end = Timestamp(seconds: Timestamp.now.seconds + 7 * 86_400)
            let wish = LinkWish(
                item: reference,
                isFolder: false,
                expires: end,
                password: "correct horse"
            )
            #expect(
                await world.failure { _ = try await sharing.share(wish) } == .unsupported
            )
            #expect(try await links(sharing, of: reference).isEmpty)
            world.simulator.account.withTree { tree in
                var conditions = SimulatedConditions()
                conditions.isPaidPlan = true
                tree.setConditions(conditions)
            }
            let made = try await sharing.share(wish)
            #expect(made.hasPassword && made.expires == end)
            let known = try #require(try await links(sharing, of: reference).first)
            #expect(known.hasPassword && known.expires == end)
        }
    }
}
