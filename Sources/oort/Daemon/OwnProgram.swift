import OortProcesses

extension Program {
    /// This program once more, known as `oort`, in a session of its own.
    static func own(_ arguments: [String], environment: [String: String]) -> Program {
        var program = Program(
            "/proc/self/exe",
            arguments,
            environment: environment,
            grouping: .session
        )
        program.name = "oort"
        return program
    }
}
