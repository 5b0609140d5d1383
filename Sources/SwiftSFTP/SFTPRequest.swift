/// What a session can ask of its server: the requests of version 3 and OpenSSH's extensions.
public enum SFTPRequest: Hashable, Sendable {
    /// How a file is opened.
    public struct OpenFlags: OptionSet, Hashable, Sendable {
        /// The flags as they are sent.
        public let rawValue: UInt32

        /// Flags as they are sent.
        public init(rawValue: UInt32) { self.rawValue = rawValue }

        /// To be read.
        public static let read = OpenFlags(rawValue: 1)
        /// To be written.
        public static let write = OpenFlags(rawValue: 2)
        /// Made where it is missing.
        public static let create = OpenFlags(rawValue: 8)
        /// Cut to no bytes.
        public static let truncate = OpenFlags(rawValue: 0x10)
        /// Refused where it exists; with `create`.
        public static let exclusive = OpenFlags(rawValue: 0x20)
    }

    /// Opens a file; a handle is the answer.
    case open(SFTPPath, OpenFlags, SFTPAttributes)
    /// Ends a handle.
    case close(SFTPHandle)
    /// Reads at most so many bytes; fewer are no sign of the end.
    case read(SFTPHandle, at: UInt64, count: UInt32)
    /// Writes bytes at an offset.
    case write(SFTPHandle, at: UInt64, [UInt8])
    /// Attributes of a path, of a link those of the link itself.
    case attributesOfLink(SFTPPath)
    /// Attributes of a path, of a link those of its target.
    case attributesOfTarget(SFTPPath)
    /// Attributes of an open file.
    case attributesOfHandle(SFTPHandle)
    /// Sets attributes of a path, of a link those of its target.
    case setAttributes(SFTPPath, SFTPAttributes)
    /// Sets attributes of an open file.
    case setAttributesOfHandle(SFTPHandle, SFTPAttributes)
    /// Sets attributes of a link itself; an extension.
    case setAttributesOfLink(SFTPPath, SFTPAttributes)
    /// Opens a folder to list it.
    case openFolder(SFTPPath)
    /// The next entries of a folder.
    case readFolder(SFTPHandle)
    /// Removes what is no folder.
    case remove(SFTPPath)
    /// Makes a folder.
    case makeFolder(SFTPPath, SFTPAttributes)
    /// Removes an empty folder.
    case removeFolder(SFTPPath)
    /// The absolute path of a path.
    case realPath(SFTPPath)
    /// The target of a link.
    case readLink(SFTPPath)
    /// Renames; most servers refuse when the new path exists, some replace it.
    case rename(SFTPPath, to: SFTPPath)
    /// Makes a symbolic link.
    case makeLink(SFTPPath, target: SFTPPath)
    /// Renames and replaces in one step what has the new path, as rename(2) does; an extension.
    case replace(SFTPPath, with: SFTPPath)
    /// Waits until an open file is on the server's disk; an extension.
    case synchronize(SFTPHandle)
    /// What the file system of a path holds; an extension.
    case fileSystem(SFTPPath)
    /// Copies bytes between two open files at the server; a count of 0 goes to the end; an extension.
    case copy(SFTPHandle, from: UInt64, count: UInt64, to: SFTPHandle, at: UInt64)
    /// What the server takes in one request; an extension.
    case limits

    /// The extension that the request needs; nil for version 3 itself.
    var requiredExtension: SFTPExtension? {
        switch self {
        case .setAttributesOfLink: .setAttributesOfLink
        case .replace: .posixRename
        case .synchronize: .fsync
        case .fileSystem: .statvfs
        case .copy: .copyData
        case .limits: .limits
        default: nil
        }
    }

    /// The packet, its length included.
    func packet(id: UInt32) -> [UInt8] {
        var body = PacketWriter()
        body.put(type)
        body.put(id)
        if let name = requiredExtension?.name { body.put(text: name) }
        write(to: &body)
        var packet = PacketWriter()
        packet.put(string: body.bytes)
        return packet.bytes
    }

    /// What a request does to the handles that the server keeps.
    enum HandleUse: Hashable {
        case opensFile
        case opensFolder
        case closes

        var opens: Bool { self != .closes }
    }

    /// What the request does to the handles; nil for nothing.
    var handleUse: HandleUse? {
        switch self {
        case .open: .opensFile
        case .openFolder: .opensFolder
        case .close: .closes
        default: nil
        }
    }

    /// Whether the server may say nothing for as long as it copies or writes to its disk.
    var mayTakeLong: Bool {
        switch self {
        case .copy, .synchronize: true
        default: false
        }
    }

    private var type: UInt8 {
        switch self {
        case .open: 3
        case .close: 4
        case .read: 5
        case .write: 6
        case .attributesOfLink: 7
        case .attributesOfHandle: 8
        case .setAttributes: 9
        case .setAttributesOfHandle: 10
        case .openFolder: 11
        case .readFolder: 12
        case .remove: 13
        case .makeFolder: 14
        case .removeFolder: 15
        case .realPath: 16
        case .attributesOfTarget: 17
        case .rename: 18
        case .readLink: 19
        case .makeLink: 20
        case .setAttributesOfLink, .replace, .synchronize, .fileSystem, .copy, .limits: 200
        }
    }

    private func write(to packet: inout PacketWriter) {
        switch self {
        case .open(let path, let flags, let attributes):
            packet.put(string: path.bytes)
            packet.put(flags.rawValue)
            attributes.write(to: &packet)
        case .read(let handle, let offset, let count):
            packet.put(string: handle.bytes)
            packet.put(offset)
            packet.put(count)
        case .write(let handle, let offset, let bytes):
            packet.put(string: handle.bytes)
            packet.put(offset)
            packet.put(string: bytes)
        case .close(let handle), .attributesOfHandle(let handle), .readFolder(let handle),
            .synchronize(let handle):
            packet.put(string: handle.bytes)
        case .attributesOfLink(let path), .attributesOfTarget(let path), .openFolder(let path),
            .remove(let path), .removeFolder(let path), .realPath(let path), .readLink(let path),
            .fileSystem(let path):
            packet.put(string: path.bytes)
        case .setAttributes(let path, let attributes), .makeFolder(let path, let attributes),
            .setAttributesOfLink(let path, let attributes):
            packet.put(string: path.bytes)
            attributes.write(to: &packet)
        case .setAttributesOfHandle(let handle, let attributes):
            packet.put(string: handle.bytes)
            attributes.write(to: &packet)
        case .rename(let old, let new):
            packet.put(string: old.bytes)
            packet.put(string: new.bytes)
        case .makeLink(let path, let target):
            // OpenSSH and all that follow it have the target first, unlike the draft.
            packet.put(string: target.bytes)
            packet.put(string: path.bytes)
        case .replace(let replaced, let replacement):
            packet.put(string: replacement.bytes)
            packet.put(string: replaced.bytes)
        case .copy(let source, let sourceOffset, let count, let target, let targetOffset):
            packet.put(string: source.bytes)
            packet.put(sourceOffset)
            packet.put(count)
            packet.put(string: target.bytes)
            packet.put(targetOffset)
        case .limits: break
        }
    }
}
