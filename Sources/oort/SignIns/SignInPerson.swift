import OortSFTP
import OortSignIn

/// Who signs in, as a sign-in meets them: at a terminal, or on the page of `oort web`.
protocol SignInPerson: Sendable {
    /// Whether the person types commands.
    var isAtTerminal: Bool { get }

    /// Whether the person can be asked for a secret once the sign-in turns out to need one.
    var canBeAsked: Bool { get }

    /// What the person knows something by that can be given: a flag with its value, or a field.
    func name(_ option: SignInOption) -> String

    /// How the person signs in once more; `arguments` are those of `oort login`.
    func again(_ arguments: String) -> String

    /// Says something that is no failure.
    func tell(_ words: String)

    /// Says something that should worry the person.
    func warn(_ words: String)

    /// The password or passphrase that the person gave with the sign-in; nil where none was given.
    ///
    /// - Throws: `Failure` where what was given is none.
    func givenSecret() throws(Failure) -> String?

    /// The password or passphrase, asked for where none was given; `prompt` says whose it is.
    ///
    /// - Throws: `Failure` where there is none.
    func secret(_ prompt: String) throws(Failure) -> String

    /// Says on which page of a server an app token is made.
    ///
    /// - Parameters:
    ///   - page: the page's address.
    ///   - user: who logs in, where that is known.
    /// - Returns: who logs in there; nil where nobody said so.
    /// - Throws: `Failure` where a token is needed and cannot be asked for.
    func appToken(madeAt page: String, user: String?) throws(Failure) -> String?

    /// Leads the person to a page of a service's, where it is asked whether Oort is let in.
    func lead(to consent: Consent)

    /// Asks whether the server is the one that the person means; false where nobody can be asked.
    ///
    /// - Throws: `SSHFailure` where `ssh` cannot be started.
    func introduce(_ connection: SSHConnection) async throws(SSHFailure) -> Bool

    /// Whether the account is still wished for: asked once, right before it is put on the list.
    func isReady() -> Bool

    /// Says that the account is on the list.
    func signedIn(_ account: NewAccount.Entered)
}

extension SignInPerson {
    /// A person at a terminal ends a sign-in with the program.
    func isReady() -> Bool { true }
}

/// A page where a person allows Oort in.
struct Consent: Hashable, Sendable {
    /// Its address; it leads to the sign-in, and belongs to the person alone.
    var page: String
    /// Whose page it is.
    var service: String
    /// What the page calls this program; nil where it has the name of its registration.
    var program: String?
    /// How long the person has for it.
    var timeLimit: Duration
}

/// What a person can give for a sign-in; the raw value is the flag of `oort login`.
enum SignInOption: String, CaseIterable, Sendable {
    case name = "--name"
    case root = "--root"
    case user = "--user"
    case space = "--space"
    case passwordFile = "--password-file"
    case identity = "--identity"
    case sshOption = "--ssh-option"
    case plain = "--plain"
    case endpoint = "--endpoint"
    case region = "--region"
    case tokenFile = "--token-file"
    case clientID = "--client-id"
    case clientSecretFile = "--client-secret-file"
}

/// What every sign-in has.
struct SignInContext: Sendable {
    /// The folders and settings.
    let surroundings: Surroundings
    /// The list that the account goes to.
    let accounts: Accounts
    /// Who signs in.
    let person: any SignInPerson

    /// Does a sign-in; its connections end with it.
    ///
    /// - Throws: what `body` throws, and `Failure` where an account cannot have this name.
    static func run(
        named name: String?,
        for person: any SignInPerson,
        surroundings: Surroundings? = nil,
        _ body: (SignInContext) async throws -> Void
    ) async throws {
        let surroundings = try surroundings ?? Surroundings()
        try surroundings.folders.make()
        if let name { try AccountName.check(name) }
        let accounts = try await Accounts(surroundings)
        let context = SignInContext(surroundings: surroundings, accounts: accounts, person: person)
        let result: Result<Void, any Error>
        do { result = .success(try await body(context)) } catch { result = .failure(error) }
        await accounts.shutdown()
        try result.get()
    }

    /// The end of every sign-in.
    var entry: NewAccount { NewAccount(self) }
}
