import Foundation
import OortCatalog
import OortModel
import OortSync

/// The engine's words for people.
enum SyncWords {
    /// How an account is of whose pending changes so many wait for a person.
    static func state(_ status: SyncStatus, refused: Int, isPaused: Bool) -> AccountStatus.State {
        switch status.trouble {
        case .signedOut, .clientRefused, .local, .unreadable: .trouble
        case .offline: .offline
        case nil:
            if !status.isEnumerated {
                .reading
            } else if isPaused {
                .paused
            } else if status.pendingCount > refused {
                .syncing
            } else if refused > 0 {
                .attention
            } else {
                .upToDate
            }
        }
    }

    /// Why nothing of an account is sent in which nothing may be changed.
    static let readOnly = "kept here: the account is read-only on this machine"

    /// The command by which a person signs in to an account again.
    static func signIn(account: String, service: String) -> String {
        "oort login \(service) --name \(Shell.quoted(account))"
    }

    /// What is wrong and what to do.
    static func trouble(_ trouble: SyncStatus.Trouble?, account: String, service: String) -> String?
    {
        let login = signIn(account: account, service: service)
        return switch trouble {
        case .signedOut(let detail):
            "Signed out: \(unended(detail)). What you change is kept. Sign in again: \(login)"
        case .clientRefused(let detail) where Services.named(service)?.oauth == nil:
            "The server is not used: \(unended(detail)). What you change is kept. It is tried again every ten "
                + "minutes, at once by oort sync, and with other settings after: \(login)"
        case .clientRefused(let detail):
            "The service refuses the app registration (client id or secret): \(unended(detail)). "
                + "What you change is kept. Correct client_id and the secret under [\(service)] in the "
                + "settings, then sign in again: \(login)"
        case .offline(let detail):
            "The service cannot be reached\(detail.isEmpty ? "" : " (\(detail))"); it is tried again by "
                + "itself."
        case .local(let detail):
            "Something on this machine keeps the account from being used: \(unended(detail)). What you "
                + "change is kept; it is tried again by itself."
        case .unreadable(let error):
            "What this machine knows of the account cannot be read (\(error)): what is pending is "
                + "not known. Look at the disk; nothing is sent or forgotten because of it."
        case nil: nil
        }
    }

    /// A server's sentence as a part of one of ours.
    private static func unended(_ detail: String) -> String {
        detail.hasSuffix(".") ? String(detail.dropLast()) : detail
    }

    /// One change that the cloud does not have yet, with its path below `folder`; `isHeld` says
    /// whether a program has the file open, `isCompared` whether what arrived of it is read,
    /// `obstacle` which folder above it is refused.
    static func change(
        _ item: PendingItem,
        below folder: String,
        isHeld: Bool = false,
        isCompared: Bool = false,
        obstacle: [String]? = nil,
        now: Date
    ) -> PendingChange {
        var next = next(for: item, isHeld: isHeld, isCompared: isCompared, now: now)
        if let obstacle, !item.isUnderWay, item.errorKind == nil {
            next = "waits for \(([folder] + obstacle).joined(separator: "/"))"
        }
        return PendingChange(
            path: ([folder] + item.path).joined(separator: "/"),
            action: action(of: item),
            kind: kind(of: item),
            bytes: item.size,
            error: error(of: item),
            next: next
        )
    }

    /// The refused folder above each item that lies in one, by its path: nothing goes into it before
    /// it is there itself.
    static func obstacles(_ items: [PendingItem], now: Date) -> [Inode: [String]] {
        let refused = Set(
            items.filter { !$0.isAtService && isRefused($0, now: now) }.map(\.path)
        )
        var obstacles: [Inode: [String]] = [:]
        for item in items where !refused.isEmpty {
            for depth in 1..<max(item.path.count, 1) {
                let above = Array(item.path.prefix(depth))
                if refused.contains(above) { obstacles[item.inode] = above }
            }
        }
        return obstacles
    }

    /// Whether an item stays pending until a person acts.
    static func isRefused(_ item: PendingItem, now: Date) -> Bool {
        if item.isForbidden { return true }
        guard !item.isUnderWay, let kind = item.errorKind,
            let wait = item.wait(now: Timestamp(now).inMilliseconds),
            refusals[kind] != nil || wait == .max
        else { return false }
        // An item that was just made due again has not been refused again yet.
        return wait > 5000
    }

    private static func kind(of item: PendingItem) -> PendingChange.Kind {
        if item.isDeleted { return .delete }
        if item.isNews { return .news }
        if item.kind == .folder { return .folder }
        return item.size > 0 ? .upload : .change
    }

    private static func action(of item: PendingItem) -> String {
        switch kind(of: item) {
        case .delete: "delete"
        case .news: "change in the cloud"
        case .folder: "folder"
        case .upload: "upload \(ByteSize(bytes: item.size))"
        case .change: "change"
        }
    }

    /// Why the service is asked about a change without an answer, from an earlier mount.
    static let noAnswer = "the service gave no answer"

    static func next(
        for item: PendingItem,
        isHeld: Bool,
        isCompared: Bool = false,
        now: Date
    ) -> String {
        if isCompared {
            return "what arrived is read and compared; sent again only if it is not the same"
        }
        if item.isForbidden { return "kept here; it goes out when the account may write it again" }
        if item.isUnderWay { return item.errorKind == nil ? "being sent" : "being sent again" }
        if isHeld {
            return item.isNews
                ? "a program has it open; the cloud's change shows when that closes it"
                : "a program has it open; it goes out when that closes it"
        }
        let milliseconds = item.wait(now: Timestamp(now).inMilliseconds) ?? 0
        guard milliseconds > 1000 else { return "waits its turn" }
        if milliseconds == .max {
            return "kept here; sent again when it changes, or once by oort sync"
        }
        let wait = milliseconds / 1000
        let isRefused = item.errorKind.map { refusals[$0] != nil } ?? false
        return isRefused
            ? "kept here; tried again by itself in \(wait) s, at once by oort sync"
            : "tried again in \(wait) s"
    }

    static func error(of item: PendingItem) -> String? {
        if item.isForbidden { return "the account may no longer change this: ask its owner" }
        guard let kind = item.errorKind else { return nil }
        let detail = item.errorDetail ?? ""
        guard let words = errorWords(kind) else { return "\(kind): \(detail)" }
        return detail.isEmpty ? words : "\(words) (\(detail))"
    }

    /// The words for an error's kind, whatever time it carries.
    static func errorWords(_ kind: String) -> String? {
        let plain = String(kind.prefix { $0 != "(" })
        return refusals[plain] ?? delays[plain]
    }

    /// Refusals for good, by the error's kind: what happened and what to do.
    private static let refusals = named([
        (.quotaExceeded, "the account is full: make room in the cloud"),
        (.limitExceeded, "a limit of the service's is reached: have fewer items, or fewer at once"),
        (.noPermission, "the account may not do this: ask the owner"),
        (.nameRefused, "the service does not take the name: rename it"),
        (.nameTooLong, "the name is too long for the service: rename it"),
        (.tooLarge, "the file is too large for the service"),
        (.contentBlocked, "the service blocks this content"),
        (.unsupported, "the service cannot do this"),
        (.badRequest, "the service did not understand; please report this"),
        (.localContent, "the content cannot be read from the local disk"),
        (.signedOut, "signed out: sign in again with oort login"),
        (
            .clientRefused,
            "the service does not let Oort in: by its app registration, host key or encryption"
        ),
    ])

    /// What passes by itself.
    private static let delays = named([
        (.offline, "the service could not be reached"),
        (.rateLimited(retryAfter: nil), "the service asks for patience"),
        (.outcomeUnknown(retryAfter: nil), "the service gave no answer; it is asked what it did"),
        (
            .malformedAnswer,
            "what answered is not the service: look whether the network wants you to log in first"
        ),
        (.contentDamaged, "the service stored other bytes than were sent"),
        (.locked, "another program at the service holds it"),
        (.sessionLost, "the service forgot the upload; it begins anew"),
        (.preconditionFailed, "it changed at the service meanwhile"),
        (.nameTaken, "something at the service has the name"),
        (.notFound, "it is not at the service any longer"),
        (.parentNotFound, "its folder is not at the service any longer"),
        (.notAFolder, "its folder is not a folder at the service any longer"),
        (.notAFile, "it is a folder at the service"),
        (.moveIntoItself, "a folder cannot go below itself"),
    ])

    private static func named(_ words: [(ProviderError.Kind, String)]) -> [String: String] {
        Dictionary(
            uniqueKeysWithValues: words.map { (String("\($0.0)".prefix { $0 != "(" }), $0.1) }
        )
    }
}
