// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation
// Each method is documented at the requirement whose default it is.

extension LowLevelFileSystem {
    public func initialize(_ connection: Connection) {}

    public func destroy() {}

    public func lookup(_ name: String, in parent: InodeNumber, reply: consuming EntryReply) {
        reply.fail(.notImplemented)
    }

    public func forget(_ forgotten: [Forgotten]) {}

    public func getattr(
        _ inode: InodeNumber,
        handle: HandleNumber?,
        reply: consuming AttributesReply
    ) { reply.fail(.notImplemented) }

    public func setattr(
        _ inode: InodeNumber,
        _ changes: AttributeChanges,
        handle: HandleNumber?,
        reply: consuming AttributesReply
    ) { reply.fail(.notImplemented) }

    public func readlink(_ inode: InodeNumber, reply: consuming ReadlinkReply) {
        reply.fail(.notImplemented)
    }

    public func mknod(
        _ name: String,
        in parent: InodeNumber,
        kind: FileKind,
        permissions: UInt32,
        device: UInt64,
        reply: consuming EntryReply
    ) { reply.fail(.notImplemented) }

    public func mkdir(
        _ name: String,
        in parent: InodeNumber,
        permissions: UInt32,
        reply: consuming EntryReply
    ) { reply.fail(.notImplemented) }

    public func unlink(_ name: String, in parent: InodeNumber, reply: consuming DoneReply) {
        reply.fail(.notImplemented)
    }

    public func rmdir(_ name: String, in parent: InodeNumber, reply: consuming DoneReply) {
        reply.fail(.notImplemented)
    }

    public func symlink(
        _ name: String,
        in parent: InodeNumber,
        target: String,
        reply: consuming EntryReply
    ) { reply.fail(.notImplemented) }

    public func rename(
        _ name: String,
        in parent: InodeNumber,
        to newName: String,
        in newParent: InodeNumber,
        flags: RenameFlags,
        reply: consuming DoneReply
    ) { reply.fail(.notImplemented) }

    public func link(
        _ inode: InodeNumber,
        as newName: String,
        in newParent: InodeNumber,
        reply: consuming EntryReply
    ) { reply.fail(.notImplemented) }

    public func open(_ inode: InodeNumber, flags: OpenFlags, reply: consuming OpenReply) {
        reply.fail(.notImplemented)
    }

    public func read(
        _ inode: InodeNumber,
        offset: Int64,
        handle: HandleNumber,
        reply: consuming DataReply
    ) { reply.fail(.notImplemented) }

    public func write(
        _ inode: InodeNumber,
        _ bytes: RawSpan,
        offset: Int64,
        handle: HandleNumber,
        reply: consuming WriteReply
    ) { reply.fail(.notImplemented) }

    public func flush(_ inode: InodeNumber, handle: HandleNumber, reply: consuming DoneReply) {
        reply.fail(.notImplemented)
    }

    public func release(_ inode: InodeNumber, handle: HandleNumber, reply: consuming DoneReply) {
        reply.fail(.notImplemented)
    }

    public func fsync(
        _ inode: InodeNumber,
        dataOnly: Bool,
        handle: HandleNumber,
        reply: consuming DoneReply
    ) { reply.fail(.notImplemented) }

    public func opendir(_ inode: InodeNumber, flags: OpenFlags, reply: consuming OpenReply) {
        reply.fail(.notImplemented)
    }

    public func readdir(
        _ inode: InodeNumber,
        offset: Int64,
        handle: HandleNumber,
        reply: consuming DirectoryReply
    ) { reply.fail(.notImplemented) }

    public func readdirplus(
        _ inode: InodeNumber,
        offset: Int64,
        handle: HandleNumber,
        reply: consuming DirectoryPlusReply
    ) { reply.fail(.notImplemented) }

    public func releasedir(
        _ inode: InodeNumber,
        handle: HandleNumber,
        reply: consuming DoneReply
    ) { reply.fail(.notImplemented) }

    public func fsyncdir(
        _ inode: InodeNumber,
        dataOnly: Bool,
        handle: HandleNumber,
        reply: consuming DoneReply
    ) { reply.fail(.notImplemented) }

    public func statfs(_ inode: InodeNumber, reply: consuming StatisticsReply) {
        reply.fail(.notImplemented)
    }

    public func setxattr(
        _ inode: InodeNumber,
        name: String,
        value: [UInt8],
        mode: XattrMode,
        reply: consuming DoneReply
    ) { reply.fail(.notImplemented) }

    public func getxattr(_ inode: InodeNumber, name: String, reply: consuming XattrReply) {
        reply.fail(.notImplemented)
    }

    public func listxattr(_ inode: InodeNumber, reply: consuming XattrReply) {
        reply.fail(.notImplemented)
    }

    public func removexattr(_ inode: InodeNumber, name: String, reply: consuming DoneReply) {
        reply.fail(.notImplemented)
    }

    public func access(_ inode: InodeNumber, mask: Int32, reply: consuming DoneReply) {
        reply.fail(.notImplemented)
    }

    public func create(
        _ name: String,
        in parent: InodeNumber,
        permissions: UInt32,
        flags: OpenFlags,
        reply: consuming CreateReply
    ) { reply.fail(.notImplemented) }

    public func fallocate(
        _ inode: InodeNumber,
        mode: Int32,
        offset: Int64,
        length: Int64,
        handle: HandleNumber,
        reply: consuming DoneReply
    ) { reply.fail(.notImplemented) }

    public func copyFileRange(
        from source: InodeNumber,
        offset sourceOffset: Int64,
        handle sourceHandle: HandleNumber,
        to target: InodeNumber,
        offset targetOffset: Int64,
        handle targetHandle: HandleNumber,
        length: Int,
        reply: consuming WriteReply
    ) { reply.fail(.notImplemented) }

    public func lseek(
        _ inode: InodeNumber,
        offset: Int64,
        to target: SeekTarget,
        handle: HandleNumber,
        reply: consuming SeekReply
    ) { reply.fail(.notImplemented) }
}
