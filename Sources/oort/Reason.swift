import Foundation
import struct SystemPackage.Errno

extension Error {
    /// Why, in the system's words ("No such file or directory") where it said so; Foundation's own say that an
    /// operation could not be completed.
    var reason: String {
        switch (self as NSError).userInfo[NSUnderlyingErrorKey] {
        case let cause as POSIXError: Errno(rawValue: cause.code.rawValue).description
        case let cause as NSError where cause.domain == NSPOSIXErrorDomain:
            Errno(rawValue: Int32(clamping: cause.code)).description
        default: localizedDescription
        }
    }
}
