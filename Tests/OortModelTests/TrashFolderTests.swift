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
        let name = TrashFolder.name(
            seconds: now - named * day,
            number: number,
            mark: nil,
            of: RemotePath(["folder", "file"])
        )
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

    @Test("names with times that no clock has are not old", arguments: [Int64.min, .max])
    func absurd(seconds: Int64) {
        let deletion = Self.folder(named: 0, told: 0, 1)
        let absurd = ("\(seconds)-1@folder", Timestamp(seconds: seconds))
        #expect(TrashFolder.outlived(among: [deletion, absurd], at: deletion.name).isEmpty)
    }
}
