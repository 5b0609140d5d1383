import Foundation
import OortModel

/// The systemd user unit that mounts at login and mounts again after a crash.
struct ServiceUnit: Hashable, Sendable {
    /// The unit's name.
    static let name = "oort.service"

    /// The program that it starts, an absolute path.
    var program: String
    /// What its environment has beside the session's own.
    var environment: [String: String] = [:]

    /// The variables that say where Oort keeps things, as far as this environment sets them.
    static func places(
        _ environment: [String: String] = ProcessInfo.processInfo.environment
    ) -> [String: String] {
        let names = ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", Folders.variable]
        return environment.filter { names.contains($0.key) && $0.value.begins(with: "/") }
    }

    /// Whether a process runs in the unit (`man 7 cgroups`, /proc/PID/cgroup).
    static func runs(_ process: Int32) -> Bool {
        let text = try? String(contentsOfFile: "/proc/\(process)/cgroup", encoding: .utf8)
        return (text ?? "").split(separator: "\n").contains { $0.hasSuffix("/" + name) }
    }

    /// The unit's file (`man 5 systemd.service`).
    ///
    /// It has no sandbox: a mount in a namespace of its own is visible nowhere else, and fusermount3 needs
    /// its set-user-ID bit. Only the daemon is stopped: its helpers end with it by themselves, and what a click
    /// in a notice or in the panel opened, which runs in the unit as well, is the person's.
    var text: String {
        let settings = environment.sorted { $0.key < $1.key }.map {
            "Environment=\(Self.quoted("\($0.key)=\($0.value)"))\n"
        }.joined()
        return """
            [Unit]
            Description=Oort, your clouds as one folder
            Documentation=man:oort(1)
            # Tokens may lie in the desktop's keyring. The network is not waited for: the mount comes up
            # without one.
            After=dbus.socket gnome-keyring-daemon.service
            StartLimitIntervalSec=10min
            StartLimitBurst=5

            [Service]
            Type=notify
            NotifyAccess=main
            \(settings)ExecStart=\(Self.quoted(program)) mount --foreground
            # Standard error has the same lines as oort.log.
            Restart=on-failure
            RestartSec=5s
            # Wrong usage does not become right by itself.
            RestartPreventExitStatus=2
            WatchdogSec=3min
            TimeoutStartSec=10min
            TimeoutStopSec=2min
            # A file manager that was opened from here, with all that was opened from there, is no part of
            # the mount: it neither ends with it nor takes it along.
            KillMode=process
            OOMPolicy=continue

            [Install]
            WantedBy=default.target

            """
    }

    /// A word of a unit file, in which `%` stands for itself (`man 5 systemd.syntax`).
    private static func quoted(_ word: String) -> String {
        var result = ""
        for scalar in word.unicodeScalars {
            switch scalar {
            case "%": result += "%%"
            case "\\", "\"": result += "\\\(scalar)"
            case "\n": result += "\\n"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return "\"\(result)\""
    }
}
