import Crypto
import Foundation
import OortModel
import Synchronization

/// The tokens of one account: who may come in, for how long, and by which refresh token.
public final class SimulatedTokens: Sendable {
    /// What an access token is worth.
    public enum Standing: Sendable, Hashable {
        /// It may come in.
        case valid
        /// It was good once.
        case expired
        /// It never was, or was revoked.
        case invalid
    }

    /// What a code, once shown to a person, will be exchanged for.
    public struct Grant: Sendable, Hashable {
        /// Who asked.
        public var clientID: String
        /// Where the answer was sent; nil when it was shown.
        public var redirectURI: String?
        /// The PKCE challenge (S256); nil without PKCE.
        public var challenge: String?
        /// Whether a refresh token goes with it.
        public var isOffline: Bool
        /// The scopes asked for.
        public var scope: String?
    }

    /// A pair of tokens as handed out.
    public struct Issued: Sendable, Hashable {
        /// The access token.
        public var access: String
        /// The refresh token, where one was made.
        public var refresh: String?
        /// Seconds that the access token lives.
        public var expiresIn: Int
    }

    private struct State: Sendable {
        var random: RandomSource
        var lifetime = 14400
        /// Expiry and refresh token by access token.
        var access: [String: (expires: Timestamp, refresh: String?)] = [:]
        var refresh: Set<String> = []
        var codes: [String: Grant] = [:]
        /// Everything that opens a door, or did.
        var secrets: Set<String> = []
        var clientRefusal: SimulatedOAuth.Refusal?
        var deviceCodes: [String: (grant: Grant, isApproved: Bool)] = [:]
    }

    private let state: Mutex<State>

    init(seed: UInt64) { state = Mutex(State(random: RandomSource(seed: seed))) }

    /// Seconds that access tokens live from now on.
    public var lifetime: Int {
        get { state.withLock { $0.lifetime } }
        set { state.withLock { $0.lifetime = newValue } }
    }

    /// A fresh pair of tokens, as after a sign-in.
    public func issue(isOffline: Bool = true) -> Issued {
        state.withLock { state in
            var refresh: String?
            if isOffline {
                let token = "refresh-" + state.random.hex(40)
                state.refresh.insert(token)
                state.secrets.insert(token)
                refresh = token
            }
            return Self.issueAccess(refresh, &state)
        }
    }

    /// A new access token for a refresh token; nil when that is not (or no longer) good.
    public func refresh(_ token: String) -> Issued? {
        state.withLock { state in
            guard state.refresh.contains(token) else { return nil }
            return Self.issueAccess(token, &state)
        }
    }

    private static func issueAccess(_ refresh: String?, _ state: inout State) -> Issued {
        let access = "access-" + state.random.hex(64)
        state.secrets.insert(access)
        let expires = Timestamp(seconds: Timestamp.now.seconds + Int64(state.lifetime))
        state.access[access] = (expires, refresh)
        return Issued(access: access, refresh: refresh, expiresIn: state.lifetime)
    }

    /// What an access token is worth now.
    public func standing(of access: String) -> Standing {
        state.withLock { state in
            guard let entry = state.access[access] else { return .invalid }
            return entry.expires > .now ? .valid : .expired
        }
    }

    /// What was issued with an access token, for a service that signs with it; nil for an unknown one.
    func secret(of access: String) -> String? { state.withLock { $0.access[access]?.refresh } }

    /// Makes all access tokens expire at once; refresh tokens stay.
    public func expireAccessTokens() {
        state.withLock { state in
            for token in state.access.keys {
                state.access[token]?.expires = Timestamp(seconds: 0)
            }
        }
    }

    /// Revokes an access or a refresh token, and with it all that belongs to its refresh token;
    /// false when it is unknown.
    @discardableResult
    public func revoke(_ token: String) -> Bool {
        state.withLock { state in
            let refresh =
                state.refresh.contains(token) ? token : state.access[token]?.refresh ?? nil
            let isKnown = state.access.removeValue(forKey: token) != nil || refresh != nil
            if let refresh {
                state.refresh.remove(refresh)
                state.access = state.access.filter { $0.value.refresh != refresh }
            }
            return isKnown
        }
    }

    /// Revokes everything: the person has removed the application.
    public func revokeAll() {
        state.withLock { state in
            state.access = [:]
            state.refresh = []
        }
    }

    /// Why token requests are refused because of who asks; nil while the registration is good.
    public var clientRefusal: SimulatedOAuth.Refusal? {
        get { state.withLock { $0.clientRefusal } }
        set { state.withLock { $0.clientRefusal = newValue } }
    }

    /// Tokens, codes, verifiers and addresses that were handed out or shown, ever: none of them may
    /// be found in a log.
    public var secrets: Set<String> { state.withLock { $0.secrets } }

    /// A secret of another kind, such as the end of an address that needs no token.
    func makeSecret(_ prefix: String) -> String {
        state.withLock { state in
            let secret = prefix + state.random.hex(48)
            state.secrets.insert(secret)
            return secret
        }
    }

    /// Notes a secret that was made elsewhere, and gives it back.
    func remember(_ secret: String) -> String {
        state.withLock { _ = $0.secrets.insert(secret) }
        return secret
    }

    // MARK: Codes

    /// A code that can be exchanged once.
    public func makeCode(for grant: Grant) -> String {
        state.withLock { state in
            let code = state.random.hex(32)
            state.codes[code] = grant
            state.secrets.insert(code)
            return code
        }
    }

    /// Exchanges a code; nil when it is unknown or used, or when client, redirect or the PKCE
    /// verifier are not those of the request for it.
    public func exchange(
        code: String,
        clientID: String,
        redirectURI: String?,
        verifier: String?
    ) -> Issued? {
        guard let grant = state.withLock({ $0.codes.removeValue(forKey: code) }),
            grant.clientID == clientID, grant.redirectURI == redirectURI
        else { return nil }
        if let challenge = grant.challenge {
            guard let verifier, Self.challenge(of: verifier) == challenge else { return nil }
            state.withLock { _ = $0.secrets.insert(verifier) }
        }
        return issue(isOffline: grant.isOffline)
    }

    /// The S256 challenge of a PKCE verifier (RFC 7636).
    public static func challenge(of verifier: String) -> String {
        Data(SHA256.hash(data: Data(verifier.utf8))).base64EncodedString()
            .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }

    /// A device code and the short code that a person types.
    public func makeDeviceCode(for grant: Grant) -> (device: String, user: String) {
        state.withLock { state in
            let device = state.random.hex(40)
            let user = state.random.text(8, of: "BCDFGHJKLMNPQRSTVWXZ")
            state.deviceCodes[device] = (grant, false)
            state.secrets.insert(device)
            return (device, user)
        }
    }

    /// The person has typed the short code: all open device codes are approved.
    public func approveDeviceCodes() {
        state.withLock { state in
            for code in state.deviceCodes.keys { state.deviceCodes[code]?.isApproved = true }
        }
    }

    /// Exchanges a device code: nil when unknown, else the tokens, or none while not approved.
    public func exchange(deviceCode: String) -> (isPending: Bool, issued: Issued?)? {
        let entry = state.withLock { $0.deviceCodes[deviceCode] }
        guard let entry else { return nil }
        guard entry.isApproved else { return (true, nil) }
        state.withLock { $0.deviceCodes[deviceCode] = nil }
        return (false, issue(isOffline: entry.grant.isOffline))
    }
}
