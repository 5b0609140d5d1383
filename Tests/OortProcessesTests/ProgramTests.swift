import Foundation
import OortProcesses
import SystemPackage
import Testing

@Suite("Programs that are started")
struct ProgramTests {
    /// A shell's script; `$1` and so on are `arguments`.
    private func shell(_ script: String, _ arguments: String...) -> Program {
        Program("/bin/sh", ["-c", script, "sh"] + arguments)
    }

    private func said(_ program: Program, _ sent: [UInt8] = []) async throws -> String {
        let outcome = try #require(await program.outcome(sending: sent, timeLimit: .seconds(60)))
        #expect(outcome.status == 0, "\(outcome.errors)")
        return String(decoding: outcome.output, as: UTF8.self)
    }

    @Test("a program has its arguments, its environment, its folder and its input")
    func everything() async throws {
        var program = shell(#"echo "$1|$PWD|$COLOR|$HOME|$(cat)""#, "a 'b' $c\n")
        program.environment = ["COLOR": "grün", "PATH": "/usr/bin:/bin"]
        program.folder = "/usr"
        #expect(try await said(program, Array("x\ny".utf8)) == "a 'b' $c\n|/usr|grün||x\ny\n")
    }

    @Test("its end is its status, or the signal that ended it")
    func ends() async throws {
        let seven = await shell("echo out; echo err >&2; exit 7").outcome(timeLimit: .seconds(60))
        #expect(seven?.status == 7)
        #expect(seven?.output == Array("out\n".utf8))
        #expect(seven?.errors == "err\n")
        let running = try RunningProgram(shell("kill -USR1 $$"))
        #expect(await running.wait() == .signal(SIGUSR1))
        #expect(!running.isRunning)
        #expect(running.number == nil)
        running.send(SIGKILL)
        #expect(running.end == .signal(SIGUSR1))
        #expect(await shell("kill -9 $$").outcome(timeLimit: .seconds(60)) == nil)
    }

    @Test("one that does not end in time is killed")
    func timeLimit() async {
        #expect(await shell("exec sleep 600").outcome(timeLimit: .milliseconds(100)) == nil)
    }

    @Test("who keeps its output open keeps nobody waiting")
    func heirs() async throws {
        let pipe = try ProgramPipe()
        defer { pipe.close() }
        var program = shell("(read line <&3) & echo done")
        program.descriptors = [3: pipe.reading]
        #expect(try await said(program) == "done\n")
    }

    @Test("what is not there is an error, and no pipe stays open")
    func missing() async throws {
        #expect(throws: Errno.noSuchFileOrDirectory) { try Program("/nonexistent/x").spawn() }
        #expect(throws: Errno.noSuchFileOrDirectory) { try Program("no-such-program").spawn() }
        var program = shell("true")
        program.folder = "/nonexistent"
        #expect(throws: Errno.noSuchFileOrDirectory) { try program.spawn() }
        #expect(await Program("/nonexistent/x").outcome(timeLimit: .seconds(60)) == nil)
    }

    @Test("it gets the descriptors that are named, by their numbers, and no other one")
    func descriptors() async throws {
        // Without FD_CLOEXEC, as a library may open it.
        let stray = unsafe open("/dev/zero", O_RDONLY)
        defer { close(stray) }
        let (third, fifth) = (try ProgramPipe(), try ProgramPipe())
        defer { for pipe in [third, fifth] { pipe.close() } }
        var program = shell("ls /proc/self/fd | tr '\\n' ' '; echo three >&3; echo five >&5")
        // Each lies where the other one is to be, as far as the numbers are free.
        program.descriptors = [5: fifth.writing, 3: third.writing]
        // `ls` has one of its own, the lowest that is free.
        #expect(try await said(program) == "0 1 2 3 4 5 ")
        #expect(third.reading.readLine() == "three")
        #expect(fifth.reading.readLine() == "five")
    }

    @Test("it gets no signals that this process blocks or ignores, and no group's but its own")
    func signals() async throws {
        // A thread of its own, since what it blocks stays blocked.
        let program = shell("grep -E '^Sig(Blk|Ign)' /proc/self/status; ps -o pgid= -p $$; echo $$")
        let text = try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                var all = sigset_t()
                unsafe sigfillset(&all)
                unsafe pthread_sigmask(SIG_BLOCK, &all, nil)
                continuation.resume(with: Result { try Self.output(of: program) })
            }
        }
        let words = text.split(whereSeparator: \.isWhitespace)
        try #require(words.count == 6)
        #expect(Int(words[1], radix: 16) == 0)
        // Glibc has 32 and 33 for itself, and ignores them in what it starts.
        #expect(Int(words[3], radix: 16).map { $0 & ~0x1_8000_0000 } == 0)
        #expect(words[4] == words[5])
    }

    private static func output(of program: Program) throws -> String {
        let pipe = try ProgramPipe()
        defer { try? pipe.reading.close() }
        var program = program
        program.output = .descriptor(pipe.writing)
        let number = try program.spawn()
        try pipe.writing.close()
        let bytes = pipe.reading.readAll()
        Program.reap(number)
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test("a signal for its group reaches what it started")
    func group() async throws {
        let pipe = try ProgramPipe()
        defer { try? pipe.reading.close() }
        var program = shell("sleep 600 & echo $!; wait")
        program.output = .descriptor(pipe.writing)
        let running = try RunningProgram(program)
        try pipe.writing.close()
        #expect(Int32(pipe.reading.readLine()) != nil)
        running.send(SIGKILL, toGroup: true)
        // The end of the pipe, which both had open.
        #expect(pipe.reading.readAll() == [])
        #expect(await running.wait() == .signal(SIGKILL))
    }

    @Test("programs start beside thousands of open files")
    func manyFiles() async throws {
        var limit = rlimit()
        _ = unsafe getrlimit(__rlimit_resource_t(7), &limit)
        let count = Int(min(limit.rlim_cur, 4096)) - 300
        let files = (0..<max(count, 0)).map { _ in unsafe open("/dev/null", O_RDONLY | O_CLOEXEC) }
        defer { for file in files { close(file) } }
        for _ in 0..<20 { #expect(try await said(shell("echo ok")) == "ok\n") }
    }

    @Test("nothing in the sources starts programs by Foundation's Process")
    func oneWay() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        var seen = 0
        for part in ["Sources", "Tests"] {
            let folder = root.appending(path: part).path()
            let names = try #require(FileManager.default.enumerator(atPath: folder))
            for case let name as String in names where name.hasSuffix(".swift") {
                let text = try String(contentsOfFile: folder + "/" + name, encoding: .utf8)
                seen += 1
                let isOwn = name.hasSuffix("ProgramTests.swift")
                #expect(isOwn || !text.contains(/= Process\(\)/), "\(part)/\(name)")
            }
        }
        #expect(seen > 100)
    }
}
