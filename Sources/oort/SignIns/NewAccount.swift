import OortModel
import OortSignIn

/// The end of every sign-in: the account is put on the list, and a running mount has it at once.
struct NewAccount {
    /// An account that came on the list.
    struct Entered: Hashable, Sendable {
        /// As the list has it.
        var account: RegisteredAccount
        /// The service, for people.
        var service: String
        /// Where what it signs in with lies; nil where it has no secret.
        var secretsPlace: String?
        /// Whether a running mount has it.
        var isMounted: Bool

        /// That it is there, for people.
        var words: String {
            let person = [account.displayName, account.email].compactMap(\.self)
                .joined(separator: ", ")
            return "Signed in to \(service) as \(TerminalText.line(person)); the account is "
                + "\"\(account.name)\"."
        }
    }

    private let context: SignInContext

    init(_ context: SignInContext) { self.context = context }

    /// Asks the service whose account it is, puts it on the list, and tells the person and a running mount.
    ///
    /// - Throws: as `Accounts.add`.
    func add(
        _ credentials: Credentials?,
        at address: String? = nil,
        beginningAt path: [String]? = nil,
        service: CloudService,
        name: String?
    ) async throws {
        let account = try await enter(
            credentials,
            at: address,
            beginningAt: path,
            service: service,
            name: name
        )
        try await announce(account, at: service, isSecret: credentials != nil)
    }

    /// Asks the service whose account it is, and puts it on the list.
    ///
    /// - Throws: as `Accounts.add`; the account is then not on the list.
    func enter(
        _ credentials: Credentials?,
        at address: String? = nil,
        beginningAt path: [String]? = nil,
        service: CloudService,
        name: String?
    ) async throws -> RegisteredAccount {
        let folders = context.surroundings.folders
        let control = ControlClient(folders: folders)
        // Read only now: a person takes minutes to sign in.
        let kept =
            control.isMountRunning
            ? try await control.keptAccounts()
            : try RestingState(folders: folders).keptAccounts()
        return try await context.accounts.add(
            credentials,
            at: address,
            beginningAt: path,
            service: service,
            name: name,
            kept: kept,
            isWanted: { context.person.isReady() }
        )
    }

    /// Says that an account is on the list, and notifies a running mount; `isSecret` is whether the account
    /// signs in with something that the token store holds.
    ///
    /// - Throws: `Failure` when the mount does not take the account, of which the person has heard by then.
    func announce(
        _ account: RegisteredAccount,
        at service: CloudService,
        isSecret: Bool
    ) async throws {
        let control = ControlClient(folders: context.surroundings.folders)
        var isMounted = control.isMountRunning
        var trouble: Failure?
        if isMounted {
            do throws(Failure) { try await control.accountAdded(account.name) } catch {
                (isMounted, trouble) = (false, error)
            }
        }
        // The account is on the list, whatever the mount says.
        context.person.signedIn(
            Entered(
                account: account,
                service: service.title,
                secretsPlace: isSecret
                    ? await context.accounts.store.place(of: account.name) : nil,
                isMounted: isMounted
            )
        )
        if let trouble { throw trouble }
    }
}
