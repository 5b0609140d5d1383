import Foundation
import OortModel
import OortSimulators
import OortWebDAV
import ServerTesting
import Testing

@Suite("signing in at a Nextcloud", .timeLimit(.minutes(5)))
struct NextcloudSignInTests {
    @Test("whatever a person pastes leads to the server")
    func recognition() async throws {
        let service = NextcloudSimulator()
        let simulator = try await Simulator.start(service)
        let http = try DavServer.http()
        let url = Cloud.url(simulator)
        let pasted = [
            ("", []), ("/", []), ("/index.php/apps/files/?dir=/Photos/a%20b", ["Photos", "a b"]),
            ("/apps/files/files/123?dir=/Photos", ["Photos"]), ("/index.php/login", []),
            ("/remote.php/dav/files/ada/Sub/Folder/", ["Sub", "Folder"]),
            ("/remote.php/webdav", []),
        ]
        for (path, folder) in pasted {
            let server = try await WebDAVDiscovery.server(at: url + path, http: http)
            #expect(server.dialect == .nextcloud)
            #expect(server.product == "Nextcloud 34.0.1")
            #expect(server.address.base == [NextcloudSimulator.host])
            #expect(server.address.folder == folder)
        }
        for path in ["/f/123", "/index.php/f/123", "/f/123/more", "/s/AbCdEf"] {
            let error = await #expect(throws: WebDAVSignInError.self) {
                _ = try await WebDAVDiscovery.server(at: url + path, http: http)
            }
            #expect(error?.description.contains("--root") == true)
        }
        service.habits.isUnderMaintenance = true
        await #expect(throws: WebDAVSignInError.self) {
            _ = try await WebDAVDiscovery.server(at: url, http: http)
        }
        await simulator.stop()
    }

    @Test("a product under another name is known by its version, and one of no family is named")
    func otherNames() async throws {
        let service = NextcloudSimulator()
        let simulator = try await Simulator.start(service)
        let http = try DavServer.http(user: NextcloudSimulator.loginName, password: "any")
        let url = Cloud.url(simulator)
        let told: [(JSON, WebDAVDialect, String?)] = [
            (
                [
                    "version": .string("10.11.0.0"), "productname": .string("Wolke"),
                    "productversion": .string("5.0.0"),
                ], .infinitescale, "Wolke 5.0.0"
            ),
            (["version": .string("10.15.0.3")], .owncloud10, "10.15.0.3"),
            (
                ["version": .string("34.0.1.2"), "productname": .string("Wolke")], .nextcloud,
                "Wolke 34.0.1.2"
            ),
            (
                ["version": .string("3.1"), "productname": .string("Pebble")], .plain, "Pebble 3.1"
            ),
        ]
        for (status, dialect, product) in told {
            service.habits.status = status
            let server = try await WebDAVDiscovery.server(at: url, http: http)
            #expect(server.dialect == dialect && server.product == product)
        }
        let stranger = try await WebDAVDiscovery.server(at: url, http: http)
        let error = await #expect(throws: WebDAVSignInError.self) {
            try await WebDAVDiscovery.account(at: stranger, http: http)
        }
        #expect(error?.description.contains("calls itself Pebble 3.1") == true)
        await simulator.stop()
    }

    @Test("the browser's sign-in gives a password, and a sign-out takes it back")
    func login() async throws {
        let service = NextcloudSimulator()
        let simulator = try await Simulator.start(service)
        let open = try DavServer.http()
        var server = try await WebDAVDiscovery.server(at: Cloud.url(simulator), http: open)
        let flow = try await NextcloudLoginFlow.start(at: server, name: "Oort (test)", http: open)
        #expect(flow.loginURL.contains("/login/v2/flow/"))
        #expect(try await flow.poll() == nil)
        service.grantLogin()
        let granted = try #require(try await flow.poll())
        #expect(granted.user == NextcloudSimulator.loginName)
        #expect(try await flow.poll() == nil)
        server.address.user = granted.user
        let http = try DavServer.http(user: granted.user, password: granted.appPassword)
        let account = try await WebDAVDiscovery.account(at: server, http: http)
        #expect(account.address.userID == NextcloudSimulator.userID)
        #expect(account.displayName == "Ada Example" && account.email == "ada@example.com")
        #expect(account.abilities.cloud?.largestPart == 104_857_600)
        let client = WebDAVClient(
            http: http,
            address: account.address,
            dialect: account.dialect,
            abilities: account.abilities
        )
        #expect(try await client.owner().id == account.ownerID)
        try await client.signOut()
        #expect(await failure { _ = try await client.owner() } == .signedOut)
        await simulator.stop()
    }

    @Test("a person's own password is exchanged for an app password, which is kept")
    func appPassword() async throws {
        try await Cloud.with { cloud in
            let own = try DavServer.http(
                user: NextcloudSimulator.loginName,
                password: NextcloudSimulator.ownPassword
            )
            let made = try await WebDAVDiscovery.appPassword(for: cloud.account, http: own)
            let password = try #require(made)
            #expect(password != NextcloudSimulator.ownPassword)
            let signed = try DavServer.http(
                user: NextcloudSimulator.loginName,
                password: password
            )
            // One that is an app password stays.
            #expect(try await WebDAVDiscovery.appPassword(for: cloud.account, http: signed) == nil)
            let client = WebDAVClient(
                http: signed,
                address: cloud.account.address,
                dialect: cloud.account.dialect,
                abilities: cloud.account.abilities
            )
            #expect(try await client.owner().id == cloud.account.ownerID)
            try await client.signOut()
            #expect(await failure { _ = try await client.owner() } == .signedOut)
        }
    }

    @Test("a wrong password is sent once; another is tried no sooner than after a while")
    func wrongPassword() async throws {
        let service = NextcloudSimulator()
        let simulator = try await Simulator.start(service)
        let http = try DavServer.http(user: NextcloudSimulator.userID, password: "wrong")
        let server = try await WebDAVDiscovery.server(at: Cloud.url(simulator), http: http)
        simulator.clearCalls()
        await #expect {
            _ = try await WebDAVDiscovery.account(at: server, http: http)
        } throws: { ($0 as? WebDAVSignInError)?.isPasswordRefused == true }
        #expect(simulator.calls.count == 1)
        await simulator.stop()

        try await Cloud.with { cloud in
            let client = cloud.client(secondLook: .seconds(3600))
            cloud.service.account.tokens.revokeAll()
            for _ in 0..<5 {
                let kind = await failure { _ = try await client.entry(at: .root) }
                guard case .rateLimited = kind else {
                    Issue.record("\(String(describing: kind))")
                    return
                }
            }
            #expect(cloud.calls == 1)

            let hasty = cloud.client(secondLook: .milliseconds(50))
            let first = await failure { _ = try await hasty.entry(at: .root) }
            guard case .rateLimited = first else {
                Issue.record("\(String(describing: first))")
                return
            }
            try await Task.sleep(for: .milliseconds(60))
            #expect(await failure { _ = try await hasty.entry(at: .root) } == .signedOut)
            #expect(cloud.calls == 3)
        }
    }
}
