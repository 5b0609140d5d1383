import OortSimulators
import OortTransport
import Testing

@Suite("pages of listings", .timeLimit(.minutes(15)))
struct PagingTests {
    private static let names = (0..<20).map { "file \($0)" }.sorted()

    private func fill(_ world: SimulatedWorld) {
        for name in Self.names {
            SimulatorEdit.write(path: [name], SimulatedContent(name), modifiedTime: nil)
                .apply(to: world.simulator.service)
        }
    }

    @Test(
        "Dropbox: at most `limit` entries, then a cursor; limits outside of 1 to 2000 are refused"
    )
    func dropbox() async throws {
        try await SimulatedWorld.with(Endpoints.all[0]) { (world) async throws in
            fill(world)
            func call(_ route: String, _ json: JSON) async throws -> HTTPResponse {
                try await world.send(
                    "POST",
                    "api.dropboxapi.com",
                    "/2/files/" + route,
                    json: json,
                    token: world.tokens.access
                )
            }
            var answer = try await call("list_folder", ["path": "", "limit": 7])
            var found: [String] = []
            while let page = JSON(parsing: answer.body), let entries = page["entries"]?.elements {
                #expect(entries.count <= 7)
                found += entries.compactMap { $0["name"]?.text }
                guard page["has_more"]?.bool == true else { break }
                answer = try await call("list_folder/continue", ["cursor": page["cursor"] ?? .null])
            }
            #expect(found.sorted() == Self.names)
            for limit: JSON in [0, 2001, "7"] {
                #expect(
                    try await call("list_folder", ["path": "", "limit": limit]).head.status == 400
                )
            }
        }
    }

    @Test("Drive: at most `pageSize` files, then a token; sizes below 1 are refused")
    func drive() async throws {
        try await SimulatedWorld.with(Endpoints.all[1]) { (world) async throws in
            fill(world)
            func page(_ query: String) async throws -> HTTPResponse {
                try await world.send(
                    "GET",
                    "www.googleapis.com",
                    "/drive/v3/files?fields=nextPageToken,files(name)&" + query,
                    token: world.tokens.access
                )
            }
            var found: [String] = []
            var token: String?
            repeat {
                let query = "pageSize=7" + (token.map { "&pageToken=" + $0 } ?? "")
                let answer = JSON(parsing: try await page(query).body)
                let files = try #require(answer?["files"]?.elements)
                #expect(files.count <= 7)
                found += files.compactMap { $0["name"]?.text }
                token = answer?["nextPageToken"]?.text
            } while token != nil
            #expect(found.sorted() == Self.names)
            for size in ["0", "-1", "x"] {
                #expect(try await page("pageSize=" + size).head.status == 400)
            }
        }
    }

    @Test("Graph: at most `$top` children, then a link")
    func graph() async throws {
        try await SimulatedWorld.with(Endpoints.all[2]) { (world) async throws in
            fill(world)
            var link: String? =
                world.simulator.url(host: "graph.microsoft.com")
                + "/v1.0/me/drive/root/children?$top=7"
            var found: [String] = []
            while let url = link {
                let request = HTTPRequest(
                    method: "GET",
                    url: url,
                    headers: [("Authorization", "Bearer \(world.tokens.access)")]
                )
                let answer = JSON(parsing: try await world.client.send(request).body)
                let items = try #require(answer?["value"]?.elements)
                #expect(items.count <= 7)
                found += items.compactMap { $0["name"]?.text }
                link = answer?["@odata.nextLink"]?.text
            }
            #expect(found.sorted() == Self.names)
        }
    }
}
