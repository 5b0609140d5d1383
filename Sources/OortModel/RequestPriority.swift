/// Who waits for a request: a person, or nobody.
public enum RequestPriority: Int, Sendable, Comparable {
    /// The engine's own work: feeds, uploads.
    case background
    /// A program waits in a system call.
    case interactive

    /// The priority of whatever runs in the current task; transports send interactive requests
    /// before background ones.
    @TaskLocal public static var current: RequestPriority = .interactive

    /// Background before interactive.
    public static func < (left: RequestPriority, right: RequestPriority) -> Bool {
        left.rawValue < right.rawValue
    }
}
