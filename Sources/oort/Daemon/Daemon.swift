import Foundation
import Logging
import ServiceLifecycle

/// What a mount is to do, settings and flags together.
struct MountOptions: Sendable {
    /// Where the state, the cache and the socket lie.
    var folders: Folders
    /// The settings, with what the flags override.
    var settings: Settings
    /// Where to mount.
    var mountPoint: MountPoint
    /// Whether nothing may be changed.
    var isReadOnly = false
    /// Whether other users may use the mount.
    var allowsOtherUsers = false
    /// The permissions that what came from a service does not give, 0777.
    var umask: UInt16 = 0o022
    /// Whether the log has every step.
    var isVerbose = false
}

/// The file system, its engines and what answers the control socket, as one service: it is mounted
/// while it runs.
protocol MountedClouds: MountControl, Service {}

/// One run of a mount, from the checks before it to the last thing closed.
struct Daemon {
    private let options: MountOptions
    private let manager: ServiceManager?
    private let logger: Logger

    /// A run that writes its log to `log`, and reports to a service manager, if one started it.
    init(
        options: MountOptions,
        manager: ServiceManager? = nil,
        log: @escaping @Sendable (String) -> Void
    ) {
        self.options = options
        self.manager = manager
        let level: Logger.Level = options.isVerbose ? .debug : .info
        logger = Logger(label: "oort") { LineLogHandler(label: $0, level: level, write: log) }
    }

    /// Mounts, serves until a stop signal or `oort unmount`, and unmounts.
    ///
    /// - Parameters:
    ///   - make: builds the mount; called once the state is ours and the mount point is ready.
    ///   - ready: called once it is mounted and the socket answers.
    /// - Throws: `Failure` when it could not be mounted.
    func run<Clouds: MountedClouds>(
        make: (MountOptions, Logger) async throws(Failure) -> Clouds,
        ready: @escaping @Sendable (ReadyMessage) -> Void
    ) async throws {
        try options.folders.make()
        let lock = try InstanceLock(
            path: options.folders.lockFile,
            mounting: options.mountPoint.path
        )
        defer { withExtendedLifetime(lock) {} }
        try options.mountPoint.prepare()
        // A daemon must not keep the folder busy in which it happened to be started.
        _ = FileManager.default.changeCurrentDirectoryPath("/")
        logger.info(
            "starting",
            metadata: [
                "version": "\(OortVersion.current)", "mount": "\(options.mountPoint.path)",
                "process": "\(getpid())",
            ]
        )
        let accounts = try AccountRegistry(folders: options.folders).accounts().map(\.name)
        let clouds = try await make(options, logger)
        let server = ControlServer(
            path: options.folders.socket,
            control: clouds,
            logger: logger
        )
        // The last one is the first to hear of an end.
        var services: [any Service] = [clouds, server]
        if let manager {
            services.append(
                ServiceReports(manager: manager) { [folders = options.folders] in
                    await Self.answers(folders)
                }
            )
        }
        let group = ServiceGroup(
            configuration: .init(
                services: services.map {
                    .init(
                        service: $0,
                        successTerminationBehavior: .gracefullyShutdownGroup,
                        failureTerminationBehavior: .gracefullyShutdownGroup
                    )
                },
                logger: logger
            )
        )
        Signals.onStop { Task { await group.triggerGracefulShutdown() } }
        let announcement = Task {
            await Self.whenAnswering(options.folders)
            let place = TerminalText.line(options.mountPoint.path)
            manager?.say("READY=1\nSTATUS=Mounted at \(place).")
            ready(ReadyMessage(mountPoint: options.mountPoint.path, accounts: accounts))
        }
        defer { announcement.cancel() }
        do {
            try await group.run()
        } catch {
            logger.error("ended by an error", metadata: ["error": "\(error)"])
            throw error
        }
        logger.info("ended")
    }

    /// Returns once the mount answers on its socket, or the task is cancelled.
    private static func whenAnswering(_ folders: Folders) async {
        while !Task.isCancelled {
            if await answers(folders) { return }
            try? await Task.sleep(for: .milliseconds(20))
        }
    }

    /// Whether the mount answers on its socket: the server, the mount, its catalog and its engines.
    private static func answers(_ folders: Folders) async -> Bool {
        let report = try? await ControlClient(folders: folders).status()
        return report?.mount != nil
    }
}
