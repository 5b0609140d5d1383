/// Moments until which something waits, beside a clock that may be set back meanwhile.
public enum WaitMoment {
    /// The moment that never comes: what waits for it is tried again when a person asks for it.
    public static let never = Int64.max

    /// Milliseconds of the longest wait for another moment, with some to spare: the wait that a service
    /// asks for is cut at an hour.
    public static let longest: Int64 = 2 * 3_600_000

    /// Milliseconds until a moment, both since 1970; nil when it has come, and `.max` for `never`.
    ///
    /// A moment farther ahead than any wait was written before the clock was set back, and counts as come:
    /// otherwise it would be waited for as long as the clock was wrong.
    public static func wait(until moment: Int64, now: Int64, longest: Int64 = longest) -> Int64? {
        guard moment != never else { return .max }
        let (wait, overflows) = moment.subtractingReportingOverflow(now)
        return !overflows && wait > 0 && wait <= longest ? wait : nil
    }
}
