import Foundation
import OortProcesses
import OortSignIn

/// The person's own systemd, which starts and watches units for as long as the person is logged in.
struct UserServices: Sendable {
    /// Where packages put units.
    static let packagedFolder = "/usr/lib/systemd/user"

    private let systemctl: String
    private let environment: [String: String]
    /// Where the person's own units lie.
    private let folder: String

    private var file: String { "\(folder)/\(ServiceUnit.name)" }

    /// Finds systemd.
    ///
    /// - Throws: `Failure` when this machine has none, or has none for this login.
    init(
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) async throws(Failure) {
        self.environment = environment
        guard let systemctl = Program.find("systemctl", environment) else {
            throw Failure(
                "This machine has no systemd, so there is nothing that could run a service.",
                advice: "Let your session start the mount: add `oort mount` to its autostart."
            )
        }
        self.systemctl = systemctl
        // XDG_CONFIG_HOME of the session is where its systemd looks, too.
        let config = try Folders(environment: environment).config as NSString
        folder = config.deletingLastPathComponent + "/systemd/user"
        let result = try await ask(["daemon-reload"])
        guard result.status == 0 else {
            throw Failure(
                "No systemd of yours runs here: \(Self.words(result))",
                advice: "Run this in a login session of your own, not by su or sudo. Where no "
                    + "systemd runs at all, add `oort mount` to your session's autostart."
            )
        }
    }

    /// Writes the unit, unless the packaged one is the same, and has it started at each login.
    ///
    /// - Throws: `Failure` when it cannot be written or systemd refuses it.
    func enable(_ unit: ServiceUnit) async throws(Failure) {
        let packaged = try? String(
            contentsOfFile: "\(Self.packagedFolder)/\(ServiceUnit.name)",
            encoding: .utf8
        )
        do {
            if packaged == unit.text {
                if FileManager.default.fileExists(atPath: file) {
                    try FileManager.default.removeItem(atPath: file)
                }
            } else {
                try FileManager.default.createDirectory(
                    atPath: folder,
                    withIntermediateDirectories: true
                )
                try Data(unit.text.utf8).write(to: URL(filePath: file), options: .atomic)
            }
        } catch {
            throw Failure(
                "The unit \(file) cannot be written: \(error.reason)",
                advice: "Check the permissions and the free space of its folder."
            )
        }
        try await change(["daemon-reload"])
        try await change(["enable", ServiceUnit.name])
    }

    /// Starts the unit now and waits until it is mounted.
    func start() async throws(Failure) {
        let result = try await ask(["start", ServiceUnit.name])
        guard result.status == 0 else {
            throw Failure(
                "The service does not start: \(Self.words(result))",
                advice: "The reason is in: journalctl --user -u \(ServiceUnit.name) -n 20"
            )
        }
    }

    /// Ends the unit, lets it start no more, and takes the file away that `enable` wrote.
    ///
    /// - Returns: whether there was such a unit.
    func remove() async throws(Failure) -> Bool {
        let isKnown = try await ask(["cat", ServiceUnit.name]).status == 0
        let isEnabled = try await ask(["is-enabled", ServiceUnit.name]).status == 0
        let isActive = try await ask(["is-active", ServiceUnit.name]).status == 0
        if isKnown { try await change(["disable", "--now", ServiceUnit.name]) }
        let isOwn = FileManager.default.fileExists(atPath: file)
        if isOwn {
            do {
                try FileManager.default.removeItem(atPath: file)
            } catch {
                throw Failure(
                    "The unit \(file) cannot be removed: \(error.reason)",
                    advice: "Check the permissions of its folder."
                )
            }
            try await change(["daemon-reload"])
        }
        return isEnabled || isActive || isOwn
    }

    private func change(_ arguments: [String]) async throws(Failure) {
        let result = try await ask(arguments)
        guard result.status == 0 else {
            throw Failure(
                "systemctl --user \(arguments.joined(separator: " ")) failed: "
                    + Self.words(result)
            )
        }
    }

    private func ask(_ arguments: [String]) async throws(Failure) -> ProgramOutcome {
        let words = ["--user", "--no-ask-password"] + arguments
        // Longer than the unit may take to start or to stop.
        let result = await Program(systemctl, words, environment: environment)
            .outcome(timeLimit: .seconds(700))
        guard let result else {
            throw Failure(
                "systemctl --user \(arguments.joined(separator: " ")) did not end.",
                advice: "See what your systemd is doing: systemctl --user list-jobs"
            )
        }
        return result
    }

    private static func words(_ result: ProgramOutcome) -> String {
        let text = result.errors.trimmingCharacters(in: .whitespacesAndNewlines)
        return text.isEmpty ? "it ended with code \(result.status)" : TerminalText.lines(text)
    }
}
