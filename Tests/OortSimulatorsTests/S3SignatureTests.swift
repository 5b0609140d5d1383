import Foundation
import OortS3
import OortSignIn
import OortSimulators
import OortTransport
import Synchronization
import Testing

@Suite("signatures at the simulated S3", .timeLimit(.minutes(15)))
struct S3SignatureTests {
    @Test("a request is taken from who knows the secret, whatever the key is made of")
    func good() async throws {
        try await S3World.with { (world) async throws in
            for key in ["a", "ä ö/+&=?#%", "a//b", "./..", "(1)!'*~", "\u{1F30B}"] {
                #expect(try await world.put(key, key).head.status == 200, "\(key)")
                #expect(try await world.text(key) == key)
            }
        }
    }

    @Test("another secret, an unknown key, and nobody are refused, each in its own words")
    func refused() async throws {
        try await S3World.with { (world) async throws in
            var other = world
            other.keys.secretAccessKey = Secret("wrong")
            #expect(try await other.send("GET").code == "SignatureDoesNotMatch")
            other.keys = S3Keys(accessKeyID: "unknown", secretAccessKey: Secret("wrong"))
            #expect(try await other.send("GET").code == "InvalidAccessKeyId")
            other.keys = .anonymous
            let answer = try await other.send("GET")
            #expect(answer.head.status == 403 && answer.code == "AccessDenied")
            world.store.account.tokens.expireAccessTokens()
            #expect(try await world.send("GET").code == "ExpiredToken")
        }
    }

    @Test("what changed on the way is refused: the path, the query, a signed field, the body")
    func changed() async throws {
        try await S3World.with { (world) async throws in
            try await world.put("a", "text")
            func sent(
                _ method: String = "GET",
                body: HTTPRequest.Body = .none,
                _ change: (inout HTTPRequest) -> Void
            ) async throws -> String? {
                var request = try world.signer.sign(
                    HTTPRequest(method: method, url: world.url("a"), body: body),
                    with: world.keys.secret.revealed()
                )
                change(&request)
                return try await world.client.send(request).code
            }
            #expect(try await sent { _ in } == nil)
            #expect(try await sent { $0.url += "b" } == "SignatureDoesNotMatch")
            #expect(try await sent { $0.url += "?versionId=x" } == "SignatureDoesNotMatch")
            #expect(try await sent { $0.method = "DELETE" } == "SignatureDoesNotMatch")
            let added = try await sent { $0.headers.append(("x-amz-meta-x", "1")) }
            #expect(added == "AccessDenied")
            let body = try await sent("PUT", body: .bytes([1, 2])) { $0.body = .bytes([1, 3]) }
            #expect(body == "XAmzContentSHA256Mismatch")
            #expect(try await world.text("a") == "text")
        }
    }

    @Test("a clock that is wrong by more than 15 minutes is refused, with the store's own time")
    func clocks() async throws {
        try await S3World.with { (world) async throws in
            world.store.habits.clockOffsetSeconds = 14 * 60
            #expect(try await world.send("GET").head.status == 200)
            for offset: Int64 in [16 * 60, -16 * 60] {
                world.store.habits.clockOffsetSeconds = offset
                let answer = try await world.send("GET")
                #expect(answer.head.status == 403 && answer.code == "RequestTimeTooSkewed")
                #expect(answer.head.header("Date") != nil)
            }
        }
    }

    @Test("a signature for another region is refused, and told which is right")
    func regions() async throws {
        try await S3World.with { (world) async throws in
            world.store.habits.region = "eu-central-1"
            let answer = try await world.send("GET")
            #expect(answer.head.status == 400 && answer.code == "AuthorizationHeaderMalformed")
            #expect(answer.all("Region") == ["eu-central-1"])
            world.signer.region = "eu-central-1"
            #expect(try await world.send("GET").head.status == 200)
        }
    }

    @Test("a presigned address is good for its time, for its key, and for seven days at most")
    func presigned() async throws {
        try await S3World.with { (world) async throws in
            try await world.put("a b", "text")
            try await world.put("other", "other")
            let link = try world.signer.presigned(
                world.url("a b"),
                with: world.keys.secret.revealed(),
                validity: .seconds(60)
            )
            func fetch(_ url: String) async throws -> HTTPResponse {
                try await world.client.send(HTTPRequest(method: "GET", url: url))
            }
            #expect(try await fetch(link).body == Array("text".utf8))
            let other = link.replacingOccurrences(of: "a%20b", with: "other")
            #expect(try await fetch(other).code == "SignatureDoesNotMatch")
            let longer = link.replacingOccurrences(of: "Expires=60", with: "Expires=6000")
            #expect(try await fetch(longer).code == "SignatureDoesNotMatch")
            let tooLong = link.replacingOccurrences(of: "Expires=60", with: "Expires=604801")
            #expect(try await fetch(tooLong).code == "AuthorizationQueryParametersError")
            world.store.habits.clockOffsetSeconds = 61
            let late = try await fetch(link)
            #expect(late.head.status == 403 && late.code == "AccessDenied")
        }
    }

    @Test("framed bodies are taken apart, and refused where a checksum behind them is wrong")
    func frames() async throws {
        try await S3World.with { (world) async throws in
            func put(_ checksum: String, size: Int = 9) async throws -> HTTPResponse {
                let frames =
                    "4\r\n1234\r\n5\r\n56789\r\n0\r\nx-amz-checksum-crc64nvme:\(checksum)\r\n\r\n"
                return try await world.send(
                    "PUT",
                    "framed",
                    headers: [
                        ("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"),
                        ("Content-Encoding", "aws-chunked"),
                        ("x-amz-trailer", "x-amz-checksum-crc64nvme"),
                        ("x-amz-decoded-content-length", "\(size)"),
                    ],
                    body: Array(frames.utf8)
                )
            }
            // The check value of CRC-64/NVME.
            #expect(try await put("rosUhgp5mIg=").head.status == 200)
            let head = try await world.send("HEAD", "framed").head
            #expect(head.header("Content-Length") == "9")
            #expect(head.header("Content-Encoding") == nil)
            #expect(try await world.text("framed") == "123456789")
            #expect(try await put("AAAAAAAAAAA=").code == "BadDigest")
            #expect(try await put("rosUhgp5mIg=", size: 8).code == "IncompleteBody")
        }
    }
}
