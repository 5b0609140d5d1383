import GRDB
import OortModel
import OortPlanner

/// Which items may have a name in a folder at the service and are not found by the name that they
/// are shown under: those in motion, and clean ones that are shown under another.
///
/// They are read once for a folder: of a page that tells thousands of new items in one folder, each
/// would read all that came before it.
struct RemoteNames {
    let comparison: NameRules.Comparison
    private var inodes: [Inode: [ExactText: [Inode]]] = [:]

    init(_ comparison: NameRules.Comparison) { self.comparison = comparison }

    /// Who may have the name; some are elsewhere by now, so whoever asks looks.
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

    /// Something was told to have a name in a folder.
    mutating func add(_ inode: Inode, name: String, in folder: Inode) {
        guard inodes[folder] != nil else { return }
        inodes[folder]?[ExactText(comparison.key(name)), default: []].append(inode)
    }

    /// More than one item came into a folder.
    mutating func forget(_ folder: Inode) { inodes[folder] = nil }
}
