import Foundation
import Testing

@testable import SwiftFUSE

extension MountTests {
    /// Not a test but a daemon to be killed: this program again, with only this function in it.
    @Test(
        "a daemon for another test",
        .enabled(if: ProcessInfo.processInfo.environment[daemonVariable] != nil))
    func daemon() async throws {
        let path = try #require(ProcessInfo.processInfo.environment[daemonVariable])
        let fileSystem = MemoryFileSystem()
        _ = try fileSystem.make("alive")
        let mount = try Mount(
            fileSystem, at: path, options: .init(sourceName: "daemon", subtype: "swiftfuse"))
        try await mount.end()
    }

    @Test(
        "what a killed daemon left is taken away by the next mount",
        .enabled(if: ProcessInfo.processInfo.environment[daemonVariable] == nil))
    func deadMount() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let daemon = try ChildProcess(
            "/proc/\(getpid())/exe",
            ["--testing-library", "swift-testing", "--filter", "MountTests/daemon"],
            environment: [daemonVariable: folder.path])
        let alive = try await ChildProcess.run(
            "until test -e \"$1/alive\"; do test -d /proc/$2 || exit 1; sleep 0.05; done",
            folder.path, "\(daemon.id)")
        #expect(alive.status == 0)
        daemon.send(signal: SIGKILL)
        #expect(await daemon.outcome().status == -SIGKILL)
        let dead = try await ChildProcess.run("ls \"$1\"", folder.path)
        #expect(dead.output.contains("not connected"), "\(dead.output)")

        let fileSystem = MemoryFileSystem()
        _ = try fileSystem.make("new")
        let mount = try Mount(
            fileSystem, at: folder.path, options: .init(sourceName: "memory", subtype: "swiftfuse"))
        let listing = try await ChildProcess.run("ls \"$1\"", folder.path)
        #expect(listing.output == "new\n")
        try await mount.unmount()
        let path = mount.path
        #expect(try MountTable.current().mount(at: path) == nil)
    }
}

/// Names the folder on which the daemon is to be mounted.
private let daemonVariable = "SWIFTFUSE_TEST_DAEMON"
