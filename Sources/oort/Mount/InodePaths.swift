import OortCatalog
import OortModel

/// The paths of inodes, as a log or a message has them.
struct InodePaths {
    private let catalog: Catalog
    private let top: String

    /// Paths below `top`, the mount point; with an empty one they begin with the account's name.
    init(_ catalog: Catalog, below top: String) {
        self.catalog = catalog
        self.top = top
    }

    /// The path of an item; nil for one that is nowhere in the tree.
    func path(of inode: Inode) throws(CatalogError) -> String? {
        var names: [String] = []
        var next = inode
        while next != .root, names.count < 10_000 {
            guard let node = try catalog.knownNode(next), let parent = node.parent else {
                return nil
            }
            names.append(node.name)
            next = parent
        }
        return ((top.isEmpty ? [] : [top]) + names.reversed()).joined(separator: "/")
    }

    /// The paths of those that are in the tree.
    func paths(of inodes: [UInt64]) throws(CatalogError) -> [String: String] {
        var paths: [String: String] = [:]
        for inode in inodes { paths[String(inode)] = try path(of: Inode(inode)) }
        return paths
    }
}

extension CloudMount {
    /// The path of an item; nil for one that is nowhere in the tree.
    func path(of inode: Inode) throws(CatalogError) -> String? {
        try InodePaths(catalog, below: mountPoint).path(of: inode)
    }

    func paths(of inodes: [UInt64]) throws(Failure) -> [String: String] {
        do throws(CatalogError) {
            return try InodePaths(catalog, below: mountPoint).paths(of: inodes)
        } catch {
            throw CatalogTrouble.failure(error, path: options.folders.catalogFile)
        }
    }
}
