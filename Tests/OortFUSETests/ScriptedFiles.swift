import MountTesting
import OortCatalog
import OortContentStore
import OortModel
import Synchronization

@testable import OortFileSystem

/// A file system whose answers the test gives: it records what it is asked in Oort's terms.
///
/// Its folder is the mount's root; the names say how they answer: `later-…` from a task, `never-…`
/// not before the caller gives up.
final class ScriptedFiles: FileSystem {
    struct Item {
        var inode: Inode
        var kind: FileKind
        var bytes: [UInt8]
    }

    let journal = Journal()
    let items = Mutex<[String: Item]>([:])
    /// Where the content of `disk` lies.
    let disk: DiskFile?

    init(_ names: [String], disk: DiskFile? = nil) {
        self.disk = disk
        items.withLock { items in
            for (index, name) in names.enumerated() {
                items[name] = Item(
                    inode: Inode(UInt64(index) + 2),
                    kind: .file,
                    bytes: Array("\(name)\n".utf8)
                )
            }
        }
    }

    func add(_ name: String) -> Inode {
        items.withLock { items in
            let inode = Inode(UInt64(items.count) + 2)
            items[name] = Item(inode: inode, kind: .file, bytes: Array("\(name)\n".utf8))
            return inode
        }
    }

    private func named(_ inode: Inode) -> (name: String, item: Item)? {
        items.withLock { items in
            items.first { $0.value.inode == inode }.map { ($0.key, $0.value) }
        }
    }

    private func entry(_ inode: Inode, _ kind: FileKind, size: Int) -> Entry {
        let time = Timestamp(seconds: 1_000_000_000, nanoseconds: 5)
        return Entry(
            attributes: FileAttributes(
                inode: inode,
                kind: kind,
                size: Int64(size),
                blocks: Int64(size + 511) / 512,
                modified: time,
                changed: time,
                accessed: time,
                mode: kind == .folder ? 0o750 : 0o640,
                owner: 7,
                group: 8,
                linkCount: 1
            ),
            validity: .day
        )
    }

    private func entry(_ inode: Inode) -> Entry? {
        if inode == .root { return entry(.root, .folder, size: 0) }
        return named(inode).map { entry(inode, $0.item.kind, size: $0.item.bytes.count) }
    }

    /// Answers as the name wants it.
    private func answer<Value>(_ name: String, _ value: Value) -> Outcome<Value> {
        if name.hasPrefix("later-") { return .later { .success(value) } }
        guard name.hasPrefix("never-") else { return .now(.success(value)) }
        let journal = journal
        return .later {
            journal.record("waiting \(name)")
            let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
            for await _ in stream {}
            withExtendedLifetime(continuation) {}
            journal.record("gave up \(name)")
            return .failure(.interrupted)
        }
    }

    private func done(_ what: String) -> Outcome<Void> {
        journal.record(what)
        return .now(.success(()))
    }

    func absenceValidity(in folder: Inode) -> Duration { Validity.day.entry }

    func lookup(_ name: String, in folder: Inode) -> Outcome<Entry> {
        journal.record("lookup \(name)")
        guard let item = items.withLock({ $0[name] }) else { return .failure(.notFound) }
        return answer(name, entry(item.inode, item.kind, size: item.bytes.count))
    }

    func attributes(of inode: Inode, handle: FileHandle?) -> Outcome<Entry> {
        guard let entry = entry(inode) else { return .failure(.notFound) }
        return .now(.success(entry))
    }

    func setAttributes(
        _ setting: AttributeSetting,
        of inode: Inode,
        handle: FileHandle?
    ) -> Outcome<Entry> {
        if let mode = setting.mode { journal.record("mode \(String(mode, radix: 8))") }
        if let size = setting.size { journal.record("size \(size)") }
        if case .at(let time) = setting.modified { journal.record("modified \(time.seconds)") }
        return attributes(of: inode, handle: handle)
    }

    func checkAccess(of inode: Inode, writes: Bool) -> Outcome<Void> { .now(.success(())) }

    func list(_ folder: Inode, after cookie: UInt64, limit: Int) -> Outcome<[FolderEntry]> {
        journal.record("list")
        let all = items.withLock { items in
            items.sorted { $0.value.inode < $1.value.inode }
        }
        let entries = all.filter { $0.value.inode.rawValue > cookie }.prefix(limit).map {
            FolderEntry(
                name: $0.key,
                cookie: $0.value.inode.rawValue,
                entry: entry($0.value.inode, $0.value.kind, size: $0.value.bytes.count)
            )
        }
        return .later { .success(Array(entries)) }
    }

    func parent(of folder: Inode) -> Outcome<Inode> { .now(.success(.root)) }

    func readLink(_ inode: Inode) -> Outcome<String> { .failure(.invalid) }

    func create(
        _ name: String,
        in folder: Inode,
        permissions: UInt16,
        caller: Caller,
        mode: OpenMode,
        isExclusive: Bool
    ) -> Outcome<(Entry, Opened)> {
        journal.record("create \(name) \(String(permissions, radix: 8)) \(isExclusive)")
        let inode = add(name)
        return answer(
            name,
            (
                entry(inode, .file, size: 0),
                Opened(handle: FileHandle(inode.rawValue), keepsCache: false, isDirect: false)
            )
        )
    }

    func makeFolder(
        _ name: String,
        in folder: Inode,
        permissions: UInt16,
        caller: Caller
    ) -> Outcome<Entry> {
        journal.record("folder \(name) \(caller.owner)")
        return .now(.success(entry(add(name), .folder, size: 0)))
    }

    func makeSpecial(
        _ name: String,
        kind: SpecialKind,
        in folder: Inode,
        permissions: UInt16,
        caller: Caller
    ) -> Outcome<Entry> {
        journal.record("special \(name) \(kind)")
        guard kind != .device else { return .failure(.notPermitted) }
        return .now(.success(entry(add(name), .fifo, size: 0)))
    }

    func makeLink(
        _ name: String,
        to target: String,
        in folder: Inode,
        caller: Caller
    ) -> Outcome<Entry> {
        journal.record("link \(name) \(target)")
        return .now(.success(entry(add(name), .symlink, size: target.utf8.count)))
    }

    func unlink(_ name: String, in folder: Inode) -> Outcome<Void> { done("unlink \(name)") }

    func removeFolder(_ name: String, in folder: Inode) -> Outcome<Void> { done("rmdir \(name)") }

    func rename(
        _ name: String,
        in folder: Inode,
        to newName: String,
        in newFolder: Inode,
        mode: RenameMode
    ) -> Outcome<Void> { done("rename \(name) \(newName) \(mode)") }

    func open(_ inode: Inode, mode: OpenMode) -> Outcome<Opened> {
        guard let name = named(inode)?.name else { return .failure(.notFound) }
        journal.record("open \(name) \(mode.writes) \(mode.truncates)")
        let opened = Opened(
            handle: FileHandle(inode.rawValue),
            keepsCache: false,
            isDirect: name.hasPrefix("never-")
        )
        return name.hasPrefix("never-") ? .now(.success(opened)) : answer(name, opened)
    }

    func read(_ handle: FileHandle, at offset: Int64, count: Int) -> Outcome<ReadAnswer> {
        guard let (name, item) = named(Inode(handle.rawValue)) else { return .failure(.badHandle) }
        guard offset < item.bytes.count else { return .now(.success(.end)) }
        let end = min(offset + Int64(count), Int64(item.bytes.count))
        if name.hasSuffix("disk"), let disk { return answer(name, .file(disk, offset..<end)) }
        return answer(name, .bytes(Array(item.bytes[Int(offset)..<Int(end)])))
    }

    func write(_ handle: FileHandle, _ bytes: RawSpan, at offset: Int64) -> Outcome<Int> {
        journal.record("write \(bytes.byteCount) \(offset)")
        return .now(.success(bytes.byteCount))
    }

    func flush(_ handle: FileHandle) -> Outcome<Void> { done("flush") }

    func synchronise(_ handle: FileHandle) -> Outcome<Void> { done("fsync") }

    func synchroniseFolder(_ folder: Inode) -> Outcome<Void> { done("fsync folder") }

    func release(_ handle: FileHandle) { journal.record("release") }

    func copyRange(
        from source: FileHandle,
        at sourceOffset: Int64,
        to target: FileHandle,
        at targetOffset: Int64,
        count: Int64
    ) -> Outcome<Int64> { .failure(.otherAccount) }

    func seek(_ handle: FileHandle, to target: SeekTarget, from offset: Int64) -> Outcome<Int64> {
        .failure(.noMoreData)
    }

    func allocate(_ handle: FileHandle, range: Range<Int64>, extends: Bool) -> Outcome<Void> {
        done("allocate \(range) \(extends)")
    }

    func extendedAttribute(_ name: String, of inode: Inode) -> Outcome<[UInt8]> {
        name == "user.oort.id" ? .now(.success(Array("id".utf8))) : .failure(.noAttribute)
    }

    func extendedAttributes(of inode: Inode) -> Outcome<[String]> {
        .now(.success(["user.oort.id"]))
    }

    func setExtendedAttribute(
        _ name: String,
        to value: [UInt8],
        of inode: Inode,
        mustExist: Bool?
    ) -> Outcome<Void> { .failure(.attributeTooLarge) }

    func removeExtendedAttribute(_ name: String, of inode: Inode) -> Outcome<Void> {
        .failure(.notPermitted)
    }

    func room(of inode: Inode) -> Outcome<FileSystemRoom> {
        .now(.success(FileSystemRoom(total: 1 << 40, free: 1 << 30, longestName: 255)))
    }
}
