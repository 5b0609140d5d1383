import Foundation
import OortModel
import OortTesting
import OortTransport
import Synchronization
import Testing

@testable import OortSignIn

@Suite("sign-in")
struct SignInTests {
    @Test("a browser that agrees brings tokens, by PKCE S256, and sees that it may be closed")
    func browser() async throws {
        try await withFakeServer { server, http in
            let signIn = SignIn(service: server.service, client: server.client, http: http)
            let page = Mutex<(status: Int, text: String)?>(nil)
            let tokens = try await signIn.withBrowser { url in
                let seen = try? await server.browse(url)
                page.withLock { $0 = seen }
            }
            #expect(tokens.accessToken == Secret("access-1"))
            #expect(tokens.refreshToken == Secret("refresh-1"))
            #expect(tokens.grantedScopes == ["files.read"])
            let expires = try #require(tokens.expires)
            #expect((3500...3700).contains(expires.seconds - Timestamp.now.seconds))
            let seen = page.withLock { $0 }
            #expect(seen?.status == 200)
            #expect(seen?.text.contains("You can close this window") == true)
        }
    }

    @Test("a person who says no is told so, in the browser and here")
    func denial() async throws {
        try await withFakeServer { server, http in
            let signIn = SignIn(service: server.service, client: server.client, http: http)
            let page = Mutex("")
            await #expect(throws: SignInError.denied) {
                try await signIn.withBrowser { url in
                    let seen = try? await server.browse(url, denies: true)
                    page.withLock { $0 = seen?.text ?? "" }
                }
            }
            #expect(page.withLock { $0.contains("denied") })
        }
    }

    @Test("an answer with another state is refused, and the sign-in goes on")
    func mismatch() async throws {
        try await withFakeServer { server, http in
            let signIn = SignIn(service: server.service, client: server.client, http: http)
            let pages = Mutex<[String]>([])
            let tokens = try await signIn.withBrowser { url in
                for _ in 0..<3 {
                    let seen = try? await server.browse(url, changesState: true)
                    pages.withLock { $0.append(seen?.text ?? "") }
                }
                #expect(server.state.withLock { $0.tokenRequests } == 0)
                _ = try? await server.browse(url)
            }
            #expect(pages.withLock { $0.allSatisfy { $0.contains("another sign-in") } })
            #expect(tokens.accessToken == Secret("access-1"))
        }
    }

    @Test("what a process list shows leads to the service once, and says nothing")
    func entrance() async throws {
        try await withFakeServer { server, http in
            let signIn = SignIn(service: server.service, client: server.client, http: http)
            let shown = Mutex("")
            let tokens = try await signIn.withBrowser { url in
                shown.withLock { $0 = url }
            } launch: { address in
                let url = shown.withLock { $0 }
                for item in URLComponents(string: url)?.queryItems ?? []
                where ["state", "code_challenge"].contains(item.name) {
                    #expect(!address.contains(item.value ?? ""))
                }
                let first = try? await http.send(HTTPRequest(method: "GET", url: address))
                #expect(first?.head.status == 302)
                #expect(first?.head.header("Location") == url)
                let second = try? await http.send(HTTPRequest(method: "GET", url: address))
                #expect(second?.head.status == 410)
                #expect(second?.head.header("Location") == nil)
                _ = try? await server.browse(url)
            }
            #expect(tokens.accessToken == Secret("access-1"))
        }
    }

    @Test("nobody in the browser ends at the time limit, and the port is free again")
    func timeLimit() async throws {
        try await withFakeServer { server, http in
            var service = server.service
            let signIn = SignIn(service: service, client: server.client, http: http)
            let redirect = Mutex("")
            await #expect(throws: SignInError.timedOut) {
                try await signIn.withBrowser(time: Timekeeper(SleptTime())) { url in
                    let items = URLComponents(string: url)?.queryItems ?? []
                    let value = items.first { $0.name == "redirect_uri" }?.value ?? ""
                    redirect.withLock { $0 = value }
                }
            }
            // A registered port: the one that was free a moment ago.
            let url = try #require(URLComponents(string: redirect.withLock { $0 }))
            let port = try #require(url.port)
            service.redirect = .fixedPorts([UInt16(port)], host: "localhost", path: "")
            let again = SignIn(service: service, client: server.client, http: http)
            let tokens = try await again.withBrowser { url in
                #expect(url.contains("redirect_uri=http%3A%2F%2Flocalhost%3A\(port)&"))
                _ = try? await server.browse(url)
            }
            #expect(tokens.accessToken == Secret("access-1"))
        }
    }

    @Test("registered ports that are all taken are an error that names them")
    func portsTaken() async throws {
        try await withFakeServer { server, http in
            var service = server.service
            let port = try #require(URLComponents(string: server.base)?.port)
            service.redirect = .fixedPorts([UInt16(port)], host: "localhost", path: "/")
            let signIn = SignIn(service: service, client: server.client, http: http)
            await #expect(throws: SignInError.portsTaken([UInt16(port)])) {
                try await signIn.withBrowser { _ in Issue.record("no browser may be opened") }
            }
        }
    }

    @Test("a code that was copied from the browser brings tokens")
    func copiedCode() async throws {
        try await withFakeServer { server, http in
            let signIn = SignIn(service: server.service, client: server.client, http: http)
            let tokens = try await signIn.withCopiedCode { url in
                server.shownCode(for: url).map { "  \($0)\n" }
            }
            #expect(tokens.accessToken == Secret("access-1"))
            await #expect(throws: SignInError.nothingPasted) {
                try await signIn.withCopiedCode { _ in nil }
            }
        }
    }

    @Test("an address that a browser elsewhere was sent to brings tokens when it is pasted")
    func pastedAddress() async throws {
        try await withFakeServer { server, http in
            let signIn = SignIn(service: server.service, client: server.client, http: http)
            let shown = Mutex("")
            let tokens = try await signIn.withBrowser { url in
                shown.withLock { $0 = server.addressSentTo(for: url) }
            } paste: { isAnswer in
                let address = shown.withLock { $0 }
                #expect(!isAnswer("nonsense"))
                #expect(!isAnswer(address.replacing("state=", with: "state=x")))
                #expect(isAnswer(address))
            }
            #expect(tokens.accessToken == Secret("access-1"))
            await #expect(throws: SignInError.nothingPasted) {
                try await signIn.withBrowser { _ in
                } paste: { _ in
                }
            }
        }
    }

    @Test("what went wrong is told in words, without a type of Swift's")
    func words() {
        let error = SignInError.transport(.unreachable("Could not resolve host: a.example"))
        #expect("\(error)" == "no answer from the service: Could not resolve host: a.example")
        for error in [
            TransportError.broken("x"), .untrusted("x"), .tooLarge(limit: 1), .signedOut("x"),
            .clientRefused("x"), .localContent("x"), .cancelled,
        ] {
            #expect(!"\(error)".contains("("))
        }
    }

    @Test("a device waits while the answer is pending, and slows down when told")
    func device() async throws {
        try await withFakeServer { server, http in
            server.state.withLock {
                $0.deviceAnswers = ["authorization_pending", "slow_down", "authorization_pending"]
            }
            let clock = SleptTime()
            let signIn = SignIn(service: server.service, client: server.client, http: http)
            let tokens = try await signIn.withDevice(time: Timekeeper(clock)) { prompt in
                #expect(prompt.url == "http://go")
                #expect(prompt.userCode == "ABCD")
                #expect(prompt.validity == .seconds(600))
            }
            #expect(tokens.accessToken == Secret("access-1"))
            #expect(clock.sleeps == [.seconds(5), .seconds(5), .seconds(10), .seconds(10)])
        }
    }

    @Test(
        "a device flow ends as the service says",
        arguments: [
            ("access_denied", SignInError.denied),
            ("expired_token", .timedOut),
            (
                "invalid_client",
                .refused(OAuthRefusal(code: "invalid_client", text: "bad ", status: 400))
            ),
        ]
    )
    func deviceRefusal(code: String, error: SignInError) async throws {
        try await withFakeServer { server, http in
            server.state.withLock { $0.deviceAnswers = [code] }
            let signIn = SignIn(service: server.service, client: server.client, http: http)
            await #expect(throws: error) {
                try await signIn.withDevice(time: Timekeeper(SleptTime())) { _ in }
            }
        }
    }

    @Test("an error answer that repeats a secret does not show it")
    func redaction() async throws {
        try await withFakeServer { server, http in
            let signIn = SignIn(service: server.service, client: server.client, http: http)
            let tokens = Tokens(accessToken: Secret("a"), refreshToken: Secret("hush hush"))
            await #expect {
                try await signIn.refresh(tokens)
            } throws: { error in
                guard case SignInError.refused(let refusal)? = error as? SignInError else {
                    return false
                }
                return refusal.code == "invalid_grant" && refusal.text == "bad <secret>"
            }
        }
    }

    @Test("tokens are taken back by their refresh token")
    func revocation() async throws {
        try await withFakeServer { server, http in
            let signIn = SignIn(service: server.service, client: server.client, http: http)
            try await signIn.revoke(
                Tokens(accessToken: Secret("a"), refreshToken: Secret("refresh-0"))
            )
            #expect(server.state.withLock { $0.revoked } == ["refresh-0"])
        }
    }

    @Test("a token file needs only its access token, and nothing of it is shown when it is bad")
    func tokenFile() throws {
        let whole = try Tokens(
            tokenFile: Array(
                #"{"access_token":"a","refresh_token":"r","expires_at":"2026-01-31T12:00:00Z"}"#
                    .utf8
            )
        )
        #expect(whole.refreshToken == Secret("r"))
        #expect(whole.expires == Timestamp(rfc3339: "2026-01-31T12:00:00Z"))
        let bare = try Tokens(tokenFile: Array(#"{"access_token":"a"}"#.utf8))
        #expect(bare == Tokens(accessToken: Secret("a")))
        for bad in [
            "hush", #"{"refresh_token":"hush"}"#, #"{"access_token":""}"#,
            #"{"access_token":"hush","expires_at":"hush"}"#,
        ] {
            #expect {
                try Tokens(tokenFile: Array(bad.utf8))
            } throws: { error in
                !"\(error)".contains("hush")
            }
        }
    }
}
