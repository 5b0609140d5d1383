import Foundation
import MountTesting
import Testing

@testable import SwiftFUSE

extension MountTests {
    /// Not a test but a daemon to be killed.
    @Test("a daemon for another test", .enabled(if: role?.hasPrefix("/") == true))
    func daemon() async throws {
        let path = try #require(role)
        let fileSystem = MemoryFileSystem()
        _ = try fileSystem.make("alive")
        var options = Mount.Options(sourceName: "daemon", subtype: "swiftfuse")
        options.unmountsAtDeath = path.hasSuffix("/.")
        let mount = try Mount(fileSystem, at: path, options: options)
        try await mount.end()
    }

    @Test("what a killed daemon left is taken away by the next mount", .enabled(if: role == nil))
    func deadMount() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let daemon = try ChildProcess.again("MountTests/daemon", role: folder.path)
        let alive = try await ChildProcess.run(
            "until test -e \"$1/alive\"; do test -d /proc/$2 || exit 1; sleep 0.05; done",
            folder.path,
            "\(try #require(daemon.id))"
        )
        #expect(alive.status == 0)
        daemon.send(signal: SIGKILL)
        #expect(await daemon.outcome().status == -SIGKILL)
        // Requests while the connection ends get the answer that it is aborted.
        let script = """
            i=0; until ls "$1" 2>&1 | grep "not connected"; do
                i=$((i + 1)); test $i -lt 600 || exit 2; sleep 0.05
            done
            """
        let dead = try await ChildProcess.run(script, folder.path)
        #expect(dead.status == 0, "\(dead.output)")

        let fileSystem = MemoryFileSystem()
        _ = try fileSystem.make("new")
        let mount = try Mount(
            fileSystem,
            at: folder.path,
            options: .init(sourceName: "memory", subtype: "swiftfuse")
        )
        let listing = try await ChildProcess.run("ls \"$1\"", folder.path)
        #expect(listing.output == "new\n")
        try await mount.unmount()
        let path = mount.path
        #expect(try MountTable.current().mount(at: path) == nil)
    }

    @Test("a daemon that asked for it is unmounted when it is killed", .enabled(if: role == nil))
    func unmountAtDeath() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let daemon = try ChildProcess.again("MountTests/daemon", role: folder.path + "/.")
        let script = """
            until test -e "$1/alive"; do test -d /proc/$2 || exit 1; sleep 0.05; done
            kill -9 $2; i=0
            while grep -q " $1 fuse" /proc/mounts; do
                i=$((i + 1)); test $i -lt 600 || exit 2; sleep 0.05
            done
            """
        let outcome = try await ChildProcess.run(script, folder.path, "\(try #require(daemon.id))")
        #expect(outcome.status == 0, "\(outcome.output)")
        #expect(await daemon.outcome().status == -SIGKILL)
    }

    @Test("a guard that was called leaves no dead process", .enabled(if: role == nil))
    func calledGuard() async throws {
        let calling = try ChildProcess.again("MountTests/calling", role: "calling")
        let outcome = await calling.outcome()
        #expect(outcome.status == 0, "\(outcome.output)")
        #expect(outcome.output.contains("1 test "), "\(outcome.output)")
    }

    /// In a process of its own, since other tests' mounts have guards, too.
    ///
    /// Where the connection cannot be aborted, the guard is what ends the notification.
    @Test(
        "a mount that ends while a notification hangs leaves no guard",
        .enabled(if: role == "calling"),
        .timeLimit(.minutes(15))
    )
    func calling() async throws {
        try await withMount { fileSystem, mount in
            let file = try fileSystem.make("held", bytes: [1, 2, 3])
            let cat = try ChildProcess.start("exec cat \"$1/held\"", [mount.path])
            await fileSystem.journal.wait(for: "waiting read")
            // It waits for the page that the read holds.
            await mount.notifier.send(.content(file, offset: 0, length: 0))
            // It gives itself its name when it first runs.
            try await waitForGuards(1)
            try await mount.unmount(within: .zero)
            #expect(await cat.outcome().status == 1)
            try await waitForGuards(0)
        }
    }

    /// Returns when this process has so many guards; the test's time limit ends it.
    private func waitForGuards(_ count: Int) async throws {
        while try guards().count != count {
            try Task.checkCancellation()
            await Task.yield()
        }
    }

    /// The guards, living or dead, that this process started.
    private func guards() throws -> [Substring] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc").compactMap { process in
            guard Int(process) != nil,
                let line = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8),
                line.contains("(fuse-guard)"),
                line.split(separator: " ").dropFirst(3).first == "\(getpid())"
            else { return nil }
            return line[...]
        }
    }

    @Test("no thread and no descriptor is left", .enabled(if: role == nil))
    func leavesNothing() async throws {
        let counting = try ChildProcess.again("MountTests/counting", role: "counting")
        let outcome = await counting.outcome()
        #expect(outcome.status == 0, "\(outcome.output)")
        #expect(outcome.output.contains("1 test "), "\(outcome.output)")
    }

    /// In a process of its own, where no other test opens or closes anything.
    @Test(
        "mounting again leaves no more than mounting left before",
        .enabled(if: role == "counting")
    )
    func counting() async throws {
        // The first mount lets the runtime start the threads that it keeps.
        try await withMount { _, mount in
            _ = try await ChildProcess.run("ls \"$1\"", mount.path)
        }
        // Foundation opens some for each thread of the pool that starts a child, whenever that thread
        // does so first: they are few. What a mount leaves would come again with each.
        var before = try descriptors()
        var grows = true
        for _ in 0..<12 where grows {
            try await withMount { _, mount in
                let outcome = try await ChildProcess.run(
                    "echo x >\"$1/file\"; cat \"$1/file\"",
                    mount.path
                )
                #expect(outcome.output == "x\n")
            }
            let after = try descriptors()
            grows = after != before
            before = after
        }
        #expect(!grows)
        // The supervisor ends just after it has reported that all is over.
        while try threads().contains(where: { $0.hasPrefix("fuse-") }) { await Task.yield() }
    }

    /// What the open descriptors lead to, without the numbers that distinguish two pipes.
    private func descriptors() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap {
            try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
        }
        .filter { !$0.hasPrefix("/proc/") }
        .map { String($0.prefix { $0 != "[" }) }
        .sorted()
    }

    private func threads() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").compactMap {
            try? String(contentsOfFile: "/proc/self/task/\($0)/comm", encoding: .utf8)
        }
    }
}

/// What this process is, when a test has started the test program again.
private let role = ProcessInfo.processInfo.environment["SWIFTFUSE_TEST_ROLE"]

extension ChildProcess {
    /// This program again, with only one test in it.
    fileprivate static func again(_ test: String, role: String) throws -> ChildProcess {
        try ChildProcess(
            "/proc/\(getpid())/exe",
            ["--testing-library", "swift-testing", "--filter", test],
            environment: ["SWIFTFUSE_TEST_ROLE": role]
        )
    }
}
