import Foundation
import OortCatalog
import OortFileSystem
import OortModel
import OortSync

/// One account as long as it is mounted.
struct MountedAccount: Sendable {
    /// The user's name for it.
    let name: String
    /// The service's name.
    let service: String
    /// What keeps it and its service in agreement.
    let engine: SyncEngine
    /// Runs the engine; owned by this value, ended by `stop`.
    private let running: Task<Void, Never>

    /// Starts the engine.
    init(name: String, service: String, engine: SyncEngine) {
        self.name = name
        self.service = service
        self.engine = engine
        running = Task { await engine.run() }
    }

    /// Its number in the catalog.
    var id: AccountID { engine.account }

    /// Ends the engine; what is pending stays in the catalog.
    func stop() async {
        running.cancel()
        await running.value
    }
}

/// The engine as the file system sees it.
struct EngineLister: FolderLister {
    /// The account's engine.
    let engine: SyncEngine

    func list(_ folder: Inode) async throws(ProviderError) { try await engine.list(folder) }
}

/// The engine's words for people.
enum SyncWords {
    /// How an account is.
    static func state(_ status: SyncStatus) -> AccountStatus.State {
        switch status.trouble {
        case .signedOut: .trouble
        case .offline: .offline
        case nil:
            if !status.isEnumerated {
                .reading
            } else if !status.pending.isEmpty {
                .syncing
            } else {
                .upToDate
            }
        }
    }

    /// What is wrong and what to do.
    static func trouble(_ trouble: SyncStatus.Trouble?, account: String, service: String) -> String?
    {
        switch trouble {
        case .signedOut(let detail):
            "Signed out: \(detail). What you change is kept. Sign in again: "
                + "oort login \(service) --name \(Shell.quoted(account))"
        case .offline: "The service cannot be reached; it is tried again by itself."
        case nil: nil
        }
    }

    /// One change that the cloud does not have yet, with its path below `folder`.
    static func change(_ item: PendingItem, below folder: String, now: Date) -> PendingChange {
        let action =
            if item.isDeleted {
                "delete"
            } else if item.kind == .folder {
                "folder"
            } else if item.size > 0 {
                "upload \(ByteSize(bytes: item.size))"
            } else {
                "change"
            }
        let wait = Double(item.nextTry) / 1000 - now.timeIntervalSince1970
        let next =
            if item.isUnderWay {
                "being sent"
            } else if wait > 1 {
                "tried again in \(Int(wait)) s"
            } else {
                "waits its turn"
            }
        return PendingChange(
            path: ([folder] + item.path).joined(separator: "/"),
            action: action,
            error: item.errorKind.map { kind in error(kind, item.errorDetail ?? "") },
            next: next
        )
    }

    /// Whether an item stays pending until somebody does something.
    static func isRefused(_ item: PendingItem, now: Date) -> Bool {
        guard !item.isUnderWay, let kind = item.errorKind, refusals[kind] != nil else {
            return false
        }
        // What was just told to try again has not been refused again yet.
        return Double(item.nextTry) / 1000 > now.timeIntervalSince1970 + 5
    }

    private static func error(_ kind: String, _ detail: String) -> String {
        guard let words = refusals[kind] else { return "\(kind): \(detail)" }
        return "\(words) (\(detail))"
    }

    /// Refusals for good, by the error's kind: what happened and what to do.
    private static let refusals: [String: String] = {
        let words: [(ProviderError.Kind, String)] = [
            (.quotaExceeded, "the account is full: make room in the cloud"),
            (.limitExceeded, "a limit of the service's is reached: have fewer items"),
            (.noPermission, "the account may not do this: ask the owner"),
            (.nameRefused, "the service does not take the name: rename it"),
            (.nameTooLong, "the name is too long for the service: rename it"),
            (.tooLarge, "the file is too large for the service"),
            (.contentBlocked, "the service blocks this content"),
            (.unsupported, "the service cannot do this"),
            (.badRequest, "the service did not understand; please report this"),
            (.localContent, "the content cannot be read from the local disk"),
            (.signedOut, "signed out: sign in again with oort login"),
        ]
        return Dictionary(uniqueKeysWithValues: words.map { ("\($0.0)", $0.1) })
    }()
}
