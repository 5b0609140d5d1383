import OortFileSystem
import OortModel
import SwiftFUSE

// Translates OortFileSystem's values to the kernel's, and back. Both modules name them by the same words of
// the field, hence the modules' names before them.

extension SwiftFUSE.Attributes {
    init(_ attributes: FileAttributes) {
        self.init(
            inode: InodeNumber(attributes.inode),
            kind: SwiftFUSE.FileKind(attributes.kind),
            permissions: UInt32(attributes.mode),
            size: attributes.size,
            userID: attributes.owner,
            groupID: attributes.group,
            time: FileTime(attributes.modified)
        )
        blocks = attributes.blocks
        linkCount = attributes.linkCount
        accessTime = FileTime(attributes.accessed)
        changeTime = FileTime(attributes.changed)
    }
}

extension SwiftFUSE.Entry {
    init(_ entry: OortFileSystem.Entry) {
        self.init(
            attributes: SwiftFUSE.Attributes(entry.attributes),
            generation: entry.generation,
            attributesTimeout: entry.validity.attributes,
            entryTimeout: entry.validity.entry
        )
    }
}

extension SwiftFUSE.FileKind {
    init(_ kind: OortFileSystem.FileKind) {
        switch kind {
        case .folder: self = .folder
        case .file: self = .file
        case .symlink: self = .symbolicLink
        case .fifo: self = .pipe
        case .socket: self = .socket
        }
    }
}

extension SpecialKind {
    /// Nil for a kind that has an operation of its own.
    init?(_ kind: SwiftFUSE.FileKind) {
        switch kind {
        case .file: self = .file
        case .pipe: self = .fifo
        case .socket: self = .socket
        case .blockDevice, .characterDevice: self = .device
        case .folder, .symbolicLink: return nil
        }
    }
}

extension AttributeSetting {
    init(_ changes: AttributeChanges) {
        self.init()
        mode = changes.permissions.map { UInt16(truncatingIfNeeded: $0) }
        owner = changes.userID
        group = changes.groupID
        size = changes.size
        modified = changes.modificationTime.map { Time($0) }
        accessed = changes.accessTime.map { Time($0) }
    }
}

extension AttributeSetting.Time {
    init(_ time: AttributeChanges.Time) {
        switch time {
        case .now: self = .now
        case .at(let time): self = .at(Timestamp(time))
        }
    }
}

extension OpenMode {
    init(_ flags: OpenFlags) {
        self.init(
            reads: flags.mayRead,
            writes: flags.mayWrite,
            truncates: flags.truncates,
            appends: flags.appends
        )
        bypassesCache = flags.bypassesCache
    }
}

extension OpenFile {
    init(_ opened: Opened) {
        var options: Options = []
        if opened.keepsCache { options.insert(.keepCache) }
        if opened.isDirect { options.insert(.directIO) }
        self.init(handle: HandleNumber(opened.handle.rawValue), options: options)
    }
}

extension FileSystemStatistics {
    init(_ room: FileSystemRoom) {
        let blockSize: Int64 = 4096
        let free = UInt64(max(0, room.free) / blockSize)
        self.init(
            blockSize: UInt64(blockSize),
            blocks: UInt64(max(0, room.total) / blockSize),
            freeBlocks: free,
            availableBlocks: free,
            files: 0,
            freeFiles: 0,
            longestName: UInt64(max(0, room.longestName))
        )
    }
}

extension FileTime {
    init(_ time: Timestamp) {
        self.init(seconds: time.seconds, nanoseconds: Int64(time.nanoseconds))
    }
}

extension Timestamp {
    init(_ time: FileTime) {
        self.init(seconds: time.seconds, nanoseconds: Int32(clamping: time.nanoseconds))
    }
}

extension InodeNumber {
    init(_ inode: Inode) { self.init(inode.rawValue) }
}

extension Inode {
    init(_ number: InodeNumber) { self.init(number.rawValue) }
}

extension FileHandle {
    init(_ number: HandleNumber) { self.init(number.rawValue) }
}

extension OortFileSystem.Caller {
    init(_ caller: SwiftFUSE.Caller) { self.init(owner: caller.userID, group: caller.groupID) }
}
