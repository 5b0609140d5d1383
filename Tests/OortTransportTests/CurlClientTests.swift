import FlyingFox
import FlyingSocks
import OortModel
import OortTransport
import Testing

@Suite("libcurl client")
struct CurlClientTests {
    @Test("a small request and its answer go over whole")
    func smallRequest() async throws {
        try await withServer { request in
            let body = try await request.bodyData
            return FlyingFox.HTTPResponse(
                statusCode: .created,
                headers: [HTTPHeader("X-Method"): request.method.rawValue],
                body: body
            )
        } body: { base, client in
            var request = OortTransport.HTTPRequest(method: "POST", url: base + "/echo?a=b")
            request.body = .bytes(Array("hello".utf8))
            let answer = try await client.send(request)
            #expect(answer.head.status == 201)
            #expect(answer.head.header("x-method") == "POST")
            #expect(answer.head.httpVersion == "1.1")
            #expect(answer.body == Array("hello".utf8))
        }
    }
}
