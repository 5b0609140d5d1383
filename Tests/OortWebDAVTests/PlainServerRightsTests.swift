import Foundation
import OortModel
import OortTransport
import OortWebDAV
import ServerTesting
import Testing

/// Where a server lets a person in at some places, and not at others.
@Suite("a person's rights at a plain server", .timeLimit(.minutes(5)))
struct PlainServerRightsTests {
    @Test("a folder that is closed to the person closes nothing else, and ends no sign-in")
    func closedFolder() async throws {
        try await DavServer.with(.apache) { server in
            try server.makeFolder(DavServer.closedFolder)
            let client = try await server.client(secondLook: .milliseconds(200))
            try await client.put("mine", to: "mine")
            let closed = RemotePath([DavServer.closedFolder])
            for _ in 0..<3 {
                #expect(await failure { _ = try await client.listing(of: closed) } == .noPermission)
                #expect(
                    await failure { try await client.put("x", to: "\(closed)/x") } == .noPermission
                )
                #expect(try await client.text("mine") == "mine")
                try await Task.sleep(for: .milliseconds(250))
            }
        }
    }

    @Test("where a person may only read, the sign-in finds that out")
    func readingOnly() async throws {
        try await DavServer.with(.apache) { server in
            try server.makeFolder(DavServer.readingFolder)
            try server.write("theirs", to: DavServer.readingFolder + "/file")
            let account = try await server.signIn(at: "/" + DavServer.readingFolder)
            #expect(account.abilities.isReadOnly)
            let client = WebDAVClient(
                http: try DavServer.http(),
                address: account.address,
                dialect: account.dialect,
                abilities: account.abilities
            )
            #expect(try await client.text("file") == "theirs")
            #expect(try await client.listing(of: .root).entries.map(\.permissions) == [.read])
        }
    }

    @Test("a password that was changed ends the sign-in, but no sooner than after a second look")
    func changedPassword() async throws {
        try await DavServer.with(.apache) { server in
            let client = try await server.client(secondLook: .milliseconds(200))
            try await client.put("x", to: "a")
            try server.refuseAll()
            guard case .rateLimited? = await failure({ _ = try await client.text("a") }) else {
                Issue.record("the first refusal is no end")
                return
            }
            try await Task.sleep(for: .milliseconds(250))
            #expect(await failure { _ = try await client.owner() } == .signedOut)
        }
    }

    @Test(
        "a server that is full or busy at the sign-in is not taken for one that is read only",
        arguments: [429, 503, 507]
    )
    func fullServer(status: Int) async throws {
        try await DavServer.with(.apache) { server in
            await #expect(throws: WebDAVSignInError.self) {
                _ = try await server.signIn(through: { RefusedUploads(next: $0, status: status) })
            }
            #expect(server.names.isEmpty)
            let later = try await server.signIn()
            #expect(!later.abilities.isReadOnly)
        }
    }
}

/// A server that takes no content.
private struct RefusedUploads: HTTPClient {
    let next: any HTTPClient
    let status: Int

    func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPStreamedResponse {
        guard request.method == "PUT" else { return try await next.stream(request) }
        let head = HTTPResponseHead(status: status, headers: [], httpVersion: "1.1")
        return HTTPStreamedResponse(HTTPResponse(head: head, body: []))
    }
}
