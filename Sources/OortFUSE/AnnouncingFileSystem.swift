import Glibc
import OortFileSystem
import OortModel
import SwiftFUSE
import Synchronization

/// Answers all operations of the helper process, so that none reaches the files, of which it can only look
/// up names and attributes.
struct AnnouncingFileSystem: LowLevelFileSystem {
    let announcements: Announcements

    private var announced: Announcements.Announced? {
        announcements.state.withLock { $0.announced }
    }

    private var files: (any FileSystem)? { announcements.state.withLock { $0.files } }

    /// The item that has a name; nil where there is none, or only the service could say.
    private func entry(_ name: String, in parent: InodeNumber) -> OortFileSystem.Entry? {
        guard case .now(.success(let entry)) = files?.lookup(name, in: Inode(parent)) else {
            return nil
        }
        return entry
    }

    /// Whether a name is certainly free.
    private func isAbsent(_ name: String, in parent: InodeNumber) -> Bool {
        guard case .now(.failure(.notFound)) = files?.lookup(name, in: Inode(parent)) else {
            return false
        }
        return true
    }

    private func came(_ name: String, in parent: InodeNumber) -> Bool {
        guard case .came(let expected, let folder) = announced else { return false }
        return folder == Inode(parent) && expected.isSameText(as: name)
    }

    private func went(_ name: String, from parent: InodeNumber) -> (isFolder: Bool, Void)? {
        guard case .went(let expected, let folder, let isFolder) = announced,
            folder == Inode(parent), expected.isSameText(as: name), isAbsent(name, in: parent)
        else { return nil }
        return (isFolder, ())
    }

    /// A vanished item, to be removed.
    private func phantom(isFolder: Bool) -> SwiftFUSE.Entry {
        SwiftFUSE.Entry(
            attributes: Self.attributes(ofPhantom: announcements.nextPhantom(isFolder: isFolder)),
            attributesTimeout: .zero,
            entryTimeout: .zero
        )
    }

    private static func attributes(ofPhantom number: InodeNumber) -> SwiftFUSE.Attributes {
        let isFolder = Announcements.isFolder(phantom: number)
        return SwiftFUSE.Attributes(
            inode: number,
            kind: isFolder ? .folder : .file,
            permissions: isFolder ? 0o700 : 0o600,
            userID: getuid(),
            groupID: getgid(),
            time: AttributeChanges.Time.now.resolved
        )
    }

    // MARK: - What it may ask

    func lookup(_ name: String, in parent: InodeNumber, reply: consuming EntryReply) {
        if parent == .root, name == announcements.sign {
            reply.send(phantom(isFolder: false))
        } else if came(name, in: parent) {
            // Otherwise the kernel would refuse to create it.
            reply.send(.absent(for: .zero))
        } else if let (isFolder, _) = went(name, from: parent) {
            reply.send(phantom(isFolder: isFolder))
        } else if let entry = entry(name, in: parent) {
            reply.send(SwiftFUSE.Entry(entry))
        } else {
            reply.fail(.noSuchFile)
        }
    }

    func getattr(_ inode: InodeNumber, handle: HandleNumber?, reply: consuming AttributesReply) {
        if Announcements.isPhantom(inode) {
            return reply.send(Self.attributes(ofPhantom: inode), timeout: .zero)
        }
        guard case .now(.success(let entry)) = files?.attributes(of: Inode(inode), handle: nil)
        else {
            return reply.fail(.noSuchFile)
        }
        reply.send(entry)
    }

    // MARK: - What has happened already

    private func made(
        _ name: String,
        in parent: InodeNumber,
        _ kind: SwiftFUSE.FileKind,
        _ reply: consuming EntryReply
    ) {
        guard came(name, in: parent), let entry = entry(name, in: parent),
            SwiftFUSE.FileKind(entry.attributes.kind) == kind
        else { return reply.fail(.notPermitted) }
        reply.send(SwiftFUSE.Entry(entry))
    }

    func mknod(
        _ name: String,
        in parent: InodeNumber,
        kind: SwiftFUSE.FileKind,
        permissions: UInt32,
        device: UInt64,
        reply: consuming EntryReply
    ) { made(name, in: parent, kind, reply) }

    func mkdir(
        _ name: String,
        in parent: InodeNumber,
        permissions: UInt32,
        reply: consuming EntryReply
    ) { made(name, in: parent, .folder, reply) }

    func symlink(
        _ name: String,
        in parent: InodeNumber,
        target: String,
        reply: consuming EntryReply
    ) { made(name, in: parent, .symbolicLink, reply) }

    func unlink(_ name: String, in parent: InodeNumber, reply: consuming DoneReply) {
        guard went(name, from: parent) != nil else { return reply.fail(.notPermitted) }
        reply.succeed()
    }

    func rmdir(_ name: String, in parent: InodeNumber, reply: consuming DoneReply) {
        guard went(name, from: parent) != nil else { return reply.fail(.notPermitted) }
        reply.succeed()
    }

    func setattr(
        _ inode: InodeNumber,
        _ changes: AttributeChanges,
        handle: HandleNumber?,
        reply: consuming AttributesReply
    ) {
        // The attributes stay as they are.
        guard case .changed(Inode(inode)) = announced,
            case .now(.success(let entry)) = files?.attributes(of: Inode(inode), handle: nil)
        else { return reply.fail(.notPermitted) }
        reply.send(entry)
    }
}
