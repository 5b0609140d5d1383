import OortFileSystem
public import OortModel
import SwiftFUSE
import Synchronization

/// What happened elsewhere, of which the kernel itself must notify programs that watch a folder.
///
/// The kernel's inotify reports only what a program does on the mount. So a helper process of ours repeats
/// there what happened, as a guest: this object answers its requests from the present state, and no
/// operation that changes anything sees them.
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

    /// Announcements for one `FileSystemMount`, before any helper runs.
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

    /// Answers this process as the helper; it must send requests from its main thread only, and not be
    /// reaped before `dismiss`.
    public func admit(_ process: Int32) { guest.withLock { $0 }?.admit(process) }

    /// Notes that the helper process has gone.
    public func dismiss() {
        guest.withLock { $0 }?.dismiss()
        announce(nil)
    }

    /// Ends all announcements.
    public func end() {
        dismiss()
        // The guest's file system keeps this object.
        guest.withLock { $0 = nil }
        state.withLock { $0.files = nil }
    }

    /// Sets what the helper does next; nil for nothing.
    public func announce(_ announced: Announced?) { state.withLock { $0.announced = announced } }

    /// The bits that mark numbers of vanished items; the catalog's numbers are far below, those of the
    /// trash and the searches above.
    private static let phantomBit: UInt64 = 1 << 60
    private static let folderBit: UInt64 = 1 << 59

    /// Whether a number is that of a vanished item.
    static func isPhantom(_ number: InodeNumber) -> Bool { number.rawValue >> 60 == 1 }

    /// Whether a vanished item was a folder.
    static func isFolder(phantom: InodeNumber) -> Bool { phantom.rawValue & folderBit != 0 }

    /// A number for a name that has vanished and that the kernel must find, so that the helper can remove
    /// it.
    func nextPhantom(isFolder: Bool) -> InodeNumber {
        state.withLock { state in
            state.phantoms = (state.phantoms + 1) % Self.folderBit
            return InodeNumber(Self.phantomBit | (isFolder ? Self.folderBit : 0) | state.phantoms)
        }
    }
}
