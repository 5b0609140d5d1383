import Foundation

/// Starts programs in a session of their own, with nothing of this process but its environment: signals
/// that it blocks or ignores are not theirs, nor is its terminal.
enum Spawn {
    /// What a program has in place of this process's input and output.
    struct Streams {
        /// A file for standard output and error, appended to.
        var output = "/dev/null"
        /// A descriptor of ours that the program has under another number.
        var descriptor: (ours: Int32, theirs: Int32)?
    }

    /// Starts a program, which is known as `name` if that is another than its file's; its number.
    static func start(
        _ path: String,
        as name: String? = nil,
        _ arguments: [String],
        environment: [String: String],
        _ streams: Streams = Streams()
    ) throws(SpawnError) -> pid_t {
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        unsafe posix_spawn_file_actions_addopen(
            &actions,
            1,
            streams.output,
            O_WRONLY | O_CREAT | O_APPEND,
            0o600
        )
        unsafe posix_spawn_file_actions_adddup2(&actions, 1, 2)
        if let (ours, theirs) = streams.descriptor {
            unsafe posix_spawn_file_actions_adddup2(&actions, ours, theirs)
        }

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

        let words = [name ?? URL(filePath: path).lastPathComponent] + arguments
        let settings = environment.map { "\($0)=\($1)" }
        var process: pid_t = 0
        let code = unsafe withCStrings(words) { words in
            unsafe withCStrings(settings) { settings in
                unsafe posix_spawn(&process, path, &actions, &attributes, words, settings)
            }
        }
        guard code == 0 else { throw SpawnError(code: code) }
        return process
    }

    /// Waits until a program that was started here has ended.
    static func reap(_ process: pid_t) {
        var status: Int32 = 0
        while unsafe waitpid(process, &status, 0) < 0, errno == EINTR {}
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

/// Why a program could not be started.
struct SpawnError: Error {
    /// The number of the system's error.
    let code: Int32
}
