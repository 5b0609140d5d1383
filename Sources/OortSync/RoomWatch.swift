import OortModel

/// When the account's room is asked for: after news, once an hour, and when somebody looks at it.
///
/// A pure value; moments are milliseconds since 1970.
struct RoomWatch {
    /// The longest that an answer is believed without any news: other programs use the room, too.
    static let longestAge: Int64 = 3_600_000
    /// The longest that an answer is believed when somebody looks at the room.
    static let longestAgeWhenShown: Int64 = 60_000

    /// Whether the room may differ from what is known: nothing was asked yet, or there was news.
    private var isStale = true
    /// When the room was last asked for.
    private var asked: Int64?

    /// The feed reported changes, our own ones among them.
    mutating func heardNews() { isStale = true }

    /// Whether the room is to be asked for with the next look at the feed.
    func isDue(at now: Int64) -> Bool { isStale || isOlder(than: Self.longestAge, at: now) }

    /// Whether the room is to be asked for because somebody sees it.
    func isDueWhenShown(at now: Int64) -> Bool { isOlder(than: Self.longestAgeWhenShown, at: now) }

    /// The room is being asked for; news from now on make the answer stale.
    mutating func asks(at now: Int64) {
        isStale = false
        asked = now
    }

    /// The service did not say how much room there is.
    mutating func failed() { isStale = true }

    private func isOlder(than age: Int64, at now: Int64) -> Bool {
        guard let asked else { return true }
        // A moment in the future is of a clock that was set back.
        return now < asked || now - asked >= age
    }
}
