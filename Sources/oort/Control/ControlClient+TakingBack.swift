/// Deleted items, earlier versions and links: the mount asks the service meanwhile, which may take long.
extension ControlClient {
    /// How long a trash of many pages may take.
    private static let reading = Duration.seconds(600)
    /// How long a content may take.
    private static let fetching = Duration.seconds(86_400)

    /// What was deleted.
    func trash(_ wish: TrashRequest) async throws(Failure) -> TrashReport {
        try await ask("POST", "/trash", wish, answer: TrashReport.self, within: Self.reading)
    }

    /// Brings something back.
    func restore(_ wish: RestoreRequest) async throws(Failure) -> RestoreReport {
        try await ask(
            "POST",
            "/trash/restore",
            wish,
            answer: RestoreReport.self,
            // A folder may come back file by file.
            within: Self.fetching
        )
    }

    /// The contents that a file had.
    func versions(_ wish: VersionsRequest) async throws(Failure) -> VersionsReport {
        try await ask("POST", "/versions", wish, answer: VersionsReport.self, within: Self.reading)
    }

    /// Fetches a version into a file that the caller takes away.
    func readVersion(_ wish: VersionsRequest) async throws(Failure) -> FetchedVersion {
        try await ask(
            "POST",
            "/versions/read",
            wish,
            answer: FetchedVersion.self,
            within: Self.fetching
        )
    }

    /// Makes a version current again, or fetches it.
    func restoreVersion(_ wish: VersionsRequest) async throws(Failure) -> RestoredVersion {
        try await ask(
            "POST",
            "/versions/restore",
            wish,
            answer: RestoredVersion.self,
            within: Self.fetching
        )
    }

    /// - Throws: `Failure` when a file has changes that the cloud does not have, or is open for writing.
    func checkUnchanged(_ wish: VersionsRequest) async throws(Failure) {
        _ = try await ask("POST", "/versions/check", wish, answer: VersionsRequest.self)
    }

    /// Makes a link.
    func share(_ wish: ShareRequest) async throws(Failure) -> LinkReport {
        try await ask("POST", "/links/make", wish, answer: LinkReport.self, within: Self.reading)
    }

    /// The links that there are.
    func links(_ wish: LinksRequest) async throws(Failure) -> LinksReport {
        try await ask("POST", "/links", wish, answer: LinksReport.self, within: Self.reading)
    }

    /// The page that shows something in a browser.
    func page(_ wish: PageRequest) async throws(Failure) -> PageReport {
        try await ask("POST", "/page", wish, answer: PageReport.self, within: Self.reading)
    }

    /// Takes links back.
    func unshare(_ wish: UnshareRequest) async throws(Failure) -> LinksReport {
        try await ask(
            "POST",
            "/links/withdraw",
            wish,
            answer: LinksReport.self,
            within: Self.reading
        )
    }
}
