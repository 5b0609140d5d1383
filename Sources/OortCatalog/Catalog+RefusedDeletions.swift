import GRDB
public import OortModel
import OortPlanner

extension Catalog {
    /// Shows an item again whose deletion was tried twice and is refused, with all that was removed with
    /// it: people see what is still there.
    ///
    /// Some services refuse for a moment in the words of a lasting refusal: after one try there is a
    /// second. A request that did not reach the service was no try (`PushTrouble.isAnswer`).
    /// - Returns: the names from the account's root down to where it is shown again; nil where it was tried
    ///   once, is not deleted any more, or its folder is not shown either.
    public func takeBackDeletion(of inode: Inode) async throws(CatalogError) -> [String]? {
        try await mutateAsync { transaction in
            let database = transaction.database
            guard let top = try Self.fetch(inode, database), top.parent == nil,
                let id = top.remoteID, let place = try Self.remotePlace(of: top, database),
                try Self.fetch(place.parent, database)?.parent != nil,
                try Self.motion(inode, database).map({ $0.attempts > 1 }) == true
            else { return nil }
            var steps: [LocalStep] = []
            var queue = [top]
            while let node = queue.popLast() {
                guard node.parent == nil, try Self.motion(node.inode, database)?.intent == nil,
                    let place = try Self.remotePlace(of: node, database)
                else { continue }
                steps.append(.place(node.inode, place))
                // Other changes of the item no longer wait.
                try database.run(
                    """
                    UPDATE motion SET attempts = 0, error_kind = NULL, error_detail = NULL,
                        next_try_ms = 0
                    WHERE inode = ?
                    """,
                    [node.inode.column]
                )
                if node.kind == .folder { queue += try Self.remoteChildren(of: node, database) }
            }
            var merger = Merger(transaction, rules: self.nameRules(of: top.account))
            try merger.apply(steps)
            transaction = merger.transaction
            // A file comes back under another inode.
            return try Self.node(id.rawValue, in: top.account, database)
                .flatMap { try Self.path(of: $0.inode, database)?.map(\.name) }
        }
    }
}
