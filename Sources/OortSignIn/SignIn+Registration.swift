/// What a service says of a registration.
public enum RegistrationState: Hashable, Sendable {
    /// It knows the client, and its secret where it has one.
    case known
    /// It does not; its own code and words.
    case refused(OAuthRefusal)
    /// It answered with neither.
    case unsaid
}

extension SignIn {
    /// Asks the service whether it knows the registration, before anybody signs in with it.
    ///
    /// Sends a refresh token that is none: RFC 6749, section 5.2, has `invalid_grant` for it where the
    /// client is known, and `invalid_client` or `unauthorized_client` where it is not, which is
    /// looked at first.
    ///
    /// - Throws: `.transport` when there is no answer.
    public func registrationState() async throws(SignInError) -> RegistrationState {
        do throws(SignInError) {
            _ = try await refresh(
                Tokens(accessToken: Secret(""), refreshToken: Secret("whether-the-client-is-known"))
            )
            return .unsaid
        } catch {
            guard case .refused(let refusal) = error else {
                if case .malformedAnswer = error { return .unsaid }
                throw error
            }
            return switch refusal.code {
            case "invalid_grant": .known
            case "invalid_client", "unauthorized_client": .refused(refusal)
            default: .unsaid
            }
        }
    }
}
