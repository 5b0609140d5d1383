import OortModel
import SwiftSFTP

extension SFTPError {
    /// The error in canonical terms, where nothing more is known than the server's answer.
    func provider(_ path: RemotePath) -> ProviderError {
        let kind: ProviderError.Kind =
            switch self.kind {
            case .status(.noSuchFile): .notFound
            case .status(.permissionDenied): .noPermission
            case .status(.unsupported), .unsupported: .unsupported
            case .status(.badMessage): .nameRefused
            case .status: .limitExceeded
            case .connectionLost(let mayHaveBeenDone):
                mayHaveBeenDone ? .outcomeUnknown(retryAfter: nil) : .offline
            case .malformedAnswer: .malformedAnswer
            case .cancelled: .cancelled
            case .notSendable: .nameRefused
            }
        // The account's folder has no path below itself.
        return ProviderError(kind, detail: path.parts.isEmpty ? detail : "\(path): \(detail)")
    }

    /// Whether the session is over.
    var endsSession: Bool {
        switch kind {
        case .connectionLost, .malformedAnswer: true
        case .status, .cancelled, .notSendable, .unsupported: false
        }
    }

    /// Whether the server said no without saying why.
    var isFailure: Bool {
        if case .status(let status) = kind {
            // ProFTPD sends codes of later versions, 11 for "exists".
            return status == .failure || status.rawValue > 8
        }
        return false
    }
}
