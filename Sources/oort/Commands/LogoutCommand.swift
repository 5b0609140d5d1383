import ArgumentParser
import Foundation

/// `oort logout`.
struct LogoutCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "logout",
        abstract: "Sign out: revoke the account's token and forget it.",
        discussion: """
            The account's folder goes from the mount. This is refused while a mount has changes \
            of it that the cloud does not have yet.
            """
    )

    @Argument(help: "The account's name, as `oort accounts` shows it.")
    var name: String

    func run() async throws {
        let surroundings = try Surroundings()
        let accounts = try await Accounts(surroundings)
        let account = try accounts.registry.account(named: name)
        let control = ControlClient(folders: surroundings.folders)
        if control.isMountRunning { try await control.accountRemoved(name) }
        let warning = try await accounts.remove(account)
        Console.write("Signed out of \"\(name)\".")
        if let warning { Console.error(warning) }
    }
}
