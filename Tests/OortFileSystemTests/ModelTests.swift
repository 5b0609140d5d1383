import OortCatalog
import OortFileSystem
import OortModel
import OortTesting
import Testing

@Suite("The file system and a reference tree", .timeLimit(.minutes(15)))
struct ModelTests {
    /// One handle that both sides hold open.
    private struct Open {
        let handle: FileHandle
        let entry: ReferenceTree.Entry
    }

    @Test("agree on random operations, over restarts", arguments: [1, 2, 3, 4, 5, 6] as [UInt64])
    func random(seed: UInt64) async throws {
        var random = SeededNumbers(seed: seed)
        let fixture = try FileSystemFixture()
        let tree = ReferenceTree()
        var folders: [[String]] = [[]]
        var open: [Open] = []
        let names = ["a", "B", "b", "c.txt", "Ünï", "x:y", "d"]

        func inode(_ path: [String]) throws -> Inode {
            try #require(try fixture.catalog.node(atPath: ["work"] + path)).inode
        }
        func same(
            _ step: Int,
            _ what: String,
            _ real: () async throws(FileSystemError) -> Void,
            _ model: () throws(FileSystemError) -> Void
        ) async {
            var realError: FileSystemError?
            var modelError: FileSystemError?
            do throws(FileSystemError) { try await real() } catch { realError = error }
            do throws(FileSystemError) { try model() } catch { modelError = error }
            #expect(realError == modelError, "seed \(seed), step \(step): \(what)")
        }

        for step in 0..<400 {
            folders = folders.filter { tree.entry($0)?.isFolder == true }
            let path = folders.randomElement(using: &random) ?? []
            let target = folders.randomElement(using: &random) ?? []
            let name = names.randomElement(using: &random) ?? "a"
            let newName = names.randomElement(using: &random) ?? "b"
            let folder = try inode(path)
            guard let entry = tree.entry(path), let targetEntry = tree.entry(target) else {
                continue
            }
            switch Int.random(in: 0..<16, using: &random) {
            case 0, 1:
                await same(step, "mkdir \(path) \(name)") { () async throws(FileSystemError) in
                    _ = try await fixture.system.makeFolder(
                        name,
                        in: folder,
                        permissions: 0o755,
                        caller: CloudFileSystem.caller
                    ).value()
                } _: { () throws(FileSystemError) in
                    try tree.make(name, entry, isFolder: true)
                }
                if tree.entry(path + [name])?.isFolder == true { folders.append(path + [name]) }
            case 2, 3, 4:
                var handle: FileHandle?
                await same(step, "create \(path) \(name)") { () async throws(FileSystemError) in
                    handle = try await fixture.system.create(
                        name,
                        in: folder,
                        permissions: 0o600,
                        caller: CloudFileSystem.caller,
                        mode: CloudFileSystem.readWrite,
                        isExclusive: true
                    ).value().1.handle
                } _: { () throws(FileSystemError) in
                    try tree.make(name, entry, isFolder: false)
                }
                if let handle, let file = tree.entry(path + [name]) {
                    open.append(Open(handle: handle, entry: file))
                }
            case 5:
                await same(step, "unlink \(path) \(name)") { () async throws(FileSystemError) in
                    try await fixture.system.unlink(name, in: folder).value()
                } _: { () throws(FileSystemError) in
                    try tree.unlink(name, entry)
                }
            case 6:
                await same(step, "rmdir \(path) \(name)") { () async throws(FileSystemError) in
                    try await fixture.system.removeFolder(name, in: folder).value()
                } _: { () throws(FileSystemError) in
                    try tree.removeFolder(name, entry)
                }
            case 7, 8:
                let mode = [RenameMode.replace, .noReplace, .exchange].randomElement(using: &random)
                let newFolder = try inode(target)
                await same(step, "rename \(path) \(name) \(target) \(newName) \(mode as Any)") {
                    () async throws(FileSystemError) in
                    try await fixture.system.rename(
                        name,
                        in: folder,
                        to: newName,
                        in: newFolder,
                        mode: mode ?? .replace
                    ).value()
                } _: { () throws(FileSystemError) in
                    try tree.rename(
                        name,
                        entry,
                        newName,
                        targetEntry,
                        isExclusive: mode == .noReplace,
                        exchanges: mode == .exchange
                    )
                }
            case 9, 10, 11:
                guard let one = open.randomElement(using: &random) else { continue }
                let offset = Int.random(in: 0..<20_000, using: &random)
                let bytes = [UInt8](
                    repeating: UInt8(truncatingIfNeeded: step),
                    count: Int.random(in: 1..<9_000, using: &random)
                )
                #expect(
                    try await fixture.system.put(one.handle, bytes, at: Int64(offset))
                        == bytes.count
                )
                tree.write(one.entry, bytes, at: offset)
            case 12:
                guard let one = open.randomElement(using: &random) else { continue }
                let offset = Int.random(in: 0..<20_000, using: &random)
                let count = Int.random(in: 0..<20_000, using: &random)
                let expected = Array(one.entry.bytes.dropFirst(offset).prefix(count))
                #expect(
                    try await fixture.system.bytes(one.handle, Int64(offset), count) == expected,
                    "seed \(seed), step \(step)"
                )
            case 13:
                guard let file = tree.entry(path + [name]), !file.isFolder else { continue }
                let size = Int.random(in: 0..<15_000, using: &random)
                var setting = AttributeSetting()
                setting.size = Int64(size)
                let changed = try await fixture.system.setAttributes(
                    setting,
                    of: try inode(path + [name]),
                    handle: nil
                ).value()
                tree.resize(file, to: size)
                #expect(changed.attributes.size == Int64(size))
            case 14:
                guard let index = open.indices.randomElement(using: &random) else { continue }
                fixture.system.release(open.remove(at: index).handle)
            default:
                guard Int.random(in: 0..<6, using: &random) == 0 else { continue }
                // As after kill -9: nothing is closed, nothing flushed.
                open = []
                try await fixture.restart()
            }
            if step % 40 == 39 { try await compare(fixture, tree, seed: seed, step: step) }
        }
        try await fixture.restart()
        try await compare(fixture, tree, seed: seed, step: 400)
    }

    private func compare(
        _ fixture: FileSystemFixture,
        _ tree: ReferenceTree,
        seed: UInt64,
        step: Int
    ) async throws {
        func compare(_ inode: Inode, _ entry: ReferenceTree.Entry) async throws {
            let listed = try await fixture.system.list(inode, after: 0, limit: 1000).value()
            let expected = tree.names(entry)
            #expect(listed.map(\.name).sorted() == expected, "seed \(seed), step \(step)")
            for found in listed {
                let attributes = found.entry.attributes
                guard let child = entry.children?[found.name.lowercased()] else { continue }
                let looked = try await fixture.system.lookup(found.name, in: inode).value()
                #expect(looked.attributes == attributes)
                if child.isFolder {
                    #expect(attributes.kind == .folder)
                    try await compare(attributes.inode, child)
                } else {
                    #expect(attributes.size == Int64(child.bytes.count))
                    let opened = try await fixture.system.open(
                        attributes.inode,
                        mode: OpenMode()
                    ).value()
                    let bytes = try await fixture.system.bytes(
                        opened.handle,
                        0,
                        child.bytes.count + 10
                    )
                    #expect(bytes == child.bytes, "seed \(seed), step \(step): \(found.name)")
                    fixture.system.release(opened.handle)
                }
            }
        }
        try await compare(fixture.account.root, tree.root)
    }
}
