import Foundation
import Logging
import OortModel
import OortProcesses
import OortSignIn
import Synchronization
import SystemPackage

/// The desktop of the person whose mount it is, as far as it is there: the programs that speak to it.
struct Desktop: Sendable {
    /// `notify-send`, where there is a session bus to speak to.
    let notifier: String?
    /// `systemd-inhibit`, where there is a system bus to speak to.
    let inhibitor: String?
    /// What opens folders and addresses.
    let opener: String?
    /// The program that shows an icon in the panel, with its arguments, where the package has brought
    /// it and there is a session bus to speak to.
    let tray: [String]?
    private let environment: [String: String]

    /// Looks for the programs and the buses of this environment that the settings want used.
    init(
        _ settings: Settings,
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) {
        self.environment = environment
        let hasSession = Self.isBus(
            environment["DBUS_SESSION_BUS_ADDRESS"]
                ?? environment["XDG_RUNTIME_DIR"].map { "unix:path=\($0)/bus" }
        )
        let hasSystem = Self.isBus(
            environment["DBUS_SYSTEM_BUS_ADDRESS"] ?? "unix:path=/run/dbus/system_bus_socket"
        )
        notifier =
            hasSession && settings.showsNotices
            ? Program.find("notify-send", environment) : nil
        inhibitor =
            hasSystem && settings.delaysSleep
            ? Program.find("systemd-inhibit", environment) : nil
        opener = Program.find("xdg-open", environment)
        tray = hasSession && settings.showsTray ? Self.packagedTray : nil
    }

    /// The tray's program beside this one, as packages lay them: PREFIX/bin/oort and PREFIX/share.
    private static var packagedTray: [String]? {
        let manager = FileManager.default
        // The system's, for which its libraries are, and not one that the person has in a folder.
        let python = "/usr/bin/python3"
        guard let own = try? manager.destinationOfSymbolicLink(atPath: "/proc/self/exe") else {
            return nil
        }
        let folder = (own as NSString).deletingLastPathComponent as NSString
        let script = folder.deletingLastPathComponent + "/share/oort/desktop/oort_tray.py"
        guard manager.fileExists(atPath: script), manager.isExecutableFile(atPath: python) else {
            return nil
        }
        return [python, script, own]
    }

    /// What `oort doctor` says of it: a mount does its work without any desktop.
    static func finding(_ settings: Settings) -> Finding {
        guard settings.showsNotices else {
            return .ok("desktop", "notices are off in the settings")
        }
        let environment = ProcessInfo.processInfo.environment
        guard Program.find("notify-send", environment) != nil else {
            return .unknown(
                "desktop",
                "notify-send is not installed: troubles are not shown on the desktop "
                    + "(apt-get install libnotify-bin)"
            )
        }
        return Desktop(settings).notifier == nil
            ? .ok("desktop", "there is no session here on which troubles could be shown")
            : .ok("desktop", "troubles are shown on the desktop")
    }

    /// Whether a bus may answer at an address; of a socket's path, whether it is there.
    private static func isBus(_ address: String?) -> Bool {
        guard let address else { return false }
        guard let path = address.dropping(beginning: "unix:path=") else { return true }
        return FileManager.default.fileExists(atPath: String(path.prefix { $0 != "," }))
    }

    /// Whether there is anything to speak to.
    var isThere: Bool { notifier != nil || inhibitor != nil || tray != nil }

    /// Shows the icon in the panel, as long as the program that is returned runs; nil where there is
    /// none to show.
    func showTray() -> DesktopProgram? {
        guard let tray, let program = tray.first else { return nil }
        return DesktopProgram(program, Array(tray.dropFirst()), environment) { _, _ in }
    }

    /// Shows a notice until a person closes it; nil where it cannot be shown.
    ///
    /// `clicked` is called when the person wants what the notice offers.
    func show(
        _ notice: Notice,
        clicked: @escaping @Sendable (Notice.Action) -> Void
    ) -> DesktopProgram? {
        guard let notifier else { return nil }
        var arguments = [
            "--app-name=Oort", "--icon=oort", "--category=transfer",
            "--urgency=\(notice.isUrgent ? "critical" : "normal")",
        ]
        if let action = notice.action { arguments.append("--action=go=\(Self.label(action))") }
        arguments += ["--", TerminalText.line(notice.title), Self.markup(notice.body)]
        return DesktopProgram(notifier, arguments, environment) { _, output in
            guard let action = notice.action, output.hasPrefix("go") else { return }
            clicked(action)
        }
    }

    private static func label(_ action: Notice.Action) -> String {
        switch action {
        case .show: "Show"
        case .signIn: "Sign in"
        }
    }

    /// A body as `notify-send` takes it: the markup of the desktop notifications' specification, in which
    /// backslashes begin escapes.
    ///
    /// Names in it must be one line each already.
    static func markup(_ text: String) -> String {
        var result = String.UnicodeScalarView()
        // Scalars, since to Swift a letter and a mark that joins it are one character.
        for scalar in TerminalText.lines(text).unicodeScalars {
            let words =
                switch scalar {
                case "&": "&amp;"
                case "<": "&lt;"
                case ">": "&gt;"
                case "\\": "\\\\"
                default: String(scalar)
                }
            result.append(contentsOf: words.unicodeScalars)
        }
        return String(result)
    }

    /// Asks logind to wait with sleep and shutdown while the returned program runs; nil where logind cannot
    /// be asked.
    func delaySleep(why: String) -> DesktopProgram? {
        guard let inhibitor else { return nil }
        // It holds the lock as long as its own program runs, and that ends with its input, at the
        // latest with this process.
        return DesktopProgram(
            inhibitor,
            ["--what=sleep:shutdown", "--mode=delay", "--who=Oort", "--why=\(why)", "cat"],
            environment
        ) { _, _ in }
    }

    /// Does what the person clicked, and returns whether that succeeded, when the person is done.
    func perform(_ action: Notice.Action) async -> Bool {
        let environment = await windowEnvironment()
        var program: Program
        switch action {
        case .show(let folder):
            guard let opener else { return false }
            program = Program(opener, [folder], environment: environment)
        case .signIn(let account, let service):
            program = .own(["login", service, "--name", account], environment: environment)
        }
        program.grouping = .session
        guard let running = try? RunningProgram(program) else { return false }
        return await running.wait().isSuccess
    }

    /// What a program needs to show a window.
    private static let windowVariables: Set = [
        "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_CURRENT_DESKTOP", "XDG_SESSION_TYPE",
    ]

    /// The environment of a program that shows windows.
    ///
    /// A mount that began before the desktop did does not know where these are shown, but the person's own
    /// systemd knows by now.
    private func windowEnvironment() async -> [String: String] {
        guard environment["DISPLAY"] == nil, environment["WAYLAND_DISPLAY"] == nil,
            let systemctl = Program.find("systemctl", environment),
            let said = await Program(
                systemctl,
                ["--user", "show-environment"],
                environment: environment
            ).outcome(timeLimit: .seconds(5)), said.status == 0
        else { return environment }
        let known = Self.variables(String(decoding: said.output, as: UTF8.self))
        return environment.merging(known.filter { Self.windowVariables.contains($0.key) }) { $1 }
    }

    /// The variables that `systemctl show-environment` lists; values that are no plain words stand as
    /// `$'…'`, with backslashes.
    static func variables(_ list: String) -> [String: String] {
        var result: [String: String] = [:]
        for line in list.split(separator: "\n") {
            guard let (name, value) = line.cut(atFirst: "=") else { continue }
            guard value.hasPrefix("$'"), value.hasSuffix("'"), value.count > 2 else {
                result[String(name)] = String(value)
                continue
            }
            var plain = ""
            var isEscaped = false
            for letter in value.dropFirst(2).dropLast() {
                isEscaped = letter == "\\" && !isEscaped
                if !isEscaped { plain.append(letter) }
            }
            result[String(name)] = plain
        }
        return result
    }
}

/// A program that speaks to the desktop, and runs until it ends by itself, `end`, or the end of the
/// process that started it.
final class DesktopProgram: Sendable {
    private let running: RunningProgram
    /// Where its input comes from; nil when that is over.
    private let input: Mutex<FileDescriptor?>

    /// Starts it; nil when it cannot be started.
    ///
    /// `ended` is called once, with whether it succeeded and what it printed, at most what a pipe holds
    /// (64 KiB).
    init?(
        _ path: String,
        _ arguments: [String],
        _ environment: [String: String],
        ended: @escaping @Sendable (_ succeeded: Bool, _ output: String) -> Void
    ) {
        guard let input = try? ProgramPipe() else { return nil }
        defer { try? input.reading.close() }
        guard let output = try? ProgramPipe() else {
            try? input.writing.close()
            return nil
        }
        defer { try? output.writing.close() }
        var program = Program(path, arguments, environment: environment)
        program.input = .descriptor(input.reading)
        program.output = .descriptor(output.writing)
        do throws(Errno) { running = try RunningProgram(program) } catch {
            try? input.writing.close()
            try? output.reading.close()
            return nil
        }
        self.input = Mutex(input.writing)
        running.whenEnded { end in
            let said = output.reading.readWhatIsThere()
            try? output.reading.close()
            ended(end.isSuccess, String(decoding: said, as: UTF8.self))
        }
    }

    deinit { letGo() }

    /// Whether it runs.
    var isRunning: Bool { running.isRunning }

    /// Whether it did what it was started for; nil while it runs.
    var succeeded: Bool? { running.end.map(\.isSuccess) }

    /// Lets it end by itself: its input is over.
    func letGo() { input.withLock { try? $0.take()?.close() } }

    /// Ends it.
    func end() {
        letGo()
        running.send(SIGKILL)
    }
}
