import Foundation
import OortModel

/// Looks at everything that a mount depends on, each thing within a time limit.
struct Doctor: Sendable {
    /// One look.
    struct Check: Sendable {
        /// What is looked at.
        var name: String
        /// How long it may take.
        var limit: Duration
        /// What to do when it takes longer.
        var advice: String
        /// The look itself; it is left alone when its time is over.
        var look: @Sendable () async -> [Finding]
    }

    private let checks: [Check]

    init(_ checks: [Check]) { self.checks = checks }

    /// What all checks found, side by side and in their order.
    func examine() async -> [Finding] {
        await withTaskGroup(of: (Int, [Finding]).self) { group in
            for (place, check) in checks.enumerated() {
                group.addTask { (place, await Self.findings(of: check)) }
            }
            var all = Array(repeating: [Finding](), count: checks.count)
            for await (place, findings) in group { all[place] = findings }
            return all.flatMap(\.self)
        }
    }

    private static func findings(of check: Check) async -> [Finding] {
        let found = await TimeLimit.within(check.limit, check.look)
        return found ?? [
            .trouble(
                check.name,
                "the look at it did not end within \(check.limit.components.seconds) s",
                advice: check.advice
            )
        ]
    }
}

/// Work that may hang: in a system call on a dead disk, or in a program that was asked.
enum TimeLimit {
    /// What the work comes to; nil when it does not end in time, and is left to itself: cancelled,
    /// but not waited for.
    static func within<Result: Sendable>(
        _ limit: Duration,
        _ work: @escaping @Sendable () async -> Result
    ) async -> Result? {
        let (results, result) = AsyncStream<Result?>.makeStream()
        let working = Task { result.yield(await work()) }
        let alarm = Task {
            if (try? await Task.sleep(for: limit)) != nil { result.yield(nil) }
        }
        defer {
            working.cancel()
            alarm.cancel()
        }
        for await first in results { return first }
        return nil
    }

    /// Work that blocks its thread, on a thread of its own.
    static func blocking<Result: Sendable>(
        _ work: @escaping @Sendable () -> Result
    ) async -> Result {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: work()) }
        }
    }
}

/// Whom the doctor looks at: the person's folders and settings, and the mount, if one runs.
struct Patient: Sendable {
    /// The running mount, as far as it could be asked.
    enum Daemon: Sendable {
        /// None runs; `died` is the last one, if it did not end orderly.
        case none(died: DiedMount?)
        /// One runs and answers.
        case answers(StatusReport)
        /// One runs and does not.
        case silent(Failure)
    }

    /// The person's folders.
    var folders: Folders
    /// The settings; the defaults where the file is not right.
    var settings: Settings
    /// What is wrong with the settings' file.
    var settingsFailure: Failure?
    /// The running mount.
    var daemon: Daemon
    /// The mount point: the running mount's, else the one of the settings; nil where even the look at
    /// its path hangs.
    var mountPoint: MountPoint?

    /// Reads the settings and asks the mount.
    init(folders: Folders) async {
        self.folders = folders
        do throws(Failure) {
            settings = try Surroundings(folders: folders).settings
        } catch {
            settings = Settings()
            settingsFailure = error
        }
        daemon = await Self.ask(folders)
        mountPoint = await findMountPoint()
    }

    private func findMountPoint() async -> MountPoint? {
        // A mount that hangs holds everybody who looks at its path.
        switch daemon {
        case .answers(let report):
            return report.mount.map { MountPoint(standardized: $0.mountPoint) }
        case .silent:
            let holder = InstanceLock.holder(path: folders.lockFile)
            return holder.map { MountPoint(standardized: $0.mountPoint) }
        case .none:
            let path = settings.mountPoint ?? folders.defaultMountPoint
            return await TimeLimit.within(.seconds(10)) {
                await TimeLimit.blocking { MountPoint(path) }
            }
        }
    }

    private static func ask(_ folders: Folders) async -> Daemon {
        guard InstanceLock.isHeld(path: folders.lockFile) else {
            let died = InstanceLock.holder(path: folders.lockFile).flatMap { last in
                last.mountPoint.isEmpty
                    ? nil
                    : DiedMount(
                        mountPoint: last.mountPoint,
                        process: last.process,
                        log: folders.logFile
                    )
            }
            return .none(died: died)
        }
        let silence = Failure(
            "the running mount does not answer",
            advice: "See the end of its log (\(folders.logFile)). Start it anew: oort unmount, "
                + "then oort mount. What is not uploaded is kept."
        )
        let answer = await TimeLimit.within(.seconds(15)) { () -> Daemon in
            do throws(Failure) {
                return .answers(try await ControlClient(folders: folders).status())
            } catch {
                return .silent(silence)
            }
        }
        return answer ?? .silent(silence)
    }

    /// Every look there is.
    func checks() -> [Doctor.Check] {
        let patient = self
        func check(
            _ name: String,
            _ seconds: Int,
            _ advice: String,
            _ look: @escaping @Sendable () async -> [Finding]
        ) -> Doctor.Check {
            Doctor.Check(name: name, limit: .seconds(seconds), advice: advice, look: look)
        }
        let disk = "The disk or network folder that it lies on may hang: see dmesg, and mount."
        let net = "The network may lose what is sent: check it, the proxy and the firewall."
        return [
            check("fuse", 10, disk) { await MachineChecks.fuse(MountRequirements()) },
            check("settings", 10, disk) { patient.settingsFindings() },
            check("mount", 10, disk) { await MountChecks(patient).mount() },
            check("leftovers", 10, "A mount hangs: see which by findmnt -t fuse.oort.") {
                await MountChecks(patient).leftovers()
            },
            check("disk", 10, disk) { await MachineChecks.disk(patient.folders) },
            check("catalog", 120, disk) { await MountChecks(patient).catalog() },
            check("keyring", 15, "The desktop's keyring hangs: unlock it, or restart it.") {
                await AccountChecks(patient).keyring()
            },
            check("desktop", 10, disk) { [Desktop.finding(patient.settings)] },
            check("thumbnails", 10, disk) { [PictureScaler.finding(patient.settings)] },
            check("network", 30, net) { await NetworkChecks(patient).look() },
            check("registration", 30, net) { await AccountChecks(patient).registrations() },
            check("account", 45, net) { await AccountChecks(patient).accounts() },
        ]
    }

    private func settingsFindings() -> [Finding] {
        if let settingsFailure { return [.trouble("settings", settingsFailure)] }
        let isThere = FileManager.default.fileExists(atPath: folders.settingsFile)
        return [
            .ok("settings", isThere ? "\(folders.settingsFile) is understood" : "the defaults")
        ]
    }

    /// The services that matter: those of the accounts, or all where there is no account yet.
    func services() -> [CloudService] {
        let accounts = (try? AccountRegistry(folders: folders).accounts()) ?? []
        let used = Services.all.filter { service in
            accounts.contains { $0.service == service.name }
        }
        return used.isEmpty ? Services.withOAuth : used
    }
}
