import Foundation
import OortModel
import OortSignIn
import OortTransport
import OortWebDAV

/// A sign-in at a server that speaks WebDAV: a Nextcloud, an ownCloud, an OpenCloud, or any other.
struct DAVLogin {
    /// The server, as a person writes it.
    var url: String
    /// The account's name; nil finds one.
    var name: String?
    /// The folder where the account begins.
    var root: String?
    /// The space that is the account.
    var space: String?
    /// Who logs in.
    var user: String?
    /// The kind of server, where it is not recognised by itself.
    var dialect: WebDAVDialect?

    /// Signs in; the account is then on the list.
    ///
    /// `isCloud` is of a Nextcloud and its relatives, where a person may grant access on the server's own page
    /// in place of a password.
    ///
    /// - Throws: `Failure` in words for the person.
    func run(_ context: SignInContext, isCloud: Bool) async throws {
        guard let service = Services.named(isCloud ? "nextcloud" : "webdav") else { return }
        var server = try await server(context)
        if isCloud, server.dialect == .plain {
            throw Failure(
                "What answers at \(TerminalText.line(url)) is no Nextcloud"
                    + (server.product.map { ", but \(TerminalText.line($0))." } ?? "."),
                advice: "For any other server: oort login webdav URL"
            )
        }
        let password: String
        let mayBeGranted = isCloud && server.dialect != .infinitescale && user == nil
        // What is given may come from a pipe, which can be read once.
        let given = mayBeGranted ? try context.person.givenSecret() : nil
        let isGranted = mayBeGranted && given == nil
        if isGranted {
            let granted = try await grant(at: server, context)
            server.address.user = granted.user
            password = granted.appPassword
        } else {
            password = try choose(&server, context.person, given)
        }
        try await end(service, server, password: password, isGranted: isGranted, context)
    }

    /// What the address leads to, with the space and the folder that are wished for there.
    private func server(
        _ context: SignInContext
    ) async throws(Failure) -> WebDAVDiscovery.Server {
        do throws(WebDAVSignInError) {
            var server = try await WebDAVDiscovery.server(
                at: url,
                dialect: dialect,
                http: context.accounts.http
            )
            try server.choose(
                space: space,
                folder: root.map { root in
                    root.parts(between: "/").filter { !$0.isEmpty }.map(String.init)
                }
            )
            return server
        } catch { throw Failure(error.description) }
    }

    /// Has the person grant access on the server's page.
    private func grant(
        at server: WebDAVDiscovery.Server,
        _ context: SignInContext
    ) async throws(Failure) -> NextcloudLoginFlow.Credentials {
        do throws(WebDAVSignInError) {
            // Only a Nextcloud has this way.
            let program = "Oort (\(ProcessInfo.processInfo.hostName))"
            let flow = try await NextcloudLoginFlow.start(
                at: server,
                name: program,
                http: context.accounts.http
            )
            context.person.lead(
                to: Consent(
                    page: flow.loginURL,
                    service: "Nextcloud",
                    program: program,
                    timeLimit: NextcloudLoginFlow.lifetime
                )
            )
            let end = ContinuousClock.now + NextcloudLoginFlow.lifetime
            while ContinuousClock.now < end {
                if let granted = try await flow.poll() { return granted }
                guard (try? await Task.sleep(for: NextcloudLoginFlow.pollPause)) != nil else {
                    break
                }
            }
        } catch {
            throw Failure(error.description)
        }
        throw Failure(
            "Nobody granted access within 20 minutes.",
            advice: context.person.again("nextcloud \(Shell.quoted(url))")
        )
    }

    /// Puts the user into the address, and returns the password.
    private func choose(
        _ server: inout WebDAVDiscovery.Server,
        _ person: any SignInPerson,
        _ given: String?
    ) throws(Failure) -> String {
        if let user { server.address.user = user }
        let isToken = server.dialect == .infinitescale
        if isToken {
            let address = server.address
            let page = (address.base + ["account"]).joined(separator: "/")
            server.address.user = try person.appToken(
                madeAt: "\(address.origin)/\(page)",
                user: address.user
            )
        }
        guard let user = server.address.user, !user.isEmpty, !user.contains(":") else {
            throw Failure(
                "Who logs in is not known.",
                advice: "Name the user, without a colon: \(person.name(.user))"
            )
        }
        if let given { return given }
        return try person.secret(
            "\(isToken ? "App token" : "Password") of \(TerminalText.line(user)): "
        )
    }

    /// Signs in, finds out what the server can do, and adds the account.
    ///
    /// An app password that was made for this sign-in (`isGranted`, or in place of the password) is
    /// withdrawn if the account does not come on the list: no person knows it.
    private func end(
        _ service: CloudService,
        _ server: WebDAVDiscovery.Server,
        password: String,
        isGranted: Bool,
        _ context: SignInContext
    ) async throws {
        // The person's own password opens more than files, and is kept nowhere.
        var kept = password
        let entered: RegisteredAccount
        do {
            let signed = Self.client(of: server, Secret(password), http: context.accounts.http)
            let account: WebDAVDiscovery.Account
            do throws(WebDAVSignInError) {
                account = try await WebDAVDiscovery.account(at: server, http: signed)
                kept = try await WebDAVDiscovery.appPassword(for: account, http: signed) ?? password
            } catch { throw Failure(error.description) }
            entered = try await context.entry.enter(
                Credentials(client: nil, tokens: Tokens(accessToken: Secret(kept))),
                at: String(decoding: try JSONEncoder().encode(account), as: UTF8.self),
                service: service,
                name: name
            )
        } catch {
            if isGranted || kept != password { await takeBack(Secret(kept), at: server, context) }
            throw error
        }
        try await context.entry.announce(entered, at: service, isSecret: true)
    }

    /// Has a server forget an app password; if that fails, tells the person that it exists.
    private func takeBack(
        _ password: Secret,
        at server: WebDAVDiscovery.Server,
        _ context: SignInContext
    ) async {
        // Also of a sign-in that was cancelled, whose own requests end at once.
        let removal = Task { () -> WebDAVSignInError? in
            let signed = Self.client(of: server, password, http: context.accounts.http)
            do throws(WebDAVSignInError) {
                try await WebDAVDiscovery.removeAppPassword(at: server, http: signed)
                return nil
            } catch { return error }
        }
        if let error = await removal.value {
            context.person.warn(
                "\(error.description) Nobody knows it: remove it in the server's settings, under "
                    + "Security."
            )
        }
    }

    /// The way to a server for who knows a password there.
    static func client(
        of server: WebDAVDiscovery.Server,
        _ password: Secret,
        http: any HTTPClient
    ) -> any HTTPClient {
        AccountClient.make(
            wire: http,
            tokens: FixedToken(password.revealed()),
            signer: BasicSigner(user: server.address.user ?? ""),
            rules: .webDAV,
            requests: RequestLimit(.webDAV),
            policy: Accounts.patience,
            logger: SilentLog.logger
        )
    }
}
