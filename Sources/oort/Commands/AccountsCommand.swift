import ArgumentParser
import Foundation
import OortModel
import OortTransport

/// `oort accounts`.
struct AccountsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "accounts",
        abstract: "List the accounts that are signed in."
    )

    @Flag(help: "Print JSON.")
    var json = false

    @Flag(
        name: .shortAndLong,
        help: "Say what each account's service can do, what it cannot, and how much room there is."
    )
    var verbose = false

    func run() async throws {
        let folders = try Folders()
        let list = try AccountRegistry(folders: folders).list()
        var shown = list.accounts.map { Shown($0) } + list.unusable.map { Shown($0) }
        if verbose { try await complete(&shown, list.accounts, folders) }
        if json {
            return Console.write(json: try ControlCoding.encode(shown, pretty: true))
        }
        if shown.isEmpty {
            Console.write("No account is signed in; `oort login SERVICE` adds one.")
        }
        for account in shown {
            for line in account.lines(verbose: verbose) { Console.write(line) }
        }
    }

    /// Adds what the running mount knows, or what is stored if none runs; asks no service.
    private func complete(
        _ shown: inout [Shown],
        _ accounts: [RegisteredAccount],
        _ folders: Folders
    ) async throws {
        let control = ControlClient(folders: folders)
        let report =
            control.isMountRunning
            ? try await control.status() : try await RestingState(folders: folders).report()
        for index in shown.indices where shown[index].problem == nil {
            let status = report.accounts.first { $0.name == shown[index].name }
            shown[index].abilities = status?.abilities
            shown[index].usedBytes = status?.usedBytes
            shown[index].totalBytes = status?.totalBytes
        }
        let settings = try Surroundings(folders: folders).settings
        let wire = try Wire.make(settings)
        for account in accounts {
            guard let service = Services.named(account.service),
                let index = shown.firstIndex(where: { $0.name == account.name }),
                shown[index].abilities == nil
            else { continue }
            do throws(ProviderError) {
                shown[index].abilities = try AccountConnection(
                    account,
                    service: service,
                    AccountConnection.Surroundings(
                        settings: settings,
                        folders: folders,
                        // Nothing is asked of anybody, so no secret is needed.
                        store: MemoryTokenStore(nil, of: account.name),
                        wire: wire,
                        logger: SilentLog.logger
                    )
                ).abilities
            } catch {
                shown[index].problem =
                    "\(error.detail): oort login \(service.name) --name "
                    + Shell.quoted(account.name)
            }
        }
        await wire.shutdown()
    }

    /// An account as other programs see it.
    private struct Shown: Encodable {
        let name: String
        let service: String?
        let displayName: String?
        let email: String?
        /// Why it cannot be used; nil where it can.
        var problem: String?
        /// The names of the folder where the account begins; nil for the whole account, and where the
        /// address says it.
        let beginsAt: [String]?
        /// With `--verbose`; nil of a service that keeps no files of the person's.
        var abilities: AccountAbilities?
        /// With `--verbose`, bytes in use at the service as far as that was heard.
        var usedBytes: Int64?
        /// With `--verbose`, bytes that may be used; nil when unknown or without limit.
        var totalBytes: Int64?

        init(_ account: RegisteredAccount) {
            name = account.name
            service = account.service
            displayName = account.displayName
            email = account.email
            beginsAt = account.folder?.path
        }

        init(_ entry: UnusableAccount) {
            name = entry.name ?? entry.title
            service = entry.service
            displayName = nil
            email = nil
            beginsAt = nil
            problem = entry.trouble
        }

        func lines(verbose: Bool) -> [String] {
            let person = [displayName, email].compactMap(\.self).joined(separator: ", ")
            let columns = [name, service ?? "", person].map { TerminalText.line($0) }
            var lines = [columns.joined(separator: "\t")]
            if let problem { lines.append("  \(TerminalText.line(problem))") }
            guard verbose, problem == nil else { return lines }
            if let beginsAt {
                let path = TerminalText.line(beginsAt.joined(separator: "/"))
                lines.append("  It began at the folder \(path) when you signed in.")
            }
            lines += (abilities?.lines ?? ["It keeps no files of yours."]).map { "  \($0)" }
            if abilities != nil {
                let room = usedBytes.map { used in
                    StatusText.room(used: used, total: totalBytes)
                }
                lines.append(
                    "  room\t\(room ?? "not known: no mount has asked, or it does not say")"
                )
            }
            return lines
        }
    }
}
