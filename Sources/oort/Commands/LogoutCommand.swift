import ArgumentParser
import Foundation

/// `oort logout`.
struct LogoutCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "logout",
        abstract: "Sign out: revoke the account's token and forget it.",
        discussion: """
            The account's folder goes from the mount. This is refused while there are changes \
            that its cloud does not have yet, mounted or not. With --discard they are listed and, \
            once you have typed the account's name, lost.
            """
    )

    @Flag(help: "Lose the changes that its cloud does not have yet.")
    var discard = false

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
        let resting = RestingState(folders: surroundings.folders)
        /// What the person saw and gave up; whatever comes later is kept.
        var most = 0
        if discard {
            let report =
                control.isMountRunning ? try await control.status() : try await resting.report()
            let lost = StatusText.onlyHere(report, of: name)
            if lost.count > 0 { try confirm(lost.lines) }
            most = lost.count
        }
        func forget() async throws {
            if control.isMountRunning {
                try await control.accountRemoved(name, givingUp: most)
            } else {
                try await resting.forget(accountNamed: name, givingUp: most)
            }
        }
        // No work is given up before the sign-out is certain, and no account is signed out before it is
        // certain that nothing would be lost.
        if most == 0 { try await forget() }
        let warning = try await accounts.remove(account)
        if most > 0 { try await forget() }
        Console.write("Signed out of \"\(name)\".")
        if let warning { Console.error(warning) }
    }

    /// Has the person see what is only on this machine, and type the account's name.
    private func confirm(_ lost: [String]) throws(Failure) {
        for line in lost { Console.write(line) }
        Console.write("Signing out loses that for good. To go on, type the account's name:")
        guard Console.readLine()?.trimmingCharacters(in: .whitespacesAndNewlines) == name else {
            throw Failure("That is not the account's name: nothing was changed.")
        }
    }
}
