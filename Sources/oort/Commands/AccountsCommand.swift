import ArgumentParser
import Foundation

/// `oort accounts`.
struct AccountsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "accounts",
        abstract: "List the accounts that are signed in."
    )

    @Flag(help: "Print JSON.")
    var json = false

    func run() throws {
        let accounts = try AccountRegistry(folders: try Folders()).accounts()
        if json {
            Console.write(
                json: try ControlCoding.encode(accounts.map(Shown.init), pretty: true)
            )
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
        }
    }

    /// An account as other programs see it.
    private struct Shown: Encodable {
        let name: String
        let service: String
        let displayName: String?
        let email: String?

        init(_ account: RegisteredAccount) {
            name = account.name
            service = account.service
            displayName = account.displayName
            email = account.email
        }
    }
}
