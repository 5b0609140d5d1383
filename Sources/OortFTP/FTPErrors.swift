import CCurl
import OortModel

/// Why a transfer, or a few commands, came to nothing.
struct FTPFailure: Error, Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        /// The server could not be reached: certainly nothing was done.
        case unreachable
        /// The connection broke, or nothing moved on it for too long.
        case lost
        /// The server's certificate was refused.
        case untrusted
        /// The server takes no encrypted connection.
        case notEncrypted
        /// The server refuses the login.
        case loginRefused
        /// The server takes no more connections of this login.
        case tooMany
        /// The server said no to what was asked.
        case refused(FTPReply)
        /// Fewer bytes came than there are.
        case endedEarly
        /// What came is not of the protocol.
        case malformed
        /// The content to be sent could not be read.
        case localContent(ProviderError)
        /// The caller ended it.
        case cancelled
    }

    var kind: Kind
    var detail: String

    /// Whether the same again on a new connection may work at once: the server had closed the old one.
    var isOfOldConnection = false
    /// Whether more answers are on their way on the connection than were asked for.
    var isOutOfStep = false

    init(_ kind: Kind, _ detail: String) {
        self.kind = kind
        self.detail = detail
    }

    /// In canonical terms, where nothing more is known than this; `changes` says whether it may have
    /// changed something at the server.
    func provider(_ path: String, changes: Bool = false) -> ProviderError {
        let kind: ProviderError.Kind =
            switch self.kind {
            case .unreachable, .untrusted: .offline
            case .notEncrypted: .clientRefused
            case .loginRefused: .signedOut
            case .tooMany: .rateLimited(retryAfter: .seconds(10))
            case .lost: changes ? .outcomeUnknown(retryAfter: nil) : .offline
            case .endedEarly: .outcomeUnknown(retryAfter: nil)
            case .malformed: .malformedAnswer
            case .cancelled: .cancelled
            case .localContent(let error): error.kind
            case .refused(let reply): reply.meaning
            }
        var words = detail
        if case .untrusted = self.kind {
            words = "the server's certificate was refused, see ca_file in the settings: \(detail)"
        }
        return ProviderError(kind, detail: path.isEmpty ? words : "\(path): \(words)")
    }
}

extension FTPReply {
    /// What a refusal means where nothing else was looked at: 550 stands for most things.
    var meaning: ProviderError.Kind {
        switch code {
        case 421, 425, 426, 450: .locked
        case 400..<500 where code != 452: .outcomeUnknown(retryAfter: nil)
        case 452, 552: .quotaExceeded
        case 553: .nameRefused
        case 500, 502, 504: .unsupported
        case 501: .nameRefused
        case 530, 532: .noPermission
        default: .noPermission
        }
    }

    /// Whether a refusal is about what was named, and neither about the moment nor about the login.
    var refusesThePath: Bool { (500..<600).contains(code) && code != 530 }

    /// Whether the server positively says that there is nothing: 550 alone does not, but the system's own
    /// words at the end do, which are not translated.
    func saysMissing(of path: FTPPath) -> Bool {
        let words = Array("no such file or directory".utf8)
        func has(_ bytes: [UInt8]) -> Bool {
            var text = bytes.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
            while let last = text.last, last == 0x20 || last == 0x2E { text.removeLast() }
            return text.count >= words.count && Array(text.suffix(words.count)) == words
        }
        guard code == 550, let last = lines.last, !has(path.bytes) else { return false }
        return has(last)
    }

    /// Whether a refused login is so for the number of connections: such words are the only difference to
    /// a wrong password.
    var saysTooMany: Bool {
        let text = String(decoding: lines.flatMap { $0 }, as: UTF8.self).lowercased()
        return code == 421
            || ["too many", "maximum", "limit", "already connected"].contains { text.contains($0) }
    }
}

extension FTPReply {
    /// What it means that a login is answered so.
    var loginRefusal: FTPFailure.Kind {
        if saysTooMany { return .tooMany }
        // A trouble of the server's that passes (RFC 959, 4.2.1): it says nothing of the password.
        return (400..<500).contains(code) ? .unreachable : .loginRefused
    }
}

extension FTPFailure {
    /// What libcurl's code means; nil for success.
    ///
    /// See libcurl-errors(3). `isFresh` says whether the transfer made a new connection, `isLoggedIn`
    /// whether the server accepted the login on it.
    init?(
        _ code: CURLcode,
        text: String,
        replies: [FTPReply],
        isFresh: Bool,
        isLoggedIn: Bool
    ) {
        let words =
            "\(text.isEmpty ? unsafe String(cString: curl_easy_strerror(code)) : text) (curl \(code.rawValue))"
        let last = replies.last
        switch code {
        case CURLE_OK: return nil
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_CACERT_BADFILE,
            CURLE_SSL_INVALIDCERTSTATUS:
            self.init(.untrusted, words)
        case CURLE_SSL_CONNECT_ERROR where isFresh:
            self.init(.unreachable, "\(words): what answers there may not be encrypted")
        case CURLE_USE_SSL_FAILED: self.init(.notEncrypted, words)
        case CURLE_LOGIN_DENIED:
            self.init(last?.loginRefusal ?? .loginRefused, last.map(\.words) ?? words)
        case CURLE_ABORTED_BY_CALLBACK: self.init(.cancelled, "ended")
        case CURLE_FTP_COULDNT_RETR_FILE, CURLE_UPLOAD_FAILED, CURLE_REMOTE_ACCESS_DENIED,
            CURLE_REMOTE_DISK_FULL, CURLE_REMOTE_FILE_NOT_FOUND, CURLE_FTP_COULDNT_SET_TYPE,
            CURLE_FTP_COULDNT_USE_REST, CURLE_QUOTE_ERROR:
            guard let last, !last.isGood else {
                self.init(.lost, words)
                return
            }
            self.init(last.code == 421 ? .tooMany : .refused(last), last.words)
        case CURLE_PARTIAL_FILE, CURLE_WEIRD_SERVER_REPLY:
            if let last, last.code >= 400, isLoggedIn {
                self.init(.refused(last), last.words)
            } else if let last, last.code >= 400 {
                self.init(last.saysTooMany ? .tooMany : .unreachable, last.words)
            } else {
                self.init(.endedEarly, words)
            }
        case CURLE_FTP_WEIRD_PASV_REPLY, CURLE_FTP_WEIRD_227_FORMAT:
            // Refusing a transfer the server closes its data connection; libcurl takes that for a fault of
            // EPSV, sends PASV and reads the refusal as the answer to it.
            if let last, last.code >= 500 {
                self.init(.refused(last), last.words)
            } else {
                self.init(.lost, words)
            }
            isOutOfStep = true
        default:
            if isFresh, !isLoggedIn {
                self.init(last?.code == 421 ? .tooMany : .unreachable, words)
            } else {
                self.init(.lost, words)
                isOfOldConnection = !isFresh && replies.allSatisfy { $0.code == 421 }
            }
        }
    }
}
