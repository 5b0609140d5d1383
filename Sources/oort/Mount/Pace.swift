import Foundation

/// How fast a mount may send and fetch, and what it does not send at all: what a person said with
/// `oort limit` and `oort pause`, kept over restarts.
struct Pace: Codable, Hashable, Sendable {
    /// A time in which nothing is sent.
    struct Pause: Codable, Hashable, Sendable {
        /// Its end; nil for until a person ends it.
        var until: Date?

        /// Whether it is over.
        func isOver(at now: Date) -> Bool { until.map { $0 <= now } ?? false }
    }

    /// Bytes that may go up in a second; nil for no limit.
    var uploadLimit: Int64?
    /// Bytes that may come down in a second; nil for no limit.
    var downloadLimit: Int64?
    /// The pause of all accounts, those that are signed in later among them.
    var everything: Pause?
    /// The pauses of single accounts, by name.
    var accounts: [String: Pause] = [:]

    /// The pause that an account is in; nil when it is in none.
    func pause(of account: String, at now: Date) -> Pause? {
        [everything, accounts[account]].compactMap(\.self).filter { !$0.isOver(at: now) }
            .max { ($0.until ?? .distantFuture) < ($1.until ?? .distantFuture) }
    }

    /// Ends the pause of one account, of these, or of all.
    mutating func resume(_ account: String?, of all: [String]) {
        guard let account else {
            (everything, accounts) = (nil, [:])
            return
        }
        if let everything {
            for other in all where accounts[other] == nil { accounts[other] = everything }
            self.everything = nil
        }
        accounts[account] = nil
    }

    /// Forgets what is over.
    mutating func forgetPast(at now: Date) {
        if everything?.isOver(at: now) == true { everything = nil }
        accounts = accounts.filter { !$0.value.isOver(at: now) }
    }

    /// When the next pause ends by itself.
    var nextEnd: Date? {
        (Array(accounts.values) + [everything].compactMap(\.self)).compactMap(\.until).min()
    }

    /// Reads what was kept.
    ///
    /// - Throws: an error of Foundation's for a file that cannot be read.
    static func read(_ path: String) throws -> Pace {
        guard FileManager.default.fileExists(atPath: path) else { return Pace() }
        return try ControlCoding.decode(
            Pace.self,
            from: try Data(contentsOf: URL(fileURLWithPath: path))
        )
    }

    /// Keeps it.
    ///
    /// - Throws: an error of Foundation's when the disk refuses; what was kept before stays.
    func write(_ path: String) throws {
        try ControlCoding.encode(self, pretty: true)
            .write(to: URL(fileURLWithPath: path), options: .atomic)
    }
}
