public import Logging
public import OortFileSystem
public import SwiftFUSE

/// A `FileSystem`, mounted.
public final class FileSystemMount: Sendable {
    /// How to mount.
    public struct Settings: Sendable {
        /// Whether the kernel refuses all changes.
        public var isReadOnly = false
        /// Whether other users may come in.
        public var allowsOtherUsers = false
        /// Whether a helper unmounts when this process dies in any way.
        public var unmountsAtDeath = true

        /// The defaults: writable, for the user alone, unmounted at death.
        public init() {}

        var options: Mount.Options {
            var options = Mount.Options(sourceName: "oort", subtype: "oort")
            options.isReadOnly = isReadOnly
            options.allowsOtherUsers = allowsOtherUsers
            options.unmountsAtDeath = unmountsAtDeath
            options.sealsFolder = true
            // The catalog reports each change that the feeds bring.
            options.tellsEveryChange = true
            // The path to a shortcut's target changes when the target moves, while the shortcut does not.
            options.cachesSymbolicLinks = false
            return options
        }
    }

    /// Notifies the kernel of what the feeds changed.
    public let notifier: KernelNotifier
    private let mount: Mount

    /// Where it is mounted, without symbolic links.
    public var path: String { mount.path }
    /// The folder beside the mount point with what programs wrote at that place in the moment of mounting;
    /// nil where they wrote nothing.
    public var foundBeneath: String? { mount.foundBeneath }

    /// Mounts a file system and starts serving it; blocks for the system.
    ///
    /// `notifier` gets each change already, so that nothing is missed that the kernel asks for in its first
    /// moment. `announcements` are those that the kernel passes on to programs that watch.
    ///
    /// - Throws: `MountError`; nothing is then mounted.
    public init(
        _ files: some FileSystem,
        at path: String,
        settings: Settings,
        notifier: KernelNotifier = KernelNotifier(),
        announcements: Announcements? = nil,
        log: Logger
    ) throws(MountError) {
        self.notifier = notifier
        mount = try Mount(
            KernelFileSystem(files: files, answering: Answering(log: log)),
            at: path,
            options: settings.options,
            guest: announcements?.guest(of: files),
            willServe: { notifier.connect($0) }
        )
    }

    /// Returns when it is no longer served: after `unmount`, or when it was unmounted otherwise.
    ///
    /// - Throws: `MountError` if threads had to be left behind.
    public func end() async throws(MountError) { try await mount.end() }

    /// Unmounts; programs that have files open may go on for `limit`.
    ///
    /// - Throws: `MountError` if the system does not unmount, or if threads had to be left behind.
    public func unmount(within limit: Duration) async throws(MountError) {
        try await mount.unmount(within: limit)
    }
}
