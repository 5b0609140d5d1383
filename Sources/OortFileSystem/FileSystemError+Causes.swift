import Glibc
import OortCatalog
import OortContentStore
import OortModel

extension FileSystemError {
    /// The catalog's error in the file system's words.
    init(_ error: CatalogError) {
        self =
            switch error {
            case .notFound, .noAccount: .notFound
            case .exists: .exists
            case .notEmpty: .notEmpty
            case .notAFolder: .notAFolder
            case .isAFolder: .isAFolder
            case .moveIntoItself: .moveIntoItself
            // As between accounts: `mv` copies, and deletes what the service has.
            case .otherAccount, .staysHere: .otherAccount
            case .isARoot: .readOnly
            case .diskFull: .noSpace
            case .otherPerson: .failed(detail: "catalog: somebody else's account")
            case .corrupt(let detail): .failed(detail: "catalog: \(detail)")
            case .tooNew: .failed(detail: "catalog: made by a newer version")
            case .storage(let detail): .failed(detail: "catalog: \(detail)")
            }
    }

    /// The content store's error in the file system's words.
    init(_ error: ContentError) {
        self =
            switch error {
            case .noSpace: .noSpace
            case .damaged(let detail): .contentDamaged(detail: detail)
            case .tooLarge: .tooLarge
            case .disk(EROFS, _): .readOnly
            case .disk(let code, let detail): .failed(detail: "disk error \(code): \(detail)")
            // A folder lies where the file did.
            case .fetch(let cause) where cause.kind == .notAFile: .revisionGone
            case .fetch(let cause): FileSystemError(cause)
            case .catalog(let detail): .failed(detail: "catalog: \(detail)")
            }
    }

    /// The provider's error in the file system's words.
    init(_ error: ProviderError) {
        self =
            switch error.kind {
            case .notFound, .preconditionFailed: .revisionGone
            case .parentNotFound: .notFound
            case .nameTaken: .exists
            case .nameRefused: .nameRefused(reason: error.detail)
            case .nameTooLong: .nameTooLong
            case .notAFolder: .notAFolder
            case .notAFile: .isAFolder
            case .moveIntoItself: .moveIntoItself
            case .noPermission, .contentBlocked: .noPermission
            case .locked: .locked
            case .signedOut, .clientRefused: .signedOut
            case .quotaExceeded, .limitExceeded: .quotaExceeded
            case .tooLarge: .tooLarge
            case .contentDamaged: .contentDamaged(detail: error.detail)
            case .unsupported: .notSupported
            case .rateLimited: .timedOut
            case .offline: .offline
            case .cancelled: .interrupted
            case .outcomeUnknown, .malformedAnswer, .badRequest, .cursorLost, .sessionLost,
                .localContent:
                .failed(detail: error.description)
            }
    }

    /// Runs `body` and puts its error into the file system's words.
    static func translating<T>(
        _ body: () throws(CatalogError) -> T
    ) throws(FileSystemError) -> T {
        do throws(CatalogError) { return try body() } catch { throw FileSystemError(error) }
    }

    /// Runs `body` and puts its error into the file system's words.
    static func translatingContent<T>(
        _ body: () throws(ContentError) -> T
    ) throws(FileSystemError) -> T {
        do throws(ContentError) { return try body() } catch { throw FileSystemError(error) }
    }
}
