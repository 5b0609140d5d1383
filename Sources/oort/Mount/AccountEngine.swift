import OortContentStore
import OortFileSystem
import OortModel

/// What the mount needs of whatever keeps one account and its service in agreement.
///
/// Isolation: any thread; nothing blocks.
protocol AccountEngine: FolderLister, ContentFetcher {
    /// Follows the change feed and sends what is pending, until the task is cancelled.
    func run() async
    /// A local operation put an item in motion.
    func heardOfLocalChange()
    /// Sends what is pending now: without settling, without waiting for the next try.
    func hurry()
    /// How the account is.
    func report() async -> EngineReport
    /// What is pending below a folder or is that item itself; everything for nil.
    func pending(below inode: Inode?) async -> PendingReport
}

/// How an account is, as its engine sees it.
struct EngineReport: Sendable {
    /// How it is.
    var state: AccountStatus.State
    /// What is wrong and what to do, in words.
    var trouble: String?
    /// Transfers that run now.
    var transfers: [Transfer]
    /// Conflict copies that are still there, as paths from the account's folder.
    var conflicts: [String]
    /// How many items are known.
    var knownItems: Int64?
}

/// What an account's service does not have yet.
struct PendingReport: Sendable {
    /// How many changes.
    var count: Int
    /// Some of them, those with an error first, with paths from the account's folder.
    var changes: [PendingChange]
    /// Whether none of them can go out until somebody does something.
    var isStuck: Bool
}
