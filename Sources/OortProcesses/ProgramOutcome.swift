import Foundation
public import SystemPackage

/// How a small program ended, and what it said.
public struct ProgramOutcome: Sendable {
    /// Its status, 0 to 255.
    public var status: Int32
    /// What it wrote to standard output.
    public var output: [UInt8]
    /// What it wrote to standard error.
    public var errors: String
}

extension Program {
    /// Runs the program to its end, whatever streams are set, and collects what it says.
    ///
    /// - Parameters:
    ///   - sent: what it reads.
    ///   - timeLimit: after this long it is killed.
    /// - Returns: what it said, of each stream at most what a pipe holds; nil when it could not be started,
    ///   was killed or did not end in time.
    public func outcome(sending sent: [UInt8] = [], timeLimit: Duration) async -> ProgramOutcome? {
        var pipes: [ProgramPipe] = []
        defer { for pipe in pipes.dropFirst() { try? pipe.reading.close() } }
        let running: RunningProgram
        do throws(Errno) {
            for _ in 0..<3 { pipes.append(try ProgramPipe()) }
            var program = self
            program.input = .descriptor(pipes[0].reading)
            program.output = .descriptor(pipes[1].writing)
            program.errors = .descriptor(pipes[2].writing)
            running = try RunningProgram(program)
        } catch {
            for pipe in pipes { try? pipe.writing.close() }
            try? pipes.first?.reading.close()
            return nil
        }
        for pipe in pipes.dropFirst() { try? pipe.writing.close() }
        // Who ends without reading ends the writing, too.
        try? pipes[0].reading.close()
        let alarm = Task {
            if (try? await Task.sleep(for: timeLimit)) != nil { running.send(SIGKILL) }
        }
        let input = pipes[0].writing
        // A pipe may hold less than what is sent. Ends with the program.
        Thread.detachNewThread {
            FileDescriptor.ignoreBrokenPipes()
            _ = try? input.writeAll(sent)
            try? input.close()
        }
        let end = await running.wait()
        alarm.cancel()
        guard case .status(let status) = end else { return nil }
        return ProgramOutcome(
            status: status,
            output: pipes[1].reading.readWhatIsThere(),
            errors: String(decoding: pipes[2].reading.readWhatIsThere(), as: UTF8.self)
        )
    }
}

extension FileDescriptor {
    /// Makes writing to a pipe without a reader an error for the writer on this thread, instead of ending
    /// the process.
    static func ignoreBrokenPipes() {
        var set = sigset_t()
        unsafe sigemptyset(&set)
        unsafe sigaddset(&set, SIGPIPE)
        _ = unsafe pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// The bytes in a pipe now, without waiting for writers that it may still have.
    public func readWhatIsThere() -> [UInt8] {
        _ = fcntl(rawValue, F_SETFL, O_NONBLOCK)
        return readAll(atMost: 1 << 16)
    }
}
