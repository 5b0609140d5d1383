import Foundation

/// What a running mount does with what was deleted, overwritten or shared.
protocol TakingBackControl: Sendable {
    /// What was deleted.
    func trash(_ request: TrashRequest) async throws(Failure) -> TrashReport
    /// Brings something back.
    func restore(_ request: RestoreRequest) async throws(Failure) -> RestoreReport
    /// The contents that a file had.
    func versions(_ request: VersionsRequest) async throws(Failure) -> VersionsReport
    /// Fetches one of them into a file, which the client must delete.
    func readVersion(_ request: VersionsRequest) async throws(Failure) -> FetchedVersion
    /// Makes one of them current again, or fetches it where the service cannot.
    func restoreVersion(_ request: VersionsRequest) async throws(Failure) -> RestoredVersion
    /// - Throws: `Failure` when a file has changes that the cloud does not have, or is open for writing.
    func checkUnchanged(_ request: VersionsRequest) async throws(Failure)
    /// Makes a link.
    func share(_ request: ShareRequest) async throws(Failure) -> LinkReport
    /// The links that there are.
    func links(_ request: LinksRequest) async throws(Failure) -> LinksReport
    /// The page that shows something in a browser.
    func page(_ request: PageRequest) async throws(Failure) -> PageReport
    /// The service's small picture of something.
    func thumbnail(_ request: ThumbnailRequest) async throws(Failure) -> ThumbnailReport
    /// Takes links back.
    func unshare(_ request: UnshareRequest) async throws(Failure) -> LinksReport
}

extension TakingBackControl {
    /// Carries out a request of this kind; nil for another.
    func answer(_ message: ControlMessage) async throws -> ControlAnswer? {
        func wish<Value: ControlRequest>(_ type: Value.Type) throws -> Value {
            try ControlCoding.decodeRequest(type, from: message.body)
        }
        switch (message.method, message.path) {
        case ("POST", "/trash"): return try .json(try await trash(wish(TrashRequest.self)))
        case ("POST", "/trash/restore"):
            return try .json(try await restore(wish(RestoreRequest.self)))
        case ("POST", "/versions"): return try .json(try await versions(wish(VersionsRequest.self)))
        case ("POST", "/versions/read"):
            return try .json(try await readVersion(wish(VersionsRequest.self)))
        case ("POST", "/versions/restore"):
            return try .json(try await restoreVersion(wish(VersionsRequest.self)))
        case ("POST", "/versions/check"):
            let wish = try wish(VersionsRequest.self)
            try await checkUnchanged(wish)
            return try .json(wish)
        case ("POST", "/links/make"): return try .json(try await share(wish(ShareRequest.self)))
        case ("POST", "/links"): return try .json(try await links(wish(LinksRequest.self)))
        case ("POST", "/page"): return try .json(try await page(wish(PageRequest.self)))
        case ("POST", "/thumbnail"):
            let wish = try wish(ThumbnailRequest.self)
            try wish.check()
            return try .json(try await thumbnail(wish))
        case ("POST", "/links/withdraw"):
            return try .json(try await unshare(wish(UnshareRequest.self)))
        default: return nil
        }
    }
}
