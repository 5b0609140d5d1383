internal import CFUSE
import Glibc

// The table is built in free functions, which belong to no actor: a C callback written inside a
// `@main static func main()` would belong to the main actor and trap on a FUSE thread.

/// The callbacks that libfuse calls, each of which turns its arguments into Swift values.
///
/// flock, getlk and setlk are left out so that the kernel keeps locks itself; ioctl, poll and bmap
/// have no Swift form; without write_buf, libfuse reads requests into memory and not into a pipe: two
/// system calls less for each lookup, and bytes that `write` can be given without another copy. What
/// splicing from the pipe to a file would save a write was not measured.
func makeOperationTable() -> fuse_lowlevel_ops {
    var table = fuse_lowlevel_ops()
    unsafe table.`init` = { core, connection in
        guard let connection = unsafe connection else { return }
        unsafe SessionCore.of(userData: core).initialize(&connection.pointee)
    }
    addNameOperations(to: &table)
    addAttributeOperations(to: &table)
    addFileOperations(to: &table)
    addFolderOperations(to: &table)
    addXattrOperations(to: &table)
    return table
}

private func addNameOperations(to table: inout fuse_lowlevel_ops) {
    unsafe table.lookup = { raw, parent, name in
        let request = unsafe Request(raw)
        guard let name = unsafe text(name) else { return request.fail(.noSuchFile) }
        let fileSystem = request.fileSystem
        fileSystem.lookup(name, in: InodeNumber(parent), reply: EntryReply(request))
    }
    unsafe table.forget = { raw, inode, lookups in
        let request = unsafe Request(raw)
        request.core.fileSystem.forget([Forgotten(inode: InodeNumber(inode), lookups: lookups)])
        request.answerNothing()
    }
    unsafe table.forget_multi = { raw, count, forgotten in
        let request = unsafe Request(raw)
        let list = unsafe UnsafeBufferPointer(start: forgotten, count: count)
        request.core.fileSystem.forget(
            unsafe list.map { Forgotten(inode: InodeNumber($0.ino), lookups: $0.nlookup) }
        )
        request.answerNothing()
    }
    unsafe table.mknod = { raw, parent, name, mode, device in
        let request = unsafe Request(raw)
        guard let name = unsafe text(name) else { return request.fail(.invalidText) }
        let fileSystem = request.fileSystem
        // No kind in the mode means a regular file (man 2 mknod).
        fileSystem.mknod(
            name,
            in: InodeNumber(parent),
            kind: FileKind(mode: mode) ?? .file,
            permissions: mode & 0o7777,
            device: UInt64(device),
            reply: EntryReply(request)
        )
    }
    unsafe table.mkdir = { raw, parent, name, mode in
        let request = unsafe Request(raw)
        guard let name = unsafe text(name) else { return request.fail(.invalidText) }
        let fileSystem = request.fileSystem
        fileSystem.mkdir(
            name,
            in: InodeNumber(parent),
            permissions: mode & 0o7777,
            reply: EntryReply(request)
        )
    }
    unsafe table.unlink = { raw, parent, name in
        let request = unsafe Request(raw)
        guard let name = unsafe text(name) else { return request.fail(.noSuchFile) }
        let fileSystem = request.fileSystem
        fileSystem.unlink(name, in: InodeNumber(parent), reply: DoneReply(request))
    }
    unsafe table.rmdir = { raw, parent, name in
        let request = unsafe Request(raw)
        guard let name = unsafe text(name) else { return request.fail(.noSuchFile) }
        let fileSystem = request.fileSystem
        fileSystem.rmdir(name, in: InodeNumber(parent), reply: DoneReply(request))
    }
    unsafe table.symlink = { raw, target, parent, name in
        let request = unsafe Request(raw)
        guard let name = unsafe text(name), let target = unsafe text(target) else {
            return request.fail(.invalidText)
        }
        let fileSystem = request.fileSystem
        fileSystem.symlink(
            name,
            in: InodeNumber(parent),
            target: target,
            reply: EntryReply(request)
        )
    }
    unsafe table.rename = { raw, parent, name, newParent, newName, flags in
        let request = unsafe Request(raw)
        guard let name = unsafe text(name) else { return request.fail(.noSuchFile) }
        guard let newName = unsafe text(newName) else { return request.fail(.invalidText) }
        let fileSystem = request.fileSystem
        fileSystem.rename(
            name,
            in: InodeNumber(parent),
            to: newName,
            in: InodeNumber(newParent),
            flags: RenameFlags(rawValue: flags),
            reply: DoneReply(request)
        )
    }
    unsafe table.link = { raw, inode, newParent, newName in
        let request = unsafe Request(raw)
        guard let newName = unsafe text(newName) else { return request.fail(.invalidText) }
        let fileSystem = request.fileSystem
        fileSystem.link(
            InodeNumber(inode),
            as: newName,
            in: InodeNumber(newParent),
            reply: EntryReply(request)
        )
    }
    unsafe table.create = { raw, parent, name, mode, info in
        let request = unsafe Request(raw)
        guard let name = unsafe text(name) else { return request.fail(.invalidText) }
        let fileSystem = request.fileSystem
        fileSystem.create(
            name,
            in: InodeNumber(parent),
            permissions: mode & 0o7777,
            flags: unsafe flags(info),
            reply: CreateReply(request)
        )
    }
}

private func addAttributeOperations(to table: inout fuse_lowlevel_ops) {
    unsafe table.getattr = { raw, inode, info in
        let request = unsafe Request(raw)
        let fileSystem = request.fileSystem
        let handle = unsafe info.map { unsafe HandleNumber($0.pointee.fh) }
        fileSystem.getattr(InodeNumber(inode), handle: handle, reply: AttributesReply(request))
    }
    unsafe table.setattr = { raw, inode, stat, bits, info in
        let request = unsafe Request(raw)
        guard let stat = unsafe stat else { return request.fail(.invalidArgument) }
        let fileSystem = request.fileSystem
        let handle = unsafe info.map { unsafe HandleNumber($0.pointee.fh) }
        fileSystem.setattr(
            InodeNumber(inode),
            AttributeChanges(unsafe stat.pointee, bits: bits),
            handle: handle,
            reply: AttributesReply(request)
        )
    }
    unsafe table.readlink = { raw, inode in
        let request = unsafe Request(raw)
        let fileSystem = request.fileSystem
        fileSystem.readlink(InodeNumber(inode), reply: ReadlinkReply(request))
    }
    unsafe table.access = { raw, inode, mask in
        let request = unsafe Request(raw)
        let fileSystem = request.fileSystem
        fileSystem.access(InodeNumber(inode), mask: mask, reply: DoneReply(request))
    }
    unsafe table.statfs = { raw, inode in
        let request = unsafe Request(raw)
        let fileSystem = request.fileSystem
        fileSystem.statfs(InodeNumber(inode), reply: StatisticsReply(request))
    }
}

private func addFileOperations(to table: inout fuse_lowlevel_ops) {
    unsafe table.open = { raw, inode, info in
        let request = unsafe Request(raw)
        let fileSystem = request.fileSystem
        fileSystem.open(
            InodeNumber(inode),
            flags: unsafe flags(info),
            reply: OpenReply(request)
        )
    }
    unsafe table.read = { raw, inode, size, offset, info in
        let request = unsafe Request(raw)
        let fileSystem = request.fileSystem
        fileSystem.read(
            InodeNumber(inode),
            offset: Int64(offset),
            handle: unsafe handle(info),
            reply: DataReply(request, limit: size)
        )
    }
    unsafe table.write = { raw, inode, bytes, size, offset, info in
        let request = unsafe Request(raw)
        let fileSystem = request.fileSystem
        let buffer = unsafe UnsafeRawBufferPointer(start: bytes, count: size)
        fileSystem.write(
            InodeNumber(inode),
            unsafe buffer.bytes,
            offset: Int64(offset),
            handle: unsafe handle(info),
            reply: WriteReply(request)
        )
    }
    unsafe table.flush = { raw, inode, info in
        let request = unsafe Request(raw)
        let fileSystem = request.fileSystem
        fileSystem.flush(
            InodeNumber(inode),
            handle: unsafe handle(info),
            reply: DoneReply(request)
        )
    }
    unsafe table.release = { raw, inode, info in
        let request = unsafe Request(raw)
        let fileSystem = request.fileSystem
        fileSystem.release(
            InodeNumber(inode),
            handle: unsafe handle(info),
            reply: DoneReply(request)
        )
    }
    unsafe table.fsync = { raw, inode, dataOnly, info in
        let request = unsafe Request(raw)
        let fileSystem = request.fileSystem
        fileSystem.fsync(
            InodeNumber(inode),
            dataOnly: dataOnly != 0,
            handle: unsafe handle(info),
            reply: DoneReply(request)
        )
    }
    unsafe table.fallocate = { raw, inode, mode, offset, length, info in
        let request = unsafe Request(raw)
        let fileSystem = request.fileSystem
        fileSystem.fallocate(
            InodeNumber(inode),
            mode: mode,
            offset: Int64(offset),
            length: Int64(length),
            handle: unsafe handle(info),
            reply: DoneReply(request)
        )
    }
    unsafe table.copy_file_range = {
        raw,
        source,
        sourceOffset,
        sourceInfo,
        target,
        targetOffset,
        targetInfo,
        length,
        flags in
        let request = unsafe Request(raw)
        guard flags == 0 else { return request.fail(.invalidArgument) }
        let fileSystem = request.fileSystem
        fileSystem.copyFileRange(
            from: InodeNumber(source),
            offset: Int64(sourceOffset),
            handle: unsafe handle(sourceInfo),
            to: InodeNumber(target),
            offset: Int64(targetOffset),
            handle: unsafe handle(targetInfo),
            length: length,
            reply: WriteReply(request)
        )
    }
    unsafe table.lseek = { raw, inode, offset, whence, info in
        let request = unsafe Request(raw)
        let target: SeekTarget
        switch whence {
        case seekData: target = .data
        case seekHole: target = .hole
        default: return request.fail(.invalidArgument)
        }
        let fileSystem = request.fileSystem
        fileSystem.lseek(
            InodeNumber(inode),
            offset: Int64(offset),
            to: target,
            handle: unsafe handle(info),
            reply: SeekReply(request)
        )
    }
}

private func addFolderOperations(to table: inout fuse_lowlevel_ops) {
    unsafe table.opendir = { raw, inode, info in
        let request = unsafe Request(raw)
        let fileSystem = request.fileSystem
        fileSystem.opendir(
            InodeNumber(inode),
            flags: unsafe flags(info),
            reply: OpenReply(request)
        )
    }
    unsafe table.readdir = { raw, inode, size, offset, info in
        let request = unsafe Request(raw)
        let fileSystem = request.fileSystem
        fileSystem.readdir(
            InodeNumber(inode),
            offset: Int64(offset),
            handle: unsafe handle(info),
            reply: DirectoryReply(request, limit: size)
        )
    }
    unsafe table.readdirplus = { raw, inode, size, offset, info in
        let request = unsafe Request(raw)
        let fileSystem = request.fileSystem
        fileSystem.readdirplus(
            InodeNumber(inode),
            offset: Int64(offset),
            handle: unsafe handle(info),
            reply: DirectoryPlusReply(request, limit: size)
        )
    }
    unsafe table.releasedir = { raw, inode, info in
        let request = unsafe Request(raw)
        let fileSystem = request.fileSystem
        fileSystem.releasedir(
            InodeNumber(inode),
            handle: unsafe handle(info),
            reply: DoneReply(request)
        )
    }
    unsafe table.fsyncdir = { raw, inode, dataOnly, info in
        let request = unsafe Request(raw)
        let fileSystem = request.fileSystem
        fileSystem.fsyncdir(
            InodeNumber(inode),
            dataOnly: dataOnly != 0,
            handle: unsafe handle(info),
            reply: DoneReply(request)
        )
    }
}

private func addXattrOperations(to table: inout fuse_lowlevel_ops) {
    unsafe table.setxattr = { raw, inode, name, value, size, flags in
        let request = unsafe Request(raw)
        guard let name = unsafe request.core.xattrName(name) else {
            return request.fail(.notSupported)
        }
        let mode: XattrMode
        switch flags {
        case 0: mode = .any
        case 1: mode = .create
        case 2: mode = .replace
        default: return request.fail(.invalidArgument)
        }
        let fileSystem = request.fileSystem
        fileSystem.setxattr(
            InodeNumber(inode),
            name: name,
            value: unsafe Array(UnsafeRawBufferPointer(start: value, count: size)),
            mode: mode,
            reply: DoneReply(request)
        )
    }
    unsafe table.getxattr = { raw, inode, name, size in
        let request = unsafe Request(raw)
        guard let name = unsafe request.core.xattrName(name) else {
            return request.fail(.notSupported)
        }
        let fileSystem = request.fileSystem
        fileSystem.getxattr(
            InodeNumber(inode),
            name: name,
            reply: XattrReply(request, limit: size)
        )
    }
    unsafe table.listxattr = { raw, inode, size in
        let request = unsafe Request(raw)
        let fileSystem = request.fileSystem
        fileSystem.listxattr(InodeNumber(inode), reply: XattrReply(request, limit: size))
    }
    unsafe table.removexattr = { raw, inode, name in
        let request = unsafe Request(raw)
        guard let name = unsafe request.core.xattrName(name) else {
            return request.fail(.notSupported)
        }
        let fileSystem = request.fileSystem
        fileSystem.removexattr(InodeNumber(inode), name: name, reply: DoneReply(request))
    }
}

/// SEEK_DATA and SEEK_HOLE of linux/fs.h, which the Glibc module does not show.
private let seekData: Int32 = 3
private let seekHole: Int32 = 4

/// A name as Swift text; nil if it is not valid UTF-8.
private func text(_ name: UnsafePointer<CChar>?) -> String? {
    guard let name = unsafe name else { return nil }
    return unsafe String(validatingCString: name)
}

private func handle(_ info: UnsafeMutablePointer<fuse_file_info>?) -> HandleNumber {
    HandleNumber(unsafe info?.pointee.fh ?? 0)
}

private func flags(_ info: UnsafeMutablePointer<fuse_file_info>?) -> OpenFlags {
    OpenFlags(rawValue: unsafe info?.pointee.flags ?? 0)
}
