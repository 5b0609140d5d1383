import OortModel
import Testing

@Suite("the names of deletions in Oort's own trash")
struct TrashFolderTests {
    private static let day: Int64 = 86_400
    private static let now: Int64 = 1_790_000_000

    /// A deletion's folder by two clocks, in days before now.
    private static func folder(
        named: Int64,
        told: Int64,
        _ number: UInt32
    ) -> (name: String, modified: Timestamp) {
        let name = TrashFolder.names(
            seconds: now - named * day,
            number: number,
            mark: nil,
            of: RemotePath(["folder", "file"])
        )[0]
        return (name, Timestamp(seconds: now - told * day))
    }

    @Test(
        "what is in the trash goes after 30 days, whosever clock is wrong",
        arguments: [0, 3650, -3650]
    )
    func outlived(aheadInDays: Int64) {
        let deletion = Self.folder(named: -aheadInDays, told: 0, 1)
        let folders: [(name: String, modified: Timestamp)] = [
            Self.folder(named: 31, told: 31, 2), Self.folder(named: 29, told: 29, 3),
            Self.folder(named: 31, told: 29, 4), ("not one of Oort's", Timestamp(seconds: 0)),
            deletion,
        ]
        let old = TrashFolder.outlived(among: folders, at: deletion.name)
        // A clock that is behind keeps more, and none makes anything go before its time.
        #expect(old == (aheadInDays < 0 ? [] : [folders[0].name]))
    }

    @Test("where the deletion is not in the trash, nothing goes")
    func withoutTheDeletion() {
        let folders = [Self.folder(named: 31, told: 31, 2)]
        #expect(TrashFolder.outlived(among: folders, at: "1790000000-1@folder").isEmpty)
    }

    @Test(
        "where something lay is known, however long the path",
        arguments: [
            [], ["folder"], ["@home", "100%", "%2F%25", "\u{201B}FF"],
            Array(repeating: String(repeating: "Ж", count: 120), count: 15),
            [String(repeating: "%", count: 255), String(repeating: "\u{201B}FF", count: 255)],
        ]
    )
    func places(folder: [String]) throws {
        let path = RemotePath(folder + ["file"])
        let names = TrashFolder.names(seconds: Self.now, number: 255, mark: "a1-7", of: path)
        #expect(names.allSatisfy { ByteNames.bytes($0).count <= 255 })
        #expect((names.count > 1) == (folder.joined().utf8.count > 220))
        for count in 1..<names.count {
            let part = try #require(TrashFolder.deletion(names[0], Array(names[1..<count])))
            #expect(part.goesOn && part.folder == nil && TrashFolder.isMore(names[count]))
        }
        let whole = try #require(TrashFolder.deletion(names[0], Array(names.dropFirst())))
        #expect(whole.folder == RemotePath(folder) && !whole.goesOn)
        #expect(whole.mark == "a1-7" && whole.time.seconds == Self.now)
        let entry = names + ["file"]
        #expect(TrashFolder.names(ofEntry: entry.joined(separator: "/")) == entry)
    }

    @Test(
        "names that another wrote lead nowhere else",
        arguments: [
            "17-1@..", "17-1@a%2F..%2Fb", "17-1@%2Fetc", "17-1@a%2F", "17-1@a%2F.",
        ]
    )
    func foreign(name: String) {
        #expect(TrashFolder.deletion(name)?.folder == nil)
        #expect(TrashFolder.deletion("17-1@a%", ["@%2F..%", "@%2Fb"])?.folder == nil)
    }

    @Test(
        "an id that is no entry's is none",
        arguments: [
            "17-1@a", "17-1@a/..", "17-1@a/.", "17-1@a/", "17-1@a/b/c", "17-1@a/../c", "a/b",
            "17-1@a%/@b//c", "/17-1@a/b",
        ]
    )
    func noEntry(id: String) { #expect(TrashFolder.names(ofEntry: id) == nil) }

    @Test("names with times that no clock has are not old", arguments: [Int64.min, .max])
    func absurd(seconds: Int64) {
        let deletion = Self.folder(named: 0, told: 0, 1)
        let absurd = ("\(seconds)-1@folder", Timestamp(seconds: seconds))
        #expect(TrashFolder.outlived(among: [deletion, absurd], at: deletion.name).isEmpty)
    }
}
