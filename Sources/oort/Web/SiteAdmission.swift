import Synchronization

/// Who may see the page: whoever brings the token once, and by the cookie that it is exchanged for
/// from then on.
final class SiteAdmission: Sendable {
    /// What admitted browsers know.
    struct Session: Sendable {
        /// The cookie's value.
        let cookie: String
        /// What every form brings along, so that no other page can send one.
        let formToken: String
    }

    private struct State {
        /// The token that nobody brought yet, and until when it holds.
        var token: (value: String, until: ContinuousClock.Instant)?
        var session: Session?
        /// What is said on the next page that is shown.
        var notice: Notice?
    }

    /// What became of a request to change something.
    struct Notice: Sendable {
        var words: String
        var isFailure: Bool
    }

    private let state = Mutex(State())
    private let clock = ContinuousClock()

    /// How long the token holds: for somebody who looks for a browser first.
    static let tokenLifetime = Duration.seconds(600)

    /// Makes the token.
    func makeToken() -> String {
        let token = Self.secret()
        state.withLock { $0.token = (token, clock.now.advanced(by: Self.tokenLifetime)) }
        return token
    }

    /// Exchanges the token, which is used up by that; nil for another one, and when its time is over.
    func enter(with token: String) -> Session? {
        state.withLock { state in
            guard let known = state.token, Self.same(token, known.value) else { return nil }
            state.token = nil
            guard clock.now < known.until else { return nil }
            let session = Session(cookie: Self.secret(), formToken: Self.secret())
            state.session = session
            return session
        }
    }

    /// Whether the token waits for somebody.
    var isTokenUnused: Bool {
        state.withLock { state in state.token.map { clock.now < $0.until } ?? false }
    }

    /// The session of a cookie; nil where it is of none.
    func session(of cookie: String?) -> Session? {
        guard let cookie, let session = state.withLock(\.session),
            Self.same(cookie, session.cookie)
        else { return nil }
        return session
    }

    /// Says something on the next page.
    func tell(_ words: String, isFailure: Bool = false) {
        state.withLock { $0.notice = Notice(words: words, isFailure: isFailure) }
    }

    /// What is to be said, once.
    func takeNotice() -> Notice? {
        state.withLock { state in
            defer { state.notice = nil }
            return state.notice
        }
    }

    /// 256 bits that nobody can guess, as digits.
    private static func secret() -> String {
        var random = SystemRandomNumberGenerator()
        return (0..<4).map { _ in
            let digits = String(random.next(), radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    /// Whether two texts are the same, in a time that does not tell how far they are.
    static func same(_ one: String, _ other: String) -> Bool {
        let (one, other) = (Array(one.utf8), Array(other.utf8))
        guard one.count == other.count else { return false }
        return zip(one, other).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
