import OortGoogleDrive
import OortModel
import OortSimulators
import OortTesting
import OortTransport
import Testing

/// A service of one answer.
private struct Answering: HTTPClient {
    var status: Int
    var body: String

    func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPStreamedResponse {
        HTTPStreamedResponse(
            HTTPResponse(
                head: HTTPResponseHead(status: status, headers: [], httpVersion: "1.1"),
                body: Array(body.utf8)
            )
        )
    }
}

/// Drive's refusals and broken answers in canonical words.
@Suite("Google Drive's errors")
struct GoogleDriveErrorTests {
    private static func refusal(_ reason: String, _ location: String? = nil) -> String {
        let place = location.map { ",\"location\":\"\($0)\"" } ?? ""
        return "{\"error\":{\"code\":1,\"message\":\"m\",\"errors\":[{\"domain\":\"global\","
            + "\"reason\":\"\(reason)\"\(place)}]}}"
    }

    @Test(
        "each status and reason has its kind",
        arguments: [
            (400, refusal("invalidParameter"), ProviderError.Kind.badRequest),
            (400, refusal("invalid", "pageToken"), .cursorLost),
            (401, refusal("authError"), .signedOut),
            (403, refusal("userRateLimitExceeded"), .rateLimited(retryAfter: nil)),
            (403, refusal("rateLimitExceeded"), .rateLimited(retryAfter: nil)),
            (403, refusal("sharingRateLimitExceeded"), .rateLimited(retryAfter: nil)),
            (403, refusal("dailyLimitExceeded"), .rateLimited(retryAfter: .seconds(3600))),
            (403, refusal("storageQuotaExceeded"), .quotaExceeded),
            (403, refusal("numChildrenInNonRootLimitExceeded"), .limitExceeded),
            (403, refusal("teamDriveFileLimitExceeded"), .limitExceeded),
            (403, refusal("activeItemCreationLimitExceeded"), .limitExceeded),
            (403, refusal("myDriveHierarchyDepthLimitExceeded"), .nameTooLong),
            (403, refusal("teamDriveHierarchyTooDeep"), .nameTooLong),
            (403, refusal("insufficientFilePermissions"), .noPermission),
            (403, refusal("insufficientParentPermissions"), .noPermission),
            (403, refusal("cannotAddParent"), .noPermission),
            (403, refusal("insufficientPermissions"), .noPermission),
            (403, refusal("appNotAuthorizedToFile"), .noPermission),
            (403, refusal("cannotDownloadAbusiveFile"), .contentBlocked),
            (403, refusal("fileNotDownloadable"), .contentBlocked),
            (403, refusal("fileNotExportable"), .unsupported),
            (403, refusal("exportSizeLimitExceeded"), .tooLarge),
            (403, refusal("downloadQuotaExceeded"), .limitExceeded),
            (403, refusal("parentNotAFolder"), .notAFolder),
            (403, refusal("domainPolicy"), .noPermission),
            (404, refusal("notFound"), .notFound),
            (409, refusal("fileIdInUse"), .nameTaken),
            (412, refusal("conditionNotMet"), .preconditionFailed),
            (413, refusal("uploadTooLarge"), .tooLarge),
            (429, refusal("rateLimitExceeded"), .rateLimited(retryAfter: nil)),
            (500, refusal("backendError"), .outcomeUnknown(retryAfter: nil)),
            (502, "<html>Bad Gateway</html>", .outcomeUnknown(retryAfter: nil)),
            (403, "no JSON", .noPermission),
        ]
    )
    func kinds(_ status: Int, _ body: String, _ kind: ProviderError.Kind) async throws {
        let provider = GoogleDriveProvider(client: Answering(status: status, body: body))
        let error = await #expect(throws: ProviderError.self) { _ = try await provider.quota() }
        #expect(error?.kind == kind)
    }

    @Test(
        "an answer that is not of the protocol is malformed, never a trap",
        arguments: [
            "", "nope", "[]", "null", "{", "{\"files\":7}", "{\"files\":[{}]}", "{\"id\":1}",
            "{\"startPageToken\":null}", "{\"storageQuota\":{\"usage\":\"-\"}}", "\u{0}",
        ]
    )
    func malformed(_ body: String) async throws {
        let provider = GoogleDriveProvider(client: Answering(status: 200, body: body))
        let error = await #expect(throws: ProviderError.self) { _ = try await provider.quota() }
        #expect(error?.kind == .malformedAnswer)
        await #expect(throws: ProviderError.self) { _ = try await provider.changes(since: nil) }
        await #expect(throws: ProviderError.self) { _ = try await provider.identity() }
    }

    @Test("only the 403s that ask for patience are retried")
    func answerRules() {
        func meaning(_ reason: String) -> AnswerRules.Meaning {
            AnswerRules.googleDrive.meaning(
                HTTPResponse(
                    head: HTTPResponseHead(status: 403, headers: [], httpVersion: "1.1"),
                    body: Array(Self.refusal(reason).utf8)
                )
            )
        }
        #expect(meaning("userRateLimitExceeded") == .notDone(retryAfter: nil))
        #expect(meaning("storageQuotaExceeded") == .final)
        #expect(meaning("insufficientFilePermissions") == .final)
    }

    @Test("MD5 is spelled as Drive spells it")
    func hash() {
        var hasher = GoogleDriveProvider(client: Answering(status: 200, body: "")).makeHasher()
        hasher.update(Array("hello ".utf8)[...])
        hasher.update(Array("world".utf8)[...])
        #expect(hasher.finalize().description == "md5:5eb63bbbe01eeed093cb22bb8f5acdc3")
    }

    @Test("what asks for patience is waited out, whatever its status")
    func patience() async throws {
        try await GoogleDriveWorld.with { world, _ in
            world.simulator.add(FaultRule(.status(429, retryAfterSeconds: nil), at: "about.get"))
            world.simulator.add(FaultRule(.status(503, retryAfterSeconds: nil), at: "about.get"))
            world.simulator.add(FaultRule(.html(status: 502), at: "about.get"))
            _ = try await world.provider.quota()
            #expect(world.simulator.counts["about.get"]?.calls == 5)
        }
    }
}
