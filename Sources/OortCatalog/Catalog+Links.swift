import GRDB
public import OortModel
import Synchronization

/// Files at a service that hold symbolic links, and whose they are.
extension Catalog {
    /// Sets which link files of an account show as links; to be called before its engine runs.
    ///
    /// If the policy differs from the last one, the account is enumerated again, so that each link file is
    /// judged anew.
    ///
    /// - Throws: `.storage` and its like; even then the policy holds until the catalog is opened again.
    public func setLinkPolicy(
        _ policy: LinkPolicy,
        of account: AccountID
    ) throws(CatalogError) {
        links.withLock { $0[account] = policy }
        try mutate { transaction in
            try transaction.database.run(
                "UPDATE account SET links = ?, cursor = NULL WHERE id = ? AND links IS NOT ?",
                [policy.rawValue, account.rawValue, policy.rawValue]
            )
        }
    }

    /// Shows a symbolic link as the plain file that it is at the service, since its target may not be
    /// followed or is none.
    ///
    /// It stays a file as long as it has this revision. A link that the service does not have stays a link.
    public func showAsFile(_ inode: Inode) throws(CatalogError) {
        try mutate { transaction in
            let node = try transaction.node(inode)
            guard node.kind == .symlink, node.remoteID != nil, node.revision != nil else { return }
            try transaction.database.run(
                "UPDATE node SET kind = ?, target = '' WHERE inode = ?",
                [NodeKind.file.rawValue, inode.column]
            )
            transaction.touch(inode)
            transaction.effects.news.append(.content(inode))
            guard let parent = node.parent else { return }
            let rules = self.nameRules(of: node.account)
            let file = try transaction.node(inode)
            let plainName = try transaction.plainName(of: file, calledAtService: node.serviceName)
            var freeNames = FreeNames(rules)
            let name = try freeNames.shown(plainName, in: parent, transaction.database)
            try transaction.put(
                file,
                at: parent,
                name: name,
                plainName: plainName,
                serviceName: node.serviceName,
                rules
            )
        }
    }
}

extension StoredItem {
    /// Whether another person made the content or owns the item, as far as is known; `node` is what the
    /// catalog has of the item: content of the same revision may have been made here.
    func isStrangers(beside node: Node?) -> Bool {
        if isOwn == true { return false }
        guard let node, isOfRevision(of: node) else { return true }
        return node.isStrangers
    }

    private func isOfRevision(of node: Node) -> Bool {
        revision != nil && node.revision?.rawValue == revision
    }

    /// Decides whether a file shows as the symbolic link that it may hold.
    mutating func decideKind(beside node: Node?, _ policy: LinkPolicy) {
        guard nodeKind == .file || nodeKind == .symlink else { return }
        let mayBeLink = LinkName.mayBeLink(fileName, size: size)
        let wasRefused = node.map { isOfRevision(of: $0) && $0.target == "" } ?? false
        let isShown =
            switch policy {
            case .own: !isStrangers(beside: node)
            case .inside, .all: true
            case .off: false
            }
        let kind: NodeKind = mayBeLink && !wasRefused && isShown ? .symlink : .file
        self.kind = kind.rawValue
    }

    /// The item as it is kept of a service's file beside what the catalog has of it.
    init(_ item: Item, beside node: Node?, _ policy: LinkPolicy) {
        self.init(item)
        decideKind(beside: node, policy)
    }
}
