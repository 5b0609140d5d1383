import Foundation
import OortSimulators
import OortTransport
import Testing

@Suite("the simulated server of plain WebDAV", .timeLimit(.minutes(15)))
struct PlainDAVTests {
    private struct World {
        let service: PlainDAVSimulator
        let simulator: Simulator
        let client: CurlClient
        let password: String

        func send(
            _ method: String,
            _ path: String,
            _ headers: [(name: String, value: String)] = [],
            text: String? = nil,
            password: String? = nil
        ) async throws -> HTTPResponse {
            let login = "\(PlainDAVSimulator.userName):\(password ?? self.password)"
            return try await client.send(
                HTTPRequest(
                    method: method,
                    url: url(path),
                    headers: headers + [
                        ("Authorization", "Basic \(Data(login.utf8).base64EncodedString())")
                    ],
                    body: text.map { .bytes(Array($0.utf8)) } ?? .none
                )
            )
        }

        func url(_ path: String) -> String {
            simulator.url(host: PlainDAVSimulator.host) + "/\(PlainDAVSimulator.folder)/\(path)"
        }
    }

    private func with(_ body: (World) async throws -> Void) async throws {
        let service = PlainDAVSimulator()
        let world = World(
            service: service,
            simulator: try await Simulator.start(service),
            client: try CurlClient(),
            password: service.account.tokens.issue().access
        )
        let outcome: Result<Void, any Error>
        do {
            try await body(world)
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        await world.client.shutdown()
        await world.simulator.stop()
        try outcome.get()
    }

    @Test("what is written is listed, with a file's tag and none of a folder's")
    func listing() async throws {
        try await with { (world) async throws in
            #expect(try await world.send("MKCOL", "f").head.status == 201)
            #expect(try await world.send("PUT", "f/a%20b", text: "text").head.status == 201)
            let answer = try await world.send("PROPFIND", "f", [("Depth", "1")])
            #expect(answer.head.status == 207)
            let text = String(decoding: answer.body, as: UTF8.self)
            #expect(text.contains("/\(PlainDAVSimulator.folder)/f/a%20b</d:href>"))
            #expect(text.contains("<d:getcontentlength>4</d:getcontentlength>"))
            #expect(text.components(separatedBy: "<d:getetag>").count == 2)
            let everything = try await world.send("PROPFIND", "", [("Depth", "infinity")])
            #expect(everything.head.status == 403)
            #expect(try await world.send("GET", "f/a%20b", password: "x").head.status == 401)
        }
    }

    @Test("conditions are looked at, a taken name is kept, and what is deleted is gone")
    func conditions() async throws {
        try await with { (world) async throws in
            let tag = try await world.send("PUT", "a", text: "one").head.header("ETag") ?? ""
            let taken = try await world.send("PUT", "a", [("If-None-Match", "*")], text: "x")
            #expect(taken.head.status == 412)
            let fresh = try await world.send("PUT", "a", [("If-Match", tag)], text: "two")
            #expect(fresh.head.status == 204)
            for method in ["PUT", "DELETE"] {
                let stale = try await world.send(method, "a", [("If-Match", tag)])
                #expect(stale.head.status == 412)
            }
            _ = try await world.send("PUT", "b", text: "b")
            let place = ("Destination", world.url("a"))
            let kept = try await world.send("MOVE", "b", [place, ("Overwrite", "F")])
            #expect(kept.head.status == 412)
            #expect(try await world.send("COPY", "b", [place]).head.status == 204)
            #expect(try await world.send("GET", "a").body == Array("b".utf8))
            #expect(try await world.send("PUT", "none/x", text: "x").head.status == 409)
            #expect(try await world.send("DELETE", "a").head.status == 204)
            let left = world.service.account.withTree { $0.allItems.count }
            #expect(left == 2)
        }
    }
}
