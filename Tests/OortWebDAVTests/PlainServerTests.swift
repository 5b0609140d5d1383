import Foundation
import OortModel
import OortTransport
import OortWebDAV
import ServerTesting
import Testing

/// What every plain server must give, whatever it can do by itself.
@Suite("an account at a plain server", .timeLimit(.minutes(10)))
struct PlainServerTests {
    @Test("a sign-in finds out what the server can do", arguments: DavServer.Kind.here)
    func abilities(_ kind: DavServer.Kind) async throws {
        try await DavServer.with(kind) { server in
            let account = try await server.signIn()
            let found = account.abilities
            #expect(account.ownerID == server.url + "/|alice")
            #expect(!found.isReadOnly)
            #expect(found.sendsRanges)
            #expect(found.copies)
            #expect(found.movesOntoFiles)
            #expect(found.guardsMoves)
            #expect(found.survivesCutUploads == ![.sabre, .rclone, .wsgidav].contains(kind))
            #expect(found.takesTimeWithUpload == (kind == .rclone))
            #expect(!found.takesTimeLater)
            #expect(!found.ignoresCase)
            #expect(found.composesNames == (kind == .rclone))
            #expect(found.cutsDestinations == (kind == .wsgidav))
            #expect(found.guardsCreation == ![.nginx, .rclone].contains(kind))
            #expect(found.guardsReplacement == ![.nginx, .sabre, .rclone].contains(kind))
            #expect(found.guardsDeletion == ![.nginx, .rclone].contains(kind))
            #expect(found.wantsParentOfMove == (kind != .nginx))
            #expect(found.listsDotNames == (kind != .nginx))
            #expect(found.datesFolders == true)
            #expect(found.keepsMovedRevisions == (kind != .sabre))
            let tags: WebDAVAbilities.Tags =
                switch kind {
                case .apache, .lighttpd, .rclone: .fine
                case .nginx, .sabre: .none
                case .wsgidav: .coarse
                }
            // A coarse tag is no proof: on a busy machine no two contents may be of one second.
            var seen = found.tags
            for _ in 0..<10 where seen == .coarse && tags == .fine {
                seen = try await server.signIn().abilities.tags
            }
            #expect(seen == tags)
            // Nothing of the trial is left.
            #expect(server.names.isEmpty)
            let stored = try JSONEncoder().encode(account)
            #expect(try JSONDecoder().decode(WebDAVDiscovery.Account.self, from: stored) == account)
        }
    }

    @Test(
        "a sign-in that is cancelled leaves nothing at the server",
        arguments: DavServer.Kind.here
    )
    func cancelledSignIn(_ kind: DavServer.Kind) async throws {
        try await DavServer.with(kind) { server in
            let signIn = Task {
                try await server.signIn(through: { CancellingClient($0, after: "PUT") })
            }
            await #expect(throws: (any Error).self) { _ = try await signIn.value }
            #expect(server.names.isEmpty)
        }
    }

    @Test("files are created, listed and read", arguments: DavServer.Kind.here)
    func roundTrip(_ kind: DavServer.Kind) async throws {
        try await DavServer.with(kind) { server in
            let client = try await server.client()
            let folder = try await client.createFolder(at: RemotePath(["docs"]))
            #expect(folder.kind == .folder && folder.name == "docs")
            let created = try await client.put("0123456789", to: "docs/a.txt")
            #expect(created.size == 10 && created.name == "a.txt")
            let listed = try await client.listing(of: RemotePath(["docs"]))
            #expect(listed.entries.map(\.name) == ["a.txt"])
            #expect(listed.entries.first?.revision == created.revision)
            #expect(try await client.names() == ["docs"])
            let revision = created.revision
            #expect(try await client.text("docs/a.txt", revision: revision) == "0123456789")
            #expect(try await client.text("docs/a.txt", revision: revision, range: 3..<6) == "345")
            #expect(try await client.text("docs/a.txt", revision: revision, range: 8..<99) == "89")
            #expect(try await client.text("docs/a.txt", revision: revision, range: 10..<20) == "")
            #expect(try await client.text("docs/a.txt", revision: revision, range: 4..<4) == "")
            #expect(await failure { _ = try await client.text("docs") } == .notAFile)
            #expect(await failure { _ = try await client.text("docs/none") } == .notFound)
            #expect(
                await failure { _ = try await client.listing(of: RemotePath(["docs", "a.txt"])) }
                    == .notAFolder
            )
            #expect(
                await failure { _ = try await client.listing(of: RemotePath(["none"])) }
                    == .notFound
            )
        }
    }

    @Test("empty files and large files arrive whole", arguments: DavServer.Kind.here)
    func sizes(_ kind: DavServer.Kind) async throws {
        try await DavServer.with(kind) { server in
            let client = try await server.client()
            let empty = try await client.put("", to: "empty")
            #expect(empty.size == 0)
            #expect(try await client.text("empty", revision: empty.revision) == "")
            #expect(server.bytes("empty") == [])
            let bytes = (0..<(20 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
            let large = try await client.put(bytes, to: RemotePath(["large"]))
            #expect(large.size == Int64(bytes.count))
            #expect(server.bytes("large") == bytes)
            let range = Int64(5 << 20) + 7..<Int64(12 << 20) + 1
            let part = try await client.read(
                RemotePath(["large"]),
                revision: large.revision,
                range: range
            ).collect(atMost: 32 << 20)
            #expect(part == Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)]))
        }
    }

    @Test("only the revision that is meant is replaced", arguments: DavServer.Kind.here)
    func replacing(_ kind: DavServer.Kind) async throws {
        try await DavServer.with(kind) { server in
            let client = try await server.client()
            let first = try await client.put("first", to: "a")
            #expect(await failure { try await client.put("other", to: "a") } == .nameTaken)
            let second = try await client.put("second!", to: "a", before: .file(first.revision))
            #expect(second.revision != first.revision)
            #expect(
                await failure {
                    try await client.put("third", to: "a", before: .file(first.revision))
                } == .preconditionFailed
            )
            #expect(
                await failure { _ = try await client.text("a", revision: first.revision) }
                    == .preconditionFailed
            )
            #expect(try await client.text("a", revision: second.revision) == "second!")
            try await client.put("whatever", to: "a", before: .file(nil))
            #expect(try await client.text("a") == "whatever")
            #expect(
                await failure {
                    try await client.put("x", to: "gone", before: .file(first.revision))
                } == .preconditionFailed
            )
            _ = try await client.createFolder(at: RemotePath(["folder"]))
            try await client.put("inside", to: "folder/file")
            #expect(await failure { try await client.put("x", to: "folder") } == .nameTaken)
            #expect(
                await failure { try await client.put("x", to: "folder", before: .file(nil)) }
                    == .notAFile
            )
            #expect(try await client.text("folder/file") == "inside")
            #expect(server.names == ["a", "folder"])
        }
    }

    @Test("an upload that is cut off leaves what was there", arguments: DavServer.Kind.here)
    func cutUploads(_ kind: DavServer.Kind) async throws {
        try await DavServer.with(kind) { server in
            let client = try await server.client()
            let old = try await client.put("old", to: "a")
            let bytes = [UInt8](repeating: 1, count: 4 << 20)
            let broken = BrokenContent(size: Int64(bytes.count))
            #expect(
                await failure {
                    try await client.put(
                        bytes,
                        to: RemotePath(["a"]),
                        before: .file(old.revision),
                        content: broken
                    )
                } == .localContent
            )
            #expect(
                await failure {
                    try await client.put(bytes, to: RemotePath(["new"]), content: broken)
                } == .localContent
            )
            #expect(try await client.text("a", revision: old.revision) == "old")
            #expect(try await client.names() == ["a"])
        }
    }

    @Test(
        "a replacement that is refused half-way, or answered by a proxy alone, loses no content",
        arguments: DavServer.Kind.here,
        [403, 502]
    )
    func halfReplacements(_ kind: DavServer.Kind, status: Int) async throws {
        try await DavServer.with(kind) { server in
            let client = try await server.client {
                HalfMoves(next: $0, server: server, status: status)
            }
            let old = try await client.put("old", to: "a")
            let new = try await client.put("new!", to: "a", before: .file(old.revision))
            #expect(new.size == 4)
            #expect(server.bytes("a") == Array("new!".utf8))
            #expect(server.names == ["a"])
        }
    }

    @Test("moves never replace anything", arguments: DavServer.Kind.here)
    func moves(_ kind: DavServer.Kind) async throws {
        try await DavServer.with(kind) { server in
            let client = try await server.client()
            let file = try await client.put("one", to: "a")
            try await client.put("two", to: "b")
            for name in ["f", "g"] { _ = try await client.createFolder(at: RemotePath([name])) }
            try await client.put("deep", to: "f/x")
            #expect(
                await failure {
                    _ = try await client.move(.file, from: .init(["a"]), to: .init(["b"]))
                } == .nameTaken
            )
            #expect(
                await failure {
                    _ = try await client.move(.folder, from: .init(["f"]), to: .init(["g"]))
                } == .nameTaken
            )
            let moved = try await client.move(.file, from: .init(["a"]), to: .init(["g", "c"]))
            #expect(moved.size == 3)
            let mayChange = client.traits.provider.moveChangesRevision
            #expect(moved.revision == file.revision || mayChange)
            #expect(mayChange == (kind == .sabre))
            _ = try await client.move(.folder, from: .init(["f"]), to: .init(["g", "h"]))
            #expect(try await client.text("g/h/x") == "deep")
            #expect(
                await failure {
                    _ = try await client.move(
                        .folder,
                        from: .init(["g"]),
                        to: .init(["g", "h", "g"])
                    )
                } == .moveIntoItself
            )
            #expect(
                await failure {
                    _ = try await client.move(.file, from: .init(["none"]), to: .init(["new"]))
                } == .notFound
            )
            #expect(
                await failure {
                    _ = try await client.move(.file, from: .init(["b"]), to: .init(["no", "b"]))
                } == .parentNotFound
            )
            #expect(
                await failure {
                    _ = try await client.createFolder(at: .init(["no", "folder"]))
                } == .parentNotFound
            )
            #expect(await failure { try await client.put("x", to: "no/file") } == .parentNotFound)
            #expect(
                await failure { _ = try await client.createFolder(at: .init(["g"])) } == .nameTaken
            )
            #expect(
                await failure { _ = try await client.createFolder(at: .init(["b"])) } == .nameTaken
            )
            #expect(server.names == ["b", "g"])
        }
    }

    @Test("deletions take the revision that is meant only", arguments: DavServer.Kind.here)
    func deletions(_ kind: DavServer.Kind) async throws {
        try await DavServer.with(kind) { server in
            let client = try await server.client()
            let first = try await client.put("one", to: "a")
            let second = try await client.put("other", to: "a", before: .file(first.revision))
            let refused = await failure {
                try await client.delete(.file, at: .init(["a"]), revision: first.revision)
            }
            #expect(refused == .preconditionFailed)
            #expect(first.revision != second.revision)
            #expect(server.bytes("a") == Array("other".utf8))
            try await client.delete(.file, at: .init(["a"]), revision: second.revision)
            try await client.delete(.file, at: .init(["a"]), revision: second.revision)
            _ = try await client.createFolder(at: .init(["f"]))
            try await client.put("x", to: "f/x")
            try await client.delete(.folder, at: .init(["f"]), revision: nil)
            try await client.delete(.folder, at: .init(["f"]), revision: nil)
            #expect(server.names.isEmpty)
        }
    }

    @Test(
        "a folder with a link that leads nowhere is never taken for gone",
        arguments: DavServer.Kind.here
    )
    func danglingLinks(_ kind: DavServer.Kind) async throws {
        try await DavServer.with(kind) { server in
            let client = try await server.client()
            _ = try await client.createFolder(at: .init(["f"]))
            try await client.put("x", to: "f/x")
            let link = server.files + "/f/link"
            try FileManager.default.createSymbolicLink(
                atPath: link,
                withDestinationPath: "nowhere"
            )
            let listing = await failure {
                let names = try await client.listing(of: .init(["f"])).entries.map(\.name)
                #expect(names.contains("x"))
            }
            #expect(listing != .notFound)
            #expect(try await client.names() == ["f"])
            let deletion = await failure {
                try await client.delete(.folder, at: .init(["f"]), revision: nil)
            }
            // What counts as removed is.
            #expect(deletion != nil || server.names.isEmpty)
            try? FileManager.default.removeItem(atPath: link)
            try await client.delete(.folder, at: .init(["f"]), revision: nil)
            #expect(server.names.isEmpty)
        }
    }

    @Test(
        "what has a name that is no text is known to be there",
        arguments: DavServer.Kind.here,
        [false, true]
    )
    func unnamed(_ kind: DavServer.Kind, isFolder: Bool) async throws {
        try await DavServer.with(kind) { server in
            let client = try await server.client()
            _ = try await client.createFolder(at: .init(["f"]))
            try server.makeUnnamed(in: "f", isFolder: isFolder)
            let refusal = await failure {
                let listing = try await client.listing(of: .init(["f"]))
                #expect(listing.entries.isEmpty)
                #expect(listing.holdsUnnamed || !listing.unknown.isEmpty)
            }
            // wsgidav lists no such folder at all.
            #expect((refusal == nil) == (kind != .wsgidav))
            #expect(refusal != .notFound)
        }
    }

    @Test("copies are made at the server", arguments: DavServer.Kind.here)
    func copies(_ kind: DavServer.Kind) async throws {
        try await DavServer.with(kind) { server in
            let client = try await server.client()
            try await client.put("content", to: "a")
            try await client.put("taken", to: "b")
            let copy = try await client.copy(from: .init(["a"]), to: .init(["c"]))
            #expect(copy.size == 7)
            #expect(
                await failure { _ = try await client.copy(from: .init(["a"]), to: .init(["b"])) }
                    == .nameTaken
            )
            #expect(try await client.text("c") == "content")
            #expect(try await client.text("b") == "taken")
        }
    }

    static let names = [
        "a b", "100%", "%41", "#1", "what?", "a+b", "a&b", "<tag>", "ü\u{FC}", "e\u{301}",
        "\u{E9}", "😀", "a;b", "a'b\"c", "[x]", "a:b", "~", "*", "back\\slash",
        "\u{301}first",
    ]

    @Test("any name is kept as it is", arguments: DavServer.Kind.here)
    func names(_ kind: DavServer.Kind) async throws {
        try await DavServer.with(kind) { server in
            let client = try await server.client()
            // One normal form is as good as another to rclone, and wsgidav takes "a" for "a;b" where
            // something is moved to.
            let names = Self.names.filter { name in
                switch kind {
                case .rclone: !name.isSameText(as: "e\u{301}")
                case .wsgidav: !name.has(";") && !name.has("?")
                default: true
                }
            }
            for name in Self.names where !names.contains(where: { $0.isSameText(as: name) }) {
                let path = RemotePath([name])
                guard kind == .wsgidav else { continue }
                #expect(await failure { try await client.put("x", to: path) } == .nameRefused)
            }
            for name in names {
                try await client.put("of \(name)", to: RemotePath([name]))
                _ = try await client.createFolder(at: .root.appending(name + " folder"))
                try await client.put("x", to: RemotePath([name + " folder", name]))
            }
            let listed = try await client.listing(of: .root)
            #expect(listed.entries.count == 2 * names.count)
            for name in names {
                #expect(listed.entries.contains { $0.name.isSameText(as: name) }, "\(name)")
                #expect(try await client.read(RemotePath([name])) == "of \(name)")
                let folder = RemotePath.root.appending(name + " folder")
                #expect(try await client.listing(of: folder).entries.count == 1)
            }
            let long = String(repeating: "n", count: 300)
            #expect(await failure { try await client.put("x", to: long) } == .nameTooLong)
            let dotted = await failure { try await client.put("x", to: ".dot") }
            #expect(dotted == (kind == .nginx ? .nameRefused : nil))
        }
    }

    @Test(
        "a name that a server takes for another one is refused, and nothing is left of the try",
        arguments: DavServer.Kind.here
    )
    func misread(_ kind: DavServer.Kind) async throws {
        try await DavServer.with(kind) { server in
            let client = try await server.client()
            let name = "İstanbul"
            let path = RemotePath([name])
            try await client.put("old", to: "old")
            _ = try await client.createFolder(at: RemotePath(["folder"]))
            let tries: [() async throws -> Void] = [
                { try await client.put("of \(name)", to: name) },
                { _ = try await client.createFolder(at: path) },
                { _ = try await client.move(.file, from: .init(["old"]), to: path) },
                { _ = try await client.move(.folder, from: .init(["folder"]), to: path) },
                { _ = try await client.copy(from: .init(["old"]), to: path) },
            ]
            // sabre/dav asks PHP whether the bytes are UTF-8 or Latin-1, which guesses.
            guard kind == .sabre else {
                try await tries[0]()
                #expect(server.names == ["old", "folder", name])
                #expect(try await client.text(name) == "of \(name)")
                return
            }
            for act in tries {
                #expect(await failure { try await act() } == .nameRefused)
                #expect(server.names == ["old", "folder"])
                #expect(server.bytes("old") == Array("old".utf8))
            }
        }
    }

    @Test(
        "what is listed and not found when it is asked for is not taken for gone",
        arguments: DavServer.Kind.here
    )
    func misreadOfSomebodyElse(_ kind: DavServer.Kind) async throws {
        try await DavServer.with(kind) { server in
            let client = try await server.client()
            let name = "İstanbul"
            try server.write("theirs", to: name)
            #expect(try await client.names() == [name])
            let reading = await failure {
                let text = try await client.text(name)
                #expect(text == "theirs")
            }
            #expect(reading == (kind == .sabre ? .contentBlocked : nil))
            let deletion = await failure {
                try await client.delete(.file, at: .init([name]), revision: nil)
            }
            #expect(deletion == (kind == .sabre ? .noPermission : nil))
            #expect(server.names.isEmpty == (deletion == nil))
        }
    }

    @Test("changes of somebody else are seen", arguments: DavServer.Kind.here)
    func strangers(_ kind: DavServer.Kind) async throws {
        try await DavServer.with(kind) { server in
            let client = try await server.client()
            let mine = try await client.put("mine", to: "a")
            try server.write("somebody else's", to: "a")
            #expect(
                await failure {
                    try await client.put("newer", to: "a", before: .file(mine.revision))
                } == .preconditionFailed
            )
            #expect(
                await failure {
                    try await client.delete(.file, at: .init(["a"]), revision: mine.revision)
                } == .preconditionFailed
            )
            #expect(try await client.text("a") == "somebody else's")
        }
    }

    @Test("a wrong password is sent once, and said", arguments: DavServer.Kind.here)
    func wrongPassword(_ kind: DavServer.Kind) async throws {
        try await DavServer.with(kind) { server in
            await #expect {
                _ = try await server.signIn(password: "wrong")
            } throws: { error in
                (error as? WebDAVSignInError)?.isPasswordRefused == true
                    && "\(error)".contains("does not take the password of alice")
            }
        }
    }

    @Test("a server that is away is offline, and no deletion")
    func away() async throws {
        try await DavServer.with(.apache) { server in
            let client = try await server.client()
            try await client.put("x", to: "a")
            await server.stop(keepsFolder: true)
            let kind = await failure { _ = try await client.entry(at: .init(["a"])) }
            #expect(kind == .offline)
        }
    }

    @Test("a root that went away is no deletion of all", arguments: DavServer.Kind.here)
    func lostRoot(_ kind: DavServer.Kind) async throws {
        try await DavServer.with(kind) { server in
            let client = try await server.client()
            try await client.put("x", to: "a")
            let moved = server.folder + "/root/elsewhere"
            try FileManager.default.moveItem(atPath: server.files, toPath: moved)
            // rclone gives an empty folder for one that is away: it looks like an empty one.
            guard kind != .rclone else { return }
            let one = await failure { _ = try await client.entry(at: .init(["a"])) }
            #expect(one != nil && one != .notFound)
            let all = await failure { _ = try await client.listing(of: .root) }
            #expect(all != nil && all != .notFound)
        }
    }
}

extension WebDAVClient {
    fileprivate func put(_ content: String, to path: RemotePath) async throws {
        try await put(Array(content.utf8), to: path)
    }

    fileprivate func read(_ path: RemotePath) async throws -> String {
        String(
            decoding: try await read(path, revision: nil, range: 0..<Int64.max)
                .collect(atMost: 1 << 20),
            as: UTF8.self
        )
    }
}

/// A server that removes what a file is to replace and refuses the rest, or a proxy before one that did all of it
/// and answers 502.
private struct HalfMoves: HTTPClient {
    let next: any HTTPClient
    let server: DavServer
    let status: Int

    func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPStreamedResponse {
        guard request.method == "MOVE",
            request.headers.contains(where: { $0.name == "Overwrite" && $0.value == "T" })
        else { return try await next.stream(request) }
        if status == 502 {
            _ = try await next.stream(request)
        } else {
            try? FileManager.default.removeItem(atPath: server.files + "/a")
        }
        return HTTPStreamedResponse(
            HTTPResponse(
                head: HTTPResponseHead(status: status, headers: [], httpVersion: "1.1"),
                body: []
            )
        )
    }
}
