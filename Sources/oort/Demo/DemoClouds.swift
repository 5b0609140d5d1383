import Foundation
import OortSignIn
import OortSimulators
import OortTransport
import OortWeather
import OortWebDAV

/// The simulated services, each with its sample account.
struct DemoClouds: Sendable {
    private let simulators: [Simulators.Running]

    /// What a demo shows unless all is asked for: one of each kind.
    private static let usual = ["dropbox", "drive", "onedrive", "nextcloud"]

    /// Starts the usual services, or all that can be simulated: other servers of a service's are not shown
    /// beside it.
    ///
    /// - Throws: `Failure` when no port can be had.
    static func start(all: Bool) async throws(Failure) -> DemoClouds {
        let known = (Simulators.all + Simulators.others).map(\.name)
        let names = all ? known.filter { Services.named($0) != nil } : usual
        do {
            return DemoClouds(simulators: try await Simulators.start(names))
        } catch {
            throw Failure(
                "The simulated clouds cannot be started: \(error)",
                advice: "They need \(names.count) free ports of 127.0.0.1."
            )
        }
    }

    /// The accounts' names.
    var names: [String] { simulators.map(\.name) }

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

    /// Signs in to each, as `oort login --token-file` would.
    func register(in surroundings: Surroundings) async throws(Failure) {
        // Not the desktop's keyring: the demo leaves nothing behind.
        let accounts = try Accounts(
            surroundings,
            store: FileTokenStore(directory: surroundings.folders.tokensFolder)
        )
        for running in simulators {
            guard let service = Services.named(running.name) else { continue }
            let (credentials, address) = try await signIn(running, service, accounts)
            _ = try await accounts.add(
                credentials,
                at: address,
                service: service,
                name: service.name,
                kept: []
            )
        }
        await accounts.shutdown()
    }

    /// What a person would sign in with, and where the account lies at a server of one's own.
    private func signIn(
        _ running: Simulators.Running,
        _ service: CloudService,
        _ accounts: Accounts
    ) async throws(Failure) -> (Credentials?, address: String?) {
        let secret = Secret(running.tokens.access)
        do {
            if service.oauth != nil {
                let tokens = Tokens(
                    accessToken: secret,
                    refreshToken: running.tokens.refresh.map { Secret($0) }
                )
                let client = OAuthClient(id: "demo", secret: Secret("demo"))
                return (Credentials(client: client, tokens: tokens), nil)
            }
            guard running.name == "nextcloud" else {
                let weather = WeatherAccount(source: .openMeteo, contact: nil)
                return (nil, String(decoding: try JSONEncoder().encode(weather), as: UTF8.self))
            }
            let url = running.simulator.url(host: NextcloudSimulator.host)
            var server = try await WebDAVDiscovery.server(
                at: url,
                dialect: nil,
                http: accounts.http
            )
            server.address.user = NextcloudSimulator.loginName
            let account = try await WebDAVDiscovery.account(
                at: server,
                http: DAVSignIn.client(of: server, secret, http: accounts.http)
            )
            return (
                Credentials(client: nil, tokens: Tokens(accessToken: secret)),
                String(decoding: try JSONEncoder().encode(account), as: UTF8.self)
            )
        } catch {
            throw Failure("The simulated \(service.title) cannot be signed in to: \(error)")
        }
    }
}
