/// Attributes of a file as version 3 has them; any of them may be absent.
public struct SFTPAttributes: Hashable, Sendable {
    private enum Flag {
        static let size: UInt32 = 1
        static let owner: UInt32 = 2
        static let permissions: UInt32 = 4
        static let times: UInt32 = 8
        static let extended: UInt32 = 0x8000_0000
    }

    /// The user and the group that own a file, by number.
    public struct Owner: Hashable, Sendable {
        /// The user's number.
        public var user: UInt32
        /// The group's number.
        public var group: UInt32

        /// A user and a group.
        public init(user: UInt32, group: UInt32) {
            self.user = user
            self.group = group
        }
    }

    /// When a file was last read and last modified; the protocol sends both or none.
    public struct Times: Hashable, Sendable {
        /// When it was last read, in seconds since 1970 up to the year 2106.
        public var accessed: UInt32
        /// When it was last modified, in seconds since 1970 up to the year 2106.
        public var modified: UInt32

        /// A pair of times.
        public init(accessed: UInt32, modified: UInt32) {
            self.accessed = accessed
            self.modified = modified
        }
    }

    /// What kind of file it is.
    public enum Kind: Hashable, Sendable {
        /// A regular file.
        case file
        /// A folder.
        case folder
        /// A symbolic link.
        case link
        /// A device, a pipe, a socket; opening one may block the server.
        case special
    }

    /// Bytes of content.
    public var size: UInt64?
    /// Who owns it.
    public var owner: Owner?
    /// `st_mode`: type and permission bits.
    public var mode: UInt32?
    /// When it was last read and modified.
    public var times: Times?

    /// Attributes of which none is known or is to be set.
    public init() {}

    /// The kind by the mode's type bits; nil where the server sent none.
    public var kind: Kind? {
        guard let mode else { return nil }
        switch mode & 0o170000 {
        case 0o100000: return .file
        case 0o040000: return .folder
        case 0o120000: return .link
        case 0: return nil
        default: return .special
        }
    }

    func write(to packet: inout PacketWriter) {
        var flags: UInt32 = 0
        if size != nil { flags |= Flag.size }
        if owner != nil { flags |= Flag.owner }
        if mode != nil { flags |= Flag.permissions }
        if times != nil { flags |= Flag.times }
        packet.put(flags)
        if let size { packet.put(size) }
        if let owner {
            packet.put(owner.user)
            packet.put(owner.group)
        }
        if let mode { packet.put(mode) }
        if let times {
            packet.put(times.accessed)
            packet.put(times.modified)
        }
    }

    init(from packet: inout PacketReader) throws(SFTPError) {
        let flags = try packet.number()
        if flags & Flag.size != 0 { size = try packet.longNumber() }
        if flags & Flag.owner != 0 {
            owner = Owner(user: try packet.number(), group: try packet.number())
        }
        if flags & Flag.permissions != 0 { mode = try packet.number() }
        if flags & Flag.times != 0 {
            times = Times(accessed: try packet.number(), modified: try packet.number())
        }
        if flags & Flag.extended != 0 {
            for _ in 0..<(try packet.number()) {
                _ = try packet.string()
                _ = try packet.string()
            }
        }
    }
}

/// An entry of a folder.
public struct SFTPEntry: Hashable, Sendable {
    /// The entry's name; the bytes have no slash and are neither `.` nor `..`.
    public var name: SFTPPath
    /// Its attributes, of a link those of the link itself.
    public var attributes: SFTPAttributes
}
