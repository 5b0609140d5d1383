import Foundation

/// The accounts, and their end.
extension Site {
    /// A page that is about an account: `/sign-in?account=NAME`.
    static func address(_ page: String, _ account: String) -> HTML {
        "\(page)?account=\(PercentCoding.encoded(account.utf8))"
    }

    func accounts(_ visit: Visit) async throws(Failure) -> HTML {
        let report = try await client.status()
        let rows = report.accounts.map { row($0) }
        let underWay = signIns.all.filter { !$0.step.isEnd }.map { progress -> HTML in
            let title = Self.title(of: progress.form.service)
            return "<li><a href=\"/sign-in/\(progress.id)\">The sign-in to \(title)</a></li>"
        }
        let list: HTML = """
            <table class="files"><caption class="hidden">Accounts</caption><thead><tr><th scope="col">\
            Account</th><th scope="col">Service</th><th scope="col">Signed in as</th><th scope="col">State\
            </th><th scope="col">Sign-in</th></tr></thead><tbody>\(rows)</tbody></table>
            """
        let waiting: HTML = "<h2>Under way</h2><ul>\(underWay)</ul>"
        let body: HTML = """
            \(rows.isEmpty ? "<p>No account is signed in yet.</p>" : list)
            \(underWay.isEmpty ? nil : waiting)
            <h2 id="add">Add an account</h2>
            <ul class="kinds">\(Services.all.map { kind($0) })</ul>
            """
        return page("Accounts", current: "/accounts", visit, body)
    }

    private func row(_ account: AccountStatus) -> HTML {
        let place = "/files/" + PercentCoding.encoded(account.name.utf8)
        return """
            <tr><th scope="row"><a href="\(place)">\(account.name)</a></th>\
            <td>\(Self.title(of: account.service))</td><td>\(account.person ?? "")</td>\
            <td>\(account.state.rawValue)</td>\
            <td><span class="act"><a class="button" href="\(Self.address("/sign-in", account.name))" \
            aria-label="Sign in again: \(account.name)">Sign in again</a> \
            <a class="button" href="\(Self.address("/sign-out", account.name))" \
            aria-label="Sign out: \(account.name)">Sign out</a></span></td></tr>
            """
    }

    private func kind(_ service: CloudService) -> HTML {
        let words: HTML =
            switch service.name {
            case "nextcloud": "Also ownCloud and OpenCloud; on the server's own page"
            case "webdav": "Any server that speaks WebDAV"
            case "sftp": "A server that your ssh reaches"
            case "ftp": "A server that speaks FTP, encrypted"
            case "s3": "A bucket at Amazon or any other store"
            case "weather": "Of the places that you choose; needs no account"
            default: "On the service's own page, with your registration"
            }
        return """
            <li><a href="/sign-in?kind=\(service.name)">\(Self.title(of: service.name))</a><p>\(words)</p></li>
            """
    }

    /// A service's name for people, as a title.
    static func title(of service: String) -> String {
        guard let title = Services.named(service)?.title else { return service }
        return service == "weather" ? "Weather" : title
    }

    // MARK: Signing out

    func signOut(_ visit: Visit) async throws(Failure) -> HTML {
        let name = try named("account", visit.request.query)
        let (account, lost) = try await ending(name)
        let title = Self.title(of: account.service)
        let pieces: (words: HTML, field: HTML) =
            lost.count == 0
            ? ("<p>Its cloud has everything: nothing is lost.</p>", "")
            : (
                """
                <div class="notice failure"><p>Signing out loses this for good:</p>\
                <p>\(HTML.lines(lost.lines.joined(separator: "\n")))</p></div>
                """,
                """
                <div class="field"><label for="confirmed">To go on, type the account's name</label>\
                <input id="confirmed" name="confirmed" required autocomplete="off" spellcheck="false"></div>
                """
            )
        let body: HTML = """
            <p>The account <strong>\(name)</strong> at \(title) goes from this machine: its token is revoked, \
            it is forgotten here, and its folder goes from the mount. What lies in the cloud stays there.</p>
            \(pieces.words)
            <form class="fill" method="post" action="/sign-out">\
            <input type="hidden" name="token" value="\(visit.formToken)">\
            <input type="hidden" name="account" value="\(name)">\
            <input type="hidden" name="seen" value="\(lost.count)">\(pieces.field)\
            <div class="acts"><button>\(lost.count == 0 ? "Sign out" : "Sign out and lose that")</button>\
            <a href="/accounts">Leave it as it is</a></div></form>
            """
        return page("Sign out of \(name)", current: "/accounts", visit, body)
    }

    /// An account that is to end, and what would be lost by that.
    private func ending(
        _ name: String
    ) async throws(Failure) -> (account: RegisteredAccount, lost: (count: Int, lines: [String])) {
        do {
            let signOut = try await SignOut(of: name, Surroundings(folders: folders))
            let lost = try await signOut.onlyHere()
            await signOut.close()
            return (signOut.account, lost)
        } catch { throw error as? Failure ?? Failure("\(error)") }
    }

    func endAccount(_ form: [String: String]) async throws(Failure) -> SiteAnswer {
        let name = try named("account", form)
        let again = SiteAnswer.see(Self.address("/sign-out", name).text)
        let seen = form["seen"].flatMap { Int($0) } ?? 0
        guard seen <= 0 || form["confirmed"]?.trimmingCharacters(in: .whitespaces) == name else {
            admission.tell("That is not the account's name: nothing was changed.", isFailure: true)
            return again
        }
        let signOut: SignOut
        do {
            signOut = try await SignOut(of: name, Surroundings(folders: folders))
        } catch { throw error as? Failure ?? Failure("\(error)") }
        do {
            let warning = try await signOut.run(givingUp: max(seen, 0))
            let words = "Signed out of \"\(name)\"."
            admission.tell(([words] + [warning].compactMap(\.self)).joined(separator: "\n"))
            return .see("/accounts")
        } catch {
            // What came to be only here meanwhile is shown there.
            let failure = error as? Failure ?? Failure("\(error)")
            admission.tell(failure.message, isFailure: true)
            return again
        }
    }
}
