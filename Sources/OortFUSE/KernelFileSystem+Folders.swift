import OortFileSystem
import OortModel
import SwiftFUSE

/// Where a listing goes on, as the kernel keeps it: `.` and `..` come before the entries, whose
/// cookies are therefore moved by two.
struct ListingOffset {
    /// Before `.`.
    static let start: Int64 = 0
    /// After `.`.
    static let afterFolder: Int64 = 1
    /// After `..`, before the first entry.
    static let afterParent: Int64 = 2

    /// The cookie after which an offset goes on.
    static func cookie(_ offset: Int64) -> UInt64 { UInt64(max(0, offset - afterParent)) }

    /// The offset after the entry of this cookie.
    static func offset(_ cookie: UInt64) -> Int64 {
        Int64(clamping: cookie).addingReportingOverflow(afterParent).partialValue
    }
}

extension KernelFileSystem {
    /// A guess of an entry's room with its attributes: 152 bytes and a name.
    private static var bytesPerEntry: Int { 176 }

    func readdirplus(
        _ inode: InodeNumber,
        offset: Int64,
        handle: HandleNumber,
        reply: consuming DirectoryPlusReply
    ) {
        if offset == ListingOffset.start {
            files.listingBegins(Inode(inode), thread: reply.caller.threadID)
        }
        var buffer = DirectoryPlusBuffer(for: reply)
        addDots(of: inode, from: offset) {
            buffer.add($0, inode: $1, kind: .folder, nextOffset: $2)
        }
        let outcome = files.list(
            Inode(inode),
            after: ListingOffset.cookie(offset),
            limit: max(1, reply.limit / Self.bytesPerEntry)
        )
        let begun = buffer
        answering.answer(reply, with: outcome) { reply, entries in
            var buffer = begun
            for entry in entries {
                let isAdded = buffer.add(
                    entry.name,
                    entry: SwiftFUSE.Entry(entry.entry),
                    nextOffset: ListingOffset.offset(entry.cookie)
                )
                guard isAdded else { break }
            }
            reply.send(buffer)
        }
    }

    func fsyncdir(
        _ inode: InodeNumber,
        dataOnly: Bool,
        handle: HandleNumber,
        reply: consuming DoneReply
    ) {
        answering.answer(reply, with: files.synchroniseFolder(Inode(inode))) { reply, _ in
            reply.succeed()
        }
    }

    /// Adds what of `.` and `..` comes after an offset; no lookup count rises.
    private func addDots(
        of folder: InodeNumber,
        from offset: Int64,
        add: (String, InodeNumber, Int64) -> Bool
    ) {
        if offset <= ListingOffset.start { _ = add(".", folder, ListingOffset.afterFolder) }
        guard offset <= ListingOffset.afterFolder else { return }
        // A parent that is not at hand is not worth waiting for: the kernel itself knows it.
        let parent =
            if case .now(.success(let parent)) = files.parent(of: Inode(folder)) {
                InodeNumber(parent)
            } else { folder }
        _ = add("..", parent, ListingOffset.afterParent)
    }
}
