internal import CFUSE

/// Entries of a folder, as many as the caller has room for.
///
///     var buffer = DirectoryBuffer(for: reply)
///     while let entry = next(), buffer.add(entry.name, …, nextOffset: entry.position) {}
///     reply.send(buffer)
public struct DirectoryBuffer: Sendable {
    private var bytes: [UInt8]
    private var used = 0

    /// An empty buffer with the caller's room.
    public init(for reply: borrowing DirectoryReply) { self.init(limit: reply.limit) }

    init(limit: Int) { bytes = [UInt8](repeating: 0, count: limit) }

    /// Whether nothing was added: sent so, it says that the listing is at its end.
    public var isEmpty: Bool { used == 0 }

    /// Adds an entry; an empty buffer always takes one.
    ///
    /// - Parameters:
    ///   - name: the entry's name.
    ///   - inode: the number to show; need not be known to the kernel.
    ///   - kind: what the entry is.
    ///   - nextOffset: where `readdir` goes on after this entry: any value above zero that is still
    ///     right when other entries have come or gone meanwhile.
    /// - Returns: whether there was room; if not, send what is here.
    public mutating func add(
        _ name: String,
        inode: InodeNumber,
        kind: FileKind,
        nextOffset: Int64
    ) -> Bool {
        unsafe append { buffer, room in
            var stat = stat()
            stat.st_ino = UInt(inode.rawValue)
            stat.st_mode = kind.rawValue
            return unsafe fuse_add_direntry(nil, buffer, room, name, &stat, Int(nextOffset))
        }
    }

    fileprivate mutating func append(_ add: (UnsafeMutablePointer<CChar>?, Int) -> Int) -> Bool {
        let room = bytes.count - used
        let needed = unsafe bytes.withUnsafeMutableBytes { bytes in
            let free = unsafe bytes.baseAddress?.advanced(by: used)
            return unsafe add(free?.assumingMemoryBound(to: CChar.self), room)
        }
        guard needed <= room else { return false }
        used += needed
        return true
    }

    fileprivate func reply(to raw: fuse_req_t) -> CInt {
        unsafe SwiftFUSE.reply(raw, with: bytes.span.bytes.extracting(first: used))
    }
}

/// Entries of a folder with their attributes, as many as the caller has room for.
public struct DirectoryPlusBuffer: Sendable {
    private var buffer: DirectoryBuffer
    /// The files whose lookup count each rises by one when the buffer is sent and taken, in order:
    /// all that were added with `add(_:entry:nextOffset:)`.
    public private(set) var lookups: [InodeNumber] = []

    /// An empty buffer with the caller's room.
    public init(for reply: borrowing DirectoryPlusReply) {
        buffer = DirectoryBuffer(limit: reply.limit)
    }

    /// Whether nothing was added: sent so, it says that the listing is at its end.
    public var isEmpty: Bool { buffer.isEmpty }

    /// Adds an entry that the kernel is to know: raises its lookup count by one.
    ///
    /// - Returns: whether there was room; if not, nothing was added.
    public mutating func add(_ name: String, entry: Entry, nextOffset: Int64) -> Bool {
        let added = unsafe buffer.append { buffer, room in
            var parameters = entry.parameters
            return unsafe fuse_add_direntry_plus(
                nil,
                buffer,
                room,
                name,
                &parameters,
                Int(nextOffset)
            )
        }
        if added, let inode = entry.inode { lookups.append(inode) }
        return added
    }

    /// Adds an entry that is only listed, `.` and `..` among them: no lookup count rises.
    ///
    /// - Returns: whether there was room; if not, nothing was added.
    public mutating func add(
        _ name: String,
        inode: InodeNumber,
        kind: FileKind,
        nextOffset: Int64
    ) -> Bool {
        unsafe buffer.append { buffer, room in
            // For the kernel, number 0 in the entry means "attributes are not given"; the number that
            // readdir shows is in the attributes.
            var parameters = fuse_entry_param()
            parameters.attr.st_ino = UInt(inode.rawValue)
            parameters.attr.st_mode = kind.rawValue
            return unsafe fuse_add_direntry_plus(
                nil,
                buffer,
                room,
                name,
                &parameters,
                Int(nextOffset)
            )
        }
    }

    fileprivate func reply(to raw: fuse_req_t) -> CInt { unsafe buffer.reply(to: raw) }
}

extension Reply where Answer == Answers.Directory {
    /// The entries; an empty buffer ends the listing.
    public consuming func send(_ buffer: DirectoryBuffer) {
        unsafe request.answer { raw in unsafe buffer.reply(to: raw) }
    }
}

extension Reply where Answer == Answers.DirectoryPlus {
    /// The entries; an empty buffer ends the listing.
    ///
    /// Raises the lookup counts of `buffer.lookups`, if the kernel took the answer.
    ///
    /// - Returns: whether the kernel took it.
    @discardableResult
    public consuming func send(_ buffer: DirectoryPlusBuffer) -> Bool {
        unsafe request.answer { raw in unsafe buffer.reply(to: raw) }
    }
}
