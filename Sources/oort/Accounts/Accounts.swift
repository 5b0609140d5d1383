import Foundation
import Logging
import OortModel
import OortSignIn
import OortTransport

/// The user's accounts: who is signed in where, and with which tokens.
struct Accounts: Sendable {
    /// The list of accounts.
    let registry: AccountRegistry
    /// Where tokens lie.
    let store: any TokenStore
    private let settings: Settings
    private let folders: Folders
    private let wire: CurlClient
    private let logger = SilentLog.logger

    /// The user's accounts, with tokens in `store`.
    ///
    /// - Throws: `Failure` when the network library cannot be set up.
    init(_ surroundings: Surroundings, store: any TokenStore) throws(Failure) {
        registry = AccountRegistry(folders: surroundings.folders)
        self.store = store
        settings = surroundings.settings
        folders = surroundings.folders
        wire = try Wire.make(settings)
    }

    /// The user's accounts, with tokens wherever this desktop keeps them.
    init(_ surroundings: Surroundings) async throws(Failure) {
        try self.init(
            surroundings,
            store: await surroundings.folders.tokenStore()
        )
    }

    /// The way to hosts, without anybody's secret.
    var http: any HTTPClient { wire }

    /// Ends all connections.
    func shutdown() async { await wire.shutdown() }

    /// A way to sign in at a service under a registration.
    func signIn(
        _ service: CloudService,
        _ access: OAuthAccess,
        _ client: OAuthClient
    ) -> SignIn {
        SignIn(
            service: access.authorization(Hosts(settings.service(service.name).endpoints)),
            client: client,
            http: RetryingClient(wire, policy: Self.patience)
        )
    }

    /// The registration of an earlier sign-in under this name, if there was one that can be understood.
    func client(ofAccount name: String) async throws(Failure) -> OAuthClient? {
        do throws(SignInError) {
            return try await store.credentials(of: name)?.client
        } catch .damaged {
            return nil
        } catch .keyringSilent {
            // A sign-in without the desktop's session keeps its tokens in a file.
            return nil
        } catch {
            throw storeFailure(error)
        }
    }

    /// Asks the service whose credentials these are, and keeps them as an account.
    ///
    /// - Parameters:
    ///   - credentials: tokens and the registration that they belong to, or a password; nil where the
    ///     account has no secret of its own.
    ///   - address: where the account lies, in the service's own JSON; nil for a company's hosts.
    ///   - path: the folder where an account of a company's begins, names from the root on, none of them for
    ///     all of it; nil for where it began before, or all of it.
    ///   - service: where they are from.
    ///   - name: the user's name for it; nil finds the account's old name, or a free one.
    ///   - kept: the accounts that the catalog has, on the list or not.
    ///   - isWanted: asked once, right before anything is kept; nothing is kept where it says no.
    /// - Returns: the account as it is on the list now.
    /// - Throws: `Failure` when the service refuses them, the name is another account's, or the account is
    ///   not wanted any more; nothing is changed then.
    func add(
        _ credentials: Credentials?,
        at address: String? = nil,
        beginningAt path: [String]? = nil,
        service: CloudService,
        name: String?,
        kept: [KeptAccount],
        isWanted: () -> Bool = { true }
    ) async throws(Failure) -> RegisteredAccount {
        try check(name, at: service, kept)
        let trial = MemoryTokenStore(credentials, of: service.name)
        do throws(Failure) {
            return try await add(
                credentials,
                triedIn: trial,
                at: address,
                beginningAt: path,
                service: service,
                name: name,
                kept: kept,
                isWanted: isWanted
            )
        } catch {
            guard let given = credentials?.tokens.refreshToken,
                let last = try? await trial.credentials(of: service.name),
                last.tokens.refreshToken != given
            else { throw error }
            throw Failure(
                error.message + " But the refresh token that was given is used up: "
                    + "\(service.title) gave another one for it, which is not kept.",
                advice: [error.advice, "Then sign in with new tokens."].compactMap(\.self)
                    .joined(separator: "\n")
            )
        }
    }

    private func add(
        _ credentials: Credentials?,
        triedIn trial: MemoryTokenStore,
        at address: String?,
        beginningAt path: [String]?,
        service: CloudService,
        name: String?,
        kept: [KeptAccount],
        isWanted: () -> Bool
    ) async throws(Failure) -> RegisteredAccount {
        var newcomer = RegisteredAccount(name: service.name, service: service.name)
        newcomer.address = address
        let identity: AccountIdentity
        let current: Credentials?
        do throws(ProviderError) {
            if path == nil, address == nil {
                newcomer.address = try beginning(ofAccount: name ?? service.name, at: service)
            }
            if let path, !path.isEmpty {
                let connection = try connection(of: newcomer, service, secretsIn: trial)
                newcomer.address = try Self.json(try await connection.folder(at: path))
            }
            // A password that nobody wants to be sent any more is not.
            guard !Task.isCancelled else { throw ProviderError(.cancelled, detail: "cancelled") }
            let connection = try connection(of: newcomer, service, secretsIn: trial)
            let result = await withTaskCancellationHandler {
                () -> Result<AccountIdentity, ProviderError> in
                do throws(ProviderError) { return .success(try await connection.identity()) } catch
                {
                    return .failure(error)
                }
            } onCancel: {
                // Ends by itself.
                Task { await connection.close() }
            }
            await connection.close()
            identity = try result.get()
        } catch {
            throw ProviderWords.signInFailure(error, service: service)
        }
        do throws(SignInError) {
            // The trial may have refreshed them.
            current = try await trial.credentials(of: service.name) ?? credentials
        } catch {
            throw storeFailure(error)
        }
        let entry = try await registry.beginEntering()
        defer { entry.end() }
        let account = RegisteredAccount(
            name: try self.name(for: identity, at: service, wish: name, kept: kept),
            service: service.name,
            identity: identity.id,
            displayName: identity.displayName,
            email: identity.email,
            address: newcomer.address
        )
        guard isWanted() else { throw Failure("The sign-in was cancelled: nothing was changed.") }
        do throws(SignInError) {
            let lock = try await store.lock(account.name)
            defer { lock.end() }
            if let current {
                try await store.keep(current, of: account.name)
            } else {
                try await store.forget(account.name)
            }
        } catch {
            throw storeFailure(error)
        }
        try registry.put(account)
        return account
    }

    /// Where an account of this name began until now, in JSON; nil for one that is whole, or new.
    private func beginning(
        ofAccount name: String,
        at service: CloudService
    ) throws(ProviderError) -> String? {
        do throws(Failure) {
            let known = try registry.accounts().first {
                $0.name == name && $0.service == service.name
            }
            return known?.folder == nil ? nil : known?.address
        } catch { throw ProviderError(.localContent, detail: "\(error)") }
    }

    private static func json(_ folder: AccountFolder) throws(ProviderError) -> String {
        do { return String(decoding: try JSONEncoder().encode(folder), as: UTF8.self) } catch {
            throw ProviderError(.localContent, detail: "the folder cannot be noted: \(error)")
        }
    }

    /// The account of this name, on the list or, where that was lost, in the catalog alone.
    ///
    /// - Throws: `Failure` naming the accounts that there are.
    func account(named name: String, kept: [KeptAccount]) throws(Failure) -> RegisteredAccount {
        let list = try registry.list()
        if !(list.accounts.map(\.name) + list.unusable.compactMap(\.name)).contains(name),
            let kept = kept.first(where: { $0.name == name })
        {
            return RegisteredAccount(name: name, service: kept.service, identity: kept.identity)
        }
        return try registry.account(named: name)
    }

    /// Revokes and forgets an account's tokens and takes it off the list.
    ///
    /// - Returns: what could not be done, for people.
    func remove(_ account: RegisteredAccount) async throws(Failure) -> String? {
        var warning: String?
        let place = await store.place(of: account.name)
        if let service = Services.named(account.service) {
            let advice = """
                to be sure, remove Oort from the connected apps in your account's settings at \
                \(service.title).
                """
            let forgotten = "It is forgotten here; \(advice)"
            do {
                let connection = try connection(of: account, service, secretsIn: store)
                if try await !connection.signOut() {
                    warning = "\(service.title) has no way to revoke the token.\n\(forgotten)"
                }
            } catch {
                warning = """
                    \(service.title) could not be told to revoke the token: \(error)
                    \(forgotten)
                    """
                do throws(SignInError) { try await forgetTokens(of: account) } catch {
                    warning = """
                        The tokens of "\(account.name)" could be neither revoked nor removed from \
                        \(place): \(error)
                        Remove them there yourself, and \(advice)
                        """
                }
            }
        } else {
            do throws(SignInError) {
                try await forgetTokens(of: account)
            } catch {
                throw storeFailure(error)
            }
        }
        try registry.remove(named: account.name)
        for ending in ["", "-wal", "-shm", Folders.listEnding, Folders.uploadsEnding] {
            try? FileManager.default.removeItem(
                atPath: folders.placesFile(ofAccount: account.name) + ending
            )
        }
        return warning
    }

    private func forgetTokens(of account: RegisteredAccount) async throws(SignInError) {
        let lock = try await store.lock(account.name)
        defer { lock.end() }
        try await store.forget(account.name)
    }

    private func connection(
        of account: RegisteredAccount,
        _ service: CloudService,
        secretsIn store: any TokenStore
    ) throws(ProviderError) -> AccountConnection {
        try AccountConnection(
            account,
            service: service,
            AccountConnection.Surroundings(
                settings: settings,
                folders: folders,
                store: store,
                wire: wire,
                policy: Self.patience,
                logger: logger
            )
        )
    }

    /// Refuses a name that is certainly not the newcomer's, before anything of theirs is sent.
    private func check(
        _ wish: String?,
        at service: CloudService,
        _ kept: [KeptAccount]
    ) throws(Failure) {
        guard let wish else { return }
        let unusable = try registry.list().unusable
        if let entry = unusable.first(where: { $0.name == wish }) { throw entry.failure }
        let all = try owners(kept, at: service)
        guard let taken = all.first(where: { $0.name == wish }), taken.service != service.name
        else { return }
        let free = AccountName.free(
            for: service.name,
            among: all.map(\.name) + unusable.compactMap(\.name)
        )
        throw nameTaken(wish, by: taken, you: nil, at: service, free: free)
    }

    private func nameTaken(
        _ name: String,
        by taken: KeptAccount,
        you: String?,
        at service: CloudService,
        free: String
    ) -> Failure {
        let owner = [Services.named(taken.service)?.title ?? taken.service, taken.person]
            .compactMap(\.self).joined(separator: ", ")
        let signedIn = you.map { "; you signed in to \(service.title) as \($0)" } ?? ""
        return Failure(
            "The name \"\(name)\" is already that of another account (\(owner))\(signedIn). "
                + "Nothing was changed.",
            advice: "Choose another name: oort login \(service.name) --name "
                + "\(Shell.quoted(free)) - or sign that one out first: oort logout "
                + Shell.quoted(name)
        )
    }

    private func name(
        for identity: AccountIdentity,
        at service: CloudService,
        wish: String?,
        kept: [KeptAccount]
    ) throws(Failure) -> String {
        let all = try owners(kept, at: service)
        let unusable = try registry.list().unusable
        let free = AccountName.free(
            for: service.name,
            among: all.map(\.name) + unusable.compactMap(\.name)
        )
        let old = all.first { $0.service == service.name && $0.identity == identity.id }?.name
        // Nothing is written over it.
        if let name = wish ?? old, let entry = unusable.first(where: { $0.name == name }) {
            throw entry.failure
        }
        guard let wish else { return old ?? free }
        let you = identity.email ?? identity.displayName
        let own = all.filter { $0.service == service.name && $0.identity == identity.id }
        // An account that already has two names keeps them.
        if let twin = own.first, !own.contains(where: { $0.name == wish }) {
            throw Failure(
                "You are signed in to \(service.title) as \(you) already: that is the account "
                    + "\"\(twin.name)\". Nothing was changed.",
                advice:
                    "A second folder would show and keep all of it twice. To sign in anew: oort "
                    + "login \(service.name) --name \(Shell.quoted(twin.name)) - to have it under "
                    + "another name, sign it out first: oort logout \(Shell.quoted(twin.name))"
            )
        }
        let new = RegisteredAccount(name: wish, service: service.name, identity: identity.id)
        if let taken = all.first(where: { $0.name == wish }), taken.isAnother(than: new) {
            throw nameTaken(wish, by: taken, you: you, at: service, free: free)
        }
        return wish
    }

    /// Whose each name is, in the order of the names: as the catalog has it, else as the list does.
    private func owners(
        _ kept: [KeptAccount],
        at service: CloudService
    ) throws(Failure) -> [KeptAccount] {
        let listed = try registry.accounts().map { KeptAccount($0) }
        var owners = Dictionary(listed.map { ($0.name, $0) }) { first, _ in first }
        for account in kept {
            // An account without a known owner becomes that of the person who signs in.
            if account.identity == nil,
                owners[account.name] != nil || account.service == service.name
            {
                continue
            }
            owners[account.name] = account
        }
        return owners.values.sorted { $0.name < $1.name }
    }

    private func storeFailure(_ error: SignInError) -> Failure {
        Failure(
            "The tokens in \(store.place) cannot be used: \(error)",
            advice: "Unlock the desktop's keyring, or check the permissions of the folder and the "
                + "free space of its disk."
        )
    }

    /// A person waits in front of the terminal.
    static var patience: RetryPolicy {
        var policy = RetryPolicy()
        policy.interactivePatience = .seconds(10)
        return policy
    }
}

/// The log of commands, which say what matters on the terminal.
enum SilentLog {
    static var logger: Logger { Logger(label: "oort") { _ in SwiftLogNoOpLogHandler() } }
}

/// libcurl as the settings want it.
enum Wire {
    /// A client with its threads, which end with it.
    ///
    /// - Throws: `Failure` when the certificates cannot be read or libcurl cannot be set up.
    static func make(
        _ settings: Settings,
        connectTimeout: Duration? = nil
    ) throws(Failure) -> CurlClient {
        if let file = settings.caFile, !FileManager.default.isReadableFile(atPath: file) {
            throw Failure(
                "The certificates \(file) cannot be read.",
                advice: "Name a PEM file with --ca-file, or in the settings as ca_file."
            )
        }
        var wishes = CurlClient.Settings(
            userAgent: OortVersion.userAgent,
            caFile: settings.caFile
        )
        if let connectTimeout { wishes.connectTimeout = connectTimeout }
        do {
            return try CurlClient(settings: wishes)
        } catch {
            throw Failure(
                "The network library cannot be set up: \(error)",
                advice: "Check the limits of open files and memory (ulimit -a)."
            )
        }
    }
}

/// A provider's errors in words for people.
enum ProviderWords {
    /// Why a sign-in came to nothing.
    static func signInFailure(_ error: ProviderError, service: CloudService) -> Failure {
        switch error.kind {
        case .signedOut, .noPermission:
            Failure(
                service.oauth == nil
                    ? "\(service.title) does not let you in: \(error.detail)"
                    : "\(service.title) does not accept the token: \(error.detail)",
                advice: service.oauth?.registration?.advice(on: error.detail)
                    ?? "Sign in again: oort login \(service.name)"
            )
        case .clientRefused:
            Failure(
                "\(service.title) refuses the registration: \(error.detail)",
                advice: "Correct client_id and the secret under [\(service.name)] in the settings."
            )
        case .offline, .outcomeUnknown, .rateLimited:
            Failure(
                "\(service.title) cannot be reached: \(error.detail)",
                advice: "Check the network, HTTPS_PROXY and ca_file in the settings, and try again."
            )
        case .malformedAnswer:
            Failure(
                "What answered is not \(service.title): \(error.detail)",
                advice: "Look in a browser whether the network wants you to log in first, and try "
                    + "again."
            )
        case .notFound, .parentNotFound, .notAFolder:
            Failure(
                "\(service.title) has no such folder to begin at (\(error.detail))",
                advice: "Look at the path in the address, and at --root."
            )
        default:
            Failure(
                "\(service.title) did not say whose account this is: "
                    + (error.detail.isEmpty ? "\(error.kind)" : error.detail),
                advice: service.oauth == nil
                    ? "Try again; if it stays, look at the server's log."
                    : "Try again; if it stays, the registration may lack a permission."
            )
        }
    }
}

extension Folders {
    /// Where tokens of this state lie: with the desktop, or in files.
    func tokenStore() async -> AutomaticTokenStore {
        await AutomaticTokenStore(directory: tokensFolder, takesOver: isUsualState)
    }
}
