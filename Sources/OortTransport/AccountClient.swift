public import Logging

/// Everything that an account's requests pass through, in one place.
public enum AccountClient {
    /// The decorators around `wire`, from the outside in: each try of a request takes its turn,
    /// gets a token and is logged.
    ///
    /// `signer` makes a request's proof of a token. `requests` is how many may be in flight; `remember`
    /// hears how that changes, as `LimitingClient` says. `meter` counts each try.
    public static func make(
        wire: any HTTPClient,
        tokens: any AccessTokens,
        signer: any RequestSigner = BearerSigner(),
        rules: AnswerRules = .standard,
        requests: RequestLimit,
        policy: RetryPolicy = RetryPolicy(),
        meter: TrafficMeter = TrafficMeter(),
        logger: Logger,
        time: Timekeeper = .continuous,
        remember: @escaping @Sendable (Int) -> Void = { _ in }
    ) -> any HTTPClient {
        let metered = MeteringClient(wire, meter: meter)
        let logged = LoggingClient(metered, logger: logger, time: time)
        let authorized = AuthorizingClient(logged, tokens: tokens, signer: signer, rules: rules)
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
