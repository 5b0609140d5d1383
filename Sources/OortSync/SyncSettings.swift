/// How an account's engine behaves.
public struct SyncSettings: Sendable {
    /// How long an item must have rested before it is pushed.
    public var settle = Duration.seconds(1)
    /// How often the feed is asked; nil takes the service's own interval.
    public var pollInterval: Duration?
    /// Whether nothing is ever pushed.
    public var isReadOnly = false
    /// How long what the service refused for good waits for its next try.
    public var refusalInterval = Duration.seconds(600)
    /// The longest wait between two tries of what may work later.
    public var longestBackoff = Duration.seconds(300)

    /// The longest wait before the service is tried again that could not be reached.
    public var longestOfflineWait = Duration.seconds(30)

    /// How many changes a page of the feed has at least that the next one is asked for while it is
    /// applied; a smaller one is applied sooner than any answer comes.
    public var largePage = 100

    /// The settings of a person's mount.
    public init() {}
}
