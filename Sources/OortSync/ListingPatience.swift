/// How long those who open folders wait for an enumeration that is under way.
///
/// However many folders are listed at once, or wait, a moment counts once: those who wait together share
/// what is left.
struct ListingPatience {
    /// How long folders were listed by themselves.
    var listed = Stopwatch()
    /// How long the enumeration was waited for instead.
    var waited = Stopwatch()
    /// How long the listing took that was answered last: nobody waits longer than that at once.
    var last = Duration.zero
    /// Who waits.
    var waits = Numbered<AsyncStream<Void>.Continuation>()

    /// However long a listing took, a program's operation has to end.
    private static let longest = Duration.seconds(10)

    /// How long somebody who comes now waits at most.
    func left(at now: Duration) -> Duration {
        min(listed.total(at: now) - waited.total(at: now), last, Self.longest)
    }
}

/// Measures how long something was under way, once or more often at a time.
struct Stopwatch {
    private var sum = Duration.zero
    private var running = 0
    private var began = Duration.zero

    mutating func start(at now: Duration) {
        if running == 0 { began = now }
        running += 1
    }

    mutating func stop(at now: Duration) {
        running -= 1
        if running == 0 { sum += now - began }
    }

    func total(at now: Duration) -> Duration { running == 0 ? sum : sum + (now - began) }
}
