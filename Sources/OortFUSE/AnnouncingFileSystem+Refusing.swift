import SwiftFUSE

/// Operations that the helper never uses; ENOSYS, the default, would make the kernel stop sending them for
/// everybody.
extension AnnouncingFileSystem {
    func readlink(_ inode: InodeNumber, reply: consuming ReadlinkReply) {
        reply.fail(.notPermitted)
    }

    func rename(
        _ name: String,
        in parent: InodeNumber,
        to newName: String,
        in newParent: InodeNumber,
        flags: RenameFlags,
        reply: consuming DoneReply
    ) { reply.fail(.notPermitted) }

    func link(
        _ inode: InodeNumber,
        as newName: String,
        in newParent: InodeNumber,
        reply: consuming EntryReply
    ) { reply.fail(.notPermitted) }

    func open(_ inode: InodeNumber, flags: OpenFlags, reply: consuming OpenReply) {
        reply.fail(.notPermitted)
    }

    func read(
        _ inode: InodeNumber,
        offset: Int64,
        handle: HandleNumber,
        reply: consuming DataReply
    ) { reply.fail(.notPermitted) }

    func write(
        _ inode: InodeNumber,
        _ bytes: RawSpan,
        offset: Int64,
        handle: HandleNumber,
        reply: consuming WriteReply
    ) { reply.fail(.notPermitted) }

    func flush(_ inode: InodeNumber, handle: HandleNumber, reply: consuming DoneReply) {
        reply.fail(.notPermitted)
    }

    func release(_ inode: InodeNumber, handle: HandleNumber, reply: consuming DoneReply) {
        reply.fail(.notPermitted)
    }

    func fsync(
        _ inode: InodeNumber,
        dataOnly: Bool,
        handle: HandleNumber,
        reply: consuming DoneReply
    ) { reply.fail(.notPermitted) }

    func opendir(_ inode: InodeNumber, flags: OpenFlags, reply: consuming OpenReply) {
        reply.fail(.notPermitted)
    }

    func readdir(
        _ inode: InodeNumber,
        offset: Int64,
        handle: HandleNumber,
        reply: consuming DirectoryReply
    ) { reply.fail(.notPermitted) }

    func readdirplus(
        _ inode: InodeNumber,
        offset: Int64,
        handle: HandleNumber,
        reply: consuming DirectoryPlusReply
    ) { reply.fail(.notPermitted) }

    func releasedir(
        _ inode: InodeNumber,
        handle: HandleNumber,
        reply: consuming DoneReply
    ) { reply.fail(.notPermitted) }

    func fsyncdir(
        _ inode: InodeNumber,
        dataOnly: Bool,
        handle: HandleNumber,
        reply: consuming DoneReply
    ) { reply.fail(.notPermitted) }

    func statfs(_ inode: InodeNumber, reply: consuming StatisticsReply) {
        reply.fail(.notPermitted)
    }

    func setxattr(
        _ inode: InodeNumber,
        name: String,
        value: [UInt8],
        mode: XattrMode,
        reply: consuming DoneReply
    ) { reply.fail(.notPermitted) }

    func getxattr(_ inode: InodeNumber, name: String, reply: consuming XattrReply) {
        reply.fail(.notPermitted)
    }

    func listxattr(_ inode: InodeNumber, reply: consuming XattrReply) {
        reply.fail(.notPermitted)
    }

    func removexattr(_ inode: InodeNumber, name: String, reply: consuming DoneReply) {
        reply.fail(.notPermitted)
    }

    func access(_ inode: InodeNumber, mask: Int32, reply: consuming DoneReply) {
        reply.fail(.notPermitted)
    }

    func create(
        _ name: String,
        in parent: InodeNumber,
        permissions: UInt32,
        flags: OpenFlags,
        reply: consuming CreateReply
    ) { reply.fail(.notPermitted) }

    func fallocate(
        _ inode: InodeNumber,
        mode: Int32,
        offset: Int64,
        length: Int64,
        handle: HandleNumber,
        reply: consuming DoneReply
    ) { reply.fail(.notPermitted) }

    func copyFileRange(
        from source: InodeNumber,
        offset sourceOffset: Int64,
        handle sourceHandle: HandleNumber,
        to target: InodeNumber,
        offset targetOffset: Int64,
        handle targetHandle: HandleNumber,
        length: Int,
        reply: consuming WriteReply
    ) { reply.fail(.notPermitted) }

    func lseek(
        _ inode: InodeNumber,
        offset: Int64,
        to target: SeekTarget,
        handle: HandleNumber,
        reply: consuming SeekReply
    ) { reply.fail(.notPermitted) }
}
