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
    private var folder: String

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
        // Until systemd says where it looks itself.
        folder = try Folders(environment: environment).home + "/.config/systemd/user"
        let result = try await ask(["daemon-reload"])
        guard result.status == 0 else {
            throw Failure(
                "No systemd of yours runs here: \(Self.words(result))",
                advice: "Run this in a login session of your own, not by su or sudo. Where no "
                    + "systemd runs at all, add `oort mount` to your session's autostart."
            )
        }
        // This program's own environment may name other folders than the session's.
        if let folder = Self.folder(inSearchPath: try await show("UnitPath")) {
            self.folder = folder
        }
    }

    /// The folder of the person's own units in the list of those in which systemd looks, which begins with
    /// its neighbour; nil where it does not.
    static func folder(inSearchPath list: String) -> String? {
        guard list.utf8.first == UInt8(ascii: "/"),
            let end = list.range(of: "/systemd/user.control")
        else { return nil }
        return list[..<end.lowerBound] + "/systemd/user"
    }

    /// Writes the unit, unless the packaged one is the same, and has it started at each login.
    ///
    /// - Throws: `Failure` when it cannot be written, or systemd refuses it or takes another one.
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
        let taken = try await show("FragmentPath", of: ServiceUnit.name)
        guard (try? String(contentsOfFile: taken, encoding: .utf8)) == unit.text else {
            try? FileManager.default.removeItem(atPath: file)
            try await change(["daemon-reload"])
            throw Failure(
                taken.isEmpty
                    ? "Your systemd does not look for units in \(folder): nothing is installed."
                    : "Your systemd takes another unit, \(taken), before the one of this program: "
                        + "nothing is installed.",
                advice: taken.isEmpty
                    ? "Where it looks: systemctl --user show --property=UnitPath"
                    : "Remove that one, and try again."
            )
        }
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

    /// A property of systemd's own, or of a unit; empty where it has none.
    private func show(_ property: String, of unit: String? = nil) async throws(Failure) -> String {
        let units = unit.map { [$0] } ?? []
        let result = try await ask(["show", "--property=\(property)", "--value"] + units)
        return String(decoding: result.output, as: UTF8.self)
            .trimmingCharacters(in: .whitespacesAndNewlines)
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
