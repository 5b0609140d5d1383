import ArgumentParser
import Foundation
import OortSignIn
import OortSimulators
import Synchronization

/// `oort demo`.
struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Mount simulated clouds; no account is needed.",
        discussion: """
            `oort demo` mounts them; `oort demo play SCENE` in a second terminal lets something \
            happen there: somebody else edits, the network goes, the account is full.
            """,
        subcommands: [DemoMountCommand.self, DemoPlayCommand.self],
        defaultSubcommand: DemoMountCommand.self
    )
}

/// `oort demo mount`, which is what `oort demo` does.
struct DemoMountCommand: AsyncParsableCommand, StopsOrderly {
    static let configuration = CommandConfiguration(
        commandName: "mount",
        abstract: "Mount five simulated clouds, or more, until Ctrl-C.",
        discussion: """
            The clouds run inside this program and speak the real services' protocols on this \
            machine only. The demo stays until Ctrl-C and leaves nothing behind: its settings, \
            state and cache lie in a temporary folder, and your own mount is not touched.

            There are a Dropbox, a Google Drive, a OneDrive, a Nextcloud and a bucket of S3 that keeps \
            versions; with --all also a Box, a server of WebDAV, the weather and, where OpenSSH's \
            server is installed, SFTP: that one runs as you, without a port, on files in the \
            temporary folder. FTP is not shown.
            """
    )

    @Flag(help: "Every kind of cloud that can be simulated.")
    var all = false

    @Argument(
        help: ArgumentHelp(
            "The folder to mount on (default: ~/clouds).",
            valueName: "mountpoint"
        ),
        completion: .directory
    )
    var mountPoint: String?

    func run() async throws {
        let demo = try DemoFolders()
        defer { demo.remove() }
        let point = MountPoint(mountPoint ?? demo.folders.defaultMountPoint)
        let isNew = !FileManager.default.fileExists(atPath: point.path)
        defer { if isNew { _ = unsafe rmdir(point.path) } }

        let simulators = try await DemoClouds.start(all: all)
        do {
            try await mount(simulators, demo, at: point)
        } catch {
            await simulators.stop()
            throw error
        }
        await simulators.stop()
    }

    private func mount(
        _ simulators: DemoClouds,
        _ demo: DemoFolders,
        at point: MountPoint
    ) async throws {
        try demo.write(settings: simulators.settings)
        let surroundings = try Surroundings(folders: demo.folders)
        let shown = try await simulators.register(in: surroundings, demo)
        try demo.write(
            RunningDemo.Record(
                mountPoint: point.path,
                clouds: simulators.addresses,
                folders: shown.folders
            )
        )
        let file = try LogFile(path: demo.folders.logFile)
        let options = MountOptions(
            folders: demo.folders,
            settings: surroundings.settings,
            mountPoint: point
        )
        let words = Self.words(mountPoint: point.path, shown, demo: demo)
        try await Daemon(options: options, log: { file.write($0) }).run(
            make: CloudMount.make,
            ready: { _ in Console.write(words) }
        )
    }

    private static func words(
        mountPoint: String,
        _ shown: DemoClouds.Shown,
        demo: DemoFolders
    ) -> String {
        let path = Shell.quoted(mountPoint)
        let names = shown.names.joined(separator: ", ")
        let leftOut = shown.leftOut.map { "\n\($0)" }.joined()
        return """
            Simulated clouds are mounted at \(mountPoint): \(names).\(leftOut)

            Try in another terminal:
              ls -l \(path) \(path)/drive
              cp -r /usr/share/doc/bash \(path)/dropbox/
              mv \(path)/dropbox/bash \(path)/onedrive/
              df -h \(path)/*
              getfattr -d \(path)/dropbox/Welcome.txt
              echo more >> \(path)/s3/Welcome.txt; oort versions \(path)/s3/Welcome.txt

            To let `oort status`, `oort status --watch` and `oort sync` there speak to the demo:
              source \(demo.environmentFile)

            To let something happen: oort demo play edit|offline|full|conflict|slow

            Ctrl-C ends the demo; nothing is left behind.
            """
    }
}
