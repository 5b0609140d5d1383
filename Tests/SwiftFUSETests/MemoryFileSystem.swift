import Foundation
import MountTesting
import Synchronization

@testable import SwiftFUSE

/// A small file system in memory that counts its requests and can keep some of them waiting.
///
/// What a program asks that no test started (a desktop looks into each new mount) is counted by
/// itself, as that of a stranger.
final class MemoryFileSystem: LowLevelFileSystem {
    struct Node {
        var kind: FileKind
        var permissions: UInt32
        var time = FileTime.now
        var bytes: [UInt8] = []
        var children: [String: UInt64] = [:]
        var parent: UInt64 = 1
        var xattrs: [String: [UInt8]] = [:]
        var lookups = 0
    }

    struct Tree {
        var nodes: [UInt64: Node] = [1: Node(kind: .folder, permissions: 0o755)]
        var last: UInt64 = 1

        func child(_ name: String, of parent: InodeNumber) throws(Errno) -> InodeNumber {
            guard let node = nodes[parent.rawValue] else { throw .noSuchFile }
            guard node.kind == .folder else { throw .notADirectory }
            guard let inode = node.children[name] else { throw .noSuchFile }
            return InodeNumber(inode)
        }

        mutating func make(_ name: String, in parent: InodeNumber, _ node: Node) throws(Errno)
            -> InodeNumber
        {
            guard name.utf8.count <= 255 else { throw .nameTooLong }
            guard nodes[parent.rawValue]?.children[name] == nil else { throw .fileExists }
            last += 1
            var node = node
            node.parent = parent.rawValue
            nodes[last] = node
            nodes[parent.rawValue]?.children[name] = last
            return InodeNumber(last)
        }
    }

    static let day = Duration.seconds(86_400)

    let tree = Mutex(Tree())
    let journal = Journal()
    /// Lookups of names that begin with `wait-`, kept until the test lets them go.
    let waitingLookups = Mutex<[PendingReply<Answers.Name>]>([])
    /// Reads of files named `slow`, kept until they are interrupted, and `held`, which come through
    /// the kernel's cache and are not.
    let waitingReads = Mutex<[PendingReply<Answers.Data>]>([])

    func make(
        _ name: String,
        in parent: InodeNumber = .root,
        kind: FileKind = .file,
        bytes: [UInt8] = []
    ) throws -> InodeNumber {
        try tree.withLock { tree throws(Errno) in
            var node = Node(kind: kind, permissions: kind == .folder ? 0o755 : 0o644)
            node.bytes = bytes
            return try tree.make(name, in: parent, node)
        }
    }

    /// Counts a request.
    private func record(_ request: String, of caller: Caller) {
        journal.record(caller.isStranger ? "stranger's \(request)" : request)
    }

    func initialize(_ connection: Connection) { journal.record("initialize") }

    func destroy() { journal.record("destroy") }

    private func attributes(_ inode: InodeNumber, in tree: Tree) throws(Errno) -> Attributes {
        guard let node = tree.nodes[inode.rawValue] else { throw .noSuchFile }
        return Attributes(
            inode: inode,
            kind: node.kind,
            permissions: node.permissions,
            size: Int64(node.bytes.count),
            userID: 0,
            groupID: 0,
            time: node.time
        )
    }

    private func entry(_ inode: InodeNumber, in tree: inout Tree) throws(Errno) -> Entry {
        let entry = Entry(
            attributes: try attributes(inode, in: tree),
            attributesTimeout: Self.day,
            entryTimeout: Self.day
        )
        tree.nodes[inode.rawValue]?.lookups += 1
        return entry
    }

    private func answer(
        _ reply: consuming EntryReply,
        _ body: (inout Tree) throws(Errno) -> InodeNumber
    ) {
        do throws(Errno) {
            let entry = try tree.withLock { tree throws(Errno) in
                let inode = try body(&tree)
                return try self.entry(inode, in: &tree)
            }
            reply.send(entry)
        } catch {
            reply.fail(error)
        }
    }

    private func answer(
        _ reply: consuming DoneReply,
        _ body: (inout Tree) throws(Errno) -> Void
    ) {
        do throws(Errno) {
            try tree.withLock { tree throws(Errno) in try body(&tree) }
            reply.succeed()
        } catch {
            reply.fail(error)
        }
    }

    func lookup(_ name: String, in parent: InodeNumber, reply: consuming EntryReply) {
        record("lookup", of: reply.caller)
        if name == "dropped" { return }
        if name.hasPrefix("wait-") {
            let pending = PendingReply(reply)
            waitingLookups.withLock { $0.append(pending) }
            return journal.record("waiting lookup")
        }
        answer(reply) { tree throws(Errno) in try tree.child(name, of: parent) }
    }

    func forget(_ forgotten: [Forgotten]) {
        tree.withLock { tree in
            for one in forgotten { tree.nodes[one.inode.rawValue]?.lookups -= Int(one.lookups) }
        }
        journal.record("forget", times: forgotten.count)
    }

    func getattr(_ inode: InodeNumber, handle: HandleNumber?, reply: consuming AttributesReply) {
        record("getattr", of: reply.caller)
        do throws(Errno) {
            let attributes = try tree.withLock { tree throws(Errno) in
                try self.attributes(inode, in: tree)
            }
            reply.send(attributes, timeout: Self.day)
        } catch {
            reply.fail(error)
        }
    }

    func setattr(
        _ inode: InodeNumber,
        _ changes: AttributeChanges,
        handle: HandleNumber?,
        reply: consuming AttributesReply
    ) {
        tree.withLock { tree in
            if let permissions = changes.permissions {
                tree.nodes[inode.rawValue]?.permissions = permissions
            }
            if let time = changes.modificationTime {
                tree.nodes[inode.rawValue]?.time = time.resolved
            }
            if let size = changes.size { tree.nodes[inode.rawValue]?.bytes.resize(Int(size)) }
        }
        getattr(inode, handle: handle, reply: reply)
    }

    func mknod(
        _ name: String,
        in parent: InodeNumber,
        kind: FileKind,
        permissions: UInt32,
        device: UInt64,
        reply: consuming EntryReply
    ) {
        answer(reply) { tree throws(Errno) in
            try tree.make(name, in: parent, Node(kind: kind, permissions: permissions))
        }
    }

    func mkdir(
        _ name: String,
        in parent: InodeNumber,
        permissions: UInt32,
        reply: consuming EntryReply
    ) {
        answer(reply) { tree throws(Errno) in
            try tree.make(name, in: parent, Node(kind: .folder, permissions: permissions))
        }
    }

    func symlink(
        _ name: String,
        in parent: InodeNumber,
        target: String,
        reply: consuming EntryReply
    ) {
        answer(reply) { tree throws(Errno) in
            var node = Node(kind: .symbolicLink, permissions: 0o777)
            node.bytes = Array(target.utf8)
            return try tree.make(name, in: parent, node)
        }
    }

    func readlink(_ inode: InodeNumber, reply: consuming ReadlinkReply) {
        let bytes = tree.withLock { $0.nodes[inode.rawValue]?.bytes }
        guard let bytes else { return reply.fail(.noSuchFile) }
        reply.send(String(decoding: bytes, as: UTF8.self))
    }

    func unlink(_ name: String, in parent: InodeNumber, reply: consuming DoneReply) {
        answer(reply) { tree throws(Errno) in
            _ = try tree.child(name, of: parent)
            tree.nodes[parent.rawValue]?.children[name] = nil
        }
    }

    func rmdir(_ name: String, in parent: InodeNumber, reply: consuming DoneReply) {
        answer(reply) { tree throws(Errno) in
            let inode = try tree.child(name, of: parent)
            guard tree.nodes[inode.rawValue]?.children.isEmpty == true else { throw .notEmpty }
            tree.nodes[parent.rawValue]?.children[name] = nil
        }
    }

    func rename(
        _ name: String,
        in parent: InodeNumber,
        to newName: String,
        in newParent: InodeNumber,
        flags: RenameFlags,
        reply: consuming DoneReply
    ) {
        record(flags == .noReplace ? "rename noreplace" : "rename", of: reply.caller)
        answer(reply) { tree throws(Errno) in
            let moved = try tree.child(name, of: parent)
            let replaced = tree.nodes[newParent.rawValue]?.children[newName]
            switch flags {
            case .noReplace where replaced != nil: throw .fileExists
            case .exchange:
                guard let replaced else { throw .noSuchFile }
                tree.nodes[parent.rawValue]?.children[name] = replaced
            case [], .noReplace: tree.nodes[parent.rawValue]?.children[name] = nil
            default: throw .invalidArgument
            }
            tree.nodes[newParent.rawValue]?.children[newName] = moved.rawValue
        }
    }

    func open(_ inode: InodeNumber, flags: OpenFlags, reply: consuming OpenReply) {
        record("open", of: reply.caller)
        if flags.truncates { tree.withLock { $0.nodes[inode.rawValue]?.bytes = [] } }
        // The kernel interrupts only a request that a program itself waits for, which a read through
        // its cache is not (that program waits for the page and can be killed anyway).
        let isSlow = tree.withLock { $0.nodes[1]?.children["slow"] == inode.rawValue }
        reply.send(
            OpenFile(
                handle: HandleNumber(inode.rawValue),
                options: isSlow ? .directIO : .keepCache
            )
        )
    }

    func create(
        _ name: String,
        in parent: InodeNumber,
        permissions: UInt32,
        flags: OpenFlags,
        reply: consuming CreateReply
    ) {
        do throws(Errno) {
            let entry = try tree.withLock { tree throws(Errno) in
                let node = Node(kind: .file, permissions: permissions)
                return try self.entry(try tree.make(name, in: parent, node), in: &tree)
            }
            reply.send(entry, OpenFile(handle: HandleNumber(0)))
        } catch {
            reply.fail(error)
        }
    }

    func read(
        _ inode: InodeNumber,
        offset: Int64,
        handle: HandleNumber,
        reply: consuming DataReply
    ) {
        record("read", of: reply.caller)
        let (bytes, isSlow) = tree.withLock { tree in
            let bytes = tree.nodes[inode.rawValue]?.bytes ?? []
            let isSlow = ["slow", "held"].contains {
                tree.nodes[1]?.children[$0] == inode.rawValue
            }
            return (Array(bytes.dropFirst(Int(offset)).prefix(reply.limit)), isSlow)
        }
        guard isSlow else { return reply.send(bytes) }
        let journal = journal
        let pending = PendingReply(reply) { journal.record("interrupt") }
        waitingReads.withLock { $0.append(pending) }
        journal.record("waiting read")
    }

    func write(
        _ inode: InodeNumber,
        _ bytes: RawSpan,
        offset: Int64,
        handle: HandleNumber,
        reply: consuming WriteReply
    ) {
        journal.record("write")
        let copy = unsafe bytes.withUnsafeBytes { unsafe Array($0) }
        tree.withLock { tree in
            let end = Int(offset) + copy.count
            guard var node = tree.nodes[inode.rawValue] else { return }
            tree.nodes[inode.rawValue] = nil
            if node.bytes.count < end { node.bytes.resize(end) }
            node.bytes.replaceSubrange(Int(offset)..<end, with: copy)
            node.time = .now
            tree.nodes[inode.rawValue] = node
        }
        reply.send(copy.count)
    }

    func release(_ inode: InodeNumber, handle: HandleNumber, reply: consuming DoneReply) {
        journal.record("release")
        reply.succeed()
    }

    func readdirplus(
        _ inode: InodeNumber,
        offset: Int64,
        handle: HandleNumber,
        reply: consuming DirectoryPlusReply
    ) {
        record("readdirplus", of: reply.caller)
        var buffer = DirectoryPlusBuffer(for: reply)
        tree.withLock { tree in
            let children = tree.nodes[inode.rawValue]?.children.sorted { $0.value < $1.value } ?? []
            for (name, child) in children where Int64(child) > offset {
                guard
                    let attributes = try? attributes(InodeNumber(child), in: tree),
                    buffer.add(
                        name,
                        entry: Entry(
                            attributes: attributes,
                            attributesTimeout: Self.day,
                            entryTimeout: Self.day
                        ),
                        nextOffset: Int64(child)
                    )
                else { break }
            }
            for inode in buffer.lookups { tree.nodes[inode.rawValue]?.lookups += 1 }
        }
        reply.send(buffer)
    }

    func statfs(_ inode: InodeNumber, reply: consuming StatisticsReply) {
        reply.send(
            FileSystemStatistics(
                blockSize: 4096,
                blocks: 1 << 20,
                freeBlocks: 1 << 19,
                availableBlocks: 1 << 19,
                files: 0,
                freeFiles: 0,
                longestName: 255
            )
        )
    }

    func setxattr(
        _ inode: InodeNumber,
        name: String,
        value: [UInt8],
        mode: XattrMode,
        reply: consuming DoneReply
    ) {
        answer(reply) { tree throws(Errno) in
            let isThere = tree.nodes[inode.rawValue]?.xattrs[name] != nil
            if mode == .create && isThere { throw .fileExists }
            if mode == .replace && !isThere { throw .noData }
            tree.nodes[inode.rawValue]?.xattrs[name] = value
        }
    }

    func getxattr(_ inode: InodeNumber, name: String, reply: consuming XattrReply) {
        record("getxattr \(name)", of: reply.caller)
        let value = tree.withLock { $0.nodes[inode.rawValue]?.xattrs[name] }
        guard let value else { return reply.fail(.noData) }
        reply.send(value)
    }

    func listxattr(_ inode: InodeNumber, reply: consuming XattrReply) {
        let names = tree.withLock { $0.nodes[inode.rawValue]?.xattrs.keys.sorted() ?? [] }
        reply.send(names: names)
    }

    func removexattr(_ inode: InodeNumber, name: String, reply: consuming DoneReply) {
        answer(reply) { tree throws(Errno) in
            guard tree.nodes[inode.rawValue]?.xattrs.removeValue(forKey: name) != nil else {
                throw .noData
            }
        }
    }
}

extension Caller {
    /// Whether it is neither this process, nor one that it started, nor the kernel (0).
    ///
    /// A process that has ended meanwhile is taken for one of ours.
    fileprivate var isStranger: Bool {
        var process = threadID
        guard process > 0 else { return false }
        // A thread's parent is its process's.
        if unsafe access("/proc/self/task/\(process)", F_OK) == 0 { return false }
        while process > 1 {
            if process == getpid() { return false }
            // "PID (NAME) STATE PARENT ...".
            guard
                let line = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8),
                let name = line.lastIndex(of: ")")
            else { return false }
            let fields = line[name...].split(separator: " ")
            guard fields.count > 2, let parent = Int32(fields[2]) else { return false }
            process = parent
        }
        return true
    }
}

extension [UInt8] {
    /// Cuts, or fills with zeros, as `truncate` does.
    fileprivate mutating func resize(_ count: Int) {
        if count < self.count {
            removeLast(self.count - count)
        } else {
            append(contentsOf: repeatElement(0, count: count - self.count))
        }
    }
}
