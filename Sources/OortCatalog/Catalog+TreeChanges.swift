import GRDB
import OortModel
import Synchronization

extension Catalog {
    /// How many items of one transaction are compared one by one at most: other writers wait meanwhile.
    private static let mostCompared = 10_000

    /// Sets the observer of the local tree, from the next transaction on; nil for none, which costs
    /// nothing.
    public func setTreeObserver(_ new: TreeObserver?) { treeObserver.withLock { $0 = new } }

    /// What a transaction that is about to be committed changed, compared with what readers see.
    func treeChanges(by transaction: CatalogTransaction) throws -> TreeChanges? {
        let effects = transaction.effects
        guard !effects.touchesAll, effects.touched.count <= Self.mostCompared else {
            return .tooMany
        }
        guard !effects.touched.isEmpty else { return nil }
        let changes = try pool.read { before in
            var comparison = TreeComparison(
                before: before,
                now: transaction.database,
                effects.news,
                without: leavingOut.withLock { $0 }
            )
            return try comparison.changes(of: effects.touched)
        }
        return changes.isEmpty ? nil : .these(changes)
    }
}

/// The local tree before and after a transaction.
private struct TreeComparison {
    private var before: TreePaths
    private var now: TreePaths
    /// Items of which the service reported new content.
    private var newContents: Set<Inode> = []
    private var newAttributes: Set<Inode> = []
    private var gone: Set<Inode> = []
    private var names: Set<CatalogChange> = []
    private let leftOut: [AccountID: LeftOutFolders]

    init(
        before: Database,
        now: Database,
        _ news: [CatalogChange],
        without leftOut: [AccountID: LeftOutFolders]
    ) {
        self.leftOut = leftOut
        self.before = TreePaths(before)
        self.now = TreePaths(now)
        for change in news {
            switch change {
            case .content(let inode): newContents.insert(inode)
            case .attributes(let inode): newAttributes.insert(inode)
            case .entryRemoved(_, _, let child, _): gone.insert(child)
            case .entryAdded, .entryLeft: names.insert(change)
            }
        }
    }

    mutating func changes(of touched: Set<Inode>) throws -> [TreeChange] {
        var deleted: [TreeChange] = []
        var moved: [TreeChange] = []
        var created: [TreeChange] = []
        var others: [TreeChange] = []
        var sent: [TreeChange] = []
        for inode in touched.sorted(by: { $0.rawValue < $1.rawValue }) where inode != .root {
            let old = try Catalog.fetch(inode, before.database)
            let new = try Catalog.fetch(inode, now.database)
            guard old != new || newContents.contains(inode) else { continue }
            let oldPath = try old.flatMap { shown(try before.path(of: $0), of: $0) }
            let newPath = try new.flatMap { shown(try now.path(of: $0), of: $0) }
            switch (old, oldPath, new, newPath) {
            case (_, nil, let new?, let path?):
                created.append(change(.created, new, path, isNews: isAdded(new)))
            case (let old?, let path?, _, nil):
                deleted.append(change(.deleted, old, path, isNews: gone.contains(inode)))
            case (let old?, let oldPath?, let new?, let path?):
                if old.parent != new.parent || !old.name.isSameText(as: new.name) {
                    moved.append(change(.moved(from: oldPath), new, path, isNews: isAdded(new)))
                }
                if let kind = difference(old, new) {
                    let isNews = newContents.contains(inode) || newAttributes.contains(inode)
                    others.append(change(kind, new, path, isNews: isNews))
                } else if isSent(old, new) {
                    sent.append(change(.sent, new, path, isNews: false))
                }
            default: continue
            }
        }
        return deleted.sorted { $0.path.count > $1.path.count } + moved
            + created.sorted { $0.path.count < $1.path.count } + others + sent
    }

    private func change(
        _ kind: TreeChange.Kind,
        _ node: Node,
        _ path: [String],
        isNews: Bool
    ) -> TreeChange {
        TreeChange(kind: kind, inode: node.inode, item: node.kind, path: path, isNews: isNews)
    }

    /// A path, unless what is there is not shown.
    private func shown(_ path: [String]?, of node: Node) -> [String]? {
        guard let path, let left = leftOut[node.account], left.include(Array(path.dropFirst()))
        else { return path }
        return nil
    }

    private func isAdded(_ node: Node) -> Bool {
        guard let parent = node.parent else { return false }
        return names.contains(.entryAdded(parent: parent, name: node.name))
    }

    /// The kind of change of an item at one place; nil when nobody would see it.
    private func difference(_ old: Node, _ new: Node) -> TreeChange.Kind? {
        if old.kind != new.kind { return .changed(content: true) }
        // A change in a folder, which changes its time, is reported for the item in it.
        if new.kind != .folder, hasOtherContent(old, new) { return .changed(content: true) }
        let isAttributes =
            old.mode != new.mode || old.owner != new.owner || old.group != new.group
            || old.itemDescription != new.itemDescription || old.permissions != new.permissions
            || new.kind != .folder && old.modified != new.modified
        // With its new revision, a file may get its time as the service keeps it.
        return isAttributes && !isSent(old, new) ? .changed(content: false) : nil
    }

    private func hasOtherContent(_ old: Node, _ new: Node) -> Bool {
        if newContents.contains(new.inode) || old.size != new.size { return true }
        if let staged = new.staged, staged != old.staged || old.modified != new.modified {
            return true
        }
        guard let before = old.hash, let now = new.hash, new.staged == nil, old.staged == nil else {
            return false
        }
        return before != now
    }

    /// Whether the service has something now that it did not have.
    private func isSent(_ old: Node, _ new: Node) -> Bool {
        if old.remoteID == nil, new.remoteID != nil, new.staged == nil { return true }
        return old.staged != nil && new.staged == nil && new.revision != nil
            && !newContents.contains(new.inode)
    }
}

/// The paths of nodes as one state of the catalog has them.
private struct TreePaths {
    let database: Database
    /// The paths of folders that were asked for; nil for those that are not in the tree.
    private var folders: [Inode: [String]?] = [.root: []]

    init(_ database: Database) { self.database = database }

    /// The shown names from the mount's top down; nil for what is not in the tree.
    mutating func path(of node: Node) throws -> [String]? {
        guard let parent = node.parent, let above = try path(ofFolder: parent) else { return nil }
        return above + [node.name]
    }

    private mutating func path(ofFolder folder: Inode) throws -> [String]? {
        var chain: [Node] = []
        var next = folder
        var path: [String]?
        while true {
            if let known = folders[next] {
                path = known
                break
            }
            guard let node = try Catalog.fetch(next, database), let parent = node.parent else {
                folders[next] = .some(nil)
                break
            }
            chain.append(node)
            // A circle cannot be, and must not become an endless loop if the file is damaged.
            guard chain.count < 10_000 else { throw CatalogError.corrupt(detail: "folder circle") }
            next = parent
        }
        for node in chain.reversed() {
            path = path.map { $0 + [node.name] }
            folders[node.inode] = .some(path)
        }
        return path
    }
}
