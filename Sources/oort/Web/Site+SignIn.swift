import OortSFTP
import OortSignIn

/// Signing in: the form, the way through, and the end.
extension Site {
    /// The page of a sign-in that is under way, or a form for a new one.
    func signIn(_ visit: Visit) async throws(Failure) -> HTML {
        if let id = id(of: visit) { return try await signIn(try progress(id), visit) }
        let query = visit.request.query
        guard let name = query["account"] else {
            let service = try service(named: query["kind"])
            let filled = SignInForm.Filled(service: service.name, values: [:], isAgain: false)
            return try await form(filled, visit)
        }
        return try await form(.init(of: try await account(named: name)), visit)
    }

    /// An account as the list has it or, where that was lost, the mount.
    private func account(named name: String) async throws(Failure) -> RegisteredAccount {
        let list = try AccountRegistry(folders: folders).accounts()
        if let account = list.first(where: { $0.name == name }) { return account }
        guard let known = try await client.status().accounts.first(where: { $0.name == name })
        else { throw Failure("There is no account \"\(name)\".") }
        return RegisteredAccount(name: known.name, service: known.service)
    }

    private func service(named name: String?) throws(Failure) -> CloudService {
        guard let service = name.flatMap({ Services.named($0) }) else {
            throw Failure(
                "There is no such service.",
                advice: "Choose one of those under Accounts."
            )
        }
        return service
    }

    private func id(of visit: Visit) -> String? {
        visit.path.names.first.map { String(decoding: $0, as: UTF8.self) }
    }

    private func progress(_ id: String) throws(Failure) -> SiteSignIns.Progress {
        guard let progress = signIns.progress(id) else {
            throw Failure(
                "This sign-in is over, and no longer remembered.",
                advice: "The accounts that there are, and new sign-ins, are under Accounts."
            )
        }
        return progress
    }

    /// How far a sign-in is, for the page that follows it.
    func signInStep(_ visit: Visit) throws(Failure) -> SiteAnswer {
        .words("\(try progress(id(of: visit) ?? "").number)", status: 200)
    }

    // MARK: Acts

    func beginSignIn(_ form: [String: String]) async throws(Failure) -> SiteAnswer {
        let service = try service(named: form["kind"])
        let wish = SignInForm(service)
        let isAgain = form["again"] == "1"
        let answers = SignInForm.Answers(form, of: wish.fields, isAgain: isAgain)
        let filled = SignInForm.Filled(
            service: service.name,
            values: answers.repeatable,
            isAgain: isAgain
        )
        let (folders, signIns) = (folders, signIns)
        let id = try signIns.begin(filled) { id in
            let person = SitePerson(
                signIns: signIns,
                id: id,
                password: answers.secret("password")
            )
            try await SignInContext.run(
                named: answers["name"],
                for: person,
                surroundings: Surroundings(folders: folders)
            ) { try await wish.run(answers, $0, signIns) }
        }
        return .see("/sign-in/\(id)")
    }

    func cancelSignIn(_ form: [String: String]) throws(Failure) -> SiteAnswer {
        let id = try named("id", form)
        if !signIns.cancel(id) { admission.tell("This sign-in is at its end already.") }
        return .see(Self.place("/sign-in/\(id)"))
    }

    func answerHost(_ form: [String: String]) throws(Failure) -> SiteAnswer {
        let id = try named("id", form)
        let isMeant = form["answer"] == "yes"
        if !signIns.answer(id, to: Int(form["step"] ?? ""), isMeant: isMeant) {
            admission.tell("This question is over: look at what is asked now.", isFailure: true)
        }
        return .see(Self.place("/sign-in/\(id)"))
    }

    // MARK: The way through

    private func signIn(
        _ progress: SiteSignIns.Progress,
        _ visit: Visit
    ) async throws(Failure) -> HTML {
        let title = Self.title(of: progress.form.service)
        let remarks = progress.remarks.map { words -> HTML in
            "<div class=\"notice\"><p>\(HTML.lines(words))</p></div>"
        }
        switch progress.step {
        case .working:
            let words: HTML = "<p>\(title) is being asked. This page goes on by itself.</p>"
            return following("Signing in to \(title)", progress, visit, "\(remarks)\(words)")
        case .consent(let consent):
            return following(
                "\(consent.service) asks you",
                progress,
                visit,
                "\(remarks)\(self.consent(consent, progress))"
            )
        case .hostKey(let key):
            return following(
                "Is this your server?",
                progress,
                visit,
                "\(remarks)\(host(key, progress, visit))"
            )
        case .done(let entered):
            return page(
                "Signed in",
                current: "/accounts",
                visit,
                "\(remarks)\(done(entered))"
            )
        case .failed(let failure):
            let failure = SitePerson.words(failure)
            let words: HTML = """
                <div class="notice failure" role="alert"><p>\(HTML.lines(failure.message))</p>\
                \(failure.advice.map { "<p>\(HTML.lines($0))</p>" as HTML })</div>
                """
            return try await form(progress.form, visit, "\(words)\(remarks)")
        case .cancelled:
            let words: HTML = """
                <div class="notice" role="status"><p>The sign-in was cancelled: nothing was changed.</p></div>
                """
            return try await form(progress.form, visit, "\(words)\(remarks)")
        }
    }

    /// A page that goes on by itself, and can be left.
    private func following(
        _ title: String,
        _ progress: SiteSignIns.Progress,
        _ visit: Visit,
        _ words: HTML
    ) -> HTML {
        let cancel = button(
            "Cancel the sign-in",
            "/sign-in-cancel",
            visit,
            back: "/accounts",
            fields: [("id", progress.id)]
        )
        let body: HTML = """
            <div data-step="\(progress.number)" data-source="/sign-in-step/\(progress.id)">\(words)</div>
            \(cancel)
            """
        return page(
            title,
            current: "/accounts",
            visit,
            head: "<noscript><meta http-equiv=\"refresh\" content=\"4\"></noscript>",
            body
        )
    }

    private func consent(_ consent: Consent, _ progress: SiteSignIns.Progress) -> HTML {
        let name = consent.program.map { " (it is called <strong>\($0)</strong> there)" as HTML }
        let isLink = consent.page.hasPrefix("https://") || consent.page.hasPrefix("http://")
        let link: HTML = """
            <p><a class="main button" href="\(consent.page)" target="_blank" rel="noopener noreferrer">Open \
            the page of \(consent.service) in a new tab</a></p>
            """
        let elsewhere: HTML = """
            <details><summary>The address, for another browser on this machine</summary>\
            <pre tabindex="0" role="region" aria-label="Address">\(consent.page)</pre></details>
            """
        return """
            <p>Log in there, and allow Oort in\(name). Oort never sees your password. This page goes on by \
            itself as soon as you have. You have \(consent.timeLimit.components.seconds / 60) minutes.</p>
            \(isLink ? link : nil)\(elsewhere)
            """
    }

    private func host(
        _ key: SSHHostKey,
        _ progress: SiteSignIns.Progress,
        _ visit: Visit
    ) -> HTML {
        let (id, place) = (("id", progress.id), "/sign-in-host")
        let step = ("step", "\(progress.number)")
        let yes = button(
            "It is my server: go on",
            place,
            visit,
            back: "/",
            fields: [id, step, ("answer", "yes")]
        )
        let no = button("It is not", place, visit, back: "/", fields: [id, step, ("answer", "no")])
        return """
            <div class="key"><p>Your ssh does not know this server yet. Compare its key with what the server's \
            owner says. Once you agree, ssh keeps it, and refuses any other key of this server.</p>
            <pre tabindex="0" role="region" aria-label="What ssh says">\
            \(HTML.lines(key.lines.joined(separator: "\n")))</pre>
            <div class="acts">\(yes)\(no)</div></div>
            """
    }

    private func done(_ entered: NewAccount.Entered) -> HTML {
        let place = "/files/" + PercentCoding.encoded(entered.account.name.utf8)
        let secret = entered.secretsPlace.map {
            "<p>What it signs in with lies in \($0).</p>" as HTML
        }
        let mounted: HTML =
            entered.isMounted
            ? "<p>It is mounted now: <a href=\"\(place)\">its files</a>.</p>"
            : "<p>Mount it: <code>oort mount</code></p>"
        return """
            <div class="notice" role="status"><p>\(entered.words)</p></div>
            \(mounted)\(secret)
            <p><a href="/">To the overview</a>, or <a href="/accounts#add">add another account</a>.</p>
            """
    }
}
