public import OortTransport

extension SignIn {
    /// Signs in through the person's browser: authorization code with PKCE, and a redirect to a
    /// port of this machine (RFC 8252).
    ///
    /// `open` is given the URL once the port listens, to show it to the person alone. `launch` is given
    /// an address then that leads there once and may be seen by others: for a browser's command line.
    ///
    /// A browser on another machine cannot come back to this port. `paste` then reads what the person
    /// copied from its address bar, on a thread of its own that no caller waits for; the text that it hands
    /// in shows whether it is the answer to this sign-in. When it returns without that, it gives up.
    ///
    /// - Throws: `.denied`, `.timedOut`, `.portsTaken`, `.refused`, `.nothingPasted`,
    ///   `.transport`; the port is free again in every case.
    public func withBrowser(
        timeLimit: Duration = .seconds(300),
        time: Timekeeper = .continuous,
        open: (_ url: String) async -> Void,
        launch: (_ url: String) async -> Void = { _ in },
        paste: (@Sendable (_ isAnswer: (String) -> Bool) -> Void)? = nil
    ) async throws(SignInError) -> Tokens {
        let state = RandomText.make()
        let challenge = CodeChallenge()
        let listener = try await RedirectListener.listen(service.redirect, state: state)
        let code: String
        do throws(SignInError) {
            let url = authorizeURL(challenge, state: state, redirect: listener.url)
            await open(url)
            await launch(listener.entrance(to: url))
            if let paste { listener.read(paste) }
            code = try await listener.code(within: timeLimit, time: time)
        } catch {
            await listener.close()
            throw error
        }
        await listener.close()
        return try await exchange(code, challenge: challenge, redirect: listener.url)
    }

    /// Signs in where the browser is on another machine and the service shows the code for
    /// copying.
    ///
    /// `ask` is given the URL and returns what the person copied; nil or nothing gives up.
    ///
    /// - Throws: `.unsupported` where the service shows no code; `.nothingPasted` when given up.
    public func withCopiedCode(
        ask: (_ url: String) async -> String?
    ) async throws(SignInError) -> Tokens {
        guard service.showsCode else {
            throw .unsupported("\(service.name) shows no code for copying")
        }
        let challenge = CodeChallenge()
        let url = authorizeURL(challenge, state: RandomText.make(), redirect: nil)
        let copied = await ask(url)?.filter { !$0.isWhitespace } ?? ""
        guard !copied.isEmpty else { throw .nothingPasted }
        return try await exchange(copied, challenge: challenge, redirect: nil)
    }

    private func authorizeURL(
        _ challenge: CodeChallenge,
        state: String,
        redirect: String?
    ) -> String {
        var fields = FormFields([
            ("client_id", client.id), ("response_type", "code"), ("state", state),
        ])
        if service.usesPKCE {
            fields.add("code_challenge", challenge.challenge)
            fields.add("code_challenge_method", "S256")
        }
        fields.add("redirect_uri", redirect)
        if !service.scopes.isEmpty {
            fields.add("scope", service.scopes.joined(separator: " "))
        }
        for (name, value) in service.extraParameters { fields.add(name, value) }
        return fields.appended(to: service.authorizeURL)
    }

    private func exchange(
        _ code: String,
        challenge: CodeChallenge,
        redirect: String?
    ) async throws(SignInError) -> Tokens {
        var fields = FormFields([
            ("grant_type", "authorization_code"), ("code", code),
        ])
        if service.usesPKCE { fields.add("code_verifier", challenge.verifier) }
        fields.add("redirect_uri", redirect)
        addClient(to: &fields)
        // A code works once, so a lost answer cannot be asked for again; nor does a cancelled sign-in end the
        // request, since what is answered has to be taken back.
        let request = Task { [fields] () -> Result<Tokens, SignInError> in
            do throws(SignInError) {
                return .success(try await requestTokens(fields, repetition: .onlyIfNotDone))
            } catch { return .failure(error) }
        }
        return try await request.value.get()
    }
}
