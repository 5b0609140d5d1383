import Foundation

/// What the client asks when something is to be kept on this machine.
struct PinRequest: ControlRequest, Hashable {
    static let fields: Set = ["path", "until"]

    /// An absolute path under the mount point.
    var path: String
    /// When that ends; nil for when a person ends it.
    var until: Date?
}

/// What the client asks when something need not be kept any longer.
struct UnpinRequest: ControlRequest, Hashable {
    static let fields: Set = ["path"]

    /// An absolute path under the mount point.
    var path: String
}

/// What the client asks when cached contents are to give room back.
struct FreeRequest: ControlRequest, Hashable {
    static let fields: Set = ["path", "all", "unused_seconds"]

    /// An absolute path under the mount point.
    var path: String?
    /// Whether everything is meant.
    var all: Bool?
    /// Only contents that were not used for so long.
    var unusedSeconds: Double?

    /// Refuses what names nothing, or two things.
    ///
    /// - Throws: `Failure` naming the fields.
    func check() throws(Failure) {
        guard (path != nil) != (all == true) else {
            throw Failure("Either path is to be given, or all as true.")
        }
        guard let unusedSeconds, !(0...1e10).contains(unusedSeconds) else { return }
        throw Failure("unused_seconds must be from 0 to 10,000,000,000.")
    }
}

/// What is kept on this machine.
struct PinReport: Codable, Hashable, Sendable {
    /// The path under the mount point, or from the account's name on while no mount runs.
    var path: String
    /// When it was pinned.
    var made: Date
    /// When that ends; nil for when a person ends it.
    var until: Date?
    /// How much of it is here.
    var progress: PinProgress
}

/// How much of what is to be kept is here.
struct PinProgress: Codable, Hashable, Sendable {
    /// How many files there are.
    var files: Int
    /// Bytes of them.
    var bytes: Int64
    /// Of how many files all bytes are here.
    var filesHere: Int
    /// Bytes that are here.
    var bytesHere: Int64
    /// Why nothing comes now, in words; nil while something does, or when all is here.
    var waits: String?
    /// Files that find no room.
    var filesWithoutRoom: Int?
    /// Bytes of those.
    var bytesWithoutRoom: Int64?
    /// Files that do not come, with the reasons; at most a hundred.
    var refused: [PendingExample]

    /// Whether nothing has still to come.
    var isComplete: Bool { filesHere == files }
}

/// What came of taking cached contents away.
struct FreeReport: Codable, Hashable, Sendable {
    /// Some files' contents.
    struct Sum: Codable, Hashable, Sendable {
        /// How many.
        var count: Int
        /// Bytes that they have on this machine.
        var bytes: Int64
    }

    /// The contents that were removed.
    var freed: Sum
    /// What stays because it is pinned.
    var pinned: Sum
    /// What stays because a program has it open.
    var open: Sum
    /// What stays because the cloud does not have what was made of it.
    var unsent: Sum
    /// The accounts whose contents stay because nothing could bring them again, by name; nil for none.
    var unreachable: [String]?
}
