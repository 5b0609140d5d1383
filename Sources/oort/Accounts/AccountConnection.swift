import Foundation
import Logging
import OortModel
import OortPlaces
import OortSignIn
import OortTransport

/// One account's strategy with all that its requests pass through.
struct AccountConnection: Sendable {
    private enum Strategy: Sendable {
        case provider(any Provider, StoredTokens, revokes: Bool)
        case place(any PlaceClient, StoredSecret)
        case source(AccountSource)
    }

    private let strategy: Strategy
    private let logger: Logger
    /// What went over the wire for the account.
    let meter: TrafficMeter

    /// What an account's connection is made of beside the account.
    struct Surroundings: Sendable {
        var settings: Settings
        var folders: Folders
        /// Where secrets lie.
        var store: any TokenStore
        /// The way to hosts.
        var wire: any HTTPClient
        /// The limits of contents that go another way.
        var bandwidth = Bandwidth()
        /// How long is tried again.
        var policy = RetryPolicy()
        var logger: Logger
    }

    /// The stack, from the outside in: provider, retry, limit, token, log, meter, libcurl.
    ///
    /// `knownRequests` is what the account's service bore the last time; `remember` hears how that
    /// changes, from any thread, and must not block.
    ///
    /// - Throws: `.signedOut` where it is not known, or cannot be read, where the account lies.
    init(
        _ account: RegisteredAccount,
        service: CloudService,
        _ surroundings: Surroundings,
        knownRequests: Int? = nil,
        remember: @escaping @Sendable (Int) -> Void = { _ in }
    ) throws(ProviderError) {
        logger = surroundings.logger
        let meter = TrafficMeter()
        self.meter = meter
        switch service.access {
        case .oauth(let access):
            strategy = try Self.strategy(
                account,
                access,
                Hosts(surroundings.settings.service(service.name).endpoints),
                surroundings,
                knownRequests,
                remember,
                meter
            )
        case .place(let access):
            let secret = StoredSecret(of: account.name, in: surroundings.store)
            let client = try access.connect(
                Self.placeConnection(account, service, secret, surroundings, meter)
            )
            strategy = .place(client, secret)
        case .source(let access):
            let secret = StoredSecret(of: account.name, in: surroundings.store)
            strategy = .source(
                try access.connect(
                    Self.placeConnection(account, service, secret, surroundings, meter)
                )
            )
        }
    }

    private static func placeConnection(
        _ account: RegisteredAccount,
        _ service: CloudService,
        _ secret: StoredSecret,
        _ surroundings: Surroundings,
        _ meter: TrafficMeter
    ) -> PlaceConnection {
        PlaceConnection(
            text: account.address ?? "",
            secret: secret,
            wire: surroundings.wire,
            bandwidth: surroundings.bandwidth,
            policy: surroundings.policy,
            meter: meter,
            begunUploads: surroundings.folders.placesFile(ofAccount: account.name)
                + Folders.uploadsEnding,
            runtimeFolder: surroundings.folders.socketFolder(),
            caFile: surroundings.settings.caFile,
            hosts: Hosts(surroundings.settings.service(service.name).endpoints),
            units: surroundings.settings.weather,
            keepsTrash: !surroundings.settings.accountsWithoutTrash.contains(account.name),
            logger: surroundings.logger
        )
    }

    private static func strategy(
        _ account: RegisteredAccount,
        _ access: OAuthAccess,
        _ hosts: Hosts,
        _ surroundings: Surroundings,
        _ knownRequests: Int?,
        _ remember: @escaping @Sendable (Int) -> Void,
        _ meter: TrafficMeter
    ) throws(ProviderError) -> Strategy {
        let top: AccountFolder? = try account.address.map { text throws(ProviderError) in
            do { return try JSONDecoder().decode(AccountFolder.self, from: Data(text.utf8)) } catch
            {
                throw ProviderError(.signedOut, detail: "it is not known where the account begins")
            }
        }
        // Asking for a token passes no limit: the requests that wait for it hold their turns.
        let plain = RetryingClient(
            LoggingClient(surroundings.wire, logger: surroundings.logger),
            policy: surroundings.policy
        )
        let authorization = access.authorization(hosts)
        let tokens = StoredTokens(
            account: account.name,
            service: authorization,
            store: surroundings.store,
            http: plain
        )
        let client = AccountClient.make(
            wire: surroundings.wire,
            tokens: tokens,
            rules: access.answerRules,
            requests: RequestLimit(access.requests, known: knownRequests),
            policy: surroundings.policy,
            meter: meter,
            logger: surroundings.logger,
            remember: remember
        )
        let provider = access.makeProvider(client, hosts, top) { () throws(ProviderError) in
            do throws(SignInError) {
                try await tokens.signOut()
            } catch {
                throw ProviderError(.outcomeUnknown(retryAfter: nil), detail: "\(error)")
            }
        }
        return .provider(provider, tokens, revokes: authorization.revocation != nil)
    }

    /// Whose account it is, as the service says.
    func identity() async throws(ProviderError) -> AccountIdentity {
        switch strategy {
        case .provider(let provider, _, _): return try await provider.identity()
        case .place(let client, _):
            let owner = try await client.owner()
            return AccountIdentity(
                id: owner.id,
                displayName: owner.displayName,
                email: owner.email,
                rootID: PlaceProvider.rootID
            )
        case .source(let source): return source.identity
        }
    }

    /// The folder at a path below the account's root, for an account of a company's that is to begin there.
    ///
    /// - Parameter path: names, at least one.
    /// - Returns: the folder with its names as the service has them.
    /// - Throws: `.notFound` where there is none, `.notAFolder`.
    func folder(at path: [String]) async throws(ProviderError) -> AccountFolder {
        guard case .provider(let provider, _, _) = strategy else {
            throw ProviderError(.unsupported, detail: "the account's address says where it begins")
        }
        var place = ItemReference(id: try await provider.identity().rootID, path: .root)
        for name in path {
            let found = try await provider.items(named: name, in: place)
            guard let folder = found.first(where: { $0.kind == .folder }) else {
                let shown = place.path.appending(name)
                throw ProviderError(
                    found.isEmpty ? .notFound : .notAFolder,
                    detail: found.isEmpty ? "there is no \(shown)" : "\(shown) is no folder"
                )
            }
            place = ItemReference(id: folder.id, path: place.path.appending(folder.fileName))
        }
        return AccountFolder(id: place.id, path: place.path.parts)
    }

    /// What the service can do; nil of one that keeps no files of the person's.
    var abilities: AccountAbilities? {
        switch strategy {
        case .provider(let provider, _, _): AccountAbilities(provider)
        case .place(let client, _): AccountAbilities(client)
        case .source: nil
        }
    }

    /// The provider; a service of places has its map at `map`, and one without sign-in its list beside
    /// that: no other process may have them open.
    ///
    /// - Throws: `.localContent` when the map cannot be opened.
    func provider(map: String) throws(ProviderError) -> any Provider {
        switch strategy {
        case .provider(let provider, _, _): return provider
        case .place(let client, _):
            let folder = (map as NSString).deletingLastPathComponent
            do {
                try FileManager.default.createDirectory(
                    atPath: folder,
                    withIntermediateDirectories: true,
                    attributes: [.posixPermissions: 0o700]
                )
            } catch {
                throw ProviderError(.localContent, detail: "\(folder) cannot be made: \(error)")
            }
            return PlaceProvider(client: client, map: try PlaceMap(path: map), logger: logger)
        case .source(let source): return try source.provider(map + Folders.listEnding)
        }
    }

    /// Withdraws the sign-in at the service, and forgets it here even if that fails.
    ///
    /// - Returns: whether the service was asked; some offer no way.
    /// - Throws: the error of asking.
    func signOut() async throws(SignInError) -> Bool {
        switch strategy {
        case .provider(_, let tokens, let revokes):
            try await tokens.signOut()
            return revokes
        case .place(let client, let secret):
            let failure: ProviderError?
            do throws(ProviderError) {
                try await client.signOut()
                failure = nil
            } catch { failure = error }
            await client.close()
            try await secret.forget()
            guard let failure else { return true }
            guard failure.kind == .unsupported else {
                throw .transport(.unreachable(failure.detail))
            }
            // A key or a password is the person's own.
            return true
        case .source: return true
        }
    }

    /// Asks for no new tokens from now on.
    func retire() async {
        if case .provider(_, let tokens, _) = strategy { await tokens.retire() }
    }

    /// Ends connections of the account's own; a refresh of its tokens has some seconds to be stored.
    func close() async {
        switch strategy {
        case .provider(_, let tokens, _): await tokens.finish()
        case .place(let client, _): await client.close()
        case .source: break
        }
    }
}

/// Holds credentials in memory until it is known whose they are.
actor MemoryTokenStore: TokenStore {
    private var all: [String: Credentials] = [:]

    init(_ credentials: Credentials?, of account: String) { all[account] = credentials }

    nonisolated var place: String { "memory" }
    func lock(
        _ account: String,
        patience: Duration
    ) async throws(SignInError) -> CredentialsLock { CredentialsLock() }
    func credentials(of account: String) async throws(SignInError) -> Credentials? { all[account] }
    func keep(_ credentials: Credentials, of account: String) async throws(SignInError) {
        all[account] = credentials
    }
    func forget(_ account: String) async throws(SignInError) { all[account] = nil }
}
