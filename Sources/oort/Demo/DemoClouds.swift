import OortSignIn
import OortSimulators

/// The simulated services, each with its sample account.
struct DemoClouds: Sendable {
    private let simulators: [Simulators.Running]

    /// Starts every service that can be simulated.
    ///
    /// - Throws: `Failure` when no port can be had.
    static func start() async throws(Failure) -> DemoClouds {
        do {
            return DemoClouds(simulators: try await Simulators.start())
        } catch {
            throw Failure(
                "The simulated clouds cannot be started: \(error)",
                advice: "They need three free ports of 127.0.0.1."
            )
        }
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

    /// Signs in to each, as `oort login --token-file` would.
    func register(in surroundings: Surroundings) async throws(Failure) {
        // Not the desktop's keyring: the demo leaves nothing behind.
        let accounts = try Accounts(
            surroundings,
            store: FileTokenStore(directory: surroundings.folders.tokensFolder)
        )
        for running in simulators {
            guard let service = Services.named(running.name) else { continue }
            let tokens = Tokens(
                accessToken: Secret(running.tokens.access),
                refreshToken: running.tokens.refresh.map { Secret($0) }
            )
            _ = try await accounts.add(
                Credentials(client: OAuthClient(id: "demo"), tokens: tokens),
                service: service,
                name: service.name,
                kept: []
            )
        }
        await accounts.shutdown()
    }
}
