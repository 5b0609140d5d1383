import Foundation
import OortModel
import OortS3
import OortSignIn
import OortWeather
import OortWebDAV

/// From what was filled in to a sign-in.
extension SignInForm {
    /// What came with a form.
    struct Answers: Sendable {
        /// What is no secret, without what is empty.
        let shown: [String: String]

        /// The same without a password that was written into an address, to be sent back with the form.
        var repeatable: [String: String] {
            var values = shown
            if let address = shown["address"], let (login, host) = address.cut(atLast: "@") {
                let start = login.range(of: "://")?.upperBound ?? login.startIndex
                if let colon = login.unicodeScalars[start...].firstIndex(of: ":") {
                    values["address"] = "\(login[..<colon])@\(host)"
                }
            }
            return values
        }

        private let secrets: [String: Secret]

        /// Sorts the fields of a form that was sent; `isAgain` is whether it is that of an account that has its
        /// name already, spaces at its ends included.
        init(_ form: [String: String], of fields: [Field], isAgain: Bool = false) {
            var shown: [String: String] = [:]
            var secrets: [String: Secret] = [:]
            for field in fields {
                guard let text = form[field.name] else { continue }
                if isAgain, field.name == "name" {
                    shown[field.name] = text
                } else if field.isShown {
                    // Browsers send both characters of a line end.
                    let value = text.replacing("\r\n", with: "\n")
                        .trimmingCharacters(in: .whitespacesAndNewlines)
                    if !value.isEmpty { shown[field.name] = value }
                } else if !text.isEmpty {
                    secrets[field.name] = Secret(text)
                }
            }
            self.shown = shown
            self.secrets = secrets
        }

        subscript(name: String) -> String? { shown[name] }

        /// A secret that was filled in.
        func secret(_ name: String) -> Secret? { secrets[name] }
    }

    /// Does the sign-in that is wished for.
    ///
    /// - Throws: `Failure` in words for the person.
    func run(_ answers: Answers, _ context: SignInContext, _ signIns: SiteSignIns) async throws {
        let name = answers["name"]
        switch service.name {
        case "nextcloud", "webdav":
            let login = DAVLogin(
                url: answers["address"] ?? "",
                name: name,
                root: answers["root"],
                space: answers["space"],
                user: answers["user"],
                dialect: answers["dialect"].flatMap { WebDAVDialect(rawValue: $0) }
            )
            try await login.run(context, isCloud: service.name == "nextcloud")
        case "sftp":
            let options = (answers["options"] ?? "").split { $0.isNewline }
                .map { $0.trimmingCharacters(in: .whitespaces) }
            let login = SFTPLogin(
                server: answers["address"] ?? "",
                name: name,
                root: answers["root"],
                identity: answers["identity"],
                options: options.filter { !$0.isEmpty }
            )
            try await login.run(context)
        case "ftp":
            let login = FTPLogin(
                server: answers["address"] ?? "",
                name: name,
                root: answers["root"],
                isPlain: answers["plain"] != nil
            )
            try await login.run(context)
        case "s3": try await s3(answers).run(context)
        case "weather":
            let source = answers["source"].flatMap { WeatherSourceName(rawValue: $0) }
            let login = WeatherLogin(
                source: source ?? .openMeteo,
                contact: answers["contact"],
                name: name
            )
            try await login.run(context)
        default: try await cloud(answers, context, signIns)
        }
    }

    private func s3(_ answers: Answers) throws(Failure) -> S3Login {
        let keys: S3Login.KeySource
        switch (answers["profile"], answers["key_id"], answers.secret("key")) {
        case (let profile?, nil, nil): keys = .profile(profile)
        case (nil, let id?, let key?):
            let token = answers.secret("session_token").map {
                $0.revealed().trimmingCharacters(in: .whitespacesAndNewlines)
            }
            keys = .keys(
                S3Keys(
                    accessKeyID: id,
                    secretAccessKey: Secret(
                        key.revealed().trimmingCharacters(in: .whitespacesAndNewlines)
                    ),
                    sessionToken: token.map { Secret($0) }
                )
            )
        case (nil, nil, nil): keys = .anonymous
        case (_?, _, _):
            throw Failure("Give the keys or a profile that has them, not both.")
        case (nil, _, _):
            throw Failure(
                "Of the two keys only one is given.",
                advice: "Fill in the access key id and the secret access key, or none of them for "
                    + "a public bucket."
            )
        }
        return S3Login(
            bucket: answers["bucket"] ?? "",
            name: answers["name"],
            root: answers["root"],
            endpoint: answers["endpoint"],
            region: answers["region"],
            isPathStyle: answers["path_style"] != nil,
            keys: keys
        )
    }

    private func cloud(
        _ answers: Answers,
        _ context: SignInContext,
        _ signIns: SiteSignIns
    ) async throws {
        guard let access = service.oauth else { return }
        var login = CloudLogin(
            service: service,
            access: access,
            name: answers["name"],
            root: answers["root"],
            clientID: answers["client_id"],
            clientSecret: answers.secret("client_secret").map {
                Secret($0.revealed().trimmingCharacters(in: .whitespacesAndNewlines))
            }
        )
        if let tokens = answers.secret("tokens") {
            do throws(SignInError) {
                login.tokens = try Tokens(tokenFile: Array(tokens.revealed().utf8))
            } catch {
                var reason = "\(error)"
                if case .tokenFile(let detail) = error { reason = detail }
                throw Failure(
                    "The tokens cannot be used: \(reason).",
                    advice: "All but access_token may be left out."
                )
            }
        }
        let known = signIns.registration(at: service.name)
        if let known, login.clientSecret == nil, login.clientID == known.id {
            // The form has what was pasted before, but for the secret.
            login.clientSecret = known.secret
        } else if login.clientID != nil {
            try await check(&login, context, signIns)
        } else if let known, try await login.client(context) == nil {
            login.clientID = known.id
            login.clientSecret = known.secret
        }
        let title = service.title
        try await login.run(
            context,
            register: { () async throws(Failure) -> OAuthClient? in
                throw Failure(
                    "\(title) only lets in programs that are registered there.",
                    advice: "Register Oort as the steps say, and paste what they end with."
                )
            },
            consent: { signIn throws(SignInError) in
                try await signIn.withBrowser(timeLimit: Self.consentLimit) { url in
                    context.person.lead(
                        to: Consent(page: url, service: title, timeLimit: Self.consentLimit)
                    )
                }
            }
        )
    }

    /// How long a person may take on the service's page, with a second factor and a forgotten password.
    static let consentLimit = Duration.seconds(15 * 60)

    /// Asks the service whether it knows a registration that was pasted, before the person goes there.
    private func check(
        _ login: inout CloudLogin,
        _ context: SignInContext,
        _ signIns: SiteSignIns
    ) async throws(Failure) {
        guard let guide = login.access.registration, let id = login.clientID else { return }
        if let objection = guide.objection(to: id) { throw objection }
        guard let client = try await login.client(context) else { return }
        let signIn = context.accounts.signIn(service, login.access, client)
        do throws(SignInError) {
            if case .refused(let refusal) = try await signIn.registrationState() {
                throw SignInError.refused(refusal)
            }
        } catch {
            guard case .refused(let refusal) = error else {
                throw RegistrationGuide.failure(error, at: service)
            }
            throw guide.failure(refusal, at: service)
        }
        login.clientSecret = client.secret
        signIns.remember(client, at: service.name)
    }
}
