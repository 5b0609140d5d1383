import FlyingFox
import Foundation
import OortModel
import OortS3
import OortSignIn
import OortTransport
import Synchronization
import Testing

/// What a store's answers do not say, or say of the moment before.
extension ScriptedStoreTests {
    private static let tag = "900150983cd24fb0d6963f7d28e17f72"

    private static func list(_ objects: [(String, String)]) -> Answer {
        let contents = objects.map {
            "<Contents><Key>\($0.0)</Key><Size>3</Size>"
                + "<ETag>&quot;\($0.1)&quot;</ETag></Contents>"
        }
        return answer(
            200,
            "<ListBucketResult><IsTruncated>false</IsTruncated>\(contents.joined())"
                + "</ListBucketResult>"
        )
    }

    @Test("a listing's ETag is no hash, since the object may be encrypted; a head's may be one")
    func tagsInListings() async throws {
        try await with({ request, _ in
            guard request.method == .HEAD else { return Self.list([("f", Self.tag)]) }
            return Self.answer(200, "abc", ["ETag": "\"\(Self.tag)\""])
        }) { client, _ in
            let listed = try #require(try await client.listing(of: .root).entries.first)
            let paged = try #require(try await client.snapshot(page: nil).entries.first?.entry)
            #expect(listed.hash == nil && paged.hash == nil)
            #expect(listed.revision == Revision(Self.tag) && paged.revision == Revision(Self.tag))
            let looked = try await client.entry(at: RemotePath(["f"]))
            #expect(looked.hash == ContentHash(algorithm: .md5, value: Self.tag))
        }
    }

    @Test("what others save while a folder is being deleted stays, and ends the deletion")
    func savesDuringDeletion() async throws {
        let objects = Mutex([("d/1", "a"), ("d/2", "b"), ("d/3", "c")])
        let writes = Mutex<[String]>([])
        try await with({ request, _ in
            guard request.method != .GET else {
                let prefix = request.query.first { $0.name == "prefix" }?.value ?? ""
                return Self.list(objects.withLock { $0.filter { $0.0.hasPrefix(prefix) } })
            }
            writes.withLock { $0.append(request.method.rawValue) }
            guard request.method == .POST else { return Self.answer(204) }
            // Somebody else's new file, and new content of one that was listed.
            objects.withLock { $0 = [("d/2", "theirs"), ("d/new", "theirs")] }
            return Self.answer(
                200,
                "<DeleteResult><Error><Key>d/2</Key><Code>PreconditionFailed</Code></Error>"
                    + "</DeleteResult>"
            )
        }) { client, _ in
            var contents = PlaceContents()
            contents.folders = [RemotePath(["d"])]
            contents.files = [("1", "a"), ("2", "b"), ("3", "c")].map {
                (RemotePath(["d", $0.0]), Revision($0.1))
            }
            let ended = await kind {
                try await client.deleteFolder(
                    at: RemotePath(["d"]),
                    holding: contents,
                    mark: nil
                )
            }
            #expect(ended == .preconditionFailed)
        }
        #expect(writes.withLock(\.self) == ["POST"])
        #expect(objects.withLock { $0.map(\.0) } == ["d/2", "d/new"])
    }

    @Test("a folder is made in a bucket that takes no upload without a digest")
    func digestOfMarkers() async throws {
        try await with({ request, _ in
            guard request.method == .PUT else {
                return request.method == .HEAD
                    ? Self.answer(404) : Self.answer(200, Self.emptyList)
            }
            let digest = request.headers[HTTPHeader("Content-MD5")]
            return digest == "1B2M2Y8AsgTpgAmY7PhCfg=="
                ? Self.answer(200) : Self.error(400, "InvalidRequest")
        }) { client, _ in
            let made = try await client.createFolder(at: RemotePath(["new"]))
            #expect(made.kind == .folder)
        }
    }

    /// Keys that are exchanged when the store refuses the first ones.
    private actor ExchangedTokens: AccessTokens {
        private(set) var exchanges = 0
        private func secret(_ id: String) -> String {
            S3Keys(accessKeyID: id, secretAccessKey: Secret("s")).secret.revealed()
        }
        func token() async throws(TransportError) -> String {
            secret(exchanges == 0 ? "first" : "second")
        }
        func refresh(afterRejectionOf rejected: String) async throws(TransportError) -> String {
            exchanges = 1
            return secret("second")
        }
    }

    @Test(
        "keys that have ended are exchanged where the answer has no body",
        arguments: [(403, "InvalidAccessKeyId"), (400, "ExpiredToken")]
    )
    func endedKeys(_ status: Int, _ code: String) async throws {
        try await with({ request, _ in
            let signature = request.headers[HTTPHeader("Authorization")] ?? ""
            guard signature.contains("Credential=second/") else {
                return request.method == .HEAD
                    ? Self.answer(status) : Self.error(status, code)
            }
            let fields = [
                "ETag": "\"\(Self.tag)\"", "Content-Range": "bytes 0-0/3",
            ]
            return request.method == .HEAD
                ? Self.answer(200, "abc", ["ETag": "\"\(Self.tag)\""])
                : Self.answer(206, "a", fields)
        }) { _, place in
            let wire = try CurlClient()
            let tokens = ExchangedTokens()
            let client = S3Client.make(
                account: S3Account(place: place, abilities: S3Abilities()),
                wire: wire,
                tokens: tokens,
                logger: quiet
            )
            let path = RemotePath(["f"])
            for _ in 0..<2 {
                let entry = try await client.entry(at: path)
                #expect(entry.size == 3 && entry.revision == Revision(Self.tag))
            }
            #expect(await tokens.exchanges == 1)
            await wire.shutdown()
        }
    }

    @Test("an object that may not be looked at is refused in the store's words")
    func refusedHeads() async throws {
        let refusals = [
            (403, "AccessDenied", ProviderError.Kind.noPermission),
            (400, "InvalidRequest", .badRequest), (404, "NoSuchKey", .notFound),
        ]
        for (status, code, meaning) in refusals {
            try await with({ request, _ in
                guard request.query.isEmpty else { return Self.answer(200, Self.emptyList) }
                return request.method == .HEAD
                    ? Self.answer(status == 404 ? 403 : status) : Self.error(status, code)
            }) { client, _ in
                let refused = await kind { _ = try await client.entry(at: RemotePath(["f"])) }
                #expect(refused == meaning)
            }
        }
    }

    @Test("a bucket whose versions are suspended keeps nothing that is deleted, until they are not")
    func suspendedVersions() async throws {
        let versioning = Mutex("Suspended")
        let versions = Mutex<[String?]>(["v1", "null", "v2", nil])
        var abilities = S3Abilities()
        abilities.keepsVersions = true
        try await with(
            abilities: abilities,
            { request, _ in
                if request.query.contains(where: { $0.name == "versioning" }) {
                    let status = versioning.withLock(\.self)
                    return Self.answer(
                        200,
                        "<VersioningConfiguration><Status>\(status)</Status>"
                            + "</VersioningConfiguration>"
                    )
                }
                guard request.method == .PUT else { return Self.answer(200, Self.emptyList) }
                var fields = ["ETag": "\"\(Self.tag)\""]
                fields["x-amz-version-id"] = versions.withLock { $0.removeFirst() }
                return Self.answer(200, "", fields)
            }
        ) { client, _ in
            #expect(client.keepsDeleted)
            _ = try await client.owner()
            #expect(!client.keepsDeleted)
            let upload = PlaceUpload(
                path: RemotePath(["f"]),
                before: .file(nil),
                size: 3,
                hash: ContentHash(algorithm: .md5, value: Self.tag),
                modifiedTime: nil,
                mimeType: nil,
                content: BytesSource(Array("abc".utf8))
            )
            for keeps in [true, false, true, false] {
                _ = try await client.upload(upload, observer: SilentUploadObserver())
                #expect(client.keepsDeleted == keeps)
            }
            versioning.withLock { $0 = "Enabled" }
            _ = try await client.owner()
            #expect(client.keepsDeleted)
        }
    }

    @Test("a program that gives keys and fails for a while signs nobody out")
    func failingProgram() async throws {
        let folder = NSTemporaryDirectory() + "oort-aws-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try FileManager.default.createDirectory(
            atPath: folder + "/.aws",
            withIntermediateDirectories: true
        )
        try """
        [profile p]
        credential_process = /bin/sh -c 'printf x >>"$HOME/runs"; test -e "$HOME/down" && exit 255; \
        printf "{\\"Version\\":1,\\"AccessKeyId\\":\\"k%s\\",\\"SecretAccessKey\\":\\"s\\",\
        \\"Expiration\\":\\"$(cat "$HOME/end")\\"}" "$(wc -c <"$HOME/runs")"'
        """.write(toFile: folder + "/.aws/config", atomically: true, encoding: .utf8)
        func ends(_ text: String) throws {
            try text.write(toFile: folder + "/end", atomically: true, encoding: .utf8)
        }
        // 2027-01-15 08:00:00.
        let start = Date(timeIntervalSince1970: 1_800_000_000)
        let passed = Mutex<TimeInterval>(0)
        let tokens = S3ProfileTokens(
            profile: "p",
            environment: ["HOME": folder, "PATH": "/usr/bin:/bin"]
        ) { start.addingTimeInterval(passed.withLock(\.self)) }
        func id() async throws -> String {
            try S3Keys(keyFile: Array(try await tokens.token().utf8)).accessKeyID
        }
        try ends("2027-01-15T08:05:00Z")
        #expect(try await id() == "k1")
        // The keys are good for less than ten minutes, and the program has no better ones yet.
        for _ in 0..<5 { #expect(try await id() == "k1") }
        #expect(FileManager.default.createFile(atPath: folder + "/down", contents: nil))
        passed.withLock { $0 = 100 }
        #expect(try await id() == "k1")
        passed.withLock { $0 = 301 }
        for _ in 0..<3 {
            let failure = await #expect(throws: TransportError.self) { try await tokens.token() }
            guard case .unreachable = failure else {
                Issue.record("\(String(describing: failure))")
                continue
            }
        }
        try FileManager.default.removeItem(atPath: folder + "/down")
        try ends("2027-01-15T09:00:00Z")
        passed.withLock { $0 = 310 }
        // Run once at first, once while the keys were good, once after their end, and now.
        #expect(try await id() == "k4")
    }

    /// Keys that end in an hour.
    private struct PassingTokens: AccessTokens {
        let secret: String
        init() {
            var keys = S3Keys(accessKeyID: "a", secretAccessKey: Secret("s"))
            keys.expires = Date().addingTimeInterval(3600)
            secret = keys.secret.revealed()
        }
        func token() async throws(TransportError) -> String { secret }
        func refresh(afterRejectionOf rejected: String) async throws(TransportError) -> String {
            secret
        }
    }

    @Test("a link ends with the keys that it is signed with, and says so")
    func linksOfPassingKeys() async throws {
        try await with({ _, _ in
            Self.answer(200, "abc", ["ETag": "\"\(Self.tag)\""])
        }) { _, place in
            let wire = try CurlClient()
            let client = S3Client.make(
                account: S3Account(place: place, abilities: S3Abilities()),
                wire: wire,
                tokens: PassingTokens(),
                logger: quiet
            )
            let item = ItemReference(id: ItemID(""), path: RemotePath(["f"]))
            let link = try await client.links?.share(LinkWish(item: item, isFolder: false))
            let end = try #require(link?.expires?.date)
            #expect(end <= Date().addingTimeInterval(3600))
            await wire.shutdown()
        }
    }

    @Test("a store that leads back to the same page is not asked for ever")
    func circles() async throws {
        let count = Mutex(0)
        try await with({ _, number in
            count.withLock { $0 = number + 1 }
            return Self.answer(
                200,
                "<ListBucketResult><IsTruncated>true</IsTruncated>\(Self.contents("f"))"
                    + "<NextContinuationToken>t</NextContinuationToken></ListBucketResult>"
            )
        }) { client, _ in
            #expect(await kind { _ = try await client.listing(of: .root) } == .malformedAnswer)
        }
        #expect(count.withLock(\.self) < 5)
    }

    @Test("a version that the store no longer has is no taken name")
    func goneVersions() async throws {
        var abilities = S3Abilities()
        abilities.keepsVersions = true
        try await with(
            abilities: abilities,
            { request, _ in
                switch request.method {
                case .PUT: Self.error(404, "NoSuchVersion")
                case .HEAD: Self.answer(404)
                default: Self.answer(200, Self.emptyList)
                }
            }
        ) { client, _ in
            let trash = try #require(client.trash)
            let entry = TrashEntry(id: "v/f", name: "f", path: RemotePath(["f"]))
            let root = ItemReference(id: ItemID(""), path: .root)
            let refused = await kind {
                try await trash.restore(entry, to: Placement(folder: root, name: "f"))
            }
            #expect(refused == .notFound)
        }
    }

    @Test("an upload of an earlier run is left alone while this run may be about to continue it")
    func oldUploads() async throws {
        let path = NSTemporaryDirectory() + "oort-begun-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let methods = Mutex<[String]>([])
        try await with({ request, _ in
            methods.withLock { $0.append(request.method.rawValue) }
            return request.method == .DELETE
                ? Self.answer(204) : Self.answer(200, Self.emptyList)
        }) { _, place in
            let account = S3Account(place: place, abilities: S3Abilities())
            let wire = try CurlClient()
            for rests in [true, false] {
                try #"[{"id":"u","key":"k","begun":0}]"#
                    .write(toFile: path, atomically: true, encoding: .utf8)
                var settings = S3Client.Settings()
                if !rests { settings.cleaningRest = .zero }
                let client = World.client(account, wire, settings, begunUploads: path)
                for _ in 0..<20 { _ = try await client.listing(of: .root) }
                if rests {
                    #expect(!methods.withLock { $0.contains("DELETE") })
                } else {
                    while !methods.withLock({ $0.contains("DELETE") }) { await Task.yield() }
                }
            }
            await wire.shutdown()
        }
    }
}
