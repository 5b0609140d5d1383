import ArgumentParser
import Foundation
import OortTransport

/// Something that a person must be told: what happened, to what, and what to do.
struct Failure: Error, CustomStringConvertible, Hashable, Sendable {
    /// What happened, to which account or path.
    let message: String
    /// What to do about it.
    let advice: String?

    init(_ message: String, advice: String? = nil) {
        self.message = message
        self.advice = advice
    }

    var description: String {
        advice.map { "\(message)\n\($0)" } ?? message
    }
}

/// How the program ends: 0 done, 1 failed, 2 wrong usage.
enum Outcome {
    /// The exit code for an error that reached the top.
    static func exitCode(for error: any Error) -> Int32 {
        let code = OortCommand.exitCode(for: error)
        return code == .validationFailure ? 2 : code.rawValue
    }

    /// Says what happened, help to standard output and errors to standard error, and ends.
    static func end(with error: any Error) -> Never {
        let code = exitCode(for: error)
        if let failure = error as? Failure {
            Console.error("oort: \(failure)")
        } else {
            let text = OortCommand.fullMessage(for: error)
            if !text.isEmpty {
                if code == 0 { Console.write(text) } else { Console.error(text) }
            }
        }
        end(with: ExitCode(code))
    }

    /// Ends with an exit code and no words; every end of the program passes here.
    static func end(with code: ExitCode) -> Never {
        CurlClient.shutdownAll()
        exit(code.rawValue)
    }
}

/// The terminal, or whatever stands in its place.
enum Console {
    /// One line to standard output, at once.
    static func write(_ line: String) {
        try? FileHandle.standardOutput.write(contentsOf: Data((line + "\n").utf8))
    }

    /// One line to standard error, at once.
    static func error(_ line: String) {
        try? FileHandle.standardError.write(contentsOf: Data((line + "\n").utf8))
    }

    /// Whether standard output is a terminal.
    static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }
}
