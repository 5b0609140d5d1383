internal import CFUSE
import Glibc
import Synchronization

/// Owns libfuse's session, and lives until the last request is answered.
@safe
final class SessionCore: Sendable {
    // Libfuse guards what it points to with locks of its own, and it is freed in deinit;
    // nonisolated(unsafe) because it is set in init only.
    private nonisolated(unsafe) var session: OpaquePointer?
    let fileSystem: any LowLevelFileSystem
    let notifier: Notifier
    /// The thread that another file system answers; nil for none.
    let guest: Guest?
    private let options: Mount.Options
    private let hasSentInit = Atomic(false)
    private let mustEnd = Atomic(false)
    /// The prefixes of extended attributes' names that the file system wants to see.
    private let xattrPrefixes: [[UInt8]]

    /// - Throws: `.invalidOptions` when libfuse does not take the options (it says why on stderr).
    init(
        _ fileSystem: any LowLevelFileSystem,
        options: Mount.Options,
        notifier: Notifier,
        guest: Guest? = nil
    ) throws(MountError) {
        self.fileSystem = fileSystem
        self.guest = guest
        self.options = options
        self.notifier = notifier
        xattrPrefixes = options.xattrNamespaces.map { Array($0.utf8) + [UInt8(ascii: ".")] }
        unsafe session = nil

        var arguments = unsafe fuse_args()
        defer { unsafe fuse_opt_free_args(&arguments) }
        for argument in options.arguments { unsafe fuse_opt_add_arg(&arguments, argument) }
        var table = makeOperationTable()
        // Unretained: each request in flight and the mount itself keep this object.
        unsafe session = fuse_session_new(
            &arguments,
            &table,
            MemoryLayout<fuse_lowlevel_ops>.size,
            Unmanaged.passUnretained(self).toOpaque()
        )
        guard unsafe session != nil else { throw .invalidOptions }
    }

    deinit {
        if let session = unsafe session { unsafe fuse_session_destroy(session) }
    }

    static func of(_ raw: fuse_req_t?) -> SessionCore {
        unsafe of(userData: fuse_req_userdata(raw))
    }

    static func of(userData: UnsafeMutableRawPointer?) -> SessionCore {
        guard let userData = unsafe userData else {
            preconditionFailure("libfuse has lost the session's user data")
        }
        return unsafe Unmanaged<SessionCore>.fromOpaque(userData).takeUnretainedValue()
    }

    // MARK: - Mounting

    func mount(at path: String) throws(MountError) {
        errno = 0
        guard unsafe fuse_session_mount(session, path) == 0 else {
            throw .system(errno == 0 ? .notPermitted : .current, "mount", path: path)
        }
        var hooks = unsafe fuse_custom_io(
            writev: { descriptor, parts, count, core in
                unsafe SessionCore.of(userData: core).completeInit(parts, count)
                return unsafe writev(descriptor, parts, count)
            },
            read: { descriptor, buffer, size, _ in unsafe read(descriptor, buffer, size) },
            splice_receive: { from, fromOffset, to, toOffset, size, flags, _ in
                unsafe swiftfuse_splice(from, fromOffset, to, toOffset, size, flags)
            },
            splice_send: { from, fromOffset, to, toOffset, size, flags, _ in
                unsafe swiftfuse_splice(from, fromOffset, to, toOffset, size, flags)
            }
        )
        let result = unsafe fuse_session_custom_io(session, &hooks, fuse_session_fd(session))
        guard result == 0 else {
            throw .system(Errno(rawValue: -result), "fuse_session_custom_io", path: path)
        }
    }

    /// Sets what libfuse 3.14 leaves out of its answer to FUSE_INIT, the first of all answers.
    ///
    /// Without PARALLEL_DIROPS the kernel lets one lookup at a time into a folder; without
    /// HANDLE_KILLPRIV_V2 it asks for `security.capability` before each write. A kernel that does not
    /// know a bit ignores it. Layout: `struct fuse_out_header` and `struct fuse_init_out` of
    /// linux/fuse.h.
    private func completeInit(_ parts: UnsafeMutablePointer<iovec>?, _ count: CInt) {
        guard !hasSentInit.load(ordering: .relaxed) else { return }
        hasSentInit.store(true, ordering: .relaxed)
        guard count == 2, let parts = unsafe parts, unsafe parts[1].iov_len >= 64,
            let answer = unsafe parts[1].iov_base
        else { return }
        let flagsOffset = 12
        var flags = unsafe answer.load(fromByteOffset: flagsOffset, as: UInt32.self)
        flags |= 1 << 18
        if options.clearsPrivileges { flags |= 1 << 28 }
        unsafe answer.storeBytes(of: flags, toByteOffset: flagsOffset, as: UInt32.self)
    }

    func initialize(_ connection: inout fuse_conn_info) {
        func want(_ capability: Int32, _ isWanted: Bool) {
            let bit = UInt32(bitPattern: capability)
            guard connection.capable & bit != 0 else { return }
            if isWanted { connection.want |= bit } else { connection.want &= ~bit }
        }
        want(FUSE_CAP_ASYNC_READ, true)
        want(FUSE_CAP_ATOMIC_O_TRUNC, true)
        want(FUSE_CAP_READDIRPLUS, true)
        want(FUSE_CAP_READDIRPLUS_AUTO, false)
        want(FUSE_CAP_PARALLEL_DIROPS, true)
        want(FUSE_CAP_SPLICE_WRITE, true)
        want(FUSE_CAP_SPLICE_MOVE, true)
        want(FUSE_CAP_CACHE_SYMLINKS, options.cachesSymbolicLinks)
        want(FUSE_CAP_AUTO_INVAL_DATA, !options.tellsEveryChange)
        // With this, if the kernel asked for a file's size before it is notified of the change, the file
        // would show its old bytes and zeros.
        want(FUSE_CAP_EXPLICIT_INVAL_DATA, false)
        want(FUSE_CAP_HANDLE_KILLPRIV, options.clearsPrivileges)
        want(FUSE_CAP_WRITEBACK_CACHE, false)
        want(FUSE_CAP_EXPORT_SUPPORT, false)
        want(FUSE_CAP_POSIX_ACL, false)
        want(FUSE_CAP_POSIX_LOCKS, false)
        want(FUSE_CAP_FLOCK_LOCKS, false)
        connection.max_write = UInt32(Self.largestRequest)
        connection.max_read = UInt32(options.maxRead)
        if let readahead = options.maxReadahead { connection.max_readahead = UInt32(readahead) }
        connection.max_background = UInt32(options.maxBackground)
        connection.congestion_threshold = UInt32(options.maxBackground * 3 / 4)
        fileSystem.initialize(
            Connection(
                protocolVersion: (connection.proto_major, connection.proto_minor),
                largestWrite: Int(connection.max_write),
                notifier: notifier
            )
        )
    }

    /// An extended attribute's name; nil if the file system does not want to see its namespace.
    func xattrName(_ name: UnsafePointer<CChar>?) -> String? {
        guard let name = unsafe name else { return nil }
        let bytes = unsafe UnsafeRawBufferPointer(start: name, count: strlen(name))
        guard
            xattrPrefixes.isEmpty
                || xattrPrefixes.contains(where: { unsafe bytes.starts(with: $0) })
        else { return nil }
        return unsafe String(validatingCString: name)
    }

    // MARK: - Running

    /// Serves requests on this thread until the mount is gone or `end` was called.
    func serve() {
        FUSEThread.enter()
        var buffer = unsafe fuse_buf()
        defer { unsafe free(buffer.mem) }
        while !mustEnd.load(ordering: .relaxed) {
            let size = unsafe fuse_session_receive_buf(session, &buffer)
            if size == -EINTR || size == -EAGAIN { continue }
            guard size > 0 else { break }
            unsafe fuse_session_process_buf(session, &buffer)
        }
    }

    /// Has all threads leave `serve` when they next come out of the kernel.
    func end() { mustEnd.store(true, ordering: .relaxed) }

    /// Lets go of the device: what the kernel still waits for fails with ENOTCONN.
    ///
    /// The descriptor's number stays taken, by /dev/null, until the session is freed: a late answer goes
    /// nowhere instead of into another file.
    func disconnect() {
        let descriptor = unsafe fuse_session_fd(session)
        let null = unsafe open("/dev/null", O_RDWR | O_CLOEXEC)
        guard null >= 0 else { return }
        swiftfuse_dup3(null, descriptor, O_CLOEXEC)
        close(null)
    }

    /// Bytes of data in a request at most.
    static let largestRequest = 1 << 20

    /// The device's descriptor.
    var device: CInt { unsafe fuse_session_fd(session) }

    /// Passes one piece of news to the kernel; on the teller's thread, but for attributes.
    func tell(_ news: News) -> Errno? {
        let result: CInt
        switch news {
        case .content(let inode, let offset, let length):
            result = unsafe fuse_lowlevel_notify_inval_inode(
                session,
                inode.rawValue,
                Int(offset),
                Int(length)
            )
        case .attributes(let inode):
            result = unsafe fuse_lowlevel_notify_inval_inode(session, inode.rawValue, -1, 0)
        case .name(let name, let parent):
            result = unsafe fuse_lowlevel_notify_inval_entry(
                session,
                parent.rawValue,
                name,
                name.utf8.count
            )
        case .expired(let name, let parent):
            let expiry = unsafe fuse_lowlevel_notify_expire_entry(
                session,
                parent.rawValue,
                name,
                name.utf8.count,
                FUSE_LL_EXPIRE_ONLY
            )
            guard expiry == -ENOSYS else {
                result = expiry
                break
            }
            result = unsafe fuse_lowlevel_notify_inval_entry(
                session,
                parent.rawValue,
                name,
                name.utf8.count
            )
        case .removed(let name, let parent, let inode):
            result = unsafe fuse_lowlevel_notify_delete(
                session,
                parent.rawValue,
                inode.rawValue,
                name,
                name.utf8.count
            )
        }
        return result == 0 ? nil : Errno(rawValue: -result)
    }
}

extension Request {
    /// Ends a request that has no answer.
    consuming func answerNothing() {
        unsafe answer { raw in
            unsafe fuse_reply_none(raw)
            return 0
        }
    }
}

/// Marks the threads that a mount owns, which are gone when it is.
enum FUSEThread {
    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        unsafe pthread_key_create(&key, nil)
        return key
    }()

    static func enter() { unsafe pthread_setspecific(key, UnsafeRawPointer(bitPattern: 1)) }

    static var isCurrent: Bool { unsafe pthread_getspecific(key) != nil }
}
