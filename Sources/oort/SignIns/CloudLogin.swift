import OortModel
import OortSignIn

/// A sign-in at a service with OAuth.
struct CloudLogin {
    /// The service.
    var service: CloudService
    /// How one signs in to it.
    var access: OAuthAccess
    /// The account's name; nil finds one.
    var name: String?
    /// The folder where the account begins; nil for where it began before, or all of it.
    var root: String?
    /// The client id of the person's registration; nil takes that of the settings, or of the last sign-in
    /// under this name.
    var clientID: String?
    /// The registration's secret, given itself.
    var clientSecret: Secret?
    /// A file with the registration's secret; nil takes that of the settings.
    var clientSecretFile: String?
    /// A file with tokens, in place of a browser.
    var tokenFile: String?
    /// Tokens that the person has, in place of a browser.
    var tokens: Tokens?

    /// Signs in; the account is then on the list.
    ///
    /// - Parameters:
    ///   - context: the surroundings, the list, and the person.
    ///   - register: gets a registration where none is known; nil where nobody can make one now.
    ///   - consent: has the person let Oort in.
    /// - Throws: `Failure` in words for the person.
    func run(
        _ context: SignInContext,
        register: () async throws(Failure) -> OAuthClient?,
        consent: (SignIn) async throws(SignInError) -> Tokens
    ) async throws {
        let path = try beginning(context.person)
        let known = try await client(context)
        let credentials: Credentials
        // Who brings tokens of their own keeps them.
        var granted: SignIn?
        if let tokens = try tokenFile.map(TokenFile.read) ?? tokens {
            credentials = Credentials(client: known, tokens: tokens)
        } else {
            var client = known
            if client == nil { client = try await register() }
            guard let client else { throw noRegistration(context) }
            let signIn = context.accounts.signIn(service, access, client)
            guard client.secret != nil || !signIn.service.needsClientSecret else {
                throw noSecret(client, context)
            }
            do throws(SignInError) {
                credentials = Credentials(client: client, tokens: try await consent(signIn))
            } catch { throw failure(error, context.person) }
            granted = signIn
        }
        let entered: RegisteredAccount
        do {
            entered = try await context.entry.enter(
                credentials,
                beginningAt: path,
                service: service,
                name: name
            )
        } catch {
            if let granted { await takeBack(credentials.tokens, by: granted, context.person) }
            throw error
        }
        try await context.entry.announce(entered, at: service, isSecret: true)
    }

    /// Has the service forget tokens that belong to no account now; if that fails, tells the person.
    ///
    /// Not where other machines of the person's would be signed out with them: then they are as good as lost.
    private func takeBack(
        _ tokens: Tokens,
        by signIn: SignIn,
        _ person: any SignInPerson
    ) async {
        guard signIn.service.revocation != nil, !signIn.service.revocationEndsAll else { return }
        // Also of a sign-in that was cancelled, whose own requests end at once.
        let removal = Task { () -> SignInError? in
            do throws(SignInError) {
                try await signIn.revoke(tokens)
                return nil
            } catch { return error }
        }
        guard let error = await removal.value else { return }
        person.warn(
            "\(service.title) did not take back what it gave this sign-in: "
                + "\(TerminalText.line("\(error)")). To be sure, remove Oort from the connected "
                + "apps in your account's settings there."
        )
    }

    /// The names of the folder where the account is to begin, none for the whole account; nil where the
    /// person gave none.
    ///
    /// - Throws: `Failure` where the service's accounts cannot begin at one, before anybody signs in.
    private func beginning(_ person: any SignInPerson) throws(Failure) -> [String]? {
        guard let root else { return nil }
        let path = root.parts(between: "/").map(String.init).filter { !$0.isEmpty }
        guard !path.isEmpty else { return [] }
        guard access.beginsAtFolders else {
            throw Failure(
                "An account at \(service.title) cannot begin at a folder.",
                advice: "Leave \(person.name(.root)) out; a folder that you do not want to see can "
                    + "be left out of the mount: leave_out in config.toml."
            )
        }
        return path
    }

    /// The registration: from the person, the settings, or the last sign-in under this name.
    func client(_ context: SignInContext) async throws(Failure) -> OAuthClient? {
        let settings = context.surroundings.settings.service(service.name)
        guard let id = clientID ?? settings.clientID else {
            return try await context.accounts.client(ofAccount: name ?? service.name)
        }
        if let clientSecret { return OAuthClient(id: id, secret: clientSecret) }
        guard let file = clientSecretFile ?? settings.clientSecretFile else {
            return OAuthClient(id: id)
        }
        return OAuthClient(id: id, secret: try ClientSecretFile.read(file))
    }

    private func noRegistration(_ context: SignInContext) -> Failure {
        Failure(
            "\(service.title) only lets in programs that are registered there, and there is no client id.",
            advice: """
                Register once as README.md says, then: oort login \(service.name) --client-id ID
                or put it into \(context.surroundings.folders.settingsFile):
                  [\(service.name)]
                  client_id = "ID"
                """
        )
    }

    private func noSecret(_ client: OAuthClient, _ context: SignInContext) -> Failure {
        let beginning =
            context.person.isAtTerminal
            ? """
            Put the client secret, which \(service.title) shows beside the client id, into a file that only \
            you can read, then: oort login \(service.name) \
            --client-id \(TerminalText.line(client.id)) --client-secret-file FILE
            """
            : """
            Give the client id and the client secret, which \(service.title) shows beside it, below,
            """
        return Failure(
            "\(service.title) allows no sign-in under a registration without its secret.",
            advice: """
                \(beginning)
                or put it into \(context.surroundings.folders.settingsFile):
                  [\(service.name)]
                  client_id = "ID"
                  client_secret_file = "FILE"
                """
        )
    }

    private func failure(_ error: SignInError, _ person: any SignInPerson) -> Failure {
        let guide = service.oauth?.registration
        let again = person.again(service.name)
        let advice: String? =
            switch error {
            case .denied: again
            case .nothingPasted:
                "\(again), and paste it when you are asked; or, without a terminal, sign in with "
                    + "tokens: oort login \(service.name) --token-file FILE"
            case .timedOut:
                guide.map { guide in
                    (["If the browser showed an error:"] + guide.browserErrors.map { "  \($0)" })
                        .joined(separator: "\n") + "\n" + again
                } ?? again
            case .refused(let refusal):
                guide?.advice(on: "\(refusal.code) \(refusal.text)")
                    ?? "Check the client id and what README.md says of \(service.title)'s registration."
            case .portsTaken: "End that program and try again."
            case .unsupported: "Use another way: a browser, or \(person.name(.tokenFile))."
            case .transport:
                "Check the network, HTTPS_PROXY and ca_file in the settings, and try again."
            case .malformedAnswer, .tokenFile, .damaged, .keyringSilent, .store: nil
            }
        return Failure("\(service.title): \(TerminalText.line("\(error)")).", advice: advice)
    }
}
