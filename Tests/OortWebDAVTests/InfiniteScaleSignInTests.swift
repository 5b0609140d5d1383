import Foundation
import OortModel
import OortSimulators
import OortWebDAV
import ServerTesting
import Testing

@Suite("signing in at an OpenCloud", .timeLimit(.minutes(5)))
struct InfiniteScaleSignInTests {
    @Test("whatever a person pastes leads to the server, the space and the folder")
    func recognition() async throws {
        let service = InfiniteScaleSimulator()
        let simulator = try await Simulator.start(service)
        let http = try DavServer.http()
        let url = OpenCloud.url(simulator)
        let personal = InfiniteScaleSimulator.personalSpace
        let pasted: [(String, String?, [String])] = [
            ("", nil, []), ("/", nil, []), ("/account", nil, []),
            (
                "/files/spaces/personal/ada/Photos/a%20b?fileId=x", "personal/ada",
                ["Photos", "a b"]
            ),
            ("/files/spaces/project/the-team", "project/the-team", []),
            ("/dav/spaces/\(personal)/Sub", personal, ["Sub"]),
            ("/remote.php/dav/spaces/\(personal)/", personal, []),
            ("/dav/files/ada/Sub/a%20b/", nil, ["Sub", "a b"]),
            ("/remote.php/dav/files/ada/Sub", nil, ["Sub"]),
            ("/f/\(personal)%21x", personal, []),
            ("/webdav/Sub/a%20b", nil, ["Sub", "a b"]),
        ]
        for (path, space, folder) in pasted {
            let server = try await WebDAVDiscovery.server(at: url + path, http: http)
            #expect(server.dialect == .infinitescale)
            #expect(server.product == "OpenCloud 3.4.0")
            #expect(server.address.base == [InfiniteScaleSimulator.host])
            #expect(server.space == space && server.address.folder == folder, "\(path)")
        }
        for path in ["/f/\(personal)%21x/more", "/s/AbCdEf", "/index.php/s/AbCdEf"] {
            let error = await #expect(throws: WebDAVSignInError.self) {
                _ = try await WebDAVDiscovery.server(at: url + path, http: http)
            }
            #expect(error?.description.contains("--root FOLDER") == true)
        }
        await simulator.stop()
    }

    @Test("an account is one space: the person's own, or one that is named")
    func spaces() async throws {
        try await OpenCloud.with { cloud in
            #expect(cloud.account.displayName == "Ada Example")
            #expect(cloud.account.email == "ada@example.com")
            #expect(cloud.account.address.space?.isPersonal == true)
            #expect(cloud.account.abilities.cloud?.largestPart == 10_000_000)
            #expect(try await cloud.client().owner().id == cloud.account.ownerID)
            try await cloud.client().put("x", to: "mine")
            var server = try await WebDAVDiscovery.server(
                at: OpenCloud.url(cloud.simulator),
                http: cloud.http
            )
            for name in [
                "the team", "project/the-team", InfiniteScaleSimulator.projectSpace,
            ] {
                server.space = name
                let other = try await WebDAVDiscovery.account(at: server, http: cloud.http)
                #expect(other.address.space?.name == InfiniteScaleSimulator.projectName)
                #expect(other.ownerID != cloud.account.ownerID)
                #expect(other.displayName == "Ada Example, The Team")
                let client = WebDAVClient(
                    http: cloud.http,
                    address: other.address,
                    dialect: other.dialect,
                    abilities: other.abilities
                )
                #expect(try await client.names().isEmpty)
                #expect(try await client.entry(at: .root).isOwn == false)
                let kept = try JSONEncoder().encode(other)
                #expect(try JSONDecoder().decode(WebDAVDiscovery.Account.self, from: kept) == other)
            }
            server.space = "none such"
            let error = await #expect(throws: WebDAVSignInError.self) {
                try await WebDAVDiscovery.account(at: server, http: cloud.http)
            }
            #expect(error?.description.contains("\"The Team\"") == true)
        }
    }

    @Test("a link to a folder leads to an account that begins there")
    func linkToFolder() async throws {
        try await OpenCloud.with { cloud in
            cloud.write("x", to: ["papers", "100% ü", "file"])
            let client = cloud.client()
            let url = OpenCloud.url(cloud.simulator)
            func account(_ path: String) async throws -> WebDAVDiscovery.Account {
                var server = try await WebDAVDiscovery.server(at: url + path, http: cloud.http)
                server.address.user = InfiniteScaleSimulator.user
                return try await WebDAVDiscovery.account(at: server, http: cloud.http)
            }
            let pages = try #require(client.webPages)
            for (path, isFolder) in [("papers/100% ü", true), ("papers", true)] {
                let page = try await pages.page(of: .at(path), isFolder: isFolder)
                let account = try await account(String(page.dropFirst(url.count)))
                #expect(account.address.folder == RemotePath(text: path).parts)
                #expect(account.address.space?.isPersonal == true)
                #expect(account.ownerID != cloud.account.ownerID)
            }
            let root = try await account("/f/\(InfiniteScaleSimulator.personalSpace)")
            #expect(root == cloud.account)
            let file = try await pages.page(of: .at("papers/100% ü/file"), isFolder: false)
            let error = await #expect(throws: WebDAVSignInError.self) {
                try await account(String(file.dropFirst(url.count)))
            }
            #expect(error?.description.contains("begins at a folder") == true)
            await #expect(throws: WebDAVSignInError.self) {
                try await account("/f/\(InfiniteScaleSimulator.personalSpace)!gone")
            }
        }
    }

    @Test("a folder's link never leads to another folder, whatever the server says of its place")
    func linkToUnknownPlace() async throws {
        try await OpenCloud.with { cloud in
            cloud.write("x", to: ["papers", "file"])
            cloud.write("x", to: ["papers ", "file"])
            let pages = try #require(cloud.client().webPages)
            func server(_ path: String) async throws -> WebDAVDiscovery.Server {
                let page = try await pages.page(of: .at(path), isFolder: true)
                var server = try await WebDAVDiscovery.server(at: page, http: cloud.http)
                server.address.user = InfiniteScaleSimulator.user
                return server
            }
            let spaced = try await WebDAVDiscovery.account(
                at: server("papers "),
                http: cloud.http
            )
            #expect(spaced.address.folder == ["papers "])
            cloud.service.habits.hidesPaths = true
            let papers = try await server("papers")
            let error = await #expect(throws: WebDAVSignInError.self) {
                try await WebDAVDiscovery.account(at: papers, http: cloud.http)
            }
            #expect(error?.description.contains("--root FOLDER") == true)
        }
    }

    @Test("a space or a folder that is named beside the address is never mixed with the address's")
    func chosen() async throws {
        try await OpenCloud.with { cloud in
            cloud.write("x", to: ["papers", "file"])
            let url = OpenCloud.url(cloud.simulator)
            let papers = try #require(cloud.item("papers")).id
            let personal = InfiniteScaleSimulator.personalSpace
            for path in [
                "/f/\(personal)!\(papers)", "/dav/spaces/\(personal)/papers",
                "/dav/files/ada/papers",
            ] {
                let found = try await WebDAVDiscovery.server(at: url + path, http: cloud.http)
                var server = found
                #expect(throws: WebDAVSignInError.self) {
                    try server.choose(space: "The Team", folder: nil)
                }
                #expect(server == found)
                try server.choose(space: "The Team", folder: ["Sub"])
                #expect(server.space == "The Team" && server.folderID == nil)
                #expect(server.address.folder == ["Sub"])
            }
            var server = try await WebDAVDiscovery.server(
                at: url + "/files/spaces/personal/ada",
                http: cloud.http
            )
            try server.choose(space: "The Team", folder: nil)
            #expect(server.space == "The Team" && server.address.folder.isEmpty)
        }
    }

    @Test("a wrong token is sent once, and a sign-out takes none back")
    func wrongToken() async throws {
        let service = InfiniteScaleSimulator()
        let simulator = try await Simulator.start(service)
        let http = try DavServer.http(user: InfiniteScaleSimulator.user, password: "wrong")
        let server = try await WebDAVDiscovery.server(at: OpenCloud.url(simulator), http: http)
        simulator.clearCalls()
        await #expect {
            _ = try await WebDAVDiscovery.account(at: server, http: http)
        } throws: { ($0 as? WebDAVSignInError)?.isPasswordRefused == true }
        #expect(simulator.calls.count == 1)
        await simulator.stop()
        try await OpenCloud.with { cloud in
            #expect(await failure { try await cloud.client().signOut() } == .unsupported)
        }
    }
}
