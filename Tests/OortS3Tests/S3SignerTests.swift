import Foundation
import OortS3
import OortSignIn
import OortTransport
import Testing

/// The examples of AWS's documentation, and one of ours for the order of header names.
@Suite("signatures of S3")
struct S3SignerTests {
    private static let secret = S3Keys(
        accessKeyID: "AKIAIOSFODNN7EXAMPLE",
        secretAccessKey: .init("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    ).secret.revealed()

    private static let bucket = "https://examplebucket.s3.amazonaws.com"

    private let signer = S3Signer(region: "us-east-1") {
        Date(timeIntervalSince1970: 1_369_353_600)
    }

    struct Vector: CustomTestStringConvertible {
        var request: HTTPRequest
        var signature: String
        var testDescription: String { "\(request.method) \(request.url)" }

        init(
            _ method: String,
            _ url: String,
            _ headers: [(name: String, value: String)] = [],
            body: HTTPRequest.Body = .none,
            signature: String
        ) {
            request = HTTPRequest(method: method, url: url, headers: headers, body: body)
            self.signature = signature
        }
    }

    static let vectors = [
        Vector(
            "GET",
            bucket + "/test.txt",
            [("Range", "bytes=0-9")],
            signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        ),
        Vector(
            "PUT",
            bucket + "/test%24file.text",
            [
                ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
                ("Date", "Fri, 24 May 2013 00:00:00 GMT"),
            ],
            body: .bytes(Array("Welcome to Amazon S3.".utf8)),
            signature: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"
        ),
        Vector(
            "GET",
            bucket + "/?lifecycle",
            signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
        ),
        Vector(
            "GET",
            bucket + ":443/?prefix=J&max-keys=2",
            signature: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
        ),
        Vector(
            "PUT",
            "https://s3.us-east-1.amazonaws.com/examplebucket/a%20b/%C3%A9%2B%281%29",
            [
                ("x-amz-copy-source-if-match", "\"abc\""),
                ("x-amz-copy-source", "  examplebucket/x "),
                ("User-Agent", "oort"), ("Accept-Encoding", "identity"),
            ],
            signature: "ed1a3c55953f5aeca519841372a31fcc37d7a69026b9605e45805eacf76cf8c6"
        ),
    ]

    @Test("a request has the signature of the examples", arguments: vectors)
    func examples(_ vector: Vector) throws {
        for _ in 0..<2 {
            let signed = try signer.sign(vector.request, with: Self.secret)
            let field = signed.headers.first { $0.name == "Authorization" }?.value
            #expect(field?.hasSuffix("Signature=\(vector.signature)") == true, "\(field ?? "none")")
        }
    }

    @Test("a link has the signature of the example")
    func link() throws {
        let link = try signer.presigned(
            Self.bucket + "/test.txt",
            with: Self.secret,
            validity: .seconds(86400)
        )
        let scope = "AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
        #expect(
            link == Self.bucket + "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential="
                + scope + "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400"
                + "&X-Amz-SignedHeaders=host&X-Amz-Signature="
                + "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
        )
    }

    @Test("a session's token goes with a request and is signed")
    func sessionToken() throws {
        let keys = S3Keys(
            accessKeyID: "A",
            secretAccessKey: .init("S"),
            sessionToken: .init("the token")
        )
        let request = HTTPRequest(method: "GET", url: Self.bucket + "/")
        let signed = try signer.sign(request, with: keys.secret.revealed())
        #expect(
            signed.headers.contains { $0.name == "x-amz-security-token" && $0.value == "the token" }
        )
        let proof = signed.headers.first { $0.name == "Authorization" }?.value
        #expect(
            proof?.contains(
                "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,"
            ) == true
        )
    }

    @Test("nobody's requests are not signed")
    func anonymous() throws {
        let request = HTTPRequest(method: "GET", url: Self.bucket + "/")
        let signed = try signer.sign(request, with: S3Keys.anonymous.secret.revealed())
        #expect(signed.headers.isEmpty)
        #expect(throws: TransportError.self) {
            try signer.presigned(
                request.url,
                with: S3Keys.anonymous.secret.revealed(),
                validity: .seconds(1)
            )
        }
    }

    @Test("what is no key file is a sign-in that is over", arguments: ["", "{}", "a:b"])
    func noKeys(_ secret: String) {
        let request = HTTPRequest(method: "GET", url: Self.bucket + "/")
        #expect(
            throws: TransportError.signedOut(
                "the account's keys are not of their form: sign in again"
            )
        ) { try signer.sign(request, with: secret) }
    }
}
