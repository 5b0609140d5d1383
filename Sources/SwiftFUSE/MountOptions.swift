extension Mount {
    /// How a file system is mounted.
    public struct Options: Sendable {
        /// What `df` and `mount` show as the source.
        public var sourceName: String
        /// What `mount` shows after `fuse.` as the type.
        public var subtype: String
        /// Whether other users than the one who mounts may come in (a plain user needs
        /// `user_allow_other` in /etc/fuse.conf).
        public var allowsOtherUsers = false
        /// Whether the kernel refuses all changes.
        public var isReadOnly = false
        /// Whether the kernel checks permissions by owner and mode, so that the file system need not.
        public var checksPermissions = true
        /// Whether a folder that holds files may be mounted on (they are hidden meanwhile).
        public var coversFiles = false
        /// Whether the folder beneath the mount loses its permission to write.
        ///
        /// When the mount is gone, also with a process that died, programs then write no files into a
        /// folder that nothing looks after. A program that may write everywhere (root's) still can; a later
        /// mount by the folder's owner gives the permission back for as long as it takes.
        public var sealsFolder = false
        /// Whether libfuse starts a `fusermount3` that unmounts when this process dies in any way.
        ///
        /// It lives, with one descriptor here, until the process ends, also after an unmount; so it is
        /// for processes that mount once.
        public var unmountsAtDeath = false
        /// The most bytes of one read, a multiple of 4,096; zero leaves it to the kernel. (Readahead
        /// reads at most 128 KiB at a time, unless root raises the device's `read_ahead_kb`.)
        public var maxRead = 1 << 20
        /// The most bytes of readahead; nil takes all that the kernel offers.
        public var maxReadahead: Int?
        /// How many requests that no program waits for (readahead) the kernel may have under way.
        ///
        /// libfuse's own 12 are too few where each waits for a network.
        public var maxBackground = 64
        /// How many threads answer requests; more help only where they wait for a disk.
        public var threads = 4
        /// Whether a symbolic link's target is asked for once only.
        public var cachesSymbolicLinks = true
        /// Whether `Notifier` gets each change of content.
        ///
        /// If not, the kernel drops a file's cached bytes and a folder's cached listing whenever it sees
        /// another modification time, after its own writes, too. Another size drops them in any case.
        public var tellsEveryChange = false
        /// Whether the file system clears set-user-ID and set-group-ID bits itself, on each write and
        /// change of size or owner.
        ///
        /// Saves the kernel one request for each write.
        public var clearsPrivileges = true
        /// The namespaces of extended attributes that the file system is asked for; empty for all.
        public var xattrNamespaces = ["user"]
        /// The most pieces of news that wait for the kernel at a time.
        public var newsLimit = 65_536

        /// Options with defaults for a file system of the user's own.
        public init(sourceName: String, subtype: String) {
            self.sourceName = sourceName
            self.subtype = subtype
        }

        /// The options as libfuse's command line takes them; the first is the program's name.
        var arguments: [String] {
            var options = [
                "fsname=\(Self.escaped(sourceName))", "subtype=\(Self.escaped(subtype))",
                "max_read=\(maxRead)", "nosuid", "nodev",
            ]
            if allowsOtherUsers { options.append("allow_other") }
            if isReadOnly { options.append("ro") }
            if checksPermissions { options.append("default_permissions") }
            if unmountsAtDeath { options.append("auto_unmount") }
            return ["", "-o", options.joined(separator: ",")]
        }

        private static func escaped(_ value: String) -> String {
            value.replacing("\\", with: "\\\\").replacing(",", with: "\\,")
        }
    }
}

/// Why a mount could not be made or ended.
public enum MountError: Error, Hashable, Sendable {
    /// libfuse does not know the options; it says which on standard error.
    case invalidOptions
    /// Another live FUSE file system is mounted there.
    case alreadyMounted(path: String, source: String)
    /// The mount point is no folder.
    case notAFolder(path: String)
    /// The mount point holds files, and `Options.coversFiles` is not set.
    case notEmpty(path: String)
    /// The system refused `call`.
    case system(Errno, _ call: String, path: String)
    /// Threads of the mount are still inside the file system after the time limit.
    case stillBusy(path: String)
}

extension MountError: CustomStringConvertible {
    /// What happened, for logs and people.
    public var description: String {
        switch self {
        case .invalidOptions: "the mount options are not valid"
        case .alreadyMounted(let path, let source): "\(path) is already a mount of \(source)"
        case .notAFolder(let path): "\(path) is not a folder"
        case .notEmpty(let path): "\(path) is not empty"
        case .system(let error, let call, let path): "\(call) failed for \(path): \(error)"
        case .stillBusy(let path): "the file system at \(path) is still answering requests"
        }
    }
}
