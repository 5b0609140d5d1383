import Foundation
import Logging
import Synchronization

/// A log that keeps its size: when it is full, it becomes `.1`, the older `.1` becomes `.2`, and
/// what is older than that is let go.
final class LogFile: Sendable {
    private struct State {
        var handle: FileHandle?
        var size: Int64
    }

    private let path: String
    private let limit: Int64
    private let kept: Int
    /// Guards the open file and its size, which must agree.
    private let state: Mutex<State>

    /// A log at `path`, begun anew after `limit` bytes, with `kept` older ones.
    ///
    /// - Throws: `Failure` when the file cannot be opened.
    init(path: String, limit: Int64 = 8 << 20, kept: Int = 3) throws(Failure) {
        self.path = path
        self.limit = limit
        self.kept = kept
        guard let handle = Self.open(path) else {
            throw Failure(
                "The log \(path) cannot be opened: \(POSIXText.ofErrno()).",
                advice: "Check the free space and the permissions of its folder."
            )
        }
        let size = (try? handle.seekToEnd()) ?? 0
        state = Mutex(State(handle: handle, size: Int64(size)))
    }

    /// Adds a line; a full disk loses it and nothing else.
    func write(_ line: String) {
        let data = Data((line + "\n").utf8)
        state.withLock { state in
            if state.size + Int64(data.count) > limit, state.size > 0 { rotate(&state) }
            try? state.handle?.write(contentsOf: data)
            state.size += Int64(data.count)
        }
    }

    private func rotate(_ state: inout State) {
        try? state.handle?.close()
        for number in stride(from: kept, through: 1, by: -1) {
            let older = number == 1 ? path : "\(path).\(number - 1)"
            unsafe _ = rename(older, "\(path).\(number)")
        }
        state.handle = Self.open(path)
        state.size = 0
    }

    private static func open(_ path: String) -> FileHandle? {
        let descriptor = unsafe Foundation.open(
            path,
            O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
            0o600
        )
        return descriptor < 0 ? nil : FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }
}

/// Writes log lines to a file or to standard error: time, level, where, words.
struct LineLogHandler: LogHandler {
    var metadata: Logger.Metadata = [:]
    var logLevel: Logger.Level
    private let label: String
    private let write: @Sendable (String) -> Void

    init(label: String, level: Logger.Level, write: @escaping @Sendable (String) -> Void) {
        self.label = label
        logLevel = level
        self.write = write
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let all = metadata.merging(event.metadata ?? [:]) { $1 }
        let details =
            all.isEmpty
            ? ""
            : " " + all.sorted { $0.key < $1.key }.map { "\($0)=\($1)" }.joined(separator: " ")
        let time = Date().formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
        let words = TerminalText.line("\(event.message)\(details)")
        write("\(time) \(event.level) \(label): \(words)")
    }
}
