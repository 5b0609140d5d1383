import ArgumentParser
import Foundation

/// `oort unmount`.
struct UnmountCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unmount",
        abstract: "End the mount; what is not uploaded is kept and goes on at the next mount.",
        discussion:
            "Says of each account what its cloud does not have yet; `oort sync` waits for that."
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
            let point = MountPoint(path ?? folders.defaultMountPoint)
            guard try point.detachIfDead() else {
                throw Failure(
                    "No mount is running, and nothing of Oort's is mounted at \(point.path).",
                    advice: "There is nothing to do; `oort mount` starts one."
                )
            }
            Console.write("The mount's process was gone; \(point.path) is free again.")
            return
        }
        let holder = InstanceLock.holder(path: folders.lockFile)
        let isService = holder.map { ServiceUnit.runs($0.process) } ?? false
        let unmounted = try await ControlClient(folders: folders).unmount(path)
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
}
