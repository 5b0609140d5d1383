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

    /// Asks a fusermount3 why a mount failed; the installed one where no script is given.
    private func refusal(of script: String?, at path: String) throws -> String? {
        let folder = try TemporaryFolder()
        var needs = MountRequirements()
        if let script {
            let program = folder.path + "/fusermount3"
            try Data("#!/bin/sh\n\(script)\n".utf8).write(to: URL(filePath: program))
            unsafe chmod(program, 0o755)
            needs.helperFolder = folder.path
        }
        return needs.refusal(at: path, allowsOtherUsers: false)
    }

    @Test("a fusermount3 that looks for its socket first says why it does not mount")
    func newHelper() throws {
        let folder = try TemporaryFolder()
        // As that of libfuse 3.15 and newer: the descriptor must be a socket.
        let check = """
            [ -S "/proc/self/fd/$_FUSE_COMMFD" ] || {
                echo "fusermount3: file descriptor $_FUSE_COMMFD cannot take it" >&2
                exit 1
            }
            """
        let refusing = check + "\necho 'fusermount3: bad mount point /x: not there' >&2; exit 1"
        #expect(try refusal(of: refusing, at: folder.path) == "bad mount point /x: not there")
        #expect(try refusal(of: check + "\nexit 0", at: folder.path) == nil)
    }

    @Test(
        "what a fusermount3 says of the socket is no reason for a mount that failed",
        arguments: [
            "fusermount3: file descriptor 0 is not a socket, can't send fuse fd",
            "fusermount3: fstat of comm fd 0 failed: Bad file descriptor",
            "fusermount3: invalid _FUSE_COMMFD: 0",
            "sending file descriptor: Broken pipe",
        ]
    )
    func wordsOnTheSocket(words: String) throws {
        let folder = try TemporaryFolder()
        #expect(try refusal(of: "echo \"\(words)\" >&2; exit 1", at: folder.path) == nil)
    }

    @Test(
        "the installed fusermount3 says what is in the way, and what it mounts is taken away",
        .enabled(if: MountRequirements().helper != nil, "fusermount3 is not installed")
    )
    func installedHelper() throws {
        let folder = try TemporaryFolder()
        let words = try #require(try refusal(of: nil, at: folder.path + "/none"))
        #expect(words.contains("No such file or directory"), "\(words)")
        guard FileManager.default.fileExists(atPath: "/dev/fuse") else { return }
        let reason = try refusal(of: nil, at: folder.path)
        let mounts = try String(contentsOfFile: "/proc/self/mountinfo", encoding: .utf8)
        #expect(!mounts.contains(folder.path), "\(reason ?? "")")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
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
