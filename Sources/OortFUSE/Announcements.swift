import OortFileSystem
public import OortModel
import SwiftFUSE
import Synchronization

/// What has happened elsewhere and is to be told by the kernel itself to whoever watches a folder.
///
/// The kernel tells inotify of what a program does on the mount. So a helper process of ours does
/// there what has happened, as its guest: what it asks is answered by this object, from what is so
/// already, and reaches no operation that changes anything.
public final class Announcements: Sendable {
    /// Something that has happened.
    public enum Announced: Hashable, Sendable {
        /// A name came to a folder.
        case came(String, in: Inode)
        /// A name went from a folder.
        case went(String, from: Inode, isFolder: Bool)
        /// A file's content is another.
        case changed(Inode)
    }

    struct State {
        var files: (any FileSystem)?
        var announced: Announced?
        var phantoms: UInt64 = 0
    }

    /// A name in the mount's top folder that only the guest finds there.
    public let sign: String
    let state = Mutex(State())
    private let guest = Mutex<Guest?>(nil)

    /// Announcements for one `FileSystemMount`, which nobody makes yet.
    ///
    /// - Parameter sign: a name that nobody else can guess.
    public init(sign: String) { self.sign = sign }

    /// The guest of a mount that shows these files.
    func guest(of files: any FileSystem) -> Guest {
        state.withLock { $0.files = files }
        let new = Guest(AnnouncingFileSystem(announcements: self))
        guest.withLock { $0 = new }
        return new
    }

    /// Has a process be answered as the one that announces; it must ask from its main thread only, and
    /// not be reaped before `dismiss`.
    public func admit(_ process: Int32) { guest.withLock { $0 }?.admit(process) }

    /// There is no such process any longer.
    public func dismiss() {
        guest.withLock { $0 }?.dismiss()
        announce(nil)
    }

    /// Nothing is announced from now on.
    public func end() {
        dismiss()
        // The guest's file system keeps this object.
        guest.withLock { $0 = nil }
        state.withLock { $0.files = nil }
    }

    /// What the process does next; nil for nothing.
    public func announce(_ announced: Announced?) { state.withLock { $0.announced = announced } }

    /// The bits of numbers of what is not there; the catalog's numbers are far below, those of the
    /// trash and the searches above.
    private static let phantomBit: UInt64 = 1 << 60
    private static let folderBit: UInt64 = 1 << 59

    /// Whether a number is that of something that is not there.
    static func isPhantom(_ number: InodeNumber) -> Bool { number.rawValue >> 60 == 1 }

    /// Whether what is not there was a folder.
    static func isFolder(phantom: InodeNumber) -> Bool { phantom.rawValue & folderBit != 0 }

    /// A number for a name that is not there any longer and that the kernel must find to take away.
    func nextPhantom(isFolder: Bool) -> InodeNumber {
        state.withLock { state in
            state.phantoms = (state.phantoms + 1) % Self.folderBit
            return InodeNumber(Self.phantomBit | (isFolder ? Self.folderBit : 0) | state.phantoms)
        }
    }
}
