import Foundation

/// What `oort status` shows: the running mount, if there is one, and every account.
struct StatusReport: Codable, Hashable, Sendable {
    /// The running mount; nil when none runs.
    var mount: MountStatus?
    /// The last mount, if it did not end orderly and none runs.
    var died: DiedMount?
    /// Every account that is signed in, or of which something is kept, by name.
    var accounts: [AccountStatus]
    /// All that waits for a person, most urgent first; nil where no mount runs.
    var needs: [Need]?
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
    /// Bytes in the cache that are pinned, where these alone are more than the limit; nil otherwise.
    var keptAboveLimit: Int64?
    /// Bytes that may go up in a second; nil for no limit.
    var uploadLimit: Int64?
    /// Bytes that may come down in a second; nil for no limit.
    var downloadLimit: Int64?
    /// What keeps programs from writing, and what to do; nil when nothing does.
    var trouble: String?
    /// Folders with what had not been uploaded when a catalog was lost.
    var foldersAside: [String]?
    /// The folder with what programs wrote at the mount point in the moment before it was mounted.
    var foundBeneath: String?
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
        /// A person wants nothing to be sent.
        case paused
        /// Changes are on their way.
        case syncing
        /// What is left goes out only when a person acts.
        case attention = "needs attention"
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
    /// What else a person should know of it now; nil where there is nothing.
    var remarks: [String]?
    /// The command that signs in again; nil where that is not what it needs.
    var signIn: String?
    /// Whether nothing may be changed in it here; nil when it may.
    var isReadOnly: Bool?
    /// What its service can do; nil while that is not known.
    var abilities: AccountAbilities?
    /// When a pause ends; nil when there is none, or only a person can end it.
    var pausedUntil: Date?
    /// Bytes in use at the service.
    var usedBytes: Int64?
    /// Bytes that may be used; nil when unknown or without limit.
    var totalBytes: Int64?
    /// How many items of the tree are known, while it is being read.
    var knownItems: Int64?
    /// How many changes the cloud does not have yet, `pending` may show fewer.
    var pendingCount: Int
    /// Bytes of these that have still to travel.
    var pendingBytes: Int64?
    /// How many of these go out only when a person acts.
    var refusedCount: Int?
    /// Bytes that went up a second lately; nil when none did.
    var uploadBytesPerSecond: Int64?
    /// Bytes that came down a second lately; nil when none did.
    var downloadBytesPerSecond: Int64?
    /// How long what goes by itself will take at the rates that were measured.
    var secondsLeft: Int64?
    /// All that is pending, in groups of what waits for one reason.
    var waiting: [PendingGroup]?
    /// Changes that the cloud does not have yet, those with an error first.
    var pending: [PendingChange]
    /// Transfers that run now.
    var transfers: [Transfer]
    /// How much is here of what is to be kept on this machine; nil where nothing is.
    var keeping: PinProgress?
    /// How many items stay on this machine by the person's rules; nil where none do.
    var staysHere: Int?
    /// Conflict copies that were made and are still there, as paths under the mount point.
    var conflicts: [String]
    /// Names that programs wanted lately and the service does not take, the newest first; nil where
    /// there are none.
    var refusedNames: [RefusedNameReport]?
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

/// A name that a program wanted and the service does not take.
struct RefusedNameReport: Codable, Hashable, Sendable {
    /// The path under the mount point that it would have had.
    var path: String
    /// Which rule it breaks, in words.
    var reason: String
    /// When it was wanted last.
    var time: Date
}

/// One change that the cloud does not have yet.
struct PendingChange: Codable, Hashable, Sendable {
    /// What a change is.
    enum Kind: String, Codable, Hashable, Sendable {
        /// Content goes to the service.
        case upload
        /// A new folder, or a change of one.
        case folder
        /// A change of a file without its content: a move, a time, a description.
        case change
        /// It goes at the service.
        case delete
        /// Nothing is sent: what the service has changed waits to be shown here.
        case news
    }

    /// The path under the mount point.
    var path: String
    /// What is to be done, in words with the size.
    var action: String
    /// The same for programs; nil for an account that is not signed in.
    var kind: Kind?
    /// Bytes that have to travel for it.
    var bytes: Int64?
    /// What went wrong last, in words.
    var error: String?
    /// What happens next, in words.
    var next: String?

    /// What was done where, and no word of what became of it.
    var bare: PendingChange {
        var change = self
        (change.error, change.next) = (nil, nil)
        return change
    }
}

/// Pending changes that wait for one reason.
struct PendingGroup: Codable, Hashable, Sendable {
    /// How many.
    var count: Int
    /// Bytes that they have to send.
    var bytes: Int64
    /// Whether they are being sent now.
    var isUnderWay: Bool
    /// Whether they go out only when a person acts.
    var needsPerson: Bool
    /// What went wrong, in words.
    var reason: String?
    /// What happens next, in words.
    var next: String
    /// A few of them.
    var examples: [PendingExample]

    /// Whether there is more to say of them than that they are being sent.
    var needsWords: Bool { !isUnderWay || reason != nil }
}

/// One of a group.
struct PendingExample: Codable, Hashable, Sendable {
    /// The path under the mount point.
    var path: String
    /// What the service said of it.
    var detail: String?
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
        /// What is missing cannot go out until a person acts.
        case stuck
    }

    /// Whether waiting goes on.
    var state: State
    /// How many changes the cloud does not have yet.
    var pendingCount: Int
    /// Bytes of these that have still to travel.
    var pendingBytes: Int64?
    /// Bytes that went up a second lately; nil when none did.
    var uploadBytesPerSecond: Int64?
    /// How long it will take at the rates that were measured.
    var secondsLeft: Int64?
    /// Some of them, those with an error first.
    var pending: [PendingChange]
}

/// What the client asks when an account came or went.
struct AccountRequest: ControlRequest, Hashable {
    static let fields: Set = ["name"]

    /// The account's name.
    var name: String
}

/// What the client asks when an account is being signed out.
struct AccountRemovalRequest: ControlRequest, Hashable {
    static let fields: Set = ["name", "given_up"]

    /// The account's name.
    var name: String
    /// How many items that its cloud does not have are given up, where more of them refuse it; nil for none.
    var givenUp: Int?
}

/// What the client asks when the mount is to end.
struct UnmountRequest: ControlRequest, Hashable {
    static let fields: Set = ["mount_point"]

    /// The mount point as an absolute path; nil for whichever it is.
    var mountPoint: String?
}

/// What the client asks when it has inodes and a person wants paths.
struct PathsRequest: ControlRequest, Hashable {
    static let fields: Set = ["inodes"]

    /// The inodes' numbers.
    var inodes: [UInt64]
}

/// The answer to a `PathsRequest`.
struct PathsAnswer: Codable, Hashable, Sendable {
    /// Paths by the inode's number; those that are nowhere in the tree are left out.
    var paths: [String: String]
}

/// Two versions of one file, both kept.
struct ConflictReport: Codable, Hashable, Sendable {
    /// One of the two.
    struct Version: Codable, Hashable, Sendable {
        /// The path under the mount point.
        var path: String
        /// Bytes in all.
        var size: Int64
        /// When its content was modified.
        var modified: Date
        /// Whose it is, in words.
        var author: String?
    }

    /// The number by which it is ended.
    var id: UInt64
    /// The account's name.
    var account: String
    /// When the copy was made.
    var made: Date
    /// What was written on this machine: the conflict copy.
    var mine: Version
    /// The other side's version: the file that has the name.
    var theirs: Version
    /// How mine differs from theirs, line by line; nil for what is large or no text.
    var diff: String?
}

/// What the client asks when it wants to see the conflicts that are not ended.
struct ConflictsRequest: ControlRequest, Hashable {
    static let fields: Set = ["path"]

    /// An absolute path under the mount point; nil for all accounts.
    var path: String?
}

/// What the client asks when a conflict is over and both files stay.
struct EndConflictRequest: ControlRequest, Hashable {
    static let fields: Set = ["id"]

    /// The conflict's number.
    var id: UInt64
}

/// What the client asks before it gives up one of two versions.
struct ConflictChoice: ControlRequest, Hashable {
    static let fields: Set = ["id", "keep"]

    /// The conflict's number.
    var id: UInt64
    /// What stays.
    var keep: ResolveCommand.Choice
}

/// What the client asks when nothing is to be sent for a time.
struct PauseRequest: ControlRequest, Hashable {
    static let fields: Set = ["account", "seconds"]

    /// The account's name; nil for all.
    var account: String?
    /// How long; nil for until a person ends it.
    var seconds: Double?

    /// Refuses a time that is none.
    ///
    /// - Throws: `Failure` naming the field.
    func check() throws(Failure) {
        guard let seconds, !(seconds > 0 && seconds <= 1e9) else { return }
        throw Failure("seconds must be above 0, and 1,000,000,000 at most.")
    }
}

/// What the client asks when sending is to go on.
struct ResumeRequest: ControlRequest, Hashable {
    static let fields: Set = ["account"]

    /// The account's name; nil for all.
    var account: String?
}

/// What the client asks when transfers are to be slower, or no longer.
struct LimitRequest: ControlRequest, Hashable {
    static let fields: Set = ["up", "down", "off"]

    /// The least that a limit may be, bytes a second: below that nothing gets anywhere.
    static let least: Int64 = 8 << 10

    /// Bytes a second; nil leaves it.
    var up: Int64?
    /// Bytes a second; nil leaves it.
    var down: Int64?
    /// Whether both limits go first.
    var off: Bool?

    /// Refuses a limit below which nothing gets anywhere.
    ///
    /// - Throws: `Failure` in words.
    func check() throws(Failure) {
        for limit in [up, down].compactMap(\.self) where limit < Self.least {
            throw Failure(
                "A limit of \(ByteSize(bytes: limit)) a second is too low.",
                advice: "The least is \(ByteSize(bytes: Self.least)); `oort pause` sends nothing."
            )
        }
    }
}

/// Limits and pauses as they are now.
struct PaceReport: Codable, Hashable, Sendable {
    /// Bytes that may go up in a second; nil for no limit.
    var uploadLimit: Int64?
    /// Bytes that may come down in a second; nil for no limit.
    var downloadLimit: Int64?
    /// The accounts of which nothing is sent.
    var paused: [PausedAccount]
}

/// An account of which nothing is sent.
struct PausedAccount: Codable, Hashable, Sendable {
    /// The account's name.
    var account: String
    /// When that ends; nil for when a person ends it.
    var until: Date?
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
