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
        let unknown = OortCommand.unknownCommand(in: Array(CommandLine.arguments.dropFirst()))
        if let failure = error as? Failure ?? (code == 2 ? unknown : nil) {
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
    /// Words to standard output, at once; what acts on a terminal is shown instead.
    static func write(_ words: String) {
        let text = TerminalText.lines(words) + "\n"
        try? FileHandle.standardOutput.write(contentsOf: Data(text.utf8))
    }

    /// Lines in place of all that the terminal shows; each must fit.
    static func redraw(_ lines: [String]) {
        // Over what was there, so that nothing flickers; then the rest of the line and of the window.
        let text = lines.map { TerminalText.line($0) + "\u{1B}[K\n" }.joined()
        try? FileHandle.standardOutput.write(contentsOf: Data("\u{1B}[H\(text)\u{1B}[J".utf8))
    }

    /// A line to standard error in place of the one that was there; an empty one takes it away.
    static func replaceErrorLine(_ line: String) {
        try? FileHandle.standardError.write(
            contentsOf: Data("\r\u{1B}[K\(TerminalText.line(line))".utf8)
        )
    }

    /// JSON to standard output, as it is, and a line's end.
    static func write(json: Data) {
        try? FileHandle.standardOutput.write(contentsOf: json + [UInt8(ascii: "\n")])
    }

    /// Words to standard error, at once; what acts on a terminal is shown instead.
    static func error(_ words: String) {
        let text = TerminalText.lines(words) + "\n"
        try? FileHandle.standardError.write(contentsOf: Data(text.utf8))
    }

    /// A line of standard input without its end; nil when there is none any more.
    ///
    /// Blocks the thread, which holds no lock of the C library's meanwhile: `exit` would wait for that.
    static func readLine() -> String? {
        var line: [UInt8] = []
        while true {
            var byte: UInt8 = 0
            let count = unsafe read(STDIN_FILENO, &byte, 1)
            if count < 0, errno == EINTR { continue }
            guard count == 1 else {
                return line.isEmpty ? nil : String(decoding: line, as: UTF8.self)
            }
            if byte == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
            line.append(byte)
        }
    }

    /// A line that a person types and nobody sees; nil where no person is there, or the input ends.
    ///
    /// Not `getpass`, which takes Ctrl-C for a part of the line: here a signal ends the program, and the
    /// terminal shows again what is typed.
    static func readHiddenLine(prompt: String) -> String? {
        guard isatty(STDIN_FILENO) == 1, unsafe tcgetattr(STDIN_FILENO, &shown) == 0 else {
            return nil
        }
        var hidden = unsafe shown
        hidden.c_lflag &= ~tcflag_t(ECHO)
        let signals = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP]
        for number in signals {
            signal(number) { number in
                unsafe tcsetattr(STDIN_FILENO, TCSANOW, &Console.shown)
                signal(number, SIG_DFL)
                kill(getpid(), number)
            }
        }
        defer {
            unsafe tcsetattr(STDIN_FILENO, TCSANOW, &shown)
            for number in signals { signal(number, SIG_DFL) }
        }
        unsafe tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden)
        try? FileHandle.standardError.write(contentsOf: Data(TerminalText.line(prompt).utf8))
        defer { try? FileHandle.standardError.write(contentsOf: Data("\n".utf8)) }
        return readLine()
    }

    /// How the terminal was before it hid what a person types.
    ///
    /// Unsafe, because a signal handler reads it; there is one prompt at a time, which sets it before.
    nonisolated(unsafe) private static var shown = termios()

    /// Whether standard output is a terminal.
    static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }
}
