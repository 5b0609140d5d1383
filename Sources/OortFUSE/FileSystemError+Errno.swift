import OortFileSystem
import SwiftFUSE

extension FileSystemError {
    /// The number that the calling program sees: Oort's only table of them.
    var errno: Errno {
        switch self {
        case .notFound: .noSuchFile
        case .exists: .fileExists
        case .notEmpty: .notEmpty
        case .notAFolder: .notADirectory
        case .isAFolder: .isADirectory
        case .notPermitted: .notPermitted
        case .noPermission: .permissionDenied
        case .signedOut: .permissionDenied
        case .readOnly: .readOnlyFileSystem
        case .otherAccount: .crossDevice
        case .notInTrash: .crossDevice
        case .moveIntoItself: .invalidArgument
        case .nameRefused: .invalidArgument
        case .nameTooLong: .nameTooLong
        case .invalid: .invalidArgument
        case .badHandle: .badHandle
        case .noAttribute: .noData
        case .notSupported: .notSupported
        case .noMoreData: .noSuchOffset
        case .tooLarge: .fileTooLarge
        case .attributeTooLarge: .argumentTooLong
        case .noSpace: .noSpace
        case .quotaExceeded: .quotaExceeded
        case .offline: .hostUnreachable
        case .timedOut: .timedOut
        case .interrupted: .interrupted
        case .revisionGone: .staleHandle
        case .locked: .busy
        case .contentDamaged: .inputOutput
        case .failed: .inputOutput
        }
    }
}
