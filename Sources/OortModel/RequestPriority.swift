/// Who waits for a request: nobody, a person, or another request.
public enum RequestPriority: Int, Sendable, Comparable {
    /// The engine's own work: feeds, uploads.
    case background
    /// A program waits in a system call.
    case interactive
    /// An answer that has begun to arrive is not read on before this one's: it cannot wait for
    /// that one's end, however few requests the service allows at a time.
    case attendant

    /// The priority of whatever runs in the current task; transports send interactive requests
    /// before background ones.
    @TaskLocal public static var current: RequestPriority = .interactive

    /// Who waits longer is less.
    public static func < (left: RequestPriority, right: RequestPriority) -> Bool {
        left.rawValue < right.rawValue
    }
}
