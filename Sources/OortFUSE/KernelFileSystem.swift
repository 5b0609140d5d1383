import Logging
import OortCatalog
import OortFileSystem
import OortModel
import SwiftFUSE

/// The kernel's requests as calls of a `FileSystem`, and its outcomes as replies.
///
/// Decides nothing. `opendir` is left to SwiftFUSE's default, so that the kernel opens and caches folders by itself.
struct KernelFileSystem<Files: FileSystem>: LowLevelFileSystem {
    let files: Files
    let answering: Answering

    // MARK: - Names

    func lookup(_ name: String, in parent: InodeNumber, reply: consuming EntryReply) {
        let outcome = files.lookup(name, in: Inode(parent))
        if case .now(.failure(.notFound)) = outcome {
            // The feed will report a name that appears, so its absence may be cached as long.
            reply.send(.absent(for: files.absenceValidity(in: Inode(parent))))
            return
        }
        answering.answer(reply, with: outcome) { $0.send(SwiftFUSE.Entry($1)) }
    }

    func forget(_ forgotten: [Forgotten]) {
        for one in forgotten { files.forget(Inode(one.inode), lookups: one.lookups) }
    }

    func mknod(
        _ name: String,
        in parent: InodeNumber,
        kind: SwiftFUSE.FileKind,
        permissions: UInt32,
        device: UInt64,
        reply: consuming EntryReply
    ) {
        guard let kind = SpecialKind(kind) else { return reply.fail(.invalidArgument) }
        let outcome = files.makeSpecial(
            name,
            kind: kind,
            in: Inode(parent),
            permissions: UInt16(permissions),
            caller: OortFileSystem.Caller(reply.caller)
        )
        answering.answer(reply, with: outcome) { $0.send(SwiftFUSE.Entry($1)) }
    }

    func mkdir(
        _ name: String,
        in parent: InodeNumber,
        permissions: UInt32,
        reply: consuming EntryReply
    ) {
        let outcome = files.makeFolder(
            name,
            in: Inode(parent),
            permissions: UInt16(permissions),
            caller: OortFileSystem.Caller(reply.caller)
        )
        answering.answer(reply, with: outcome) { $0.send(SwiftFUSE.Entry($1)) }
    }

    func symlink(
        _ name: String,
        in parent: InodeNumber,
        target: String,
        reply: consuming EntryReply
    ) {
        let outcome = files.makeLink(
            name,
            to: target,
            in: Inode(parent),
            caller: OortFileSystem.Caller(reply.caller)
        )
        answering.answer(reply, with: outcome) { $0.send(SwiftFUSE.Entry($1)) }
    }

    func link(
        _ inode: InodeNumber,
        as newName: String,
        in newParent: InodeNumber,
        reply: consuming EntryReply
    ) {
        // No service has two names for one file.
        answering.fail(reply, .notPermitted)
    }

    func unlink(_ name: String, in parent: InodeNumber, reply: consuming DoneReply) {
        answering.answer(reply, with: files.unlink(name, in: Inode(parent))) { reply, _ in
            reply.succeed()
        }
    }

    func rmdir(_ name: String, in parent: InodeNumber, reply: consuming DoneReply) {
        answering.answer(reply, with: files.removeFolder(name, in: Inode(parent))) { reply, _ in
            reply.succeed()
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
        let mode: RenameMode
        switch flags {
        case []: mode = .replace
        case .noReplace: mode = .noReplace
        case .exchange: mode = .exchange
        default: return answering.fail(reply, .invalid)
        }
        let outcome = files.rename(
            name,
            in: Inode(parent),
            to: newName,
            in: Inode(newParent),
            mode: mode
        )
        answering.answer(reply, with: outcome) { reply, _ in reply.succeed() }
    }

    func create(
        _ name: String,
        in parent: InodeNumber,
        permissions: UInt32,
        flags: OpenFlags,
        reply: consuming CreateReply
    ) {
        let outcome = files.create(
            name,
            in: Inode(parent),
            permissions: UInt16(permissions),
            caller: OortFileSystem.Caller(reply.caller),
            mode: OpenMode(flags),
            isExclusive: flags.isExclusive
        )
        answering.answer(reply, with: outcome) { [files] reply, made in
            let (entry, opened) = made
            let isTaken = reply.send(SwiftFUSE.Entry(entry), OpenFile(opened))
            if !isTaken { files.release(opened.handle) }
        }
    }

    // MARK: - Attributes

    func getattr(_ inode: InodeNumber, handle: HandleNumber?, reply: consuming AttributesReply) {
        let outcome = files.attributes(of: Inode(inode), handle: handle.map { FileHandle($0) })
        answering.answer(reply, with: outcome) { $0.send($1) }
    }

    func setattr(
        _ inode: InodeNumber,
        _ changes: AttributeChanges,
        handle: HandleNumber?,
        reply: consuming AttributesReply
    ) {
        let outcome = files.setAttributes(
            AttributeSetting(changes),
            of: Inode(inode),
            handle: handle.map { FileHandle($0) }
        )
        answering.answer(reply, with: outcome) { $0.send($1) }
    }

    func readlink(_ inode: InodeNumber, reply: consuming ReadlinkReply) {
        answering.answer(reply, with: files.readLink(Inode(inode))) { $0.send($1) }
    }

    func access(_ inode: InodeNumber, mask: Int32, reply: consuming DoneReply) {
        let writes = mask & 2
        let outcome = files.checkAccess(of: Inode(inode), writes: writes != 0)
        answering.answer(reply, with: outcome) { reply, _ in reply.succeed() }
    }

    func statfs(_ inode: InodeNumber, reply: consuming StatisticsReply) {
        answering.answer(reply, with: files.room(of: Inode(inode))) {
            $0.send(FileSystemStatistics($1))
        }
    }

    func setxattr(
        _ inode: InodeNumber,
        name: String,
        value: [UInt8],
        mode: XattrMode,
        reply: consuming DoneReply
    ) {
        let mustExist: Bool? =
            switch mode {
            case .any: nil
            case .create: false
            case .replace: true
            }
        let outcome = files.setExtendedAttribute(
            name,
            to: value,
            of: Inode(inode),
            mustExist: mustExist
        )
        answering.answer(reply, with: outcome) { reply, _ in reply.succeed() }
    }

    func getxattr(_ inode: InodeNumber, name: String, reply: consuming XattrReply) {
        answering.answer(reply, with: files.extendedAttribute(name, of: Inode(inode))) {
            $0.send($1)
        }
    }

    func listxattr(_ inode: InodeNumber, reply: consuming XattrReply) {
        answering.answer(reply, with: files.extendedAttributes(of: Inode(inode))) {
            $0.send(names: $1)
        }
    }

    func removexattr(_ inode: InodeNumber, name: String, reply: consuming DoneReply) {
        let outcome = files.removeExtendedAttribute(name, of: Inode(inode))
        answering.answer(reply, with: outcome) { reply, _ in reply.succeed() }
    }
}

extension Reply where Answer == Answers.Attributes {
    /// The attributes of an entry, for as long as it says.
    consuming func send(_ entry: OortFileSystem.Entry) {
        send(SwiftFUSE.Attributes(entry.attributes), timeout: entry.validity.attributes)
    }
}
