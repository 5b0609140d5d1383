import GRDB
import Synchronization

/// How often a catalog checks its own invariants; never, unless a test or a person asks for it.
public struct CatalogChecks: Sendable {
    fileprivate enum Frequency: Sendable { case afterEach, twentiethOfTime }

    fileprivate let frequency: Frequency
    fileprivate let report: @Sendable ([String]) -> Void

    /// After each transaction; one that breaks an invariant fails, and changes nothing.
    public static let afterEach = CatalogChecks(frequency: .afterEach) { _ in }

    /// After transactions, but for at most a twentieth of the time; `report` is called inside the
    /// transaction with the broken invariants, and the transaction then fails.
    public static func sparing(_ report: @escaping @Sendable ([String]) -> Void) -> CatalogChecks {
        CatalogChecks(frequency: .twentiethOfTime, report: report)
    }
}

/// Runs the checks of one catalog.
final class CatalogCheck: Sendable {
    private let checks: CatalogChecks
    private let next = Mutex(ContinuousClock.now)

    init(_ checks: CatalogChecks) { self.checks = checks }

    /// To be called at the end of a transaction, inside it.
    ///
    /// - Throws: `.corrupt` when an invariant is broken.
    func run(_ database: Database) throws {
        let began = ContinuousClock.now
        guard checks.frequency == .afterEach || next.withLock({ $0 <= began }) else { return }
        let broken = try Catalog.brokenInvariants(database)
        let end = ContinuousClock.now
        next.withLock { $0 = end + (end - began) * 20 }
        guard !broken.isEmpty else { return }
        checks.report(broken)
        throw CatalogError.corrupt(detail: "broken: \(broken.joined(separator: "; "))")
    }
}

extension Catalog {
    /// What holds for every catalog between two transactions; each is a query of the nodes that break it.
    private static let invariants = [
        (
            "a node lies in no folder",
            """
            SELECT inode FROM node WHERE parent IS NOT NULL AND NOT EXISTS
                (SELECT 1 FROM node AS folder WHERE folder.inode = node.parent AND folder.kind = 0)
            """
        ),
        (
            "a node is not below the top",
            """
            WITH RECURSIVE reached(inode) AS (
                SELECT 1 UNION
                SELECT node.inode FROM reached JOIN node ON node.parent = reached.inode
            )
            SELECT inode FROM node WHERE parent IS NOT NULL
                AND inode NOT IN (SELECT inode FROM reached)
            """
        ),
        (
            "a motion without a node",
            "SELECT inode FROM motion WHERE inode NOT IN (SELECT inode FROM node)"
        ),
        (
            "a number below 1",
            "SELECT inode FROM node WHERE inode < 1 UNION ALL SELECT inode FROM motion WHERE inode < 1"
        ),
        (
            "a clean node whose content is not the service's",
            """
            SELECT inode FROM node WHERE (staged IS NOT NULL OR content_item IS NOT NULL)
                AND inode NOT IN (SELECT inode FROM motion)
            """
        ),
        (
            "a clean node outside the tree",
            """
            SELECT inode FROM node WHERE parent IS NULL AND inode IS NOT 1
                AND inode NOT IN (SELECT inode FROM motion)
            """
        ),
        (
            "a clean node that the service does not have",
            """
            SELECT inode FROM node WHERE remote_id IS NULL AND kind NOT IN \(localOnlyKinds)
                AND parent IS NOT 1 AND inode IS NOT 1
                AND inode NOT IN (SELECT inode FROM motion)
            """
        ),
        (
            "a base without an id",
            """
            SELECT motion.inode FROM motion JOIN node ON node.inode = motion.inode
            WHERE synced_parent IS NOT NULL AND node.remote_id IS NULL AND remote_state <> 2
            """
        ),
        (
            "an item that no enumeration named",
            """
            SELECT node.inode FROM node JOIN account ON account.id = node.account
                LEFT JOIN motion ON motion.inode = node.inode
            WHERE account.enumerated = 1 AND account.enumeration > 0 AND node.enumeration = 0
                AND node.remote_id IS NOT NULL AND node.parent IS NOT 1
                AND ifnull(motion.remote_state, 0) NOT IN (2, 3) AND motion.intent IS NULL
                AND NOT EXISTS (SELECT 1 FROM unsure WHERE unsure.account = node.account
                    AND unsure.remote_id = node.remote_id)
            """
        ),
    ]

    private static let localOnlyKinds =
        "(\(NodeKind.fifo.rawValue), \(NodeKind.socket.rawValue))"

    /// The invariants that do not hold, in words, with some of the nodes that break them; reads all
    /// nodes.
    static func brokenInvariants(_ database: Database) throws -> [String] {
        try invariants.compactMap { words, query in
            let nodes = try database.all(query + " LIMIT 5") { "\($0[0] as Int64)" }
            return nodes.isEmpty ? nil : "\(words): \(nodes.joined(separator: ", "))"
        }
    }

    /// What is wrong with the catalog, in words; nothing where all of its invariants hold.
    public func checkInvariants() async throws(CatalogError) -> [String] {
        try await readAsync { try Self.brokenInvariants($0) }
    }
}
