import ArgumentParser
import Foundation

/// `oort unmount`.
struct UnmountCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unmount",
        abstract: "End the mount; what is not uploaded is kept and goes on at the next mount.",
        discussion:
            """
            Says of each account what its cloud does not have yet; `oort sync` waits for that.

            Programs that use the mount are named and have five seconds to let go of it. What they \
            wrote by then is kept; their next calls fail.
            """
    )

    @Argument(
        help: ArgumentHelp(
            "The mount point (default: wherever it is mounted).",
            valueName: "mountpoint"
        ),
        completion: .directory
    )
    var mountPoint: String?

    func run() async throws {
        let folders = try Folders()
        let path = mountPoint.map { MountPoint($0).path }
        guard ControlClient(folders: folders).isMountRunning else {
            return try freeWhatIsDead(path, folders)
        }
        let holder = InstanceLock.holder(path: folders.lockFile)
        let isService = holder.map { ServiceUnit.runs($0.process) } ?? false
        let users = holder.map { MountUser.all(of: $0.mountPoint, but: $0.process) } ?? []
        let unmounted = try await ControlClient(folders: folders).unmount(path)
        if !users.isEmpty { Console.write(MountUser.words(users, of: unmounted)) }
        let clock = ContinuousClock()
        let deadline = clock.now + .seconds(60)
        while InstanceLock.isHeld(path: folders.lockFile) {
            guard clock.now < deadline else {
                throw Failure(
                    "The mount at \(unmounted) did not end within a minute.",
                    advice: "See which programs use it: fuser -vm \(Shell.quoted(unmounted))"
                )
            }
            try await Task.sleep(for: .milliseconds(30))
        }
        Console.write("Unmounted \(unmounted).")
        // The mount is gone, and what its catalog says now is what is left.
        if let report = try? await RestingState(folders: folders).report() {
            for line in StatusText.unsent(report) { Console.write(line) }
        }
        if isService {
            Console.write(
                "It ran as the service \(ServiceUnit.name), which mounts again at your next login, "
                    + "or now by: systemctl --user start oort"
            )
        }
    }

    /// Frees the path of a mount whose process is gone: the one that was named, or else wherever the last
    /// mount was, or one would be.
    private func freeWhatIsDead(_ path: String?, _ folders: Folders) throws {
        var places = [path].compactMap(\.self)
        if places.isEmpty {
            let last = InstanceLock.holder(path: folders.lockFile)?.mountPoint
            // Settings that cannot be read say nothing of a mount.
            let settings = try? Surroundings(folders: folders).settings
            places = [last, settings?.mountPoint, folders.defaultMountPoint].compactMap(\.self)
                .filter { !$0.isEmpty }
        }
        var known: [MountPoint] = []
        for point in places.map({ MountPoint($0) }) where !known.contains(point) {
            known.append(point)
        }
        var freed = false
        for point in known where try point.detachIfDead() {
            Console.write("The mount's process was gone; \(point.path) is free again.")
            freed = true
        }
        guard !freed else { return }
        throw Failure(
            "No mount is running, and nothing of Oort's is mounted at "
                + known.map(\.path).joined(separator: " or ") + ".",
            advice: "There is nothing to do; `oort mount` starts one."
        )
    }
}
