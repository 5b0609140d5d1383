import FlyingFox
import FlyingSocks
import Foundation
import OortModel
import OortS3
import OortSignIn
import OortTransport
import ServerTesting
import Synchronization
import Testing

/// Answers that real stores give now and then, and none of the tests' on demand.
@Suite("answers of stores", .timeLimit(.minutes(2)))
struct ScriptedStoreTests {
    typealias Request = FlyingFox.HTTPRequest
    typealias Answer = FlyingFox.HTTPResponse

    static func answer(
        _ status: Int,
        _ body: String = "",
        _ headers: [String: String] = [:]
    ) -> Answer {
        var fields = HTTPHeaders()
        for (name, value) in headers { fields[HTTPHeader(name)] = value }
        return Answer(
            statusCode: HTTPStatusCode(status, phrase: "Status"),
            headers: fields,
            body: Data(body.utf8)
        )
    }

    static func error(_ status: Int, _ code: String, _ more: String = "") -> Answer {
        answer(
            status,
            "<?xml version=\"1.0\"?>\n<Error><Code>\(code)</Code><Message>m</Message>\(more)</Error>"
        )
    }

    static let emptyList =
        "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"

    static func contents(_ key: String) -> String {
        "<Contents><Key>\(key)</Key><Size>1</Size><ETag>\"e\"</ETag></Contents>"
    }

    /// Runs `body` with a client whose requests `script` answers, given how many came before.
    func with(
        abilities: S3Abilities = S3Abilities(),
        signer: Bool = true,
        _ script: @escaping @Sendable (Request, Int) -> Answer,
        body: (S3Client, S3Place) async throws -> Void
    ) async throws {
        let server = HTTPServer(address: try .inet(ip4: "127.0.0.1", port: 0))
        let count = Mutex(0)
        await server.appendRoute("*") { request in
            let number = count.withLock { count in
                count += 1
                return count - 1
            }
            return script(request, number)
        }
        let running = Task { try await server.run() }
        try await server.waitUntilListening(timeout: 120)
        guard case .ip4(_, let port) = await server.listeningAddress else {
            throw StoreFailure(description: "the test server has no port")
        }
        let wire = try CurlClient()
        let place = S3Place(
            bucket: "b",
            endpoint: "http://127.0.0.1:\(port)",
            region: "us-east-1",
            isPathStyle: true
        )
        let client = World.client(S3Account(place: place, abilities: abilities), wire)
        let result: Result<Void, any Error>
        do {
            try await body(client, place)
            result = .success(())
        } catch {
            result = .failure(error)
        }
        await wire.shutdown()
        await server.stop(timeout: 0)
        running.cancel()
        _ = await running.result
        try result.get()
    }

    @Test(
        "a listing that is not whole is never believed",
        arguments: [
            "", "<ListBucketResult></ListBucketResult>",
            "<ListBucketResult><IsTruncated>false</IsTruncated>",
            "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
            "<Other><IsTruncated>false</IsTruncated></Other>", "<html><body>Sign in</body></html>",
            "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>a</Key></Contents>"
                + "</ListBucketResult>",
            "<Error><Code>InternalError</Code></Error>",
        ]
    )
    func brokenListings(_ text: String) async throws {
        try await with({ _, _ in Self.answer(200, text) }) { client, _ in
            let listed = await kind { _ = try await client.listing(of: .root) }
            let paged = await kind { _ = try await client.snapshot(page: nil) }
            #expect(listed == paged)
            #expect(listed == .malformedAnswer || listed == .outcomeUnknown(retryAfter: nil))
        }
    }

    @Test("a folder is kept before its last file goes, also where the store says that it is there")
    func unlistedFolder() async throws {
        let requests = Mutex<[String]>([])
        try await with({ request, _ in
            let condition = request.headers[HTTPHeader("If-None-Match")]
            let words = [request.method.rawValue, request.path, condition].compactMap(\.self)
            if request.method != .GET {
                requests.withLock { $0.append(words.joined(separator: " ")) }
            }
            switch request.method {
            case .PUT:
                return condition == nil
                    ? Self.answer(200) : Self.error(412, "PreconditionFailed")
            case .DELETE: return Self.answer(204)
            default:
                let file = Self.contents("d/f")
                return Self.answer(
                    200,
                    "<ListBucketResult><IsTruncated>false</IsTruncated>\(file)</ListBucketResult>"
                )
            }
        }) { client, _ in
            try await client.delete(.file, at: RemotePath(["d", "f"]), revision: nil)
        }
        let seen = requests.withLock { $0 }
        #expect(seen == ["PUT /b/d *", "PUT /b/d", "DELETE /b/d/f"])
    }

    @Test("a first page without keys does not make a folder an empty one")
    func emptyFirstPage() async throws {
        let requests = Mutex<[String]>([])
        try await with({ request, _ in
            if request.method != .GET {
                requests.withLock { $0.append("\(request.method.rawValue) \(request.path)") }
                return Self.answer(request.method == .DELETE ? 204 : 200)
            }
            let isFirst = !request.query.contains { $0.name == "continuation-token" }
            let next =
                "<IsTruncated>true</IsTruncated><NextContinuationToken>2</NextContinuationToken>"
            let last = "<IsTruncated>false</IsTruncated>\(Self.contents("d/f"))"
            let text = isFirst ? next : last
            return Self.answer(200, "<ListBucketResult>\(text)</ListBucketResult>")
        }) { client, _ in
            try await client.delete(.file, at: RemotePath(["d", "f"]), revision: nil)
        }
        #expect(requests.withLock { $0 } == ["PUT /b/d", "DELETE /b/d/f"])
    }

    @Test("a file whose key is a folder's is not taken for its marker, nor written over")
    func markerWithBytes() async throws {
        let requests = Mutex<[String]>([])
        try await with({ request, _ in
            if request.method != .GET {
                requests.withLock { $0.append(request.method.rawValue) }
                return Self.answer(request.method == .DELETE ? 204 : 200)
            }
            let text =
                "<IsTruncated>false</IsTruncated>\(Self.contents("d/"))\(Self.contents("d/f"))"
            return Self.answer(200, "<ListBucketResult>\(text)</ListBucketResult>")
        }) { client, _ in
            try await client.delete(.file, at: RemotePath(["d", "f"]), revision: nil)
        }
        #expect(requests.withLock { $0 } == ["DELETE"])
    }

    @Test("who may not list or write may still delete")
    func unkeptFolder() async throws {
        let isDeleted = Mutex(false)
        try await with({ request, _ in
            guard request.method == .DELETE else { return Self.error(403, "AccessDenied") }
            isDeleted.withLock { $0 = true }
            return Self.answer(204)
        }) { client, _ in
            try await client.delete(.file, at: RemotePath(["d", "f"]), revision: nil)
        }
        #expect(isDeleted.withLock { $0 })
    }

    private static func version(_ kind: String, _ key: String, _ id: String, day: Int) -> String {
        "<\(kind)><Key>\(key)</Key><VersionId>\(id)</VersionId>"
            + "<IsLatest>\(id != "old")</IsLatest><Size>1</Size><ETag>\"e\"</ETag>"
            + "<LastModified>2026-01-0\(day)T00:00:00.000Z</LastModified></\(kind)>"
    }

    @Test("keys that differ in the form of their letters only are two in the trash")
    func formsOfLetters() async throws {
        var abilities = S3Abilities()
        abilities.keepsVersions = true
        let (composed, decomposed) = ("caf%C3%A9", "cafe%CC%81")
        let list =
            "<ListVersionsResult><EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>"
            + Self.version("Version", decomposed, "living", day: 3)
            + Self.version("DeleteMarker", composed, "mark", day: 2)
            + Self.version("Version", composed, "old", day: 1) + "</ListVersionsResult>"
        try await with(abilities: abilities, { _, _ in Self.answer(200, list) }) { client, _ in
            let trash = try #require(client.trash)
            let root = ItemReference(id: ItemID(""), path: .root)
            let entries = try await trash.entries(below: root, page: nil).entries
            #expect(entries.map { Array($0.id.utf8) } == [Array("old/caf\u{e9}".utf8)])
        }
    }

    @Test("a page without keys is not the last, and tokens are sent as they came")
    func emptyPages() async throws {
        try await with({ request, number in
            let token = request.query.first { $0.name == "continuation-token" }?.value
            switch number {
            case 0:
                return Self.answer(
                    200,
                    "<ListBucketResult><IsTruncated>true</IsTruncated>"
                        + "<NextContinuationToken>a+b/c=</NextContinuationToken></ListBucketResult>"
                )
            case 1 where token == "a+b/c=":
                return Self.answer(
                    200,
                    "<ListBucketResult><EncodingType>url</EncodingType>"
                        + "<IsTruncated>false</IsTruncated>\(Self.contents("a+b%2Bc%20d"))"
                        + "</ListBucketResult>"
                )
            default: return Self.answer(400)
            }
        }) { client, _ in
            let names = try await client.listing(of: .root).entries.map(\.name)
            #expect(names == ["a b+c d"])
        }
    }

    @Test("a plus is a plus where the store encodes nothing")
    func plainNames() async throws {
        let list =
            "<ListBucketResult><IsTruncated>false</IsTruncated>\(Self.contents("a+b%20&amp;"))"
            + "</ListBucketResult>"
        try await with({ _, _ in Self.answer(200, list) }) { client, _ in
            let entries = try await client.listing(of: .root).entries
            #expect(entries.map(\.name) == ["a+b%20&"])
        }
    }

    @Test("a bucket that is gone, or refused, is never an empty one")
    func goneBuckets() async throws {
        for (status, code) in [(404, "NoSuchBucket"), (403, "AccessDenied"), (403, "")] {
            let answer: @Sendable () -> Answer = {
                code.isEmpty ? Self.answer(status) : Self.error(status, code)
            }
            try await with({ _, _ in answer() }) { client, _ in
                #expect(await kind { _ = try await client.listing(of: .root) } == .noPermission)
                let page = await kind { _ = try await client.snapshot(page: nil) }
                #expect(page == .noPermission)
            }
        }
        // Without the right to list, what is not there is refused and not missing.
        try await with({ _, _ in Self.answer(403) }) { client, _ in
            let seen = await kind { _ = try await client.entry(at: RemotePath(["x"])) }
            #expect(seen == .noPermission)
        }
    }

    @Test("an error in an answer with 200 is one")
    func errorsInSuccess() async throws {
        let head = ["ETag": "\"e\"", "Last-Modified": "Mon, 23 Nov 2026 06:00:00 GMT"]
        try await with({ request, _ in
            if request.method == .HEAD {
                return request.path == "/b/old"
                    ? Self.answer(200, "12345", head) : Self.answer(404)
            }
            return request.method == .PUT
                ? Self.error(200, "InternalError") : Self.answer(200, Self.emptyList)
        }) { client, _ in
            let copied = await kind {
                _ = try await client.copy(from: RemotePath(["old"]), to: RemotePath(["new"]))
            }
            #expect(copied == .outcomeUnknown(retryAfter: nil))
        }
    }

    @Test("a store that asks for patience is asked again")
    func patience() async throws {
        try await with({ _, number in
            switch number {
            case 0: Self.error(503, "SlowDown")
            case 1: Self.error(400, "RequestTimeout")
            default: Self.answer(200, Self.emptyList)
            }
        }) { client, _ in
            let entries = try await client.listing(of: .root).entries
            #expect(entries.isEmpty)
        }
    }

    @Test("of an object that is archived the store is asked once, and again when it says otherwise")
    func archived() async throws {
        let reads = Mutex(0)
        let storageClass = Mutex("GLACIER")
        let path = RemotePath(["cold"])
        try await with({ request, _ in
            guard request.path.hasSuffix("/cold") else {
                let kind = storageClass.withLock { $0 }
                return Self.answer(
                    200,
                    "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>cold</Key>"
                        + "<Size>1</Size><ETag>\"e\"</ETag><StorageClass>\(kind)</StorageClass>"
                        + "</Contents></ListBucketResult>"
                )
            }
            reads.withLock { $0 += 1 }
            return Self.error(403, "InvalidObjectState")
        }) { client, _ in
            func read(_ revision: String) async -> ProviderError? {
                do throws(ProviderError) {
                    _ = try await client.read(path, revision: Revision(revision), range: 0..<1)
                    return nil
                } catch { return error }
            }
            for _ in 0..<3 {
                let error = await read("e")
                #expect(error?.kind == .contentBlocked)
                #expect(error?.detail.hasPrefix("the object is archived") == true)
                _ = try await client.listing(of: .root)
            }
            #expect(reads.withLock { $0 } == 1)
            // Another revision may be anything.
            _ = await read("other")
            #expect(reads.withLock { $0 } == 2)
            _ = await read("other")
            #expect(reads.withLock { $0 } == 2)
            // Somebody has put it into another class.
            storageClass.withLock { $0 = "STANDARD" }
            _ = try await client.listing(of: .root)
            _ = await read("other")
            #expect(reads.withLock { $0 } == 3)
        }
    }

    @Test(
        "the region that a store names is signed for from then on",
        arguments: [
            (301, "PermanentRedirect", true), (400, "AuthorizationHeaderMalformed", false),
        ]
    )
    func regions(_ status: Int, _ code: String, _ isInHeader: Bool) async throws {
        let signed = Mutex<[String]>([])
        try await with({ request, _ in
            let proof = request.headers[HTTPHeader("Authorization")] ?? ""
            signed.withLock { $0.append(proof) }
            guard proof.contains("/eu-south-2/s3/") else {
                var answer = Self.error(status, code, "<Region>eu-south-2</Region>")
                if isInHeader { answer.headers[HTTPHeader("x-amz-bucket-region")] = "eu-south-2" }
                return answer
            }
            return Self.answer(200, Self.emptyList)
        }) { client, _ in
            for _ in 0..<2 {
                let entries = try await client.listing(of: .root).entries
                #expect(entries.isEmpty)
            }
        }
        #expect(signed.withLock { $0.count } == 3)
    }

    @Test("a store whose region stays wrong is asked twice, and the sentence says what to do")
    func wrongRegion() async throws {
        let count = Mutex(0)
        try await with({ _, _ in
            count.withLock { $0 += 1 }
            return Self.error(301, "PermanentRedirect", "<Region>eu-south-2</Region>")
        }) { client, _ in
            do {
                _ = try await client.listing(of: .root)
                Issue.record("it was listed")
            } catch let error as ProviderError {
                #expect(error.kind == .noPermission)
                #expect(error.detail.hasPrefix("the bucket lies in another region"))
            }
        }
        #expect(count.withLock { $0 } == 2)
    }

    @Test("a clock that is wrong is corrected by the store's")
    func clock() async throws {
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(identifier: "GMT")
        format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        let later = Date().addingTimeInterval(7200)
        let text = format.string(from: later)
        let stamp: String = later.formatted(.iso8601)
        let hour = stamp.replacingOccurrences(of: "-", with: "")
        try await with({ request, _ in
            let date = request.headers[HTTPHeader("x-amz-date")] ?? ""
            guard date.hasPrefix(hour.prefix(11)) else {
                var answer = Self.error(403, "RequestTimeTooSkewed")
                answer.headers[.date] = text
                return answer
            }
            return Self.answer(200, Self.emptyList)
        }) { client, _ in
            let entries = try await client.listing(of: .root).entries
            #expect(entries.isEmpty)
        }
    }

    @Test("a store without the deletion of many deletes one by one")
    func singleDeletions() async throws {
        let keys = Mutex(["f/1", "f/2", "f/3"])
        let asked = Mutex<[String]>([])
        try await with({ request, _ in
            asked.withLock { $0.append("\(request.method.rawValue) \(request.path)") }
            switch request.method {
            case .POST: return Self.error(501, "NotImplemented")
            case .DELETE:
                keys.withLock { keys in keys.removeAll { "/b/\($0)" == request.path } }
                return Self.answer(204)
            default:
                let list = keys.withLock { $0.map(Self.contents).joined() }
                return Self.answer(
                    200,
                    "<ListBucketResult><IsTruncated>false</IsTruncated>\(list)</ListBucketResult>"
                )
            }
        }) { client, _ in
            try await client.delete(.folder, at: RemotePath(["f"]), revision: nil)
        }
        #expect(keys.withLock { $0.isEmpty })
        #expect(asked.withLock { $0.filter { $0.hasPrefix("POST") }.count } == 1)
    }

    @Test("a store that forgets what it was asked to delete is not asked for ever")
    func stubbornStore() async throws {
        try await with({ request, _ in
            request.method == .POST
                ? Self.answer(200, "<DeleteResult/>")
                : Self.answer(
                    200,
                    "<ListBucketResult><IsTruncated>false</IsTruncated>\(Self.contents("f/1"))"
                        + "\(Self.contents("f/2"))</ListBucketResult>"
                )
        }) { client, _ in
            let deleted = await kind {
                try await client.delete(.folder, at: RemotePath(["f"]), revision: nil)
            }
            #expect(deleted == .outcomeUnknown(retryAfter: nil))
        }
    }

    @Test("content of a store with ETags that are no MD5 has the hash that its writer gave it")
    func opaqueTags() async throws {
        let tag = String(repeating: "a", count: 32)
        try await with({ request, _ in
            guard request.method == .HEAD else { return Self.answer(200, Self.emptyList) }
            return Self.answer(
                200,
                "123",
                [
                    "ETag": "\"\(tag)\"", "x-amz-server-side-encryption": "aws:kms",
                    "x-amz-meta-md5chksum": "kAFQmDzST7DWlj99KOF/cg==",
                ]
            )
        }) { client, _ in
            let entry = try await client.entry(at: RemotePath(["x"]))
            #expect(entry.hash?.value == "900150983cd24fb0d6963f7d28e17f72")
            #expect(entry.revision == Revision(tag))
        }
    }

    @Test("an account is kept and read back, also one of an older program")
    func keptAccounts() throws {
        let account = S3Account(
            place: S3Place(bucket: "b", prefix: "p", region: "auto", isPathStyle: false),
            abilities: S3Abilities()
        )
        let kept = try JSONEncoder().encode(account)
        #expect(try JSONDecoder().decode(S3Account.self, from: kept) == account)
        let old = try JSONDecoder().decode(S3Abilities.self, from: Data("{\"copies\":true}".utf8))
        var expected = S3Abilities.least
        expected.copies = true
        #expect(old == expected)
    }

    @Test("wrong arguments and files are sentences")
    func arguments() throws {
        let wish = try S3Wish("s3://photos/2024/raw", endpoint: "minio.lan:9000/")
        #expect(wish.bucket == "photos")
        #expect(wish.prefix == "2024/raw")
        #expect(wish.endpoint == "https://minio.lan:9000")
        for argument in ["", "/x", "a b", "a?b", "..", "ü"] {
            #expect(throws: S3KeysError.self) { try S3Wish(argument) }
        }
        for endpoint in ["ftp://x", "https://", "https://u:p@host", "host?x", "ho st"] {
            #expect(throws: S3KeysError.self) { try S3Wish("b", endpoint: endpoint) }
        }
        for file in ["", "[]", "{\"access_key_id\":\"a\",\"secret_access_key\":\"\"}"] {
            #expect(throws: S3KeysError.self) { try S3Keys(keyFile: Array(file.utf8)) }
        }
        let keys = try S3Keys(
            keyFile: Array(
                "{\"access_key_id\":\" a \",\"secret_access_key\":\"b\\n\",\"session_token\":\"\"}"
                    .utf8
            )
        )
        #expect(keys == S3Keys(accessKeyID: "a", secretAccessKey: Secret("b")))
        #expect(throws: S3KeysError.self) { try S3Keys(environment: ["AWS_ACCESS_KEY_ID": "a"]) }
    }

    @Test("a profile's keys are read, and by its command anew when they end or are refused")
    func profiles() async throws {
        let folder = NSTemporaryDirectory() + "oort-aws-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try FileManager.default.createDirectory(
            atPath: folder + "/.aws",
            withIntermediateDirectories: true
        )
        try """
        [default]
        aws_access_key_id = one
        aws_secret_access_key = two

        """.write(toFile: folder + "/.aws/credentials", atomically: true, encoding: .utf8)
        try """
        # comment
        [default]
        region = eu-west-1
        [profile  by command]
        endpoint_url = https://s3.example.org
        credential_process = /bin/sh -c 'printf x >>"$HOME/runs"; printf "{\\"Version\\":1,\
        \\"AccessKeyId\\":\\"k%s\\",\\"SecretAccessKey\\":\\"s\\",\
        \\"Expiration\\":\\"2030-01-01T00:00:00Z\\"}" "$(wc -c <"$HOME/runs")"'
        s3 =
            addressing_style = path
        [profile sso]
        sso_session = x
        """.write(toFile: folder + "/.aws/config", atomically: true, encoding: .utf8)
        let environment = ["HOME": folder, "PATH": "/usr/bin:/bin"]
        let profile = try S3Profile("default", environment: environment)
        #expect(profile.region == "eu-west-1")
        #expect(
            try await profile.currentKeys()
                == S3Keys(accessKeyID: "one", secretAccessKey: Secret("two"))
        )
        let command = try S3Profile("by command", environment: environment)
        #expect(command.endpoint == "https://s3.example.org")
        #expect(command.isPathStyle == true)
        for name in ["sso", "none"] {
            #expect(throws: S3KeysError.self) {
                try S3Profile(name, environment: environment)
            }
        }
        let now = Mutex(Date(timeIntervalSince1970: 1_800_000_000))
        let tokens = S3ProfileTokens(profile: "by command", environment: environment) {
            now.withLock { $0 }
        }
        func id(_ secret: String) throws -> String {
            try S3Keys(keyFile: Array(secret.utf8)).accessKeyID
        }
        let first = try await tokens.token()
        #expect(try id(first) == "k1")
        #expect(try await tokens.token() == first)
        let second = try await tokens.refresh(afterRejectionOf: first)
        #expect(try id(second) == "k2")
        #expect(try await tokens.refresh(afterRejectionOf: first) == second)
        now.withLock { $0 = Date(timeIntervalSince1970: 1_893_456_000 - 300) }
        #expect(try id(try await tokens.token()) == "k3")
        let fixed = S3ProfileTokens(profile: "default", environment: environment)
        let refused = try await fixed.token()
        await #expect(throws: TransportError.self) {
            try await fixed.refresh(afterRejectionOf: refused)
        }
    }
}
