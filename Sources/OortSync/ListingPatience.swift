/// How long those who open folders wait for an enumeration that is under way.
///
/// A moment counts once, however many folders are listed or callers wait in it: callers that wait together
/// share what is left.
struct ListingPatience {
    /// How long folders were being listed by themselves.
    var listed = Stopwatch()
    /// How long callers waited for the enumeration instead.
    var waited = Stopwatch()
    /// How long the last listing took: no single wait is longer.
    var last = Duration.zero
    /// The callers that wait.
    var waits = Numbered<AsyncStream<Void>.Continuation>()

    /// A program's operation has to end, however long the last listing took.
    private static let longest = Duration.seconds(10)

    /// How long a caller that comes now may wait.
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
