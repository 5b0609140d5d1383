import Foundation
import OortModel
import OortSignIn
import OortSimulators
import OortTesting
import OortTransport
import Testing

/// Answers of the token and device URLs that no service should send.
@Suite("hostile answers to a sign-in")
struct HostileSignInTests {
    /// One answer, whatever is asked; `access_denied` at the token URL where a device asks.
    private struct FixedAnswer: HTTPClient {
        var answer: HTTPResponse
        var denies = false

        func stream(
            _ request: HTTPRequest
        ) async throws(TransportError) -> HTTPStreamedResponse {
            guard denies, request.url.hasSuffix("/token") else {
                return HTTPStreamedResponse(answer)
            }
            return HTTPStreamedResponse(
                HTTPResponse(
                    head: HTTPResponseHead(status: 400, headers: [], httpVersion: "1.1"),
                    body: Array(#"{"error":"access_denied"}"#.utf8)
                )
            )
        }
    }

    private var service: OAuthService {
        var service = OAuthService(
            name: "any",
            authorizeURL: "http://127.0.0.1:1/authorize",
            tokenURL: "http://127.0.0.1:1/token",
            scopes: ["files"],
            redirect: .anyPort(host: "127.0.0.1", path: "/")
        )
        service.deviceURL = "http://127.0.0.1:1/device"
        return service
    }

    private static let good = Array(
        #"{"access_token":"a","refresh_token":"r","expires_in":3600,"scope":"files"}"#.utf8
    )
    private static let device = Array(
        #"""
        {"device_code":"d","user_code":"u","verification_uri":"http://127.0.0.1:1/","expires_in":9,
        "interval":1}
        """#.utf8
    )

    private func signIn(_ body: [UInt8], status: Int = 200, denies: Bool = false) -> SignIn {
        let head = HTTPResponseHead(status: status, headers: [], httpVersion: "1.1")
        let client = FixedAnswer(answer: HTTPResponse(head: head, body: body), denies: denies)
        return SignIn(service: service, client: OAuthClient(id: "id"), http: client)
    }

    @Test(
        "no number of seconds traps",
        arguments: [
            "0", "-1", "1e300", "-1e300", "9223372036854775807", "\"3600\"", "\"NaN\"",
            "\"nan\"", "\"-nan\"", "\"inf\"", "\"-infinity\"", "\"1e309\"", "\"0x1p1023\"",
        ]
    )
    func seconds(_ number: String) async throws {
        let old = Tokens(accessToken: Secret("old"), refreshToken: Secret("r"))
        let body = Array(#"{"access_token":"a","expires_in":\#(number)}"#.utf8)
        let new = try await signIn(body).refresh(old)
        let left = try #require(new.expires).seconds - Timestamp.now.seconds
        #expect((-60...31_536_000).contains(left))
    }

    @Test("whatever is answered, a refresh ends in tokens or in a typed error")
    func tokens() async throws {
        let seed = UInt64.random(in: 0...(.max))
        var mutator = AnswerMutator(seed: seed)
        let old = Tokens(accessToken: Secret("old"), refreshToken: Secret("r"))
        let statuses = [200, 200, 200, 400, 401, 403, 429, 500, 503]
        for round in 0..<3000 {
            let status = statuses[mutator.index(below: statuses.count)]
            do throws(SignInError) {
                _ = try await signIn(mutator.body(Self.good), status: status).refresh(old)
            } catch {
                #expect(!"\(error)".contains("old"), "seed \(seed), round \(round)")
            }
        }
    }

    @Test("whatever is answered, a sign-in by device ends")
    func devices() async throws {
        let seed = UInt64.random(in: 0...(.max))
        var mutator = AnswerMutator(seed: seed)
        for _ in 0..<1000 {
            let signIn = signIn(mutator.body(Self.device), denies: true)
            do throws(SignInError) {
                _ = try await signIn.withDevice(time: Timekeeper(SleptTime())) { _ in }
                Issue.record("tokens came of a refusal, seed \(seed)")
            } catch {}
        }
    }
}
