import Foundation
import OortModel
import OortPlaces
import OortTesting
import OortTransport
import OortWebDAV
import ServerTesting
import Testing

/// Revisions at a server that makes its tags of times, which clients choose.
@Suite("revisions at a plain server", .timeLimit(.minutes(5)))
struct PlainServerRevisionTests {
    @Test(
        "two contents of one size and one time are two revisions, for every machine",
        arguments: DavServer.Kind.here.filter { $0 == .rclone }
    )
    func twins(_ kind: DavServer.Kind) async throws {
        try await DavServer.with(kind) { server in
            let client = try await server.client()
            try await client.withProvider { mine in
                try await client.withProvider { theirs in
                    let root = ItemReference(id: try await mine.identity().rootID, path: .root)
                    let first = try await mine.upload(
                        Self.upload("first!", .create(parent: root, name: "a", reservedID: nil)),
                        observer: SilentUploadObserver()
                    )
                    var replica = FeedReplica(of: theirs)
                    try await replica.catchUp(with: theirs)
                    let before = try #require(replica.named("a").first)
                    let reference = ItemReference(id: first.id, path: RemotePath(["a"]))
                    let second = try await mine.upload(
                        Self.upload("second", .replace(reference, revision: first.rev)),
                        observer: SilentUploadObserver()
                    )
                    #expect(second.rev != first.rev)
                    _ = try await theirs.waitForChanges(
                        since: try #require(replica.cursor),
                        atMost: .zero
                    )
                    try await replica.catchUp(with: theirs)
                    let after = try #require(replica.named("a").first)
                    #expect(after.rev != before.rev)
                    // Who knows the former content only does not replace the latter.
                    let stale = await failure {
                        _ = try await theirs.upload(
                            Self.upload(
                                "third!",
                                .replace(
                                    ItemReference(id: before.id, path: RemotePath(["a"])),
                                    revision: before.rev
                                )
                            ),
                            observer: SilentUploadObserver()
                        )
                    }
                    #expect(stale == .preconditionFailed)
                    #expect(server.bytes("a") == Array("second".utf8))
                }
            }
        }
    }

    @Test("what a proxy compresses unasked is not taken for the content, and what is stored so is")
    func compressed() async throws {
        try await DavServer.with(.apache) { server in
            let text = String(repeating: "content ", count: 100)
            for isStoredSo in [false, true] {
                let client = try await server.client {
                    Compressing(next: $0, isStoredSo: isStoredSo)
                }
                let entry = try await client.put(text, to: "file \(isStoredSo)")
                let kind = await failure {
                    let read = try await client.text(
                        "file \(isStoredSo)",
                        revision: entry.revision,
                        range: 0..<20
                    )
                    #expect(read == text.prefix(20))
                }
                #expect(kind == (isStoredSo ? nil : .malformedAnswer))
            }
        }
    }

    private static func upload(_ text: String, _ target: UploadTarget) throws -> Upload {
        let bytes = Array(text.utf8)
        return Upload(
            target: target,
            size: Int64(bytes.count),
            hash: ContentHash(algorithm: .sha256, value: "hash of \(text)"),
            modifiedTime: Timestamp(seconds: 1_600_000_000),
            mimeType: nil,
            content: BytesSource(bytes)
        )
    }
}

/// A proxy that compresses what it hands on, or a server that says of a file that it is stored so.
private struct Compressing: HTTPClient {
    let next: any HTTPClient
    let isStoredSo: Bool

    func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPStreamedResponse {
        let answer = try await next.stream(request)
        guard request.method == "GET" else { return answer }
        var head = answer.head
        head.headers.append(("Content-Encoding", "gzip"))
        guard !isStoredSo else { return HTTPStreamedResponse(head: head, body: answer.body) }
        let tag = head.header("ETag")?.dropping(ending: "\"") ?? ""
        head.status = 200
        head.headers.removeAll { ["etag", "content-length"].contains($0.name.lowercased()) }
        head.headers.removeAll { $0.name.lowercased() == "content-range" }
        let bytes = [UInt8](repeating: 0x1F, count: 60)
        head.headers += [("ETag", "\(tag)-gzip\""), ("Content-Length", String(bytes.count))]
        return HTTPStreamedResponse(HTTPResponse(head: head, body: bytes))
    }
}
