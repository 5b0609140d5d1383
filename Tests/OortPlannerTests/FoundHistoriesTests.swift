import OortPlanner
import Testing

/// Histories that once failed, shrunk; each keeps the name of what it taught.
@Suite("histories that once failed")
struct FoundHistoriesTests {
    @Test("a folder does not move while the outcome of a creation in it is unknown")
    func creationInMovedFolder() {
        let history = History(
            service: .path,
            steps: [
                .init(.localFolder, 46, 7, 29), .init(.goOn, 51, 20, 24),
                .init(.localFolder, 5, 31, 10), .init(.goOn, 62, 41, 31),
                .init(.goOn, 48, 13, 54), .init(.localDelete, 11, 34, 8), .init(.restart),
                .init(.localRename, 51, 24, 33), .init(.goOn, 49, 41, 53),
            ]
        )
        #expect(history.failure() == nil)
    }

    @Test("the feed shows what we created before its answer arrives")
    func feedFasterThanAnswer() {
        let history = History(
            service: .uniqueNames,
            steps: [
                .init(.localCreate, 33, 59, 62), .init(.goOn, 43, 13, 12),
                .init(.remoteWrite, 41, 11, 41), .init(.feed),
            ]
        )
        #expect(history.failure() == nil)
    }

    @Test("a page that was read before our deletion does not bring the item back")
    func stalePageAfterDeletion() {
        let history = History(
            service: .uniqueNames,
            steps: [
                .init(.localCreate, 11, 30, 1), .init(.goOn, 4, 56, 5), .init(.staleFeed),
                .init(.localDelete, 36, 18, 18), .init(.goOn, 58, 60, 20),
                .init(.goOn, 35, 40, 56), .init(.staleFeed), .init(.goOn, 41, 43, 50),
            ]
        )
        #expect(history.failure() == nil)
    }

    @Test("what comes back from the temporary name of an exchange has its own name again")
    func returnFromDetour() {
        let history = History(
            service: .uniqueNames,
            steps: [
                .init(.localCreate, 7, 28, 34), .init(.backupDance, 25, 20, 52),
                .init(.goOn, 58, 36, 50), .init(.localExchange, 4, 23, 49),
                .init(.goOn, 19, 20, 3), .init(.remoteWrite, 24, 60, 13),
                .init(.localDelete, 34, 46, 21),
            ]
        )
        #expect(history.failure() == nil)
    }

    @Test("the heir of a backup waits while the copy's outcome is unknown")
    func heirOfUnknownCopy() {
        let history = History(
            service: .duplicateNames,
            steps: [
                .init(.localCreate, 8, 2, 2), .init(.goOn, 18, 55, 50),
                .init(.backupDance, 47, 15, 51), .init(.goOn, 3, 28, 24), .init(.restart),
                .init(.goOn, 40, 11, 18), .init(.look),
            ]
        )
        #expect(history.failure() == nil)
    }

    @Test("a backup's copy that somebody changed before its answer came is looked at")
    func changedCopy() {
        let history = History(
            service: .uniqueNames,
            steps: [
                .init(.localCreate), .init(.sentBackupDance), .init(.remoteWrite, 1),
                .init(.sentBackupDance), .init(.sentBackupDance, 1), .init(.goOn),
                .init(.remoteWrite, 11), .init(.lostCursor),
            ]
        )
        #expect(history.failure() == nil)
    }

    @Test("a deletion names the revision that was known when it was planned")
    func deletionOfNews() {
        let history = History(
            service: .path,
            steps: [
                .init(.localCreate), .init(.goOn), .init(.localDelete), .init(.remoteWrite),
                .init(.answer), .init(.localFolder, 0, 0, 1), .init(.goOn, 0, 1),
                .init(.lostCursor), .init(.start),
            ]
        )
        #expect(history.failure() == nil)
    }

    @Test("a conflict copy lies where the service moved the file, not in a folder that is gone")
    func conflictCopyOfMovedFile() {
        let history = History(
            service: .uniqueNames,
            steps: [
                .init(.localFolder), .init(.localCreate, 0, 1, 1), .init(.goOn, 1, 0, 1),
                .init(.localWrite, 1), .init(.remoteWrite, 1), .init(.remoteMove, 1, 0, 2),
                .init(.remoteDelete),
            ]
        )
        #expect(history.failure() == nil)
        // With the copy made before the file is placed, it was lost with the folder.
        let copyFirst: Planning = { planner, items in
            var plan = planner.plan(items)
            let copies = plan.local.filter { if case .keepBoth = $0 { true } else { false } }
            plan.local = copies + plan.local.filter { !copies.contains($0) }
            return plan
        }
        #expect(history.failure(planning: copyFirst) != nil)
    }

    @Test("a temporary name that somebody took over is not waited for")
    func takenDetour() {
        let history = History(
            service: .path,
            steps: [
                .init(.remoteFolder), .init(.lostCursor), .init(.remoteMove, 0, 0, 44),
                .init(.localFolder, 0, 0, 44), .init(.plan), .init(.lostCursor),
                .init(.localRename, 0, 2), .init(.goOn, 0, 0, 1), .init(.remoteReplace, 1),
            ]
        )
        #expect(history.failure() == nil)
    }

    @Test("a copy of one of two that are made of each other is sent before both")
    func copyOfCircle() {
        let history = History(
            service: .path,
            steps: [
                .init(.localCreate), .init(.backupDance), .init(.goOn, 0, 0, 1), .init(.goOn),
                .init(.localExchange, 0, 1), .init(.goOn, 0, 0, 1), .init(.localFolder, 0, 0, 1),
                .init(.localCopy, 1, 1), .init(.goOn, 0, 1),
            ]
        )
        #expect(history.failure() == nil)
    }

    @Test("a backup has no heir whose bytes are needed, over others, before its place is free")
    func heirOfWaitingBackup() {
        let history = History(
            service: .path,
            steps: [
                .init(.remoteCreate, 0, 0, 2), .init(.localCreate, 0, 0, 2), .init(.sentDance),
                .init(.sentBackupDance), .init(.localCreate), .init(.look), .init(.goOn, 3),
                .init(.localExchange, 3), .init(.localExchange, 0, 1),
            ]
        )
        #expect(history.failure() == nil)
    }

    @Test("nor where a folder that takes its name waits for that")
    func heirOfBackupBehindFolder() {
        let history = History(
            service: .path,
            steps: [
                .init(.localCreate), .init(.backupDance), .init(.localFolder, 0, 0, 1),
                .init(.goOn, 2), .init(.localExchange, 1), .init(.localExchange, 0, 14),
            ]
        )
        #expect(history.failure() == nil)
    }

    @Test("nor where a copy that was sent takes the backup's own name")
    func heirOfBackupBehindCopy() {
        let history = History(
            service: .path,
            steps: [
                .init(.localCreate), .init(.remoteCreate, 0, 0, 1), .init(.goOn, 0, 0, 1),
                .init(.lostCursor), .init(.localCopy, 0, 0, 1), .init(.goOn),
                .init(.localExchange, 0, 1), .init(.localExchange, 0, 50),
            ]
        )
        #expect(history.failure() == nil)
    }

    @Test("a copy's bytes are not given to a file whose own the copy took over, by a backup's copy")
    func circleByBackup() {
        let history = History(
            service: .uniqueNames,
            steps: [
                .init(.localCreate, 0, 0, 1), .init(.backupDance), .init(.localDelete, 1),
                .init(.localCreate, 0, 0, 14), .init(.sentBackupDance),
                .init(.localRename, 1, 0, 1), .init(.localCopy, 0, 0, 24), .init(.backupDance, 1),
            ]
        )
        #expect(history.failure() == nil)
    }

    @Test("two files do not take over the identities of which each other's bytes are")
    func circleByHandover() {
        let history = History(
            service: .path,
            steps: [
                .init(.localCreate, 0, 0, 1), .init(.localCreate, 0, 0, 2),
                .init(.sentBackupDance, 1), .init(.goOn, 0, 0, 1), .init(.localExchange, 1),
                .init(.localCopy, 1), .init(.localRename, 3, 0, 1),
            ]
        )
        #expect(history.failure() == nil)
    }

    @Test("nor do two copies, of which no bytes are here")
    func circleOfCopies() {
        let history = History(
            service: .path,
            steps: [
                .init(.localCreate, 0, 0, 4), .init(.sentBackupDance),
                .init(.localCreate, 0, 0, 1), .init(.localWrite), .init(.goOn, 0, 0, 1),
                .init(.localExchange, 2, 1), .init(.backupDance, 2), .init(.goOn, 1, 0, 1),
                .init(.saveDance, 1), .init(.localCopy, 1), .init(.localDelete, 1),
                .init(.localExchange, 14), .init(.localCopy, 0, 0, 54),
            ]
        )
        #expect(history.failure() == nil)
    }

    @Test("what is told of a backup while its copy is made is told of its heir")
    func newsOfCopiedBackup() {
        let history = History(
            service: .duplicateNames,
            steps: [
                .init(.localCreate), .init(.goOn, 0, 0, 1), .init(.localCopy, 0, 0, 1),
                .init(.localExchange, 1), .init(.remoteMove, 0, 0, 1), .init(.goOn), .init(.feed),
            ]
        )
        #expect(history.failure() == nil)
    }

    @Test("a folder that somebody removed and an upload made again is one until the feed tells")
    func folderRemadeByUpload() {
        let history = History(
            service: .path,
            steps: [
                .init(.localFolder), .init(.goOn, 0, 0, 1), .init(.localCreate, 0, 1),
                .init(.remoteDelete), .init(.sentDance, 1), .init(.goOn), .init(.halfRun),
                .init(.goOn),
            ]
        )
        #expect(history.failure() == nil)
    }

    @Test("what was deleted, and not answered, is not here again by an older page")
    func deletedWithoutAnswer() {
        let history = History(
            service: .uniqueNames,
            steps: [
                .init(.localCreate), .init(.sentDance), .init(.saveDance), .init(.staleFeed),
                .init(.goOn), .init(.answerLost), .init(.look), .init(.goOn),
                .init(.staleFeed), .init(.goOn),
            ]
        )
        #expect(history.failure() == nil)
    }

    @Test("what an older page tells to lie in a folder that was deleted since is asked for")
    func toldInDeletedFolder() {
        let history = History(
            service: .path,
            steps: [
                .init(.remoteFolder), .init(.remoteReplace, 0, 0, 1), .init(.lostCursor),
                .init(.remoteMove, 1, 1), .init(.staleFeed), .init(.plan),
                .init(.localDelete), .init(.goOn, 0, 0, 1), .init(.goOn),
            ]
        )
        #expect(history.failure() == nil)
    }
}
