import Foundation

/// What `oort status` shows: the running mount, if there is one, and every account.
struct StatusReport: Codable, Hashable, Sendable {
    /// The running mount; nil when none runs.
    var mount: MountStatus?
    /// The last mount, if it did not end orderly and none runs.
    var died: DiedMount?
    /// Every account that is signed in, or of which something is kept, by name.
    var accounts: [AccountStatus]
}

/// A mount that crashed, was killed, or ended with the machine.
struct DiedMount: Codable, Hashable, Sendable {
    /// Where it was mounted.
    var mountPoint: String
    /// The daemon's process.
    var process: Int32
    /// The file that has its last words.
    var log: String
}

/// The running mount.
struct MountStatus: Codable, Hashable, Sendable {
    /// Where it is mounted.
    var mountPoint: String
    /// The daemon's process.
    var process: Int32
    /// Since when it has run.
    var since: Date
    /// The daemon's version.
    var version: String
    /// Bytes of contents that can be fetched again.
    var cachedBytes: Int64
    /// The most bytes of such contents.
    var cacheLimit: Int64
    /// What keeps programs from writing, and what to do; nil when nothing does.
    var trouble: String?
    /// Folders with what had not been uploaded when a catalog was lost.
    var foldersAside: [String]?
}

/// One account.
struct AccountStatus: Codable, Hashable, Sendable {
    /// How the account is.
    enum State: String, Codable, Hashable, Sendable {
        /// No mount runs.
        case notMounted = "not mounted"
        /// The tree is being read for the first time.
        case reading = "reading the tree"
        /// Both sides agree.
        case upToDate = "up to date"
        /// Changes are on their way.
        case syncing
        /// The service cannot be reached.
        case offline
        /// The person must sign in again, or the service refuses.
        case trouble
    }

    /// The user's name for it.
    var name: String
    /// The service's name.
    var service: String
    /// Whose account it is, as the service says.
    var person: String?
    /// How it is.
    var state: State
    /// What is wrong and what to do, in words.
    var trouble: String?
    /// Bytes in use at the service.
    var usedBytes: Int64?
    /// Bytes that may be used; nil when unknown or without limit.
    var totalBytes: Int64?
    /// How many items of the tree are known, while it is being read.
    var knownItems: Int64?
    /// How many changes the cloud does not have yet, `pending` may show fewer.
    var pendingCount: Int
    /// Changes that the cloud does not have yet, those with an error first.
    var pending: [PendingChange]
    /// Transfers that run now.
    var transfers: [Transfer]
    /// Conflict copies that were made and are still there, as paths under the mount point.
    var conflicts: [String]
}

extension AccountStatus {
    /// An account of which nothing is known yet but whose it is.
    init(_ account: KeptAccount, state: State = .notMounted) {
        self.init(
            name: account.name,
            service: account.service,
            person: account.person,
            state: state,
            pendingCount: 0,
            pending: [],
            transfers: [],
            conflicts: []
        )
    }
}

/// One change that the cloud does not have yet.
struct PendingChange: Codable, Hashable, Sendable {
    /// The path under the mount point.
    var path: String
    /// What is to be done: upload, create folder, move, delete, set time.
    var action: String
    /// What went wrong last, in words.
    var error: String?
    /// What happens next, in words.
    var next: String?
}

/// One running transfer.
struct Transfer: Codable, Hashable, Sendable {
    /// The path under the mount point.
    var path: String
    /// Whether the bytes go up.
    var isUpload: Bool
    /// Bytes that are there: at the service, or of a file that is read, here.
    var doneBytes: Int64
    /// Bytes in all.
    var totalBytes: Int64
}

/// What a client asks, whose fields are all known: one that is misspelt must not mean "everything".
protocol ControlRequest: Codable, Sendable {
    /// The names of its fields in JSON.
    static var fields: Set<String> { get }
}

/// What the client asks when it wants to wait for the cloud.
struct SyncRequest: ControlRequest, Hashable {
    static let fields: Set = ["path", "timeout_seconds"]

    /// An absolute path under the mount point; nil for everything.
    var path: String?
    /// After this many seconds the answer is what is missing; nil waits for ever.
    var timeoutSeconds: Double?

    /// Refuses a time that is none.
    ///
    /// - Throws: `Failure` naming the field.
    func check() throws(Failure) {
        guard let timeoutSeconds, !(0...1e9).contains(timeoutSeconds) else { return }
        throw Failure("timeout_seconds must be from 0 to 1,000,000,000.")
    }
}

/// One line of the answer to a `SyncRequest`.
struct SyncProgress: Codable, Hashable, Sendable {
    /// Whether waiting goes on.
    enum State: String, Codable, Hashable, Sendable {
        /// More lines follow.
        case waiting
        /// The cloud has everything.
        case done
        /// The time is over; `pending` is missing.
        case timedOut
        /// What is missing cannot go out until somebody does something.
        case stuck
    }

    /// Whether waiting goes on.
    var state: State
    /// How many changes the cloud does not have yet.
    var pendingCount: Int
    /// Some of them, those with an error first.
    var pending: [PendingChange]
}

/// What the client asks when an account came or went.
struct AccountRequest: ControlRequest, Hashable {
    static let fields: Set = ["name"]

    /// The account's name.
    var name: String
}

/// What the client asks when the mount is to end.
struct UnmountRequest: ControlRequest, Hashable {
    static let fields: Set = ["mount_point"]

    /// The mount point as an absolute path; nil for whichever it is.
    var mountPoint: String?
}

/// The answer when something could not be done.
struct ControlFailure: Codable, Hashable, Sendable, Error {
    /// What happened.
    var message: String
    /// What to do.
    var advice: String?

    /// The same for people.
    var failure: Failure { Failure(message, advice: advice) }
}

/// The JSON of the control socket, one form for both sides.
enum ControlCoding {
    /// Keys in snake case, times in ISO 8601.
    static func encode(_ value: some Encodable, pretty: Bool = false) throws -> Data {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.dateEncodingStrategy = .iso8601
        encoder.outputFormatting =
            pretty
            ? [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes] : [.withoutEscapingSlashes]
        return try encoder.encode(value)
    }

    /// Reads what `encode` wrote.
    static func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        decoder.dateDecodingStrategy = .iso8601
        return try decoder.decode(type, from: data)
    }

    /// Reads what a client asks.
    ///
    /// - Throws: `ControlRefusal` or `DecodingError` for what is not its JSON; `Failure` naming a
    ///   field that it does not have.
    static func decodeRequest<Value: ControlRequest>(
        _ type: Value.Type,
        from data: Data
    ) throws -> Value {
        guard let object = try? JSONSerialization.jsonObject(with: data) as? [String: Any] else {
            throw ControlRefusal(400, "The request is no JSON object.")
        }
        if let unknown = object.keys.sorted().first(where: { !type.fields.contains($0) }) {
            throw Failure(
                "The request has a field \"\(unknown)\" that is not known here.",
                advice: "Its fields are: \(type.fields.sorted().joined(separator: ", "))."
            )
        }
        return try decode(type, from: data)
    }
}
