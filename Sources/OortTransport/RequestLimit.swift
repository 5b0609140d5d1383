/// Between which numbers of requests in flight the limit of an account moves.
public struct RequestBounds: Hashable, Sendable {
    /// Where an account begins of which nothing is known.
    public var first: Int
    /// The most, however well the service bears them.
    public var most: Int

    /// Bounds of at least one request.
    public init(first: Int, most: Int) {
        self.most = max(1, most)
        self.first = min(max(1, first), self.most)
    }
}

/// How many requests of an account its service bears at a time, found by trying.
///
/// A value without clock or I/O. While all places are taken, good answers let it grow: by one for
/// each answer until the service complains for the first time, so that it doubles with each round
/// trip, and by one for each round of answers from then on (additive increase). A complaint halves it
/// (multiplicative decrease), down to one.
public struct RequestLimit: Hashable, Sendable {
    private let most: Double
    private var value: Double
    /// Whether something is known of what the service bears.
    private var isFound: Bool

    /// A limit that begins where an earlier one was, or at the first of its bounds.
    public init(_ bounds: RequestBounds, known: Int? = nil) {
        most = Double(bounds.most)
        value = min(most, Double(max(1, known ?? bounds.first)))
        isFound = known != nil
    }

    /// The places that there are at present, at least one.
    public var places: Int { Int(value) }

    /// A request was answered well that was in flight while all places were taken.
    public mutating func answeredWell() {
        value = min(most, value + (isFound ? 1 / value : 1))
    }

    /// The service asked for patience, once for all requests that were in flight then.
    public mutating func complained() {
        isFound = true
        value = max(1, value / 2)
    }
}
