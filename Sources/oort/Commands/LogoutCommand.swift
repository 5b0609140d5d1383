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
        let signOut = try await SignOut(of: name, Surroundings())
        /// What the person saw and gave up; whatever comes later is kept.
        var most = 0
        if discard {
            let lost = try await signOut.onlyHere()
            if lost.count > 0 { try confirm(lost.lines) }
            most = lost.count
        }
        let warning = try await signOut.run(givingUp: most)
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
