import Foundation
import SwiftSFTP
import Testing

/// OpenSSH's server is the reference of all that follow it.
@Suite("a session with OpenSSH's server", .timeLimit(.minutes(15)))
struct RealServerTests {
    @Test("what is written is there, and is read back, in more pieces than fit into the window")
    func roundTrip() async throws {
        try await ServerProcess.with { server in
            let session = server.session
            let size = (5 << 20) + 4711
            let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
            let path = try server.path("large")
            let handle = try await session.open(path, [.write, .create, .exclusive])
            var writer = SFTPByteWriter(session, handle, at: 0)
            try await writer.write(bytes)
            try await writer.finish()
            #expect(writer.confirmed == UInt64(size))
            try await session.send(.synchronize(handle)).answer()
            try await session.close(handle)
            #expect(server.bytes(of: "large") == bytes)

            let reading = try await session.open(path, .read)
            var reader = SFTPByteReader(session, reading, range: 17..<UInt64(size) + 1000)
            var read: [UInt8] = []
            while let more = try await reader.read() { read += more }
            try await session.close(reading)
            #expect(read == Array(bytes[17...]))
        }
    }

    @Test("a folder of 1,234 names is listed whole, whatever bytes the names have")
    func listing() async throws {
        try await ServerProcess.with { server in
            var names: Set<[UInt8]> = [
                [0xFF, 0xFE], Array("new\nline".utf8), Array("e\u{301}".utf8),
            ]
            for number in 0..<1231 { names.insert(Array("name \(number)".utf8)) }
            for name in names {
                let path = try SFTPPath(server.folder).appending(SFTPPath(name))
                let handle = try await server.session.open(path, [.write, .create])
                try await server.session.close(handle)
            }
            let entries = try await server.session.entries(of: SFTPPath(server.folder))
            #expect(entries.count == names.count)
            #expect(Set(entries.map(\.name.bytes)) == names)
            #expect(entries.allSatisfy { $0.attributes.kind == .file && $0.attributes.size == 0 })
            let limited = await failure {
                _ = try await server.session.entries(of: SFTPPath(server.folder), atMost: 100)
            }
            #expect(limited == .malformedAnswer)
        }
    }

    @Test("attributes are set and read, of links too")
    func attributes() async throws {
        try await ServerProcess.with { server in
            let session = server.session
            try server.write([1, 2, 3], to: "file")
            var change = SFTPAttributes()
            change.times = SFTPAttributes.Times(accessed: 1_000, modified: 2_000_000_000)
            change.mode = 0o640
            try await session.send(.setAttributes(try server.path("file"), change)).answer()
            let file = try await session.attributes(of: try server.path("file"))
            #expect(file.size == 3)
            #expect(file.times == change.times)
            #expect(file.mode == 0o100640)

            let link = try server.path("link")
            try await session.send(.makeLink(link, target: try SFTPPath("file"))).answer()
            #expect(try await session.attributes(of: link).kind == .link)
            #expect(try await session.attributes(of: link, followsLinks: true).kind == .file)
            #expect(try await session.target(ofLink: link).bytes == Array("file".utf8))
            change.mode = nil
            change.times?.modified = 1_500_000_000
            try await session.send(.setAttributesOfLink(link, change)).answer()
            #expect(try await session.attributes(of: link).times?.modified == 1_500_000_000)
            #expect(
                try await session.attributes(of: try server.path("file")).times?.modified
                    == 2_000_000_000
            )
        }
    }

    @Test("a rename refuses a taken name, a replacement takes it in one step")
    func renaming() async throws {
        try await ServerProcess.with { server in
            let session = server.session
            try server.write([1], to: "a")
            try server.write([2], to: "b")
            let (a, b) = (try server.path("a"), try server.path("b"))
            let refused = await failure { try await session.send(.rename(a, to: b)).answer() }
            #expect(refused == .status(.failure))
            #expect(server.bytes(of: "b") == [2])
            try await session.send(.replace(b, with: a)).answer()
            #expect(server.bytes(of: "a") == nil)
            #expect(server.bytes(of: "b") == [1])
        }
    }

    @Test("bytes are copied at the server, folders made and removed, the disk's room is known")
    func others() async throws {
        try await ServerProcess.with { server in
            let session = server.session
            try server.write(Array("0123456789".utf8), to: "source")
            let source = try await session.open(try server.path("source"), .read)
            let target = try await session.open(try server.path("copy"), [.write, .create])
            try await session.send(.copy(source, from: 2, count: 5, to: target, at: 1)).answer()
            try await session.close(source)
            try await session.close(target)
            #expect(server.bytes(of: "copy") == [0] + Array("23456".utf8))

            let folder = try server.path("folder")
            try await session.send(.makeFolder(folder, SFTPAttributes())).answer()
            try await session.send(.makeFolder(folder.appending(SFTPPath("in")), SFTPAttributes()))
                .answer()
            let full = await failure { try await session.send(.removeFolder(folder)).answer() }
            #expect(full == .status(.failure))
            try await session.send(.removeFolder(folder.appending(SFTPPath("in")))).answer()
            try await session.send(.removeFolder(folder)).answer()
            let begin = try await session.realPath(of: SFTPPath("."))
            #expect(begin.description == server.folder)
            let disk = try await session.fileSystem(of: SFTPPath(server.folder))
            #expect(disk.total > 0 && disk.available <= disk.free)
            #expect(disk.takesFiles && !disk.isReadOnly)
            #expect(disk.longestName == 255)
        }
    }

    @Test("what is missing, forbidden or not offered has an error of its own")
    func errors() async throws {
        try await ServerProcess.with("-P copy-data,limits") { server in
            let session = server.session
            let missing = await failure {
                _ = try await session.attributes(of: try server.path("missing"))
            }
            #expect(missing == .status(.noSuchFile))
            let denied = await failure {
                _ = try await session.open(try SFTPPath("/proc/version"), .write)
            }
            // Root may open it, and no write would succeed.
            #expect(denied == nil || denied == .status(.permissionDenied))
            try server.write([], to: "file")
            let handle = try await session.open(try server.path("file"), [.read, .write])
            let copied = await failure {
                try await session.send(.copy(handle, from: 0, count: 0, to: handle, at: 0)).answer()
            }
            #expect(copied == .unsupported)
            #expect(session.server.largestWrite == 32_768)
            let tooMuch = [UInt8](repeating: 0, count: 32_769)
            let refused = await failure {
                try await session.send(.write(handle, at: 0, tooMuch)).answer()
            }
            #expect(refused == .notSendable)
            let nul = await failure { _ = try SFTPPath("a\0b") }
            #expect(nul == .notSendable)
            // The session lives on after all of this.
            #expect(try await session.attributes(of: handle).size == 0)
        }
    }

    @Test("what a login shell prints before the protocol is passed over and known")
    func preamble() async throws {
        try await ServerProcess.with(shell: "echo 'hello from rc'; echo; printf '\\000\\000\\001'")
        {
            #expect($0.session.server.preamble.hasPrefix("hello from rc\n"))
            let entries = try await $0.session.entries(of: SFTPPath($0.folder))
            #expect(entries.isEmpty)
        }
    }

    @Test("requests that were given together are done in their order")
    func together() async throws {
        try await ServerProcess.with { server in
            let session = server.session
            let handle = try await session.open(try server.path("part"), [.write, .create])
            let (part, whole) = (try server.path("part"), try server.path("whole"))
            let answers = [
                session.send(.write(handle, at: 0, [7, 8])),
                session.send(.close(handle)),
                session.send(.rename(part, to: whole)),
            ]
            let seen = session.send(.attributesOfLink(whole))
            for answer in answers { try await answer.answer() }
            guard case .attributes(let attributes) = try await seen.answer() else {
                Issue.record("no attributes")
                return
            }
            #expect(attributes.size == 2)
            #expect(server.bytes(of: "whole") == [7, 8])
        }
    }

    @Test("a handle that came for nobody is closed: the server's limit is never reached")
    func unwanted() async throws {
        try await ServerProcess.with { server in
            let session = server.session
            try server.write([1], to: "file")
            let path = try server.path("file")
            let most = try #require(session.server.mostHandles)
            for _ in 0..<most + 100 {
                let task = Task { _ = try await session.open(path, .read) }
                task.cancel()
                _ = session.send(.open(path, .read, SFTPAttributes()))
                _ = await task.result
            }
            #expect(try await session.attributes(of: path).size == 1)
            let handle = try await session.open(path, .read)
            try await session.close(handle)
        }
    }

    @Test(
        "listings wait for a handle where the server allows few, and files still open beside them"
    )
    func fewHandles() async throws {
        try await ServerProcess.with(shell: "ulimit -n 20") { server in
            let session = server.session
            let most = try #require(session.server.mostHandles)
            #expect(most < 20)
            try server.write([1], to: "file")
            let (folder, file) = (try server.path("."), try server.path("file"))
            // As many as there may be are held open, but for two.
            var handles: [SFTPHandle] = []
            for _ in 0..<(most - 2) { handles.append(try await session.open(file, .read)) }
            let openings = (0..<200).map { _ in session.send(.openFolder(folder)) }
            // A look and a file pass the openings that wait.
            #expect(try await session.attributes(of: file).size == 1)
            let another = try await session.open(file, .read)
            try await session.close(another)
            async let listings = withThrowingTaskGroup(of: [SFTPEntry].self) { group in
                for opening in openings {
                    group.addTask { try await session.entries(of: opening) }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            for handle in handles { try await session.close(handle) }
            let (lists, wanted) = (try await listings, try SFTPPath("file"))
            #expect(lists.count == 200)
            #expect(lists.allSatisfy { $0.map(\.name) == [wanted] })
        }
    }

    @Test("openings that nobody waits for any longer keep no handle from others")
    func fewHandlesUnwanted() async throws {
        try await ServerProcess.with(shell: "ulimit -n 20") { server in
            let session = server.session
            let folder = try server.path(".")
            for _ in 0..<50 {
                let tasks = (0..<20).map { _ in Task { try await session.entries(of: folder) } }
                for task in tasks { task.cancel() }
                for task in tasks { _ = await task.result }
            }
            #expect(try await session.entries(of: folder).isEmpty)
        }
    }

    @Test("a server that dies fails what waits, and says what may have been done")
    func death() async throws {
        try await ServerProcess.with { server in
            let session = server.session
            // A pipe blocks the server's only thread, so that nothing after it is answered.
            let made = unsafe mkfifo(server.folder + "/pipe", 0o600)
            #expect(made == 0)
            let path = try server.path("pipe")
            let waiting = session.send(.open(path, .read, SFTPAttributes()))
            let behind = session.send(.makeFolder(try server.path("new"), SFTPAttributes()))
            async let first = failure { try await waiting.answer() }
            async let second = failure { try await behind.answer() }
            server.kill()
            #expect(
                [.connectionLost(mayHaveBeenDone: true), .connectionLost(mayHaveBeenDone: false)]
                    .contains(await first)
            )
            _ = await second
            let after = await failure { _ = try await session.attributes(of: path) }
            #expect(after == .connectionLost(mayHaveBeenDone: false))
        }
    }
}
