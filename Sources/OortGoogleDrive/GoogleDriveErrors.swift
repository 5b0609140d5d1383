import Foundation
import OortModel
public import OortTransport

/// A refusal as Drive words it: status and the first error's `reason`, by which alone we decide.
///
/// Source: developers.google.com/workspace/drive/api/guides/handle-errors.
struct DriveFailure: Sendable {
    var status: Int
    var reason: String
    var location: String?
    var message: String
    var retryAfter: Duration?

    init(_ response: HTTPResponse) {
        self.init(
            status: response.head.status,
            body: response.body,
            retryAfter: response.head.retryAfter
        )
    }

    /// Front-end failures are HTML and upload failures plain text, so JSON is not required.
    init(status: Int, body: [UInt8], retryAfter: Duration?) {
        self.status = status
        self.retryAfter = retryAfter
        let answer = try? JSONDecoder().decode(ErrorAnswer.self, from: Data(body))
        let first = answer?.error.errors?.first
        reason = first?.reason ?? answer?.error.status ?? ""
        location = first?.location
        message = String((answer?.error.message ?? "").prefix(200))
    }

    private struct ErrorAnswer: Decodable {
        struct Failure: Decodable {
            struct Entry: Decodable {
                var reason: String?
                var location: String?
            }
            var message: String?
            var errors: [Entry]?
            var status: String?
        }
        var error: Failure
    }

    /// The refusal in canonical words.
    var error: ProviderError {
        let parts = ["Drive answered \(status)", reason, message].filter { !$0.isEmpty }
        return ProviderError(kind, detail: parts.joined(separator: ", "))
    }

    private var kind: ProviderError.Kind {
        switch status {
        case 400: location == "pageToken" ? .cursorLost : .badRequest
        case 401: .signedOut
        case 403: kindOfForbidden
        case 404: .notFound
        case 409: .nameTaken
        case 412: .preconditionFailed
        case 413: .tooLarge
        case 429: .rateLimited(retryAfter: retryAfter)
        case 408, 500...: .outcomeUnknown(retryAfter: retryAfter)
        // Google never redirects here: a network did, whose users must log in first.
        case 200..<400: .malformedAnswer
        default: .badRequest
        }
    }

    /// 403 means "slow down" as often as "forbidden": only the reason shows which.
    private var kindOfForbidden: ProviderError.Kind {
        switch reason {
        case "userRateLimitExceeded", "rateLimitExceeded", "sharingRateLimitExceeded":
            .rateLimited(retryAfter: retryAfter)
        case "dailyLimitExceeded":
            .rateLimited(retryAfter: retryAfter ?? .seconds(3600))
        case "storageQuotaExceeded", "quotaExceeded", "teamDriveStorageQuotaExceeded":
            .quotaExceeded
        case "numChildrenInNonRootLimitExceeded", "teamDriveFileLimitExceeded",
            "activeItemCreationLimitExceeded", "downloadQuotaExceeded":
            .limitExceeded
        case "myDriveHierarchyDepthLimitExceeded", "teamDriveHierarchyTooDeep":
            .nameTooLong
        case "cannotDownloadAbusiveFile", "cannotDownloadFile", "fileNotDownloadable",
            "download_restricted_for_revision":
            .contentBlocked
        case "cannotExportFile", "fileNotExportable", "cannotCopyFile",
            "teamDrivesFolderMoveInNotSupported":
            .unsupported
        case "exportSizeLimitExceeded": .tooLarge
        case "parentNotAFolder": .notAFolder
        case "fieldNotWritable": .badRequest
        default: .noPermission
        }
    }
}

extension AnswerRules {
    /// The standard's rules, and on top the 403s by which Drive only asks for patience.
    public static let googleDrive = AnswerRules { answer in
        guard answer.head.status == 403 else { return AnswerRules.standard.meaning(answer) }
        guard case .rateLimited(let wait) = DriveFailure(answer).error.kind else { return .final }
        return .notDone(retryAfter: wait)
    }
}
