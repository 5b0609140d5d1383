import ArgumentParser
import Foundation

/// `oort logout`.
struct LogoutCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "logout",
        abstract: "Sign out: revoke the account's token and forget it.",
        discussion: """
            The account's folder goes from the mount. This is refused while there are changes \
            that its cloud does not have yet, mounted or not.
            """
    )

    @Argument(help: "The account's name, as `oort accounts` shows it.")
    var name: String

    func run() async throws {
        let surroundings = try Surroundings()
        let accounts = try await Accounts(surroundings)
        let control = ControlClient(folders: surroundings.folders)
        let kept =
            control.isMountRunning
            ? try await control.keptAccounts()
            : try RestingState(folders: surroundings.folders).keptAccounts()
        let account = try accounts.account(named: name, kept: kept)
        if control.isMountRunning {
            try await control.accountRemoved(name)
        } else {
            try await RestingState(folders: surroundings.folders).forget(accountNamed: name)
        }
        let warning = try await accounts.remove(account)
        Console.write("Signed out of \"\(name)\".")
        if let warning { Console.error(warning) }
    }
}
