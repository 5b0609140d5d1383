public import Logging

/// Everything that an account's requests pass through, in one place.
public enum AccountClient {
    /// The decorators around `wire`, from the outside in: each try of a request takes its turn,
    /// gets a token and is logged.
    ///
    /// `requests` is how many may be in flight; `remember` hears how that changes, as
    /// `LimitingClient` says.
    public static func make(
        wire: any HTTPClient,
        tokens: any AccessTokens,
        rules: AnswerRules = .standard,
        requests: RequestLimit,
        policy: RetryPolicy = RetryPolicy(),
        logger: Logger,
        time: Timekeeper = .continuous,
        remember: @escaping @Sendable (Int) -> Void = { _ in }
    ) -> any HTTPClient {
        let logged = LoggingClient(wire, logger: logger, time: time)
        let authorized = AuthorizingClient(logged, tokens: tokens, rules: rules)
        let limited = LimitingClient(
            authorized,
            limit: requests,
            rules: rules,
            time: time,
            remember: remember
        )
        return RetryingClient(limited, policy: policy, rules: rules, time: time)
    }
}
