import Foundation
import OortSignIn

/// The form in which a person signs in.
extension Site {
    /// The form of a service, with what was filled in before that is no secret.
    func form(
        _ filled: SignInForm.Filled,
        _ visit: Visit,
        _ notices: HTML = ""
    ) async throws(Failure) -> HTML {
        guard let service = Services.named(filled.service) else {
            throw Failure("The service \"\(filled.service)\" is not known here.")
        }
        let title = Self.title(of: service.name)
        let hasRegistration = try await isRegistered(service, filled.values["name"])
        let form = SignInForm(service, hasRegistration: hasRegistration)
        let guide = hasRegistration ? nil : service.oauth?.registration.map { steps($0, service) }
        let rare = form.fields.filter { $0.isRare && !isFixed($0, filled) }
        let isOpen = rare.contains { filled.values[$0.name] != nil }
        let fixed: HTML? =
            filled.isAgain
            ? """
            <input type="hidden" name="name" value="\(filled.values["name"] ?? "")">\
            <input type="hidden" name="again" value="1">
            """ : nil
        let more: HTML = """
            <details\(isOpen ? " open" : "")><summary>More options</summary>\
            \(rare.map { field($0, filled) })</details>
            """
        let body: HTML = """
            \(notices)\(guide ?? introduction(service, filled))
            <form class="fill" method="post" action="/sign-in">\
            <input type="hidden" name="token" value="\(visit.formToken)">\
            <input type="hidden" name="back" value="/accounts">\
            <input type="hidden" name="kind" value="\(service.name)">\(fixed)\
            \(form.fields.filter { !$0.isRare }.map { field($0, filled) })\
            \(rare.isEmpty ? nil : more)\
            <div class="acts"><button>\(service.oauth == nil ? "Sign in" : "Go on to \(title)")</button> \
            <a href="/accounts">All accounts</a></div></form>
            """
        let account = filled.isAgain ? filled.values["name"].map { " “\($0)”" } ?? "" : ""
        return page(
            filled.isAgain ? "Sign in again:\(account)" : "Add an account: \(title)",
            current: "/accounts",
            visit,
            body
        )
    }

    /// Whether a field says what is known: the name of an account that is signed in to again.
    private func isFixed(_ field: SignInForm.Field, _ filled: SignInForm.Filled) -> Bool {
        filled.isAgain && field.name == "name"
    }

    /// Whether a client id is known for a sign-in under this name.
    private func isRegistered(
        _ service: CloudService,
        _ name: String?
    ) async throws(Failure) -> Bool {
        guard service.oauth != nil else { return true }
        let surroundings = try Surroundings(folders: folders)
        if surroundings.settings.service(service.name).clientID != nil
            || signIns.registration(at: service.name) != nil
        {
            return true
        }
        let accounts = try await Accounts(surroundings)
        let known: Result<OAuthClient?, Failure>
        do throws(Failure) {
            known = .success(try await accounts.client(ofAccount: name ?? service.name))
        } catch { known = .failure(error) }
        await accounts.shutdown()
        return try known.get() != nil
    }

    private func introduction(_ service: CloudService, _ filled: SignInForm.Filled) -> HTML {
        let again: HTML? =
            filled.isAgain
            ? "<p>What is known of the account is filled in, but for its secrets.</p>" : nil
        let words: HTML =
            switch service.name {
            case "nextcloud":
                """
                <p>You log in and grant access on the server's own page, in a new tab.</p>
                """
            case "sftp":
                """
                <p>Oort starts your ssh, so that your ~/.ssh/config, keys, agent and known hosts count. A \
                password is tried once only.</p>
                """
            case "ftp":
                """
                <p>The connection is encrypted. The server must list folders for programs (MLSD), as ProFTPD, \
                Pure-FTPd and FileZilla do. The password is tried once only.</p>
                """
            case "webdav":
                """
                <p>What the server can do is tried once, with a few small files in a folder of its own that \
                goes again.</p>
                """
            case "s3":
                """
                <p>What the store can do is tried once, with a few small objects that go again.</p>
                """
            case "weather":
                """
                <p>No account is needed. Add a place with a new folder in it, such as <code>Valencia</code>.</p>
                """
            default:
                """
                <p>You log in and allow Oort in on the page of \(service.title), in a new tab.</p>
                """
            }
        return "\(again)\(words)"
    }

    /// How a person registers Oort at a service.
    private func steps(_ guide: RegistrationGuide, _ service: CloudService) -> HTML {
        let steps = guide.steps.map { step -> HTML in
            let page = step.page.map { page -> HTML in
                """
                <a href="\(page)" target="_blank" rel="noopener noreferrer">\(page)</a>
                """
            }
            return "<li>\(page)<ul>\(lines(step.lines))</ul></li>"
        }
        return """
            <p>\(service.title) only lets in programs that are registered there. You register Oort once, as \
            your own: that is free, takes a few minutes, and nobody else can use it. Each link opens a new tab; \
            nothing is changed here before the end.</p>
            <ol class="steps">\(steps)</ol>
            <h2>What the steps end with</h2>
            """
    }

    /// What is to be done in a step: a line that is set in belongs to the one before it, and an address in it
    /// is for copying.
    private func lines(_ lines: [String]) -> [HTML] {
        var items: [[HTML]] = []
        for line in lines {
            let text = line.trimmingCharacters(in: .whitespaces)
            let piece: HTML = text.hasPrefix("http") ? "<code>\(text)</code>" : " \(text)"
            if line.hasPrefix("  "), !items.isEmpty {
                items[items.count - 1].append(piece)
            } else {
                items.append([piece])
            }
        }
        return items.map { "<li>\($0)</li>" }
    }

    private func field(_ field: SignInForm.Field, _ filled: SignInForm.Filled) -> HTML {
        let (id, value) = ("field-\(field.name)", filled.values[field.name] ?? "")
        let hint = field.hint.map { "<p class=\"hint\" id=\"\(id)-hint\">\($0)</p>" as HTML }
        let described = field.hint.map { _ in " aria-describedby=\"\(id)-hint\"" as HTML }
        let needed: HTML? = field.isRequired ? " required" : nil
        let common: HTML = """
            id="\(id)" name="\(field.name)"\(described)\(needed) autocomplete="off" spellcheck="false" \
            autocapitalize="none"
            """
        let label: HTML = "<label for=\"\(id)\">\(field.label)</label>"
        let input: HTML
        switch field.kind {
        case .text: input = "<input \(common) value=\"\(value)\">"
        case .secret: input = "<input type=\"password\" \(common)>"
        case .lines: input = "<textarea \(common) rows=\"3\">\(HTML.lines(value))</textarea>"
        case .secretLines: input = "<textarea \(common) rows=\"3\"></textarea>"
        case .check:
            let mark: HTML? = value.isEmpty ? nil : " checked"
            return """
                <div class="field check"><input type="checkbox" value="1" id="\(id)" name="\(field.name)"\
                \(described)\(mark)> \(label)\(hint)</div>
                """
        case .choice(let choices):
            let options = choices.map { choice -> HTML in
                let mark: HTML? = choice.value == value ? " selected" : nil
                return "<option value=\"\(choice.value)\"\(mark)>\(choice.words)</option>"
            }
            input = "<select id=\"\(id)\" name=\"\(field.name)\"\(described)>\(options)</select>"
        }
        return "<div class=\"field\">\(label)\(input)\(hint)</div>"
    }
}
