import ArgumentParser
import Foundation
import Testing

@testable import oort

@Suite("The command line")
struct CommandLineTests {
    @Test(
        "wrong usage gives 2",
        arguments: [
            ["fly"], ["mount", "--nonsense"], ["mount", "--cache-size", "much"],
            ["mount", "--cache-size", "5"],
            ["sync", "--timeout", "soon"], ["login"], ["logout"], ["mount", "a", "b"],
        ]
    )
    func wrongUsage(arguments: [String]) {
        let error = #expect(throws: (any Error).self) {
            try OortCommand.parseAsRoot(arguments)
        }
        #expect(error.map(Outcome.exitCode) == 2)
    }

    @Test("an empty argument is refused, which as a path would be the current folder")
    func emptyArguments() {
        for arguments in [
            ["share", ""], ["restore", "a", "--to", ""], ["restore", "a", "--to="],
        ] {
            #expect(OortCommand.emptyArgument(in: arguments) != nil)
        }
        for arguments in [["share", "."], ["login", "sftp", "a", "--ssh-option=A="], []] {
            #expect(OortCommand.emptyArgument(in: arguments) == nil)
        }
        #expect(OortCommand.emptyArgument(in: ["---completion", "share", "--", "path", ""]) == nil)
    }

    @Test("help gives 0 and names every command")
    func help() {
        let error = #expect(throws: (any Error).self) {
            var command = try OortCommand.parseAsRoot(["--help"])
            try command.run()
        }
        #expect(error.map(Outcome.exitCode) == 0)
        let text = error.map { OortCommand.fullMessage(for: $0) } ?? ""
        for name in [
            "login", "logout", "accounts", "mount", "unmount", "status", "sync", "demo",
        ] {
            #expect(text.contains(name))
        }
    }

    @Test("a failure gives 1 and shows its advice")
    func failures() {
        let failure = Failure("It broke.", advice: "Mend it.")
        #expect(Outcome.exitCode(for: failure) == 1)
        #expect("\(failure)" == "It broke.\nMend it.")
    }

    @Test("the flags of mount win over the settings")
    func flags() throws {
        let folder = try TemporaryFolder()
        let folders = try folder.folders()
        try FileManager.default.createDirectory(
            atPath: folders.config,
            withIntermediateDirectories: true
        )
        try Data("cache_size = \"1G\"\npoll_interval = \"10s\"\nmount_point = \"/a\"".utf8)
            .write(to: URL(filePath: folders.settingsFile))
        let command = try #require(
            try OortCommand.parseAsRoot([
                "mount", "/b", "--cache-size", "2G", "--read-only",
            ]) as? MountCommand
        )
        let options = command.flags.options(
            try Surroundings(folders: folders),
            mountPoint: command.mountPoint
        )
        #expect(options.settings.cacheSize.bytes == 2 << 30)
        #expect(options.settings.pollInterval?.duration == .seconds(10))
        #expect(options.mountPoint.path == "/b")
        #expect(options.isReadOnly)
        #expect(!options.allowsOtherUsers)
    }

    @Test(
        "an entry of the list with a name that is no folder's, or one twice, keeps no other back",
        arguments: [[""], ["a/b"], ["../../evil"], [".."], ["a/\u{301}b"], ["a", "a"]]
    )
    func badLists(names: [String]) throws {
        let folder = try TemporaryFolder()
        let folders = try folder.folders()
        try folders.make()
        let good = RegisteredAccount(name: "good", service: "drive")
        let all = names.map { RegisteredAccount(name: $0, service: "drive") } + [good]
        try JSONEncoder().encode(all).write(to: URL(filePath: folders.accountsFile))
        let list = try AccountRegistry(folders: folders).list()
        #expect(list.accounts == [good])
        #expect(list.unusable.count == names.count)
        #expect(list.unusable.allSatisfy { $0.trouble.contains(folders.accountsFile) })
    }

    @Test("an entry that cannot be used is named, with its cause, and nothing is written over it")
    func unusableEntry() throws {
        let folder = try TemporaryFolder()
        let folders = try folder.folders()
        try folders.make()
        let bad = """
            [7, {"name": "work", "service": 3, "key": [1.5, null]}, {"service": "box"},
             {"name": "home", "service": "drive"}]
            """
        try Data(bad.utf8).write(to: URL(filePath: folders.accountsFile))
        let registry = AccountRegistry(folders: folders)
        let list = try registry.list()
        #expect(list.accounts.map(\.name) == ["home"])
        #expect(list.unusable.map(\.name) == [nil, "work", nil])
        #expect(list.unusable.map(\.title).last == "Entry 3 of the list")
        #expect(
            list.unusable.map(\.reason) == [
                "it is no account", "its \"service\" is no text", "it has no \"name\"",
            ]
        )
        try registry.put(RegisteredAccount(name: "more", service: "box"))
        try registry.remove(named: "home")
        try registry.remove(named: "work")
        #expect(throws: Failure.self) {
            try registry.put(RegisteredAccount(name: "work", service: "box"))
        }
        #expect(throws: Failure.self) { try registry.account(named: "work") }
        let kept = try JSONSerialization.jsonObject(
            with: try Data(contentsOf: URL(filePath: folders.accountsFile))
        )
        let entries = try #require(kept as? [NSObject])
        let wanted = """
            [{"name": "more", "service": "box"}, 7,
             {"name": "work", "service": 3, "key": [1.5, null]}, {"service": "box"}]
            """
        let other = try JSONSerialization.jsonObject(with: Data(wanted.utf8)) as? [NSObject]
        #expect(entries == other)
    }

    @Test("accounts that are added at once all stay on the list")
    func parallelAccounts() async throws {
        let folder = try TemporaryFolder()
        let folders = try folder.folders()
        try folders.make()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<40 {
                group.addTask {
                    try AccountRegistry(folders: folders)
                        .put(RegisteredAccount(name: "a\(number)", service: "drive"))
                }
            }
            try await group.waitForAll()
        }
        #expect(try AccountRegistry(folders: folders).accounts().count == 40)
    }

    @Test("accounts are kept by name and their names are fit for a folder")
    func accounts() throws {
        let folder = try TemporaryFolder()
        let folders = try folder.folders()
        try folders.make()
        let registry = AccountRegistry(folders: folders)
        #expect(try registry.accounts().isEmpty)
        try registry.put(RegisteredAccount(name: "work", service: "drive", email: "a"))
        try registry.put(RegisteredAccount(name: "work", service: "drive", email: "b"))
        try registry.put(RegisteredAccount(name: "home", service: "dropbox"))
        #expect(try registry.accounts().map(\.name) == ["home", "work"])
        #expect(try registry.account(named: "work").email == "b")
        let failure = #expect(throws: Failure.self) { try registry.account(named: "x") }
        #expect(failure?.advice?.contains("home, work") == true)
        try registry.remove(named: "home")
        #expect(try registry.accounts().map(\.name) == ["work"])

        for name in [
            "", "a/b", ".a", "-a", "a\n", "a/\u{301}b", ".\u{301}a", "-\u{301}", "a\u{9B}",
            "\u{202E}a",
        ] {
            #expect(throws: Failure.self) { try AccountName.check(name) }
        }
        try AccountName.check("Büro 文字")
        #expect(AccountName.free(for: "drive", among: ["drive", "drive-2"]) == "drive-3")
    }
}
