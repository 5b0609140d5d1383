/// What is kept on this machine, by request to the running mount.
extension ControlClient {
    /// How long a look at all that is kept may take, or taking away a large cache.
    private static let looking = Duration.seconds(600)
    private static let freeing = Duration.seconds(86_400)

    /// Keeps something here.
    func pin(_ wish: PinRequest) async throws(Failure) -> PinReport {
        try await ask("POST", "/pin", wish, answer: PinReport.self, within: Self.looking)
    }

    /// Ends that.
    func unpin(_ path: String) async throws(Failure) {
        let wish = UnpinRequest(path: path)
        _ = try await ask("POST", "/unpin", wish, answer: UnpinRequest.self)
    }

    /// Everything that is kept here.
    func pins() async throws(Failure) -> [PinReport] {
        try await ask(
            "GET",
            "/pins",
            Nothing(),
            answer: [PinReport].self,
            within: Self.looking
        )
    }

    /// Takes cached contents away.
    func free(_ wish: FreeRequest) async throws(Failure) -> FreeReport {
        try await ask("POST", "/free", wish, answer: FreeReport.self, within: Self.freeing)
    }
}
