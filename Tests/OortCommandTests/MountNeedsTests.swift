import ArgumentParser
import Foundation
import OortTransport
import Testing

@testable import oort

@Suite("What a mount needs, and what a person meant")
struct MountNeedsTests {
    @Test("what the machine lacks is named before anything is begun")
    func requirements() throws {
        let folder = try TemporaryFolder()
        let program = folder.path + "/fusermount3"
        try Data("#!/bin/sh\n".utf8).write(to: URL(filePath: program))
        unsafe chmod(program, 0o755)
        let configuration = folder.path + "/fuse.conf"
        var needs = MountRequirements(
            device: folder.path,
            configuration: configuration,
            searchPath: "/nonexistent:" + folder.path,
            user: 1000
        )
        func lack(_ allowsOtherUsers: Bool = false) -> String {
            do throws(Failure) {
                try needs.check(path: folder.path, allowsOtherUsers: allowsOtherUsers)
                return ""
            } catch { return error.message }
        }
        #expect(lack() == "")
        #expect(lack(true).contains("--allow-other"))
        try Data("# user_allow_other\n".utf8).write(to: URL(filePath: configuration))
        #expect(lack(true).contains("--allow-other"))
        try Data("mount_max = 5\n user_allow_other \n".utf8)
            .write(to: URL(filePath: configuration))
        #expect(lack(true) == "")
        needs.device = folder.path + "/none"
        #expect(lack().contains("/none"))
    }

    @Test(
        "a word that is nearly a command's is answered with it",
        arguments: [
            ("mout", "mount"), ("satus", "status"), ("umount", "unmount"), ("lgin", "login"),
            ("Sync", "sync"), ("stauts", "status"), ("account", "accounts"), ("dmeo", "demo"),
        ]
    )
    func nearCommands(word: String, command: String) throws {
        let failure = try #require(OortCommand.unknownCommand(in: [word, "x"]))
        #expect(failure.message.contains("\"\(word)\""))
        #expect(failure.advice?.contains("oort \(command)") == true)
    }

    @Test("what is a command, a flag or nothing like one is answered as ever")
    func otherWords() {
        #expect(OortCommand.unknownCommand(in: ["mount", "satus"]) == nil)
        #expect(OortCommand.unknownCommand(in: ["--verbose"]) == nil)
        #expect(OortCommand.unknownCommand(in: []) == nil)
        let failure = OortCommand.unknownCommand(in: ["frobnicate"])
        #expect(failure?.advice?.contains("login, logout") == true)
    }

    @Test("a flag, an account that are nearly right are answered with the right one")
    func nearFlags() throws {
        let error = #expect(throws: (any Error).self) {
            try OortCommand.parseAsRoot(["mount", "--cach-size", "1G"])
        }
        let words = error.map { OortCommand.fullMessage(for: $0) } ?? ""
        #expect(words.contains("--cache-size"))
        let folder = try TemporaryFolder()
        let folders = try folder.folders()
        try folders.make()
        let registry = AccountRegistry(folders: folders)
        try registry.put(RegisteredAccount(name: "office", service: "drive"))
        let failure = #expect(throws: Failure.self) { try registry.account(named: "ofice") }
        #expect(failure?.advice?.contains("Did you mean \"office\"?") == true)
    }

    @Test("a mount that did not end orderly is reported until the next one ends")
    func diedMount() throws {
        let folder = try TemporaryFolder()
        let folders = try folder.folders()
        try folders.make()
        do {
            let lock = try InstanceLock(path: folders.lockFile, mounting: "/m")
            withExtendedLifetime(lock) {}
        }
        #expect(InstanceLock.holder(path: folders.lockFile) == nil)
        try Data("7\n/m\n".utf8).write(to: URL(filePath: folders.lockFile))
        #expect(InstanceLock.holder(path: folders.lockFile)?.mountPoint == "/m")
        let report = StatusReport(
            mount: nil,
            died: DiedMount(mountPoint: "/m", process: 7, log: "/l"),
            accounts: []
        )
        let text = StatusText.text(report)
        #expect(text.contains("process 7") && text.contains("/m") && text.contains("/l"))
    }

    @Test("a daemon's memory is its own")
    func memory() {
        PrivateMemory.begin()
        #expect(PrivateMemory.isOn)
    }
}
