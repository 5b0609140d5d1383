import Foundation
import Logging
import MountTesting
import OortCatalog
import OortFileSystem
import OortModel
import SwiftFUSE
import Synchronization
import Testing

@testable import OortContentStore
@testable import OortFUSE

/// Mounts scripted files for the length of `body`.
private func withMount(
    _ files: ScriptedFiles,
    _ body: (FileSystemMount) async throws -> Void
) async throws {
    let folder = try TemporaryFolder()
    defer { folder.remove() }
    var settings = FileSystemMount.Settings()
    settings.unmountsAtDeath = false
    let mount = try FileSystemMount(
        files,
        at: folder.path,
        settings: settings,
        log: Logger(label: "test")
    )
    do {
        try await body(mount)
    } catch {
        try? await mount.unmount(within: .seconds(1))
        throw error
    }
    try await mount.unmount(within: .seconds(1))
}

@Suite("The kernel's requests", .enabled(if: canMount, "/dev/fuse cannot be opened here"))
struct KernelFileSystemTests {
    @Test("what a program does reaches the file system in its own terms")
    func translation() async throws {
        let files = ScriptedFiles(["file"])
        try await withMount(files) { mount in
            let outcome = try await ChildProcess.run(
                """
                cd "$1"; exec 2>&1; umask 027
                test "$(stat -c '%s %b %a %u %g %Y' file)" = '5 1 640 7 8 1000000000' || echo stat
                test "$(cat file)" = file || echo cat
                mkdir made; ln -s target link; mkfifo pipe; mknod device c 1 3 && echo mknod
                ln file hard && echo ln
                chmod 600 file; touch -d @5 file; truncate -s 3 file
                printf 12345 | dd of=new conv=excl,fsync 2>/dev/null
                fallocate -l 10 file; fallocate -p -l 10 file && echo punch
                mv file other; mv -n other third; rm third; rmdir made
                python3 -c 'import os; assert os.getxattr("new", "user.oort.id") == b"id"'
                test "$(df --output=size,avail -B1 . | tail -1 | tr -s ' ')" = \
                    ' 1099511627776 1073741824' || df -B1 .
                true
                """,
                mount.path
            )
            #expect(outcome.status == 0, "\(outcome.output)")
            for unexpected in ["stat\n", "cat\n", "mknod\n", "ln\n", "punch\n"] {
                #expect(!outcome.output.contains("\n" + unexpected), "\(outcome.output)")
            }
        }
        for event in [
            "folder made 0", "link link target", "special pipe fifo", "special device device",
            "mode 600", "modified 5", "size 3", "create new 640 true", "write 5 0", "fsync",
            "allocate 0..<10 true", "rename file other noReplace", "unlink third", "rmdir made",
        ] {
            #expect(files.journal[event] > 0, "\(event)")
        }
        #expect(files.journal["release"] >= 2)
    }

    @Test("a listing has all names and both dots, whatever the page size")
    func listing() async throws {
        let names = (0..<1_000).map { "later-\($0)" }
        let files = ScriptedFiles(names)
        try await withMount(files) { mount in
            let listing = try await ChildProcess.run("ls -a -U \"$1\"", mount.path)
            let lines = listing.output.split(separator: "\n").map(String.init)
            #expect(lines == [".", ".."] + names)
            #expect(files.journal["list"] > 2)
        }
    }

    @Test("content comes from memory and from disk, at once and later")
    func reading() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let path = folder.path + "/content"
        try Data("later-disk\n".utf8).write(to: URL(fileURLWithPath: path))
        let files = ScriptedFiles(
            ["now", "later-memory", "later-disk"],
            disk: try DiskFile.open(path)
        )
        try await withMount(files) { mount in
            let outcome = try await ChildProcess.run(
                "cd \"$1\"; cat now later-memory later-disk",
                mount.path
            )
            #expect(outcome.output == "now\nlater-memory\nlater-disk\n")
        }
    }

    @Test("many who wait for a network hold no thread, and give up when they are killed")
    func waiting() async throws {
        let names = (0..<20).map { "never-\($0)" }
        let files = ScriptedFiles(names + ["file"])
        try await withMount(files) { mount in
            let path = mount.path
            // The kernel learns the names from the listing, so that only the reads wait.
            _ = try await ChildProcess.run("ls \"$1\"", path)
            let readers = try names.map {
                try ChildProcess.start("exec cat \"$1/$2\"", [path, $0])
            }
            for name in names { await files.journal.wait(for: "waiting \(name)") }
            let other = try await ChildProcess.run("cat \"$1/file\"", path)
            #expect(other.output == "file\n")
            for reader in readers { reader.send(signal: SIGKILL) }
            for (name, reader) in zip(names, readers) {
                await files.journal.wait(for: "gave up \(name)")
                #expect(await reader.outcome().status == -SIGKILL)
            }
        }
    }

    @Test("a name that does not exist is asked for once, until the feed brings it")
    func absence() async throws {
        let files = ScriptedFiles(["file"])
        try await withMount(files) { mount in
            let path = mount.path
            for _ in 0..<3 {
                let outcome = try await ChildProcess.run("test -e \"$1/new\"; ls \"$1\"", path)
                #expect(outcome.output == "file\n")
            }
            #expect(files.journal["lookup new"] == 1)

            let inode = files.add("new")
            mount.notifier.hear([
                .entryAdded(parent: .root, name: "new"), .content(inode), .attributes(inode),
            ])
            await mount.notifier.finishTelling()
            let outcome = try await ChildProcess.run("cat \"$1/new\"; ls \"$1\"", path)
            #expect(outcome.output == "new\nfile\nnew\n")

            files.items.withLock { _ = $0.removeValue(forKey: "new") }
            mount.notifier.hear([
                .entryRemoved(parent: .root, name: "new", child: inode, isFolder: false)
            ])
            await mount.notifier.finishTelling()
            let gone = try await ChildProcess.run("test ! -e \"$1/new\" && ls \"$1\"", path)
            #expect(gone.output == "file\n")
        }
    }
}
