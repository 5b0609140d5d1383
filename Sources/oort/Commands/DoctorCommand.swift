import ArgumentParser
import Foundation

/// `oort doctor`.
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Look at all that a mount needs, and say what to do.",
        discussion: """
            Looks at FUSE, the settings, the mount, its folders and catalog, the keyring, the way to the \
            services, the registrations and the accounts, whether a mount runs or not; every look \
            ends within two minutes. No secret is shown. Exit codes: 0 all is well, 4 something needs \
            a person.
            """
    )

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
        let patient = await Patient(folders: try Folders())
        let report = DoctorReport(await Doctor(patient.checks()).examine())
        if json {
            Console.write(json: try ControlCoding.encode(report, pretty: true))
        } else {
            Console.write(report.text)
        }
        guard report.isWell else { throw ExitCode(4) }
    }
}
