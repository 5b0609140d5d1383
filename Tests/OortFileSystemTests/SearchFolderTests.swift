import Foundation
import OortCatalog
import OortFileSystem
import OortModel
import Testing

@Suite("The folder of searches", .timeLimit(.minutes(15)))
struct SearchFolderTests {
    private let fixture: FileSystemFixture
    private var system: CloudFileSystem { fixture.system }
    private var root: Inode { fixture.account.root }

    init() throws { fixture = try FileSystemFixture() }

    private func make(_ name: String, in folder: Inode? = nil) async throws -> Inode {
        let (entry, opened) = try await system.make(name, in: folder ?? root)
        system.release(opened.handle)
        return entry.attributes.inode
    }

    private func folder(of words: String) async throws -> Inode {
        let top = try await system.lookup(".search", in: .root).value().attributes.inode
        return try await system.lookup(words, in: top).value().attributes.inode
    }

    private func names(in folder: Inode) async throws -> [String] {
        var names: [String] = []
        var cookie: UInt64 = 0
        while case let page = try await system.list(folder, after: cookie, limit: 3).value(),
            let last = page.last
        {
            names += page.map(\.name)
            cookie = last.cookie
        }
        return names
    }

    @Test("it is not listed, and lists nothing")
    func hidden() async throws {
        #expect(try await names(in: .root).sorted() == ["home", "work"])
        let top = try await system.lookup(".search", in: .root).value()
        #expect(top.attributes.kind == .folder && top.attributes.mode == 0o500)
        #expect(try await names(in: top.attributes.inode).isEmpty)
        #expect(try await system.parent(of: top.attributes.inode).value() == .root)
        for name in [".git", ".hidden", "...", "!?", ""] {
            await #expect(throws: FileSystemError.notFound) {
                _ = try await system.lookup(name, in: top.attributes.inode).value()
            }
        }
        await #expect(throws: FileSystemError.notFound) {
            _ = try await system.lookup(".search", in: root).value()
        }
    }

    @Test("a folder of words holds links to what is found, each under a name of its own")
    func results() async throws {
        let sub = try await system.makeFolder(
            "sub",
            in: root,
            permissions: 0o755,
            caller: Caller(owner: 0, group: 0)
        ).value().attributes.inode
        let first = try await make("report.pdf")
        _ = try await make("report.pdf", in: sub)
        _ = try await make("other.txt")
        let found = try await folder(of: "report")
        #expect(try await names(in: found) == ["report.pdf", "report (2).pdf"])
        let link = try await system.lookup("report.pdf", in: found).value()
        #expect(link.attributes.kind == .symlink && link.attributes.inode != first)
        #expect(
            try await system.readLink(link.attributes.inode).value() == "../../work/report.pdf"
        )
        #expect(link.attributes.size == Int64("../../work/report.pdf".utf8.count))
        let second = try await system.lookup("report (2).pdf", in: found).value()
        #expect(
            try await system.readLink(second.attributes.inode).value()
                == "../../work/sub/report.pdf"
        )
        #expect(try await names(in: folder(of: "work sub report")) == ["report.pdf"])
        #expect(try await names(in: folder(of: "nothing")).isEmpty)
        await #expect(throws: FileSystemError.notFound) {
            _ = try await system.lookup("other.txt", in: found).value()
        }
    }

    @Test("a folder shows what is there now, and its time says that it changed")
    func fresh() async throws {
        _ = try await make("report 1")
        let found = try await folder(of: "report")
        let before = try await system.attributes(of: found, handle: nil).value().attributes.modified
        _ = try await make("report 2")
        var after = before
        let deadline = ContinuousClock.now + .seconds(60)
        while after == before, ContinuousClock.now < deadline {
            after = try await system.attributes(of: found, handle: nil).value().attributes.modified
            try await Task.sleep(for: .milliseconds(20))
        }
        #expect(after > before)
        #expect(try await names(in: found).sorted() == ["report 1", "report 2"])
        #expect(try await folder(of: "report") == found)
    }

    @Test("nothing in it can be changed")
    func readOnly() async throws {
        _ = try await make("report.pdf")
        let found = try await folder(of: "report")
        let top = try await system.parent(of: found).value()
        let caller = Caller(owner: 0, group: 0)
        func refuses<T: Sendable>(
            _ outcome: Outcome<T>,
            _ location: SourceLocation = #_sourceLocation
        ) async {
            await #expect(throws: FileSystemError.readOnly, sourceLocation: location) {
                _ = try await outcome.value()
            }
        }
        for folder in [found, top] {
            await refuses(system.unlink("report.pdf", in: folder))
            await refuses(system.removeFolder("report", in: folder))
            await refuses(system.makeFolder("new", in: folder, permissions: 0o755, caller: caller))
            await refuses(system.makeLink("new", to: "x", in: folder, caller: caller))
            await refuses(system.checkAccess(of: folder, writes: true))
            await refuses(
                system.rename(
                    "report.pdf",
                    in: root,
                    to: "new",
                    in: folder,
                    mode: .replace
                )
            )
            await refuses(
                system.setExtendedAttribute("user.x", to: [1], of: folder, mustExist: nil)
            )
        }
        await refuses(system.removeFolder(".search", in: .root))
    }

    @Test("what the kernel forgets is forgotten")
    func forgotten() async throws {
        var folders: [Inode] = []
        for number in 0..<100 { folders.append(try await folder(of: "word \(number)")) }
        #expect(Set(folders).count == 100)
        let again = try await folder(of: "word 0")
        #expect(again == folders[0])
        for folder in folders { system.forget(folder, lookups: 1) }
        #expect(try await names(in: again).isEmpty)
        await #expect(throws: FileSystemError.notFound) { _ = try await names(in: folders[1]) }
        system.forget(again, lookups: 1)
        await #expect(throws: FileSystemError.notFound) { _ = try await names(in: again) }
        // A number is not used again.
        #expect(try await folder(of: "word 0") > folders[99])
    }
}
