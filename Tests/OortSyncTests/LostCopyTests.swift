import OortModel
import OortSync
import Testing

/// Copies that the service makes by itself, be they a program's or the backup of an editor.
@Suite("a copy at the service whose answer is lost", .timeLimit(.minutes(15)))
struct LostCopyTests {
    /// Whether it is a backup, whether the copy's id is chosen here, and whether the service reports
    /// hashes.
    struct Case: CustomTestStringConvertible {
        var isBackup: Bool
        var hasID: Bool
        var tellsHashes: Bool

        static let all = [false, true].flatMap { isBackup in
            [false, true].flatMap { hasID in
                [false, true].map {
                    Case(isBackup: isBackup, hasID: hasID, tellsHashes: $0)
                }
            }
        }

        var testDescription: String {
            (isBackup ? "a backup" : "a copy") + (hasID ? ", id chosen" : "")
                + (tellsHashes ? "" : ", no hashes")
        }
    }

    @Test(
        "is found where somebody moved it, into a folder that is not known here, and is made once",
        arguments: Case.all
    )
    func movedIntoUnknownFolder(_ test: Case) async throws {
        // Where nothing identifies the copy, it is made once more.
        guard test.tellsHashes || test.isBackup && test.hasID else { return }
        let cloud = MemoryCloud {
            ($0.copiesFiles, $0.takesClientIDs) = (true, test.hasID)
        }
        if !test.tellsHashes { cloud.tellNoHashes() }
        try await World.run(cloud) { world in
            try world.write("f", "old")
            try await world.settle()
            cloud.hold(.feed)
            cloud.loseAnswers(of: "copy")
            cloud.atNextLook {
                cloud.put("new", nil)
                cloud.move("g", to: "new/g")
            }
            if test.isBackup {
                try world.rename("f", to: "g")
                try world.write("f", "new")
            } else {
                try world.copy("f", to: "g")
            }
            let engine = world.engine
            let push = Task { await engine.sync(timeout: .seconds(600)) }
            try await until { cloud.tree["new/g"] != nil }
            cloud.release(.feed)
            let outcome = await push.value
            #expect(outcome.isComplete, "\(outcome)")
            try await world.settle()
            let text = test.isBackup ? "new" : "old"
            #expect(cloud.tree == ["f": text, "new/": "", "new/g": "old"])
            #expect(cloud.calls("copy") == 1)
            #expect(await world.engine.status().conflicts.isEmpty)
        }
    }
}
