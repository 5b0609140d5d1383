import ArgumentParser
import Foundation

/// `oort service`.
struct ServiceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "service",
        abstract: "Have your clouds mounted at each login, and again after a crash.",
        discussion: """
            The mount then runs as the unit oort.service of your own systemd, with the settings of \
            config.toml. There is one mount for each user: `oort mount` beside the service says that \
            it runs already, and `oort unmount` ends the service until the next login. Where it keeps \
            running between logins is systemd's setting: loginctl enable-linger.
            """,
        subcommands: [ServiceInstallCommand.self, ServiceRemoveCommand.self]
    )
}

/// `oort service install`.
struct ServiceInstallCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "install",
        abstract: "Mount now, and at each login from now on."
    )

    @Option(
        help: ArgumentHelp(
            "The program that the service starts (default: this one).",
            valueName: "file"
        ),
        completion: .file()
    )
    var program: String?

    @Flag(help: "Print the unit and install nothing.")
    var print = false

    func run() async throws {
        let path = program.map { MountPoint($0).path } ?? Self.ownPath
        guard let path else {
            throw Failure(
                "It is not known where this program lies.",
                advice: "Name it: oort service install --program FILE"
            )
        }
        guard !print else {
            // As it is for everybody.
            Console.write(String(ServiceUnit(program: path).text.dropLast()))
            return
        }
        guard FileManager.default.isExecutableFile(atPath: path) else {
            throw Failure("\(path) is no program.", advice: "Name one: --program FILE")
        }
        let services = try await UserServices()
        // A mistake in the settings is better heard of now than from a service.
        let surroundings = try Surroundings()
        try await services.enable(
            ServiceUnit(program: path, environment: ServiceUnit.places())
        )
        let lockFile = surroundings.folders.lockFile
        if InstanceLock.isHeld(path: lockFile),
            let holder = InstanceLock.holder(path: lockFile), !ServiceUnit.runs(holder.process)
        {
            Console.write("The service starts at your next login.")
            Console.write(
                "Until then the mount that you started runs on at \(holder.mountPoint). To let the "
                    + "service take over now: oort unmount, then systemctl --user start oort"
            )
            return
        }
        try await services.start()
        Console.write("The service runs, and starts at each login: your clouds are mounted.")
    }

    private static var ownPath: String? {
        try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    }
}

/// `oort service remove`.
struct ServiceRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Unmount, and mount at login no more; what is not uploaded is kept."
    )

    func run() async throws {
        guard try await UserServices().remove() else {
            throw Failure(
                "No service of Oort's is installed.",
                advice: "There is nothing to do; `oort service install` installs it."
            )
        }
        Console.write("The service is removed. What is not uploaded is kept: oort mount")
    }
}
