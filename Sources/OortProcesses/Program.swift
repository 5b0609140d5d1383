import CLinux
public import Foundation
public import SystemPackage

/// A program to be started, and all that it gets from this process.
///
/// Descriptors that are not named here do not reach it, nor do signals that this process blocks or ignores.
/// Not Foundation's `Process` (6.3), which
/// - looks for the highest open descriptor by copying 256 bytes of each name in `/proc/self/fd`, where the
///   kernel wrote a few: with many open files past the end of the memory, which ends the whole process;
/// - takes the closing of an inherited descriptor for the end of a program, which `ssh` closes at once;
/// - hands on the signals that a task's thread blocks, SIGTERM among them.
public struct Program: Sendable {
    /// Where a standard stream leads.
    public enum Stream: Sendable {
        /// Reading ends at once, and what is written is gone.
        case nothing
        /// This process's descriptor, which stays open here.
        case descriptor(FileDescriptor)
        /// A file that is appended to, made with mode 0600.
        case file(String)
        /// Where standard output leads; for errors.
        case output
    }

    /// Which other processes a signal for all of a group, or a terminal, takes the program with.
    public enum Grouping: Sendable {
        /// Those of this process.
        case shared
        /// Only what the program starts itself, on the terminal of this process.
        case group
        /// Only what the program starts itself, without a terminal.
        case session
    }

    /// The file of the program; a name without a slash is looked up by this process's `PATH`.
    public var path: String
    /// What the program is known as (`argv[0]`); nil for `path`.
    public var name: String?
    /// What follows its name.
    public var arguments: [String]
    /// All variables that it has.
    public var environment: [String: String]
    /// The folder in which it begins; nil for this process's.
    public var folder: String?
    /// Its standard streams.
    public var input = Stream.nothing, output = Stream.nothing, errors = Stream.nothing
    /// Further descriptors: this process's, by the number that the program knows them by (3 and above).
    public var descriptors: [Int32: FileDescriptor] = [:]
    /// What gets signals with it.
    public var grouping: Grouping

    /// A program without input and output.
    public init(
        _ path: String,
        _ arguments: [String] = [],
        environment: [String: String] = ProcessInfo.processInfo.environment,
        grouping: Grouping = .group
    ) {
        self.path = path
        self.arguments = arguments
        self.environment = environment
        self.grouping = grouping
    }

    /// The place of a program by `PATH`; nil where it is not installed.
    public static func find(_ name: String, _ environment: [String: String]) -> String? {
        (environment["PATH"] ?? "/usr/bin:/bin").split(separator: ":")
            .map { "\($0)/\(name)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// Starts the program, which the caller has to wait for.
    ///
    /// - Returns: its number, which stays its own until it is waited for.
    /// - Throws: the system's reason: there is no such program or folder, no memory, too many processes.
    public func spawn() throws(Errno) -> Int32 {
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        if let folder { unsafe oort_spawn_in(&actions, folder) }
        // What is handed on lies above all numbers that it is to have, so that no copy hits another one.
        let highest = max(2, descriptors.keys.max() ?? 2)
        var copies: [FileDescriptor] = []
        defer { for copy in copies { try? copy.close() } }
        var handed = descriptors
        for (number, stream) in [(Int32(0), input), (1, output), (2, errors)] {
            switch stream {
            case .descriptor(let descriptor): handed[number] = descriptor
            case .nothing:
                unsafe posix_spawn_file_actions_addopen(&actions, number, "/dev/null", O_RDWR, 0)
            case .file(let path):
                let flags = O_WRONLY | O_CREAT | O_APPEND
                unsafe posix_spawn_file_actions_addopen(&actions, number, path, flags, 0o600)
            case .output: break
            }
        }
        for (number, descriptor) in handed {
            let copy = fcntl(descriptor.rawValue, F_DUPFD_CLOEXEC, highest + 1)
            guard copy >= 0 else { throw Errno(rawValue: errno) }
            copies.append(FileDescriptor(rawValue: copy))
            unsafe posix_spawn_file_actions_adddup2(&actions, copy, number)
        }
        if case .output = errors { unsafe posix_spawn_file_actions_adddup2(&actions, 1, 2) }
        for number in 3..<max(3, highest) where handed[number] == nil {
            unsafe posix_spawn_file_actions_addclose(&actions, number)
        }
        unsafe oort_spawn_closing_from(&actions, highest + 1)
        return try unsafe start(&actions)
    }

    private func start(_ actions: inout posix_spawn_file_actions_t) throws(Errno) -> Int32 {
        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var flags = Int32(POSIX_SPAWN_SETSIGMASK) | Int32(POSIX_SPAWN_SETSIGDEF)
        switch grouping {
        case .shared: break
        case .group: flags |= Int32(POSIX_SPAWN_SETPGROUP)
        case .session: flags |= 0x80  // POSIX_SPAWN_SETSID, which Glibc's module does not show
        }
        unsafe posix_spawnattr_setflags(&attributes, Int16(flags))
        var none = sigset_t()
        unsafe sigemptyset(&none)
        unsafe posix_spawnattr_setsigmask(&attributes, &none)
        var all = sigset_t()
        unsafe sigfillset(&all)
        unsafe posix_spawnattr_setsigdefault(&attributes, &all)

        var number: Int32 = 0
        let code = unsafe Self.withCStrings([name ?? path] + arguments) { words in
            unsafe Self.withCStrings(environment.map { "\($0)=\($1)" }) { variables in
                unsafe posix_spawnp(&number, path, &actions, &attributes, words, variables)
            }
        }
        guard code == 0 else { throw Errno(rawValue: code) }
        return number
    }

    /// Calls `body` with the texts as C has them: an array of pointers that ends with a null one.
    private static func withCStrings<Result>(
        _ texts: [String],
        _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
    ) -> Result {
        var pointers = unsafe texts.map { unsafe strdup($0) }
        unsafe pointers.append(nil)
        defer { unsafe pointers.forEach { unsafe free($0) } }
        return unsafe body(pointers)
    }

    /// Waits until a program that `spawn` started has ended, and gives its number back.
    ///
    /// Blocks the thread.
    @discardableResult
    public static func reap(_ number: Int32) -> ProgramEnd {
        var status: Int32 = 0
        while unsafe waitpid(number, &status, 0) < 0 {
            guard errno == EINTR else { return .signal(0) }
        }
        return ProgramEnd(status)
    }
}

/// How a program ended.
public enum ProgramEnd: Hashable, Sendable {
    /// By itself, with this status (0 to 255).
    case status(Int32)
    /// By this signal; 0 where it is not known.
    case signal(Int32)

    /// The end that `waitpid` gave.
    init(_ status: Int32) {
        let signal = status & 0x7F
        self = signal == 0 ? .status(status >> 8 & 0xFF) : .signal(signal)
    }

    /// Whether it did what it was to do.
    public var isSuccess: Bool { self == .status(0) }
}
