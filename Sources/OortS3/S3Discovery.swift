import Crypto
import Foundation
public import Logging
public import OortModel
public import OortTransport

/// What a person gives for an account of S3.
public struct S3Wish: Hashable, Sendable {
    /// The bucket.
    public var bucket: String
    /// What all keys of the account begin with; may lack its slash.
    public var prefix: String
    /// Scheme, host and port of the store; nil for AWS.
    public var endpoint: String?
    /// The region, where it was said.
    public var region: String?
    /// Whether the bucket is in the path, where it was said.
    public var isPathStyle: Bool?

    /// Reads `BUCKET[/PREFIX]`, or the same after `s3://`.
    ///
    /// An endpoint without a scheme is one of https.
    ///
    /// - Throws: When it is no bucket's name, or no endpoint.
    public init(
        _ argument: String,
        endpoint: String? = nil,
        region: String? = nil,
        isPathStyle: Bool? = nil
    ) throws(S3KeysError) {
        let text = argument.dropping(beginning: "s3://") ?? argument[...]
        let (bucket, prefix) = text.cut(atFirst: "/") ?? (text, "")
        let isName = bucket.utf8.allSatisfy {
            switch $0 {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "_"):
                true
            default: false
            }
        }
        guard (1...255).contains(bucket.utf8.count), isName, bucket != ".", bucket != ".." else {
            throw S3KeysError("“\(bucket)” is no bucket's name; it is BUCKET or BUCKET/PREFIX")
        }
        self.bucket = String(bucket)
        self.prefix = String(prefix)
        self.region = region
        self.isPathStyle = isPathStyle
        guard var address = endpoint else { return }
        if !address.contains("://") { address = "https://" + address }
        while address.ends(with: "/") { address.unicodeScalars.removeLast() }
        let host = S3Place.parts(of: address).host
        guard address.begins(with: "https://") || address.begins(with: "http://"), !host.isEmpty,
            !host.has("@"), !address.has("?"), !address.has("#"),
            address.unicodeScalars.allSatisfy({ $0.value > 0x20 && $0.value < 0x7F })
        else {
            throw S3KeysError("the endpoint is no address such as https://minio.example.org:9000")
        }
        self.endpoint = address
    }
}

/// Finds out where a bucket is and what its store can do; errors are sentences for whoever signs
/// in.
public struct S3Discovery: Sendable {
    /// What was found.
    public struct Finding: Sendable {
        /// What is kept of it.
        public var account: S3Account
        /// What the person should know, a sentence each.
        public var remarks: [String]
    }

    private let wire: any HTTPClient
    private let logger: Logger

    /// A discovery over libcurl.
    public init(wire: any HTTPClient, logger: Logger) {
        self.wire = wire
        self.logger = logger
    }

    /// Looks at the bucket with these keys, and tries what its store can do with a few small objects
    /// `.oort-probe-…`, which are deleted again.
    ///
    /// - Throws: `.noPermission`, `.signedOut`, `.notFound` (no such bucket), `.offline` and what else a
    ///   store answers.
    public func find(_ wish: S3Wish, keys: S3Keys) async throws(ProviderError) -> Finding {
        guard keys.areSendable else {
            throw ProviderError(
                .signedOut,
                detail: "the access key or the session token has signs in it that no key has"
            )
        }
        let region = try await region(wish)
        let isPathStyle = wish.isPathStyle ?? (wish.endpoint != nil || !Self.isLabel(wish.bucket))
        var place = S3Place(
            bucket: wish.bucket,
            prefix: wish.prefix,
            endpoint: wish.endpoint,
            region: region,
            isPathStyle: isPathStyle
        )
        let signer = S3Signer(region: region)
        let client = client(keys, signer)
        var abilities = S3Abilities.least
        let byTokens = try await list(S3API(client: client, place: place, signer: signer))
        abilities.listsByTokens = byTokens
        place.region = signer.region
        let api = S3API(client: client, place: place, signer: signer)
        abilities.keepsVersions = await api.keepsVersions() ?? false
        var remarks: [String] = []
        if keys.isAnonymous {
            abilities.writes = false
        } else {
            abilities = try await S3Probe(api: api).abilities(beginning: abilities)
        }
        if abs(signer.clockOffset) > 60 {
            let minutes = Int((abs(signer.clockOffset) / 60).rounded())
            remarks.append(
                "This machine's clock is \(minutes) minutes "
                    + (signer.clockOffset > 0 ? "behind" : "ahead of") + " the store's: set it."
            )
        }
        if !abilities.writes {
            remarks.append("The bucket can be read but not written.")
        } else {
            if !abilities.refusesTakenKeys || !abilities.refusesStaleUploads {
                remarks.append(
                    "The store overwrites without a look at what is there: when two machines write "
                        + "one file in the same second, the later one wins."
                )
            }
            if !abilities.keepsVersions {
                remarks.append("The bucket keeps no versions: what is deleted is gone for good.")
            }
        }
        if place.isPlain {
            remarks.append("The connection is not encrypted: whoever is on the way reads along.")
        }
        return Finding(
            account: S3Account(place: place, abilities: abilities),
            remarks: remarks
        )
    }

    /// The requests of a sign-in: a refused key is an answer to be read, and no wait is long.
    private func client(_ keys: S3Keys, _ signer: S3Signer) -> any HTTPClient {
        var policy = RetryPolicy()
        policy.interactivePatience = .seconds(15)
        policy.backgroundPatience = .seconds(15)
        return AccountClient.make(
            wire: wire,
            tokens: S3FixedTokens(keys),
            signer: signer,
            rules: AnswerRules { answer in
                let meaning = AnswerRules.s3.meaning(answer)
                return meaning == .tokenRejected ? .final : meaning
            },
            requests: RequestLimit(.s3),
            policy: policy,
            logger: logger
        )
    }

    // MARK: Where

    /// A bucket's region: the person's; otherwise, at AWS, the one that any of its hosts reports, even to
    /// requests without keys.
    private func region(_ wish: S3Wish) async throws(ProviderError) -> String {
        if let region = wish.region, !region.isEmpty { return region }
        guard wish.endpoint == nil else {
            let host = S3Place.parts(of: wish.endpoint ?? "").host
            return host.ends(with: ".r2.cloudflarestorage.com") ? "auto" : Self.usual
        }
        let place = S3Place(bucket: wish.bucket, region: Self.usual, isPathStyle: true)
        let answer: HTTPResponse
        do throws(TransportError) {
            answer = try await wire.send(
                HTTPRequest(
                    method: "HEAD",
                    url: place.url(of: nil, region: Self.usual),
                    repetition: .harmless,
                    isAuthorized: false,
                    answerTimeout: .seconds(20)
                )
            )
        } catch {
            throw ProviderError(error)
        }
        if answer.head.status == 404 {
            throw ProviderError(.notFound, detail: "AWS has no bucket \(wish.bucket)")
        }
        return answer.head.header("x-amz-bucket-region") ?? Self.usual
    }

    private static let usual = "us-east-1"

    /// Whether a bucket's name may be a part of a host's name: for others the certificate does not match.
    private static func isLabel(_ bucket: String) -> Bool {
        (3...63).contains(bucket.utf8.count) && bucket != "soap"
            && bucket.utf8.allSatisfy {
                (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x2D
            }
    }

    // MARK: Reading

    /// Lists one key: what every account must be able to.
    ///
    /// - Returns: Whether the store knows the second form of listings.
    private func list(_ api: S3API) async throws(ProviderError) -> Bool {
        var request = S3Request("GET")
        request.query = [("list-type", "2"), ("max-keys", "1"), ("prefix", api.place.prefix)]
        let answer = try await api.exchange(request)
        guard (200..<300).contains(answer.head.status) else {
            let error = S3Errors.error(answer, about: .bucket)
            let (code, bucket) = (S3Errors.words(in: answer.body)?.code, api.place.bucket)
            switch error.kind {
            case _ where code == "NoSuchBucket": throw error.asKind(.notFound)
            case _ where answer.head.status == 404:
                throw ProviderError(
                    .notFound,
                    detail: "there is no bucket \(bucket) (\(error.detail))"
                )
            case .noPermission where code == "AccessDenied" || code == nil:
                throw ProviderError(
                    .noPermission,
                    detail: "the keys may not list the bucket \(bucket): they need the right "
                        + "s3:ListBucket, or the bucket is somebody else's (\(error.detail))"
                )
            case .unsupported, .badRequest:
                request.query.removeFirst()
                _ = try await api.element(request, named: "ListBucketResult", about: .bucket)
                return false
            default: throw error
            }
        }
        guard let root = try? S3Element(document: answer.body), root.name == "ListBucketResult"
        else {
            throw ProviderError(
                .malformedAnswer,
                detail: "it answers with something else than a listing"
            )
        }
        return root.first("Marker") == nil || root.first("KeyCount") != nil
    }
}

/// Tries what a store can do.
private struct S3Probe {
    let api: S3API
    private let name: String
    private let bytes = Array("Oort tries what this store can do.\n".utf8)
    private let wrongTag = "\"" + String(repeating: "0", count: 32) + "\""

    init(api: S3API) {
        self.api = api
        let number = UInt64.random(in: .min ... .max)
        name = api.place.prefix + ".oort-probe-" + String(number, radix: 16)
    }

    private var copyName: String { name + "-copy" }
    private var folderName: String { name + "-folder/" }
    /// A store that makes a slash of the backslash has it in the folder.
    private var oddName: String { name + "-folder\\name" }

    func abilities(
        beginning known: S3Abilities
    ) async throws(ProviderError) -> S3Abilities {
        var abilities = known
        do throws(ProviderError) {
            guard try await write(&abilities) else { return abilities }
            try await copy(&abilities)
            try await listNames(&abilities)
            try await delete(&abilities)
        } catch {
            await sweep()
            throw error
        }
        await sweep()
        return abilities
    }

    private func sweep() async {
        // Also of a sign-in that was cancelled, whose own requests end at once.
        let removal = Task { [api, keys = [name, copyName, oddName, folderName]] in
            for key in keys { _ = try? await api.exchange(S3Request("DELETE", key)) }
        }
        await removal.value
    }

    private func put(
        _ conditions: [(name: String, value: String)]
    ) async throws(ProviderError) -> HTTPResponse {
        var request = S3Request("PUT", name)
        request.body = .bytes(bytes)
        let md5 = Data(Insecure.MD5.hash(data: bytes)).base64EncodedString()
        request.headers = [("Content-MD5", md5), ("x-amz-meta-mtime", "1.000000000")] + conditions
        return try await api.exchange(request)
    }

    /// Whether the keys may write, and which conditions hold then.
    private func write(_ abilities: inout S3Abilities) async throws(ProviderError) -> Bool {
        let first = try await put([])
        switch first.head.status {
        case 200..<300: break
        case 401, 403, 405:
            let error = S3Errors.error(first, about: .creation)
            guard error.kind == .noPermission else { throw error }
            abilities.writes = false
            return false
        default: throw S3Errors.error(first, about: .creation)
        }
        abilities.writes = true
        let md5 = S3Text.hex(Insecure.MD5.hash(data: bytes))
        abilities.tagsAreMD5 =
            first.head.header("ETag").map(S3Head.bare)?.lowercased() == md5
            && first.head.header("x-amz-server-side-encryption")?.begins(with: "aws:") != true
        abilities.refusesTakenKeys = try await put([("If-None-Match", "*")]).isRefused
        abilities.refusesStaleUploads = try await put([("If-Match", wrongTag)]).isRefused
        return true
    }

    private func copy(
        _ source: String,
        to target: String,
        _ conditions: [(name: String, value: String)]
    ) async throws(ProviderError) -> HTTPResponse {
        var request = S3Request("PUT", target)
        request.isLong = true
        let place = S3Text.percentEncoded("\(api.place.bucket)/\(source)", keepsSlash: true)
        request.headers = [("x-amz-copy-source", place)] + conditions
        return try await api.exchange(request)
    }

    private func copy(_ abilities: inout S3Abilities) async throws(ProviderError) {
        let stale = try await copy(name, to: copyName, [("x-amz-copy-source-if-match", wrongTag)])
        abilities.refusesStaleCopies = stale.isRefused
        let first = try await copy(name, to: copyName, [])
        abilities.copies =
            first.head.status == 200
            && (try? S3Element(document: first.body))?.name == "CopyObjectResult"
        guard abilities.copies else { return }
        let taken = try await copy(name, to: copyName, [("If-None-Match", "*")])
        abilities.refusesTakenCopies = taken.isRefused
        let fields = [
            ("x-amz-metadata-directive", "REPLACE"), ("x-amz-meta-mtime", "2.000000000"),
        ]
        let rewritten = try await copy(name, to: name, fields)
        let head = try await api.exchange(S3Request("HEAD", name))
        abilities.rewritesMetadata =
            rewritten.head.status == 200
            && head.head.header("x-amz-meta-mtime").flatMap(S3Head.time(metadata:))
                == Timestamp(seconds: 2)
    }

    /// Whether listings name a folder's own object, and a key with a backslash as it was sent.
    private func listNames(_ abilities: inout S3Abilities) async throws(ProviderError) {
        var statuses: [Int] = []
        for key in [folderName, oddName] {
            var request = S3Request("PUT", key)
            request.body = .bytes([])
            request.headers = [("Content-MD5", S3API.digestOfNothing)]
            statuses.append(try await api.exchange(request).head.status)
        }
        var list = S3Request("GET")
        list.query = abilities.listsByTokens ? [("list-type", "2")] : []
        list.query += [("prefix", name), ("max-keys", "10"), ("encoding-type", "url")]
        let root = try await api.element(list, named: "ListBucketResult", about: .bucket)
        let page = try S3Page(root, byTokens: abilities.listsByTokens)
        func names(_ key: String) -> Bool {
            page.objects.contains { $0.key.isSameText(as: key) && $0.size == 0 }
        }
        abilities.listsMarkers = statuses[0] == 200 && names(folderName)
        abilities.keepsBackslashes = statuses[1] == 200 && names(oddName)
    }

    private func delete(_ abilities: inout S3Abilities) async throws(ProviderError) {
        var request = S3Request("DELETE", name)
        request.headers = [("If-Match", wrongTag)]
        abilities.refusesStaleDeletions = try await api.exchange(request).isRefused
        var many = S3Request("POST")
        many.query = [("delete", "")]
        let xml =
            "<Delete><Quiet>true</Quiet><Object><Key>\(S3API.escaped(name))</Key></Object>"
            + "<Object><Key>\(S3API.escaped(copyName))</Key></Object></Delete>"
        let answer = try await api.exchange(api.xml(xml, in: many))
        let isGone = try await api.exchange(S3Request("HEAD", name)).head.status == 404
        abilities.deletesMany =
            answer.head.status == 200 && isGone
            && (try? S3Element(document: answer.body))?.name == "DeleteResult"
    }
}

extension HTTPResponse {
    /// Whether a condition was looked at and not met.
    fileprivate var isRefused: Bool { head.status == 412 || head.status == 409 }
}
