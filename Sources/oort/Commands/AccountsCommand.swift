import ArgumentParser
import Foundation

/// `oort accounts`.
struct AccountsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "accounts",
        abstract: "List the accounts that are signed in."
    )

    @Flag(help: "Print JSON.")
    var json = false

    @Flag(name: .shortAndLong, help: "Say what each account's service can do, and what it cannot.")
    var verbose = false

    func run() async throws {
        let folders = try Folders()
        let accounts = try AccountRegistry(folders: folders).accounts()
        let control = ControlClient(folders: folders)
        let mounted =
            verbose && control.isMountRunning ? try await control.status().accounts : []
        if json {
            let shown = accounts.map { account in
                Shown(account, mounted.first { $0.name == account.name }?.abilities)
            }
            Console.write(json: try ControlCoding.encode(shown, pretty: true))
            return
        }
        if accounts.isEmpty {
            Console.write("No account is signed in; `oort login SERVICE` adds one.")
        }
        for account in accounts {
            let person = [account.displayName, account.email].compactMap(\.self)
                .joined(separator: ", ")
            let columns = [account.name, account.service, person].map { TerminalText.line($0) }
            Console.write(columns.joined(separator: "\t"))
            guard verbose else { continue }
            if let abilities = mounted.first(where: { $0.name == account.name })?.abilities {
                for line in abilities.lines { Console.write("  \(line)") }
            } else {
                Console.write("  What its service can do is told while it is mounted: oort mount")
            }
        }
    }

    /// An account as other programs see it.
    private struct Shown: Encodable {
        let name: String
        let service: String
        let displayName: String?
        let email: String?
        /// With `--verbose`, of accounts that are mounted.
        let abilities: AccountAbilities?

        init(_ account: RegisteredAccount, _ abilities: AccountAbilities?) {
            name = account.name
            service = account.service
            displayName = account.displayName
            email = account.email
            self.abilities = abilities
        }
    }
}
