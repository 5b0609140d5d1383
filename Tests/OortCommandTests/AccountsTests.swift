import Foundation
import OortModel
import OortSignIn
import OortSimulators
import Testing

@testable import oort

@Suite("Accounts", .timeLimit(.minutes(15)))
struct AccountsTests {
    /// A simulated service, a user who has nothing yet, and the user's accounts.
    private struct World {
        let folder: TemporaryFolder
        let simulator: Simulators.Running
        let service: CloudService
        let surroundings: Surroundings
        let accounts: Accounts

        var credentials: Credentials {
            let issued = simulator.simulator.account.tokens.issue()
            return Credentials(
                client: OAuthClient(id: "test", secret: Secret("of the tests")),
                tokens: Tokens(
                    accessToken: Secret(issued.access),
                    refreshToken: issued.refresh.map { Secret($0) }
                )
            )
        }
    }

    private func withWorld(
        _ name: String,
        _ body: (World) async throws -> Void
    ) async throws {
        let folder = try TemporaryFolder()
        let folders = try folder.folders()
        try folders.make()
        let running = try #require(
            try await Simulators.start([name], isSample: false).first,
            "no simulator of \(name)"
        )
        var lines = ["[\(name).endpoints]"]
        for host in running.simulator.service.hosts {
            lines.append("\"\(host)\" = \"\(running.simulator.url(host: host))\"")
        }
        try FileManager.default.createDirectory(
            atPath: folders.config,
            withIntermediateDirectories: true
        )
        try Data(lines.joined(separator: "\n").utf8).write(
            to: URL(filePath: folders.settingsFile)
        )
        let surroundings = try Surroundings(folders: folders)
        let accounts = try Accounts(
            surroundings,
            store: FileTokenStore(directory: folders.tokensFolder)
        )
        let world = World(
            folder: folder,
            simulator: running,
            service: try #require(Services.named(name)),
            surroundings: surroundings,
            accounts: accounts
        )
        do {
            try await body(world)
        } catch {
            await accounts.shutdown()
            await running.simulator.stop()
            throw error
        }
        await accounts.shutdown()
        await running.simulator.stop()
    }

    @Test("a sign-in asks whose account it is and keeps the tokens", arguments: Services.withOAuth)
    func signIn(_ service: CloudService) async throws {
        try await withWorld(service.name) { world async throws in
            let account = try await world.accounts.add(
                world.credentials,
                service: service,
                name: nil,
                kept: []
            )
            #expect(account.name == service.name)
            #expect(account.displayName == "Ada Example")
            #expect(try world.accounts.registry.accounts() == [account])
            #expect(try await world.accounts.store.credentials(of: service.name) != nil)

            let again = try await world.accounts.add(
                world.credentials,
                service: service,
                name: nil,
                kept: []
            )
            #expect(again.name == service.name, "the same person's account keeps its name")
            #expect(try world.accounts.registry.accounts().count == 1)
        }
    }

    @Test("tokens that the service refuses are not kept", arguments: Services.withOAuth)
    func refusedTokens(_ service: CloudService) async throws {
        try await withWorld(service.name) { world async throws in
            let wrong = Credentials(
                client: nil,
                tokens: Tokens(accessToken: Secret("no-such-token"))
            )
            let failure = try await #require(throws: Failure.self) {
                try await world.accounts.add(wrong, service: service, name: nil, kept: [])
            }
            #expect(failure.message.contains(service.title) == true)
            #expect(failure.message.contains("no-such-token") == false)
            #expect(try world.accounts.registry.accounts().isEmpty)
            #expect(try await world.accounts.store.credentials(of: service.name) == nil)
        }
    }

    @Test(
        "a sign-out forgets the tokens and the account, and tells where nothing revokes them",
        arguments: Services.withOAuth
    )
    func signOut(_ service: CloudService) async throws {
        try await withWorld(service.name) { world async throws in
            let account = try await world.accounts.add(
                world.credentials,
                service: service,
                name: "mine",
                kept: []
            )
            let warning = try await world.accounts.remove(account)
            let authorization = try #require(service.oauth).authorization(Hosts([:]))
            #expect((warning == nil) == (authorization.revocation != nil))
            #expect(try world.accounts.registry.accounts().isEmpty)
            #expect(try await world.accounts.store.credentials(of: "mine") == nil)
        }
    }

    @Test("a sign-out tells of tokens that were not found, and of a keyring that is locked")
    func signOutWithoutTokens() async throws {
        let service = try #require(Services.withOAuth.first)
        try await withWorld(service.name) { world async throws in
            let account = try await world.accounts.add(
                world.credentials,
                service: service,
                name: "mine",
                kept: []
            )
            // As with tokens in a keyring, and no session bus.
            try await world.accounts.store.forget("mine")
            let unfound = try await world.accounts.remove(account)
            #expect(unfound?.contains("no tokens of mine were found") == true)
            #expect(try world.accounts.registry.accounts().isEmpty)

            let locked = try Accounts(world.surroundings, store: LockedStore())
            try locked.registry.put(account)
            let warning = try await locked.remove(account)
            await locked.shutdown()
            #expect(warning?.contains("nor removed from the keyring") == true)
            #expect(warning?.contains("It is forgotten here") == false)
            #expect(try world.accounts.registry.accounts().isEmpty)
        }
    }

    @Test("a sign-in goes over tokens that are damaged")
    func damagedTokens() async throws {
        let service = try #require(Services.withOAuth.first)
        try await withWorld(service.name) { world async throws in
            func add() async throws -> RegisteredAccount {
                try await world.accounts.add(
                    world.credentials,
                    service: service,
                    name: "mine",
                    kept: []
                )
            }
            let account = try await add()
            try Data("{".utf8).write(
                to: URL(filePath: world.surroundings.folders.tokensFolder + "/mine.json")
            )
            #expect(try await world.accounts.client(ofAccount: "mine") == nil)
            #expect(try await add() == account)
            #expect(try await world.accounts.client(ofAccount: "mine") != nil)
        }
    }

    @Test("a name is not given to a second account")
    func takenNames() async throws {
        let service = try #require(Services.all.first)
        try await withWorld(service.name) { world async throws in
            try world.accounts.registry.put(
                RegisteredAccount(
                    name: "home",
                    service: service.name,
                    identity: "somebody-else",
                    email: "b@example.com"
                )
            )
            let failure = try await #require(throws: Failure.self) {
                try await world.accounts.add(
                    world.credentials,
                    service: service,
                    name: "home",
                    kept: []
                )
            }
            #expect(failure.message.contains("(\(service.title), b@example.com)") == true)
        }
    }

    @Test("a refresh token is not spent for a name that is taken, or it is said")
    func spentToken() async throws {
        try await withWorld("box") { world async throws in
            var old = world.credentials
            old.tokens.expires = Timestamp(seconds: 0)
            for (service, isSpent) in [("dropbox", false), ("box", true)] {
                try world.accounts.registry.put(
                    RegisteredAccount(name: "home", service: service, identity: "somebody-else")
                )
                let failure = try await #require(throws: Failure.self) {
                    try await world.accounts.add(
                        old,
                        service: world.service,
                        name: "home",
                        kept: []
                    )
                }
                #expect(failure.message.contains("The name \"home\" is already"))
                #expect(failure.message.contains("is used up") == isSpent)
            }
        }
    }

    @Test("one person's account is not taken a second time under another name")
    func twice() async throws {
        let service = try #require(Services.all.first)
        try await withWorld(service.name) { world async throws in
            let first = try await world.accounts.add(
                world.credentials,
                service: service,
                name: nil,
                kept: []
            )
            let failure = try await #require(throws: Failure.self) {
                try await world.accounts.add(
                    world.credentials,
                    service: service,
                    name: "other",
                    kept: []
                )
            }
            #expect(failure.message.contains("\"\(first.name)\"") == true)
            #expect(failure.advice?.contains("oort logout \(first.name)") == true)
            #expect(try world.accounts.registry.accounts() == [first])
            #expect(try await world.accounts.store.credentials(of: "other") == nil)
        }
    }

    @Test("whose files are kept under a name decides whose the name is, whatever the list says")
    func keptFiles() async throws {
        let service = try #require(Services.all.first)
        try await withWorld(service.name) { world async throws in
            let first = try await world.accounts.add(
                world.credentials,
                service: service,
                name: nil,
                kept: []
            )
            var hers = KeptAccount(first)
            hers.identity = "somebody-else"
            hers.person = "c@example.com"
            let failure = try await #require(throws: Failure.self) {
                try await world.accounts.add(
                    world.credentials,
                    service: service,
                    name: service.name,
                    kept: [hers]
                )
            }
            #expect(failure.message.contains("c@example.com") == true)
            #expect(failure.advice?.contains("--name \(service.name)-2") == true)
            #expect(try world.accounts.registry.accounts() == [first])

            let other = try await world.accounts.add(
                world.credentials,
                service: service,
                name: nil,
                kept: [hers]
            )
            #expect(other.name == "\(service.name)-2", "a name of its own")

            // The list is lost: what is kept under another name is found again.
            try world.accounts.registry.remove(named: service.name)
            try world.accounts.registry.remove(named: other.name)
            var mine = KeptAccount(first)
            mine.name = "mine"
            let again = try await world.accounts.add(
                world.credentials,
                service: service,
                name: nil,
                kept: [hers, mine]
            )
            #expect(again.name == "mine")
        }
    }

    @Test("hosts are where the settings say")
    func hosts() {
        let hosts = Hosts(["api.example.com": "http://127.0.0.1:9/api.example.com/"])
        #expect(
            hosts.place("https://api.example.com/v1/x")
                == "http://127.0.0.1:9/api.example.com/v1/x"
        )
        #expect(hosts.place("https://api.example.com") == "http://127.0.0.1:9/api.example.com")
        #expect(hosts.place("https://www.example.com/a") == "https://www.example.com/a")
    }
}

/// A store of which nothing can be read or forgotten.
private struct LockedStore: TokenStore {
    var place: String { "the keyring" }

    func lock(
        _ account: String,
        patience: Duration
    ) async throws(SignInError) -> CredentialsLock { CredentialsLock() }

    func credentials(of account: String) async throws(SignInError) -> Credentials? {
        throw .store("it is locked")
    }

    func keep(_ credentials: Credentials, of account: String) async throws(SignInError) {
        throw .store("it is locked")
    }

    func forget(_ account: String) async throws(SignInError) { throw .store("it is locked") }
}
