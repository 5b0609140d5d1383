import Foundation
import OortSignIn
import OortSimulators

/// The simulated services, each with its sample account, and, where all is shown, a server of this machine's.
struct DemoClouds: Sendable {
    private let simulators: [Simulators.Running]
    private let isAll: Bool

    /// What a demo shows unless all is asked for: one of each kind.
    private static let usual = ["dropbox", "drive", "onedrive", "nextcloud", "s3"]

    /// Starts the usual services, or all that can be simulated: of a service with several kinds of servers,
    /// only one is shown.
    ///
    /// - Throws: `Failure` when no port can be had.
    static func start(all: Bool) async throws(Failure) -> DemoClouds {
        let known = (Simulators.all + Simulators.others).map(\.name)
        let names = all ? known.filter { Services.named($0) != nil } : usual
        do {
            return DemoClouds(simulators: try await Simulators.start(names), isAll: all)
        } catch {
            throw Failure(
                "The simulated clouds cannot be started: \(error)",
                advice: "They need \(names.count) free ports of 127.0.0.1."
            )
        }
    }

    /// What is signed in to.
    struct Shown: Sendable {
        /// The accounts' names.
        var names: [String] = []
        /// The folders of this machine in which accounts lie that are not simulated, by their names.
        var folders: [String: String] = [:]
        /// What cannot be shown, and why, a sentence each.
        var leftOut: [String] = []
    }

    /// Closes their ports.
    func stop() async {
        for running in simulators { await running.simulator.stop() }
    }

    /// Where each simulator answers, by the name of its account.
    var addresses: [String: String] {
        simulators.reduce(into: [:]) { all, running in
            guard let service = Services.named(running.name) else { return }
            all[service.name] = "http://127.0.0.1:\(running.simulator.port)"
        }
    }

    /// Settings that lead to the simulators in place of the real hosts.
    var settings: String {
        var lines = ["poll_interval = \"2s\""]
        for running in simulators {
            lines += ["[\(running.name)]", "client_id = \"demo\"", "[\(running.name).endpoints]"]
            for host in running.simulator.service.hosts {
                lines.append("\"\(host)\" = \"\(running.simulator.url(host: host))\"")
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// Signs in to each, as `oort login` would.
    func register(
        in surroundings: Surroundings,
        _ demo: DemoFolders
    ) async throws(Failure) -> Shown {
        // Not the desktop's keyring: the demo leaves nothing behind.
        let accounts = try Accounts(
            surroundings,
            store: FileTokenStore(directory: surroundings.folders.tokensFolder)
        )
        var shown = Shown()
        for running in simulators {
            guard let service = Services.named(running.name) else { continue }
            let signIn = try await DemoSignIn(at: running, service, http: accounts.http)
            try await add(service, signIn.credentials, at: signIn.address, accounts)
            shown.names.append(service.name)
        }
        if isAll {
            await addSFTP(in: demo, accounts, &shown)
            shown.leftOut.append(
                "There is no ftp: no server of FTP runs without settings outside of the demo's folder."
            )
        }
        await accounts.shutdown()
        return shown
    }

    private func add(
        _ service: CloudService,
        _ credentials: Credentials?,
        at address: String?,
        _ accounts: Accounts
    ) async throws(Failure) {
        _ = try await accounts.add(
            credentials,
            at: address,
            service: service,
            name: service.name,
            kept: []
        )
    }

    /// Signs in to the machine's own OpenSSH server; a machine that has none, or does not let it run, has a
    /// demo all the same.
    private func addSFTP(
        in demo: DemoFolders,
        _ accounts: Accounts,
        _ shown: inout Shown
    ) async {
        guard let service = Services.named("sftp") else { return }
        do throws(Failure) {
            let server = try await DemoSFTPServer(in: demo)
            // Texts and numbers: nothing that could fail to encode.
            let address = try? JSONEncoder().encode(server.address)
            try await add(
                service,
                nil,
                at: address.map { String(decoding: $0, as: UTF8.self) },
                accounts
            )
            shown.names.append(service.name)
            shown.folders[service.name] = server.files
        } catch {
            shown.leftOut.append("There is no sftp: \(TerminalText.line(error.message))")
        }
    }
}
