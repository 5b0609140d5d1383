import Foundation
import OortModel
import OortTransport
import Testing

@testable import oort

/// What the README says of each service, beside what its provider declares.
@Suite("The README's tables of services")
struct ReadmeTests {
    /// A client that sends nothing.
    private struct Nowhere: HTTPClient {
        func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPStreamedResponse {
            throw .cancelled
        }
    }

    private let rows: [[String]]

    init() throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "../../README.md"
        )
        let text = try String(contentsOf: file, encoding: .utf8)
        let begin = try #require(text.range(of: "\n## The services\n")?.upperBound)
        let end = try #require(text.range(of: "\n## ", range: begin..<text.endIndex)?.lowerBound)
        rows = text[begin..<end].split(separator: "\n").filter { $0.hasPrefix("| ") }.map {
            $0.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }

    /// The rows of a service: by itself, or together with its like.
    private func rows(of service: CloudService) -> [[String]] {
        rows.filter { row in
            row[0].split(separator: ",").contains {
                $0.trimmingCharacters(in: .whitespaces) == service.title
            }
        }
    }

    @Test("each service has a row in both", arguments: Services.all)
    func complete(service: CloudService) {
        #expect(rows(of: service).map(\.count) == [7, 4])
    }

    @Test("what they say of a company's service is what its provider declares")
    func traits() throws {
        for service in Services.all {
            guard let oauth = service.oauth else { continue }
            let provider = oauth.makeProvider(Nowhere(), Hosts([:]), nil) {}
            let found = rows(of: service)
            try #require(found.count == 2)
            let (one, two) = (found[0], found[1])
            let traits = provider.traits
            #expect(one[2] == (traits.feed == .longPoll ? "within seconds" : "with each poll"))
            #expect(one[3].hasPrefix("refused by the service") == traits.replaceIsAtomic)
            #expect((one[5] == "no bytes travel") == traits.copiesFiles)
            #expect(two[1].hasPrefix("yes") == (provider.trash != nil))
            #expect((two[2] == "no") == (provider.versions == nil))
            #expect((two[3] == "no") == (provider.links == nil))
        }
    }
}
