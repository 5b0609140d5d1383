/// How an account's engine behaves.
public struct SyncSettings: Sendable {
    /// How long an item must be unchanged before it is pushed.
    public var settle = Duration.seconds(1)
    /// How often the feed is asked; nil takes the service's own interval.
    public var pollInterval: Duration?
    /// Whether nothing is ever pushed.
    public var isReadOnly = false
    /// How long an operation that the service refused for good waits for its next try.
    public var refusalInterval = Duration.seconds(600)
    /// The longest wait between two tries of what may work later.
    public var longestBackoff = Duration.seconds(300)

    /// The longest wait before an unreachable service is tried again.
    public var longestOfflineWait = Duration.seconds(30)

    /// How many changes a page of the feed must have for the next one to be asked for while it is applied:
    /// a smaller one is applied before any answer comes.
    public var largePage = 100

    /// The settings of a person's mount.
    public init() {}
}
