import GRDB
import OortModel
import OortPlanner

/// Items that may have a name in a folder at the service and are not shown under it: those in motion, and
/// clean ones that are shown under another.
///
/// They are read once for each folder: a page may report thousands of new items in one folder, and each
/// would read all those before it.
struct RemoteNames {
    let comparison: NameRules.Comparison
    private var inodes: [Inode: [ExactText: [Inode]]] = [:]

    init(_ comparison: NameRules.Comparison) { self.comparison = comparison }

    /// Items that may have the name; some lie elsewhere by now, so the caller must check.
    mutating func candidates(
        for name: String,
        in folder: Node,
        _ database: Database
    ) throws -> [Inode] {
        if inodes[folder.inode] == nil {
            inodes[folder.inode] = [:]
            for node in try Catalog.remoteChildren(of: folder, onlyRenamed: true, database) {
                guard let place = try Catalog.remotePlace(of: node, database) else { continue }
                add(node.inode, name: place.name, in: folder.inode)
            }
        }
        return inodes[folder.inode]?[ExactText(comparison.key(name))] ?? []
    }

    /// Notes that an item was reported to have a name in a folder.
    mutating func add(_ inode: Inode, name: String, in folder: Inode) {
        guard inodes[folder] != nil else { return }
        inodes[folder]?[ExactText(comparison.key(name)), default: []].append(inode)
    }

    /// Forgets a folder into which several items came.
    mutating func forget(_ folder: Inode) { inodes[folder] = nil }
}
