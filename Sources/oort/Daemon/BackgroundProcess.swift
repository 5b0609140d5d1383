import Foundation

/// Starts this program again in the background, as its own session.
///
/// A fork would not do: a child of a process that already runs tasks never runs any.
enum BackgroundProcess {
    /// The environment variable that names the descriptor of the ready pipe.
    static let readyVariable = "OORT_READY_FD"
    private static let childDescriptor: Int32 = 3

    /// Starts the program and waits for its first word.
    ///
    /// - Parameters:
    ///   - arguments: the arguments, without the program's name.
    ///   - output: the file that gets what the child writes to standard output and error.
    /// - Returns: what the child said when it was ready.
    /// - Throws: `Failure`: the child's own, or that it died without a word.
    static func start(
        arguments: [String],
        output: String
    ) async throws(Failure) -> ReadyMessage {
        let (process, pipe) = try spawn(arguments: arguments, output: output)
        // A thread of its own, since reading blocks until the child is ready.
        let data = await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(returning: (try? pipe.readToEnd()) ?? nil)
            }
        }
        if let data, let message = try? ControlCoding.decode(ReadyMessage.self, from: data) {
            if let failure = message.failure {
                reap(process)
                throw failure.failure
            }
            return message
        }
        reap(process)
        throw Failure(
            "The mount ended before it was ready.",
            advice: "The reason is at the end of its log: \(output)"
        )
    }

    private static func reap(_ process: pid_t) {
        var status: Int32 = 0
        unsafe waitpid(process, &status, 0)
    }

    private static func spawn(
        arguments: [String],
        output: String
    ) throws(Failure) -> (pid_t, FileHandle) {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else {
            throw Failure("No pipe can be made: \(POSIXText.ofErrno()).")
        }
        let (readEnd, writeEnd) = (ends[0], ends[1])
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer { close(writeEnd) }

        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        unsafe posix_spawn_file_actions_addopen(
            &actions,
            1,
            output,
            O_WRONLY | O_CREAT | O_APPEND,
            0o600
        )
        unsafe posix_spawn_file_actions_adddup2(&actions, 1, 2)
        unsafe posix_spawn_file_actions_adddup2(&actions, writeEnd, childDescriptor)

        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        let newSession: Int32 = 0x80  // POSIX_SPAWN_SETSID, which Glibc's module does not show
        let resetSignals = Int32(POSIX_SPAWN_SETSIGMASK) | Int32(POSIX_SPAWN_SETSIGDEF)
        unsafe posix_spawnattr_setflags(&attributes, Int16(newSession | resetSignals))
        var none = sigset_t()
        unsafe sigemptyset(&none)
        unsafe posix_spawnattr_setsigmask(&attributes, &none)
        var all = sigset_t()
        unsafe sigfillset(&all)
        unsafe posix_spawnattr_setsigdefault(&attributes, &all)

        var environment = ProcessInfo.processInfo.environment
        environment[readyVariable] = "\(childDescriptor)"
        let words = ["oort"] + arguments
        let settings = environment.map { "\($0)=\($1)" }
        var process: pid_t = 0
        let code = unsafe withCStrings(words) { words in
            unsafe withCStrings(settings) { settings in
                unsafe posix_spawn(
                    &process,
                    "/proc/self/exe",
                    &actions,
                    &attributes,
                    words,
                    settings
                )
            }
        }
        guard code == 0 else {
            close(readEnd)
            throw Failure(
                "The mount cannot be started in the background: \(POSIXText.of(code)).",
                advice: "Try: oort mount --foreground"
            )
        }
        return (process, FileHandle(fileDescriptor: readEnd, closeOnDealloc: true))
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
}

/// The daemon's first word to whoever started it.
struct ReadyMessage: Codable, Hashable, Sendable {
    /// Where it is mounted.
    var mountPoint: String
    /// The accounts' names.
    var accounts: [String]
    /// Why it is not mounted; nil when it is.
    var failure: ControlFailure?
}

/// The daemon's end of the ready pipe; says one thing once.
final class ReadyPipe: Sendable {
    private let handle: FileHandle

    /// The pipe that the parent named; nil when nobody waits.
    init?(environment: [String: String] = ProcessInfo.processInfo.environment) {
        guard let descriptor = environment[BackgroundProcess.readyVariable].flatMap(Int32.init)
        else { return nil }
        unsafe unsetenv(BackgroundProcess.readyVariable)
        // Programs that the daemon starts (fusermount3) must not hold the pipe open.
        guard fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0 else { return nil }
        handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: false)
    }

    /// Says how it went and lets the parent go.
    func say(_ message: ReadyMessage) {
        if let data = try? ControlCoding.encode(message) { try? handle.write(contentsOf: data) }
        try? handle.close()
    }
}
