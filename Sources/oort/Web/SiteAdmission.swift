import Synchronization

/// Admits to the page: by the token, once, and from then on by the cookie that it is exchanged for.
final class SiteAdmission: Sendable {
    /// What admitted browsers know.
    struct Session: Sendable {
        /// The cookie's value.
        let cookie: String
        /// What every form brings along, so that no other page can send one.
        let formToken: String
    }

    private struct State {
        /// The token that was not used yet, and until when it is valid.
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

    /// How long the token is valid: a person may have to look for a browser first.
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

    /// Whether the token is still unused.
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

    /// Shows a message on the next page.
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

    /// 256 bits that cannot be guessed, as digits.
    private static func secret() -> String {
        var random = SystemRandomNumberGenerator()
        return (0..<4).map { _ in
            let digits = String(random.next(), radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    /// Whether two texts are the same; the time that it takes does not depend on where they differ.
    static func same(_ one: String, _ other: String) -> Bool {
        let (one, other) = (Array(one.utf8), Array(other.utf8))
        guard one.count == other.count else { return false }
        return zip(one, other).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
