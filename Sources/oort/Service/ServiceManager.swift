import Foundation
import OortModel
import ServiceLifecycle

/// The service manager that started this process and waits for its word, as systemd does for units
/// of `Type=notify` (`man 3 sd_notify`).
struct ServiceManager: Sendable {
    /// The address of its datagram socket: a path, or a name that begins with `@`.
    private let address: String
    /// How long it waits for a sign of life before it takes the process for hung; nil for ever.
    let patience: Duration?

    /// The manager that the environment names; nil when there is none.
    ///
    /// The variables are removed from the environment: programs that are started from here must not speak
    /// for this process.
    init?(environment: [String: String] = ProcessInfo.processInfo.environment) {
        guard let address = environment["NOTIFY_SOCKET"],
            address.begins(with: "/") || address.begins(with: "@")
        else { return nil }
        self.address = address
        // Meant for another process where it names one (`man 3 sd_watchdog_enabled`).
        let isForUs = environment["WATCHDOG_PID"].map { $0 == "\(getpid())" } ?? true
        let microseconds = environment["WATCHDOG_USEC"].flatMap(Int64.init) ?? 0
        patience = isForUs && microseconds > 0 ? .microseconds(microseconds) : nil
        for name in ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"] {
            unsafe unsetenv(name)
        }
    }

    /// Says one or more lines of the protocol, such as `READY=1`; a manager that does not listen
    /// is passed over.
    func say(_ state: String) {
        var target = sockaddr_un()
        target.sun_family = sa_family_t(AF_UNIX)
        var bytes = Array(address.utf8)
        // The abstract namespace's names begin with a zero (`man 7 unix`).
        let isAbstract = bytes.first == UInt8(ascii: "@")
        if isAbstract { bytes[0] = 0 }
        guard bytes.count < MemoryLayout.size(ofValue: target.sun_path) else { return }
        unsafe withUnsafeMutableBytes(of: &target.sun_path) { unsafe $0.copyBytes(from: bytes) }
        // Without the zeros after an abstract name, which would be part of it.
        let length = MemoryLayout<sa_family_t>.size + bytes.count + (isAbstract ? 0 : 1)
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        let text = Array(state.utf8)
        _ = unsafe withUnsafePointer(to: target) { target in
            unsafe target.withMemoryRebound(to: sockaddr.self, capacity: 1) { target in
                unsafe sendto(
                    descriptor,
                    text,
                    text.count,
                    Int32(MSG_NOSIGNAL),
                    target,
                    socklen_t(length)
                )
            }
        }
    }
}

/// Reports to the service manager that the daemon lives, as long as it does, and that it ends.
struct ServiceReports: Service {
    /// Who receives the reports.
    let manager: ServiceManager
    /// Whether the daemon answers: asked again and again, and a sign of life is given only then.
    let answers: @Sendable () async -> Bool

    func run() async throws {
        try? await cancelWhenGracefulShutdown {
            guard let patience = manager.patience else {
                try await gracefulShutdown()
                return
            }
            while true {
                if await answers() { manager.say("WATCHDOG=1") }
                // Thrice in the time, so that one answer may be late.
                try await Task.sleep(for: patience / 3)
            }
        }
        manager.say("STOPPING=1\nSTATUS=Unmounting.")
    }
}
