import Foundation
import MountTesting
import Synchronization
import Testing

@testable import SwiftFUSE

/// Mounts a memory file system on a temporary folder for the length of `body`.
func withMount<Result>(
    _ options: Mount.Options = Mount.Options(
        sourceName: "memory, with comma",
        subtype: "swiftfuse"
    ),
    _ body: (MemoryFileSystem, Mount) async throws -> Result
) async throws -> Result {
    let folder = try TemporaryFolder()
    defer { folder.remove() }
    let fileSystem = MemoryFileSystem()
    let mount = try Mount(fileSystem, at: folder.path, options: options)
    do {
        let result = try await body(fileSystem, mount)
        try await mount.unmount(within: .seconds(1))
        #expect(fileSystem.journal["destroy"] == 1)
        return result
    } catch {
        try? await mount.unmount(within: .seconds(1))
        throw error
    }
}

// Serialized because threads and descriptors of the whole process are counted.
@Suite("A mount", .serialized, .enabled(if: canMount, "/dev/fuse cannot be opened here"))
struct MountTests {
    @Test("programs make, copy, list, move and compare files and folders")
    func programs() async throws {
        try await withMount { fileSystem, mount in
            let outcome = try await ChildProcess.run(
                """
                set -e; cd "$1"
                mkdir -p a/b; cp /bin/sh a/b/sh; cmp /bin/sh a/b/sh
                echo one >a/one; echo two >>a/one; test "$(cat a/one)" = "$(printf 'one\\ntwo')"
                ln -s one a/link; test "$(readlink a/link)" = one; cmp a/one a/link
                mv a/one a/b/; test ! -e a/one; test "$(ls a/b)" = "$(printf 'one\\nsh')"
                dd if=/dev/zero of=a/zeros bs=1M count=3 conv=notrunc 2>/dev/null
                printf x | dd of=a/zeros bs=1 seek=2000000 conv=notrunc 2>/dev/null
                test "$(stat -c %s a/zeros)" = 3145728
                test "$(dd if=a/zeros bs=1 skip=2000000 count=1 2>/dev/null)" = x
                truncate -s 10 a/zeros; test "$(stat -c '%s %b' a/zeros)" = '10 1'
                chmod 600 a/zeros; test "$(stat -c %a a/zeros)" = 600
                touch -d @12345 a/zeros; test "$(stat -c %Y a/zeros)" = 12345
                test "$(find . | wc -l)" = 7; mkfifo a/pipe; test -p a/pipe
                ! rmdir a 2>/dev/null; rm -r a; test -z "$(ls -A)"
                df . | grep -q 'memory, with comma'
                """,
                mount.path
            )
            #expect(outcome.status == 0, "\(outcome.output)")
            #expect(fileSystem.journal["rename noreplace"] > 0)
        }
    }

    @Test("rename obeys NOREPLACE and EXCHANGE")
    func renameFlags() async throws {
        try await withMount { fileSystem, mount in
            _ = try fileSystem.make("a", bytes: Array("A".utf8))
            _ = try fileSystem.make("b", bytes: Array("B".utf8))
            let renamed = try await ChildProcess.run(
                """
                cd "$1"; exec python3 -c '
                import ctypes, errno
                libc = ctypes.CDLL(None, use_errno=True)
                assert libc.renameat2(-100, b"a", -100, b"b", 1) == -1
                assert ctypes.get_errno() == errno.EEXIST
                assert libc.renameat2(-100, b"a", -100, b"missing", 2) == -1
                assert ctypes.get_errno() == errno.ENOENT
                assert libc.renameat2(-100, b"a", -100, b"b", 2) == 0
                '
                """,
                mount.path
            )
            #expect(renamed.status == 0, "\(renamed.output)")
            let outcome = try await ChildProcess.run("cd \"$1\"; cat a b", mount.path)
            #expect(outcome.output == "BA")
        }
    }

    @Test("extended attributes are probed, listed, too long for a buffer, and taken away")
    func extendedAttributes() async throws {
        try await withMount { fileSystem, mount in
            _ = try fileSystem.make("file")
            let outcome = try await ChildProcess.run(
                """
                cd "$1"; exec python3 -c '
                import ctypes, errno, os
                def error(call, *arguments):
                    try: call(*arguments)
                    except OSError as failure: return failure.errno
                os.setxattr("file", "user.name", b"value")
                assert error(os.setxattr, "file", "user.name", b"", os.XATTR_CREATE) == errno.EEXIST
                assert error(os.setxattr, "file", "user.no", b"", os.XATTR_REPLACE) == errno.ENODATA
                assert os.getxattr("file", "user.name") == b"value"
                assert os.listxattr("file") == ["user.name"]
                libc = ctypes.CDLL(None, use_errno=True)
                assert libc.getxattr(b"file", b"user.name", None, 0) == 5
                assert libc.getxattr(b"file", b"user.name", bytes(4), 4) == -1
                assert ctypes.get_errno() == errno.ERANGE
                os.removexattr("file", "user.name")
                assert error(os.getxattr, "file", "user.name") == errno.ENODATA
                assert error(os.getxattr, "file", "security.selinux") == errno.EOPNOTSUPP
                '
                """,
                mount.path
            )
            #expect(outcome.status == 0, "\(outcome.output)")
            #expect(fileSystem.journal["getxattr security.selinux"] == 0)
        }
    }

    @Test("writes do not ask for security.capability each time")
    func killPrivileges() async throws {
        var options = Mount.Options(sourceName: "memory", subtype: "swiftfuse")
        options.xattrNamespaces = []
        try await withMount(options) { fileSystem, mount in
            let outcome = try await ChildProcess.run(
                "dd if=/dev/zero of=\"$1/file\" bs=4096 count=100",
                mount.path
            )
            #expect(outcome.status == 0, "\(outcome.output)")
            #expect(fileSystem.journal["write"] == 100)
            // The first write asks, and its inode remembers the answer.
            #expect(fileSystem.journal["getxattr security.capability"] <= 1)
        }
    }

    @Test("what a stranger asks, as a desktop does of each new mount, is not counted")
    func strangers() async throws {
        try await withMount { fileSystem, mount in
            let stranger = """
                exec python3 -c '
                import os, sys, time
                def is_below(process, top):
                    while process not in (0, 1, top):
                        try:
                            with open(f"/proc/{process}/stat") as file:
                                process = int(file.read().rpartition(")")[2].split()[1])
                        except (FileNotFoundError, ProcessLookupError):
                            return True  # It ended meanwhile, and its child has another parent.
                    return process == top
                if os.fork(): os._exit(0)
                while is_below(os.getpid(), int(sys.argv[1])): time.sleep(0.01)
                assert not os.path.exists(sys.argv[2] + "/autorun.inf")
                assert os.listdir(sys.argv[2]) == []
                ' "$2" "$1"
                """
            let asked = try await ChildProcess.run(stranger, mount.path, "\(getpid())")
            #expect(asked.output.isEmpty, "\(asked.output)")
            #expect(fileSystem.journal["lookup"] == 0)
            #expect(fileSystem.journal["readdirplus"] == 0)
            #expect(fileSystem.journal["stranger's lookup"] > 0)
            #expect(fileSystem.journal["stranger's readdirplus"] > 0)
            _ = try await ChildProcess.run("test -e \"$1/ours\"", mount.path)
            #expect(fileSystem.journal["lookup"] == 1)
        }
    }

    @Test("a folder of 5,000 entries is listed whole, and a second listing asks nothing")
    func largeFolder() async throws {
        try await withMount { fileSystem, mount in
            let names = (0..<5_000).map { "file \($0) äöü" }
            for name in names { _ = try fileSystem.make(name) }
            let script = "ls -U -l \"$1\" | tail -n +2 | wc -l; ls -U \"$1\" | sort | md5sum"
            let first = try await ChildProcess.run(script, mount.path)
            #expect(first.output.hasPrefix("5000\n"))
            #expect(fileSystem.journal["lookup"] == 0)
            let strangers = { fileSystem.journal["stranger's readdirplus"] }
            #expect(fileSystem.journal["readdirplus"] + strangers() > 1)
            let lookups = {
                fileSystem.tree.withLock { tree in tree.nodes.values.map(\.lookups).reduce(0, +) }
            }
            #expect(lookups() >= 5_000)
            // The kernel may drop its caches between two listings (a machine short of memory
            // does), so the next listing gets another chance; without a cache none would pass.
            var asked = Int.max
            for _ in 0..<5 where asked > 0 {
                let before = (fileSystem.journal["readdirplus"], lookups(), strangers())
                let again = try await ChildProcess.run(script, mount.path)
                #expect(again.output == first.output)
                asked = fileSystem.journal["readdirplus"] - before.0
                if asked == 0, strangers() == before.2 { #expect(lookups() == before.1) }
            }
            #expect(asked == 0)
            #expect(fileSystem.journal["lookup"] == 0)
        }
    }

    @Test("two lookups in one folder wait at the same time")
    func parallelLookups() async throws {
        try await withMount { fileSystem, mount in
            let one = try ChildProcess.start("stat \"$1/wait-one\"", [mount.path])
            let two = try ChildProcess.start("stat \"$1/wait-two\"", [mount.path])
            await fileSystem.journal.wait(for: "waiting lookup", count: 2)
            // Neither keeps a listing of the same folder from its answer.
            let listing = try await ChildProcess.run("ls \"$1\"", mount.path)
            #expect(listing.status == 0)
            let waiting = fileSystem.waitingLookups.withLock { $0 }
            for pending in waiting {
                guard let reply = pending.take() else { continue }
                reply.fail(.noSuchFile)
            }
            #expect(waiting.count == 2)
            #expect(await one.outcome().status == 1)
            #expect(await two.outcome().status == 1)
        }
    }

    @Test("a program that waits for a read can be killed")
    func interruptedRead() async throws {
        try await withMount { fileSystem, mount in
            _ = try fileSystem.make("slow", bytes: [1, 2, 3])
            let cat = try ChildProcess.start("exec cat \"$1/slow\"", [mount.path])
            await fileSystem.journal.wait(for: "waiting read")
            cat.send(signal: SIGKILL)
            await fileSystem.journal.wait(for: "interrupt")
            #expect(await cat.outcome().status == -SIGKILL)
            // The answer was EINTR already, so nothing is left to take.
            let waiting = fileSystem.waitingReads.withLock { $0 }
            let isAnswered = waiting.map { pending in
                if pending.take() == nil { true } else { false }
            }
            #expect(isAnswered == [true])
        }
    }

    @Test("a request that nobody answers fails with EIO")
    func droppedReply() async throws {
        try await withMount { _, mount in
            let path = mount.path + "/dropped"
            let error = await onThread { unsafe access(path, F_OK) == 0 ? 0 : errno }
            #expect(error == EIO)
        }
    }

    @Test("a name that is not UTF-8 does not exist and cannot be made")
    func invalidNames() async throws {
        try await withMount { fileSystem, mount in
            let outcome = try await ChildProcess.run(
                "cd \"$1\"; name=$(printf '\\377'); test ! -e \"$name\" && ! mkdir \"$name\"",
                mount.path
            )
            #expect(outcome.status == 0, "\(outcome.output)")
            #expect(fileSystem.journal["lookup"] == 0)
        }
    }

    @Test("what changed behind the kernel's back is seen after it was told")
    func notifications() async throws {
        var options = Mount.Options(sourceName: "memory", subtype: "swiftfuse")
        options.tellsEveryChange = true
        try await withMount(options) { fileSystem, mount in
            let file = try fileSystem.make("file", bytes: Array("old".utf8))
            let show = "cd \"$1\"; ls; cat file"
            let before = try await ChildProcess.run(show, mount.path)
            #expect(before.output == "file\nold")

            // The kernel trusts its cache until it is notified.
            _ = try fileSystem.make("added")
            fileSystem.tree.withLock { $0.nodes[file.rawValue]?.bytes = Array("new".utf8) }
            let untold = try await ChildProcess.run(show, mount.path)
            #expect(untold.output == "file\nold")

            await mount.notifier.send(.name("added", in: .root))
            await mount.notifier.send(.content(.root, offset: 0, length: 0))
            await mount.notifier.send(.content(file, offset: 0, length: 0))
            await mount.notifier.finishTelling()
            let told = try await ChildProcess.run(show, mount.path)
            #expect(told.output == "added\nfile\nnew" || told.output == "file\nadded\nnew")

            fileSystem.tree.withLock { tree in
                tree.nodes[1]?.children["file"] = nil
            }
            await mount.notifier.send(.removed("file", in: .root, inode: file))
            await mount.notifier.send(.expired("unknown", in: .root))
            await mount.notifier.send(.attributes(InodeNumber(12_345)))
            await mount.notifier.finishTelling()
            let gone = try await ChildProcess.run("test ! -e \"$1/file\"", mount.path)
            #expect(gone.status == 0)
        }
    }

    @Test("a mount with an open file ends in time, and the file's reader gets an error")
    func unmountWhileOpen() async throws {
        try await withMount { fileSystem, mount in
            _ = try fileSystem.make("slow", bytes: [1, 2, 3])
            let cat = try ChildProcess.start("exec cat \"$1/slow\"", [mount.path])
            await fileSystem.journal.wait(for: "waiting read")
            try await mount.unmount(within: .zero)
            let outcome = await cat.outcome()
            #expect(outcome.status == 1, "\(outcome.output)")
            // Late answers go nowhere, and do no harm.
            for pending in fileSystem.waitingReads.withLock({ $0 }) {
                guard let reply = pending.take() else { continue }
                reply.send([1])
            }
        }
    }

    @Test("an unmount from outside ends the mount")
    func outsideUnmount() async throws {
        try await withMount { _, mount in
            let outcome = try await ChildProcess.run("ls \"$1\" && umount \"$1\"", mount.path)
            #expect(outcome.status == 0, "\(outcome.output)")
            try await mount.end()
        }
    }

    @Test("a second mount on the same folder is refused, as is one on files or on a file")
    func refusals() async throws {
        let options = Mount.Options(sourceName: "memory", subtype: "swiftfuse")
        try await withMount { _, mount in
            let path = mount.path
            _ = await onThread {
                #expect(
                    throws: MountError.alreadyMounted(path: path, source: "memory, with comma")
                ) {
                    _ = try Mount(MemoryFileSystem(), at: path, options: options)
                }
            }
        }
        let folder = try TemporaryFolder()
        let file = folder.path + "/file"
        try "x".write(toFile: file, atomically: false, encoding: .utf8)
        #expect(throws: MountError.notEmpty(path: folder.path)) {
            _ = try Mount(MemoryFileSystem(), at: folder.path, options: options)
        }
        #expect(throws: MountError.notAFolder(path: file)) {
            _ = try Mount(MemoryFileSystem(), at: file, options: options)
        }
        unsafe unlink(file)
        folder.remove()
    }
}
