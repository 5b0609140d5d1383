import Foundation
import Logging
import OortModel
import OortSignIn
import OortTransport

/// The accounts: where their tokens lie, and whether the services still take them.
struct AccountChecks {
    private let patient: Patient

    init(_ patient: Patient) { self.patient = patient }

    /// Where tokens are kept.
    func keyring() async -> [Finding] {
        let place = await patient.folders.tokenStore().place
        guard place == patient.folders.tokensFolder else {
            return [.ok("keyring", "new tokens go to \(place)")]
        }
        return [
            .ok(
                "keyring",
                "no keyring answers, so new tokens go to files that only you can read (\(place)); with a "
                    + "desktop's keyring and libsecret-tools installed they would go there"
            )
        ]
    }

    /// Whether each service knows the registration under which Oort asks.
    func registrations() async -> [Finding] {
        let wire: CurlClient
        do throws(Failure) {
            wire = try Wire.make(patient.settings, connectTimeout: .seconds(10))
        } catch {
            return []
        }
        var findings: [Finding] = []
        for service in patient.services() {
            guard let access = service.oauth else { continue }
            findings.append(await registration(at: service, access, wire))
        }
        await wire.shutdown()
        return findings
    }

    private func registration(
        at service: CloudService,
        _ access: OAuthAccess,
        _ wire: CurlClient
    ) async -> Finding {
        let client: OAuthClient
        do throws(Failure) {
            guard let found = try await self.client(of: service) else {
                return .unknown(
                    "registration",
                    "\(service.title): there is no client id yet; README.md says how to get one"
                )
            }
            client = found
        } catch {
            return .trouble("registration", error)
        }
        let hosts = Hosts(patient.settings.service(service.name).endpoints)
        let authorization = access.authorization(hosts)
        let signIn = SignIn(service: authorization, client: client, http: wire)
        do throws(SignInError) {
            // An invalid token: a service that knows the registration refuses the token, another one
            // refuses the registration.
            let nobody = Secret("oort-doctor")
            _ = try await signIn.refresh(Tokens(accessToken: nobody, refreshToken: nobody))
            return .ok("registration", "\(service.title) knows the client id")
        } catch {
            switch error {
            case .refused(let refusal) where authorization.isSignedOut(refusal):
                return .ok("registration", "\(service.title) knows the client id")
            case .refused(let refusal) where refusal.concernsClient:
                return .trouble(
                    "registration",
                    "\(service.title) refuses the client id or its secret: \(error)",
                    advice: "Correct client_id and client_secret_file under [\(service.name)] in "
                        + patient.folders.settingsFile
                )
            default:
                return .unknown("registration", "\(service.title) did not say: \(error)")
            }
        }
    }

    /// The registration of the settings, else that of an account's sign-in.
    private func client(of service: CloudService) async throws(Failure) -> OAuthClient? {
        let settings = patient.settings.service(service.name)
        if let id = settings.clientID {
            return OAuthClient(
                id: id,
                secret: try settings.clientSecretFile.map { path throws(Failure) in
                    try ClientSecretFile.read(path)
                }
            )
        }
        let registry = AccountRegistry(folders: patient.folders)
        let accounts = (try? registry.accounts()) ?? []
        let store = await patient.folders.tokenStore()
        for account in accounts where account.service == service.name {
            if let client = (try? await store.credentials(of: account.name))?.client {
                return client
            }
        }
        return nil
    }

    /// Whether each account's tokens are taken: the mount knows, else the service is asked.
    func accounts() async -> [Finding] {
        switch patient.daemon {
        case .answers(let report): return report.accounts.map { Self.finding($0) }
        case .silent: return [.unknown("account", "the running mount does not answer")]
        case .none: break
        }
        do throws(Failure) {
            let list = try AccountRegistry(folders: patient.folders).list()
            let registered = list.accounts
            let unusable = list.unusable.map { Finding.trouble("account", $0.failure) }
            guard !registered.isEmpty || !unusable.isEmpty else {
                return [.ok("account", "no account is signed in yet: oort login SERVICE")]
            }
            let store = await patient.folders.tokenStore()
            let wire = try Wire.make(patient.settings, connectTimeout: .seconds(10))
            let findings = await withTaskGroup(of: (Int, Finding).self) { group in
                for (place, account) in registered.enumerated() {
                    group.addTask { (place, await ask(account, store, wire)) }
                }
                var all: [(Int, Finding)] = []
                for await one in group { all.append(one) }
                return all.sorted { $0.0 < $1.0 }.map(\.1)
            }
            await wire.shutdown()
            return findings + unusable
        } catch {
            return [.trouble("account", error)]
        }
    }

    private static func finding(_ account: AccountStatus) -> Finding {
        let name = "\"\(account.name)\""
        if account.state == .offline, let trouble = account.trouble {
            return .unknown("account", "\(name) is offline: \(trouble)")
        }
        if let trouble = account.trouble {
            return .trouble("account", "\(name): \(trouble)", advice: nil)
        }
        switch account.state {
        case .trouble: return .trouble("account", "\(name): \(account.state.rawValue)", advice: nil)
        case .offline: return .unknown("account", "\(name) is offline")
        case .attention:
            return .trouble(
                "account",
                "\(name): something waits for you",
                advice: "`oort status` says what it is and what to do."
            )
        default: return .ok("account", "\(name): \(account.state.rawValue)")
        }
    }

    private func ask(
        _ account: RegisteredAccount,
        _ store: any TokenStore,
        _ wire: CurlClient
    ) async -> Finding {
        let name = "\"\(account.name)\""
        let again =
            "Sign in again: oort login \(account.service) --name \(Shell.quoted(account.name))"
        guard let service = Services.named(account.service) else {
            return .trouble(
                "account",
                "\(name) is of the service \"\(account.service)\", which this version does not know",
                advice: "Install the newest version."
            )
        }
        do throws(SignInError) {
            // A server may be reached by a key of the person's own.
            let hasSecret = try await store.credentials(of: account.name) != nil
            guard hasSecret || service.oauth == nil else {
                // They may be where they cannot be read now, such as without the desktop's session.
                let hasKeyring = store.place != patient.folders.tokensFolder
                return .trouble(
                    "account",
                    "\(name) has no tokens in \(store.place)",
                    advice: hasKeyring
                        ? again
                        : "If they lie in a desktop's keyring, which does not answer now: log in to "
                            + "the desktop and unlock it. Else: "
                            + "oort login \(account.service) --name \(Shell.quoted(account.name))"
                )
            }
        } catch {
            return .trouble(
                "account",
                "the tokens of \(name) cannot be read: \(error)",
                advice: error == .damaged
                    ? again
                    : "Unlock the desktop's keyring, or check the permissions of "
                        + patient.folders.tokensFolder
            )
        }
        var patience = RetryPolicy()
        patience.interactivePatience = .seconds(5)
        let surroundings = AccountConnection.Surroundings(
            settings: patient.settings,
            folders: patient.folders,
            store: store,
            wire: wire,
            policy: patience,
            logger: Logger(label: "oort") { _ in SwiftLogNoOpLogHandler() }
        )
        do throws(ProviderError) {
            let connection = try AccountConnection(account, service: service, surroundings)
            let answer: Result<AccountIdentity, ProviderError>
            do throws(ProviderError) { answer = .success(try await connection.identity()) } catch {
                answer = .failure(error)
            }
            await connection.close()
            let identity = try answer.get()
            guard account.identity == nil || account.identity == identity.id else {
                let words = "the tokens of \(name) are another person's"
                return .trouble("account", words, advice: again)
            }
            return .ok("account", "\(name) is signed in at \(service.title)")
        } catch {
            let failure = ProviderWords.signInFailure(error, service: service)
            switch error.kind {
            case .offline, .outcomeUnknown, .rateLimited:
                return .unknown("account", "\(name): \(failure.message)")
            case .signedOut, .noPermission:
                return .trouble("account", "\(name): \(failure.message)", advice: again)
            default:
                return .trouble("account", "\(name): \(failure.message)", advice: failure.advice)
            }
        }
    }
}
