import OortProcesses
import SystemPackage

extension Program {
    /// Starts a program, in a group of its own, that ends when its input does.
    ///
    /// - Returns: where its input comes from, which is closed with this process at the latest.
    func startWhileOpen() throws -> FileDescriptor {
        let pipe = try ProgramPipe()
        defer { try? pipe.reading.close() }
        var program = self
        program.input = .descriptor(pipe.reading)
        program.grouping = .session
        _ = try RunningProgram(program)
        return pipe.writing
    }
}
