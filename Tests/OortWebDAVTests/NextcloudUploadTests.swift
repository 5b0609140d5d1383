import OortModel
import OortPlaces
import OortSimulators
import OortTransport
import OortWebDAV
import Testing

@Suite("uploads to a Nextcloud", .timeLimit(.minutes(5)))
struct NextcloudUploadTests {
    private static let large = (0..<3_500_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }

    @Test("an upload that broke off goes on with the parts that are missing")
    func resumed() async throws {
        try await Cloud.with { cloud in
            let client = cloud.client(partSize: 1 << 20)
            let path = RemotePath(["large"])
            let observer = Remembering()
            #expect(
                await failure {
                    try await client.put(
                        Self.large,
                        to: path,
                        content: BrokenContent(size: Int64(Self.large.count), good: Self.large),
                        observer: observer
                    )
                } == .localContent
            )
            let session = try #require(observer.session)
            #expect(session.confirmedBytes == 1 << 20)
            cloud.simulator.clearCalls()
            try await client.put(Self.large, to: path, session: session, observer: observer)
            #expect(cloud.item("large")?.head?.content.bytes == Self.large)
            // The one that broke off may be counted late.
            let sent = cloud.simulator.calls.filter {
                $0.route == "PUT uploads" && $0.status == 201
            }
            #expect(sent.count == 3)
            #expect(observer.session == nil)
            // The session is over; what it made is recognised by its checksum.
            let again = try await client.put(Self.large, to: path, session: session)
            #expect(again.size == Int64(Self.large.count))
            cloud.service.loseUploadSessions()
            let other = Self.large.reversed() as [UInt8]
            #expect(
                await failure { try await client.put(other, to: path, session: session) }
                    == .sessionLost
            )
        }
    }

    @Test("a put-together whose answer is late is waited for, and not done twice")
    func slowMove() async throws {
        try await Cloud.with { cloud in
            let client = cloud.client(partSize: 1 << 20)
            cloud.service.habits.slowMoves = 1
            let entry = try await client.put(Self.large, to: .init(["large"]))
            #expect(entry.size == Int64(Self.large.count))
            #expect(cloud.simulator.counts["MOVE uploads/.file"]?.calls == 1)
        }
    }

    @Test("what is still put together is waited for, and not begun once more beside that")
    func lateMove() async throws {
        try await Cloud.with { cloud in
            let client = cloud.client(partSize: 1 << 20)
            cloud.service.habits.looksWhileAssembling = 4
            let entry = try await client.put(Self.large, to: .init(["large"]))
            #expect(entry.size == Int64(Self.large.count))
            #expect(cloud.item("large")?.head?.content.bytes == Self.large)
            #expect(cloud.simulator.counts["MOVE uploads/.file"]?.calls == 1)
        }
    }

    @Test(
        "a save of somebody else right after ours is not taken for ours",
        arguments: [false, true]
    )
    func savedOver(isOwnCloud: Bool) async throws {
        try await Cloud.with(isOwnCloud: isOwnCloud) { cloud in
            let other = cloud.client()
            let client = WebDAVClient(
                http: AfterPut(next: cloud.http) {
                    let ours = try await other.entry(at: .init(["a"]))
                    try await other.put("theirs", to: "a", before: .file(ours.revision))
                },
                address: cloud.account.address,
                dialect: cloud.account.dialect,
                abilities: cloud.account.abilities,
                clock: HastyClock()
            )
            let kind = await failure { try await client.put("mine!!", to: "a") }
            guard case .outcomeUnknown? = kind else {
                Issue.record("\(String(describing: kind))")
                return
            }
            #expect(cloud.text("a") == "theirs")
        }
    }

    @Test("an upload in parts that the server stored with other bytes is damaged, and never ours")
    func damagedParts() async throws {
        try await Cloud.with { cloud in
            let client = cloud.client(partSize: 1 << 20)
            for computesNothing in [false, true] {
                cloud.service.habits.computesNothing = computesNothing
                cloud.service.habits.damages = 1
                let path = RemotePath(["large \(computesNothing)"])
                let kind = await failure { try await client.put(Self.large, to: path) }
                #expect(kind == .contentDamaged)
                let damaged = try await client.entry(at: path)
                try await client.put(Self.large, to: path, before: .file(damaged.revision))
                #expect(cloud.item("large \(computesNothing)")?.head?.content.bytes == Self.large)
            }
        }
    }

    @Test("a server that computes no checksum has what it stored read back")
    func readBack() async throws {
        try await Cloud.with { cloud in
            let client = cloud.client()
            cloud.service.habits.computesNothing = true
            for size in [0, 7] {
                let bytes = [UInt8](repeating: 1, count: size)
                let entry = try await client.put(bytes, to: RemotePath(["\(size)"]))
                #expect(entry.size == Int64(size))
            }
            #expect(cloud.simulator.counts["GET files"]?.calls == 1)
        }
    }

    @Test("what lies where an upload was not proven is known by its bytes only")
    func unproven() async throws {
        try await Cloud.with { cloud in
            try await cloud.client(partSize: 1 << 20).withProvider { provider in
                let root = ItemReference(id: try await provider.identity().rootID, path: .root)
                var hasher = provider.makeHasher()
                hasher.update(Self.large[...])
                let upload = Upload(
                    target: .create(parent: root, name: "large", reservedID: nil),
                    size: Int64(Self.large.count),
                    hash: hasher.finalize(),
                    modifiedTime: Timestamp(seconds: 1_700_000_000),
                    mimeType: nil,
                    content: BytesSource(Self.large)
                )
                cloud.service.habits.damages = 1
                let fault = Fault.status(423, retryAfterSeconds: nil)
                cloud.simulator.add(FaultRule(fault, at: "PATCH files"))
                let kind = await failure {
                    _ = try await provider.upload(upload, observer: SilentUploadObserver())
                }
                guard case .outcomeUnknown = kind else {
                    Issue.record("\(String(describing: kind))")
                    return
                }
                let found = try #require(try await provider.items(named: "large", in: root).first)
                #expect(found.size == upload.size)
                #expect(found.clientModifiedTime == upload.modifiedTime)
                #expect(found.contentHash == nil)
            }
        }
    }
}

/// A network on which something happens after each upload.
private struct AfterPut: HTTPClient {
    let next: any HTTPClient
    let happens: @Sendable () async throws -> Void

    init(next: any HTTPClient, _ happens: @escaping @Sendable () async throws -> Void) {
        self.next = next
        self.happens = happens
    }

    func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPStreamedResponse {
        let answer = try await next.stream(request)
        if request.method == "PUT" {
            do { try await happens() } catch { Issue.record(error) }
        }
        return answer
    }
}
