/// Why an operation of a provider did not give its answer.
///
/// Code may decide by `kind` only; `detail` is for the log and for people and never holds a secret.
public struct ProviderError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The closed list of what can go wrong.
    public enum Kind: Hashable, Sendable {
        /// The item is positively not there (never used for "could not ask").
        case notFound
        /// The folder meant as parent is positively not there.
        case parentNotFound
        /// The change feed's cursor is no longer valid: enumerate again and compare.
        case cursorLost
        /// The upload session is no longer valid: open a new one.
        case sessionLost
        /// The revision that was to be replaced or deleted is not the current one.
        case preconditionFailed
        /// Another item has the name.
        case nameTaken
        /// The service refuses the name.
        case nameRefused
        /// The name or the path is longer than the service takes.
        case nameTooLong
        /// A file was met where a folder is needed.
        case notAFolder
        /// A folder was met where a file is needed.
        case notAFile
        /// A folder cannot go below itself.
        case moveIntoItself
        /// The account may not do this with this item.
        case noPermission
        /// The service will not hand out the content (malware, legal block, no download right).
        case contentBlocked
        /// The item is locked by another program at the service; later it may work.
        case locked
        /// The token is no longer valid and cannot be refreshed: the person must sign in again.
        case signedOut
        /// The service refuses the program itself, its client id or secret: the person must mend the
        /// registration and sign in again.
        case clientRefused
        /// The account's room is used up.
        case quotaExceeded
        /// Another limit of the service: items, depth, daily transfer.
        case limitExceeded
        /// The content is larger than the service takes.
        case tooLarge
        /// The content that arrived is not the content that was sent (hash mismatch); after an
        /// upload `item` is what the service has instead.
        case contentDamaged
        /// The service does not have this capability, or not for this item.
        case unsupported
        /// The service asks for patience; certainly not done.
        case rateLimited(retryAfter: Duration?)
        /// The service could not be reached; certainly not done.
        case offline
        /// No answer, or a fault of the service's (5xx): whether it was done is unknown.
        case outcomeUnknown(retryAfter: Duration?)
        /// The answer was not of the protocol; whether it was done is unknown.
        case malformedAnswer
        /// The service did not take the request's form: a fault of ours.
        case badRequest
        /// The local content could not be read.
        case localContent
        /// The task was cancelled.
        case cancelled
    }

    /// What went wrong.
    public var kind: Kind
    /// The service's code, status and request id, for the log and for people; no secrets.
    public var detail: String
    /// What an upload whose content arrived damaged left at the service; nil for all other errors.
    public var item: Item?

    /// An error of a kind, with words for the log.
    public init(_ kind: Kind, detail: String, item: Item? = nil) {
        self.kind = kind
        self.detail = detail
        self.item = item
    }

    /// Whether the same call may work a little later by itself.
    public var isTransient: Bool {
        switch kind {
        case .rateLimited, .offline, .outcomeUnknown, .malformedAnswer, .locked, .contentDamaged:
            true
        case .notFound, .parentNotFound, .cursorLost, .sessionLost, .preconditionFailed, .nameTaken,
            .nameRefused, .nameTooLong, .notAFolder, .notAFile, .moveIntoItself, .noPermission,
            .contentBlocked, .signedOut, .clientRefused, .quotaExceeded, .limitExceeded, .tooLarge,
            .unsupported,
            .badRequest, .localContent, .cancelled:
            false
        }
    }

    /// Whether just this request is refused, and for good: others may still be answered.
    public var isLastingRefusal: Bool {
        switch kind {
        case .notFound, .parentNotFound, .sessionLost, .preconditionFailed, .nameTaken,
            .nameRefused, .nameTooLong, .notAFolder, .notAFile, .moveIntoItself, .noPermission,
            .contentBlocked,
            .quotaExceeded, .limitExceeded, .tooLarge, .unsupported, .badRequest:
            true
        case .signedOut, .clientRefused, .localContent, .cancelled, .cursorLost, .rateLimited,
            .offline, .outcomeUnknown, .malformedAnswer, .locked, .contentDamaged:
            false
        }
    }

    /// Whether the service may have done it although no usable answer came: ask what was done before
    /// repeating.
    public var isOutcomeUnknown: Bool {
        switch kind {
        case .outcomeUnknown, .malformedAnswer, .cancelled: true
        default: false
        }
    }

    /// The error of an operation of several requests, of which an earlier one was done, or may have been:
    /// that a later one certainly was not does not hold for the operation.
    public var asUnknownOutcome: ProviderError {
        switch kind {
        case .offline, .rateLimited, .locked, .signedOut, .clientRefused:
            ProviderError(.outcomeUnknown(retryAfter: retryAfter), detail: detail, item: item)
        default: self
        }
    }

    /// The error of a request that holds nothing but a cursor: if the service refuses it, it refuses the
    /// cursor.
    public var asOfCursor: ProviderError {
        kind == .badRequest ? ProviderError(.cursorLost, detail: detail) : self
    }

    /// How long the service asked to wait, if it did.
    public var retryAfter: Duration? {
        switch kind {
        case .rateLimited(let after), .outcomeUnknown(let after): after
        default: nil
        }
    }

    /// Kind and detail, for the log.
    public var description: String { "\(kind): \(detail)" }
}
