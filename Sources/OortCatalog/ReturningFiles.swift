import GRDB
import OortModel
import OortPlanner

/// Files that were removed here and come back, because another person changed them.
///
/// On a disk, a program that has a removed file open changes nothing that has a name. So a file that comes
/// back has a new inode: the removed one belongs only to the programs that have it open, like any file that
/// the catalog has forgotten. A folder keeps its inode, by which its contents know it, in a new generation
/// (`Node.generation`).
struct ReturningFiles {
    /// The new inodes, by the old ones.
    private var numbers: [Inode: Inode] = [:]

    /// Gives new inodes to the files that these steps bring back into the local tree.
    ///
    /// - Returns: the steps, with the new inodes.
    mutating func renumber(
        _ steps: [LocalStep],
        in transaction: inout CatalogTransaction
    ) throws -> [LocalStep] {
        for case .place(let inode, _) in steps {
            guard let node = try Catalog.fetch(inode, transaction.database), node.parent == nil,
                node.kind != .folder,
                let motion = try Catalog.motion(inode, transaction.database), motion.changed > 0
            else { continue }
            numbers[inode] = try transaction.giveNewNumber(to: inode)
        }
        return numbers.isEmpty ? steps : steps.map(ofNewNumber)
    }

    private func ofNewNumber(_ step: LocalStep) -> LocalStep {
        func new(_ inode: Inode) -> Inode { numbers[inode] ?? inode }
        return switch step {
        case .forget(let inode): .forget(new(inode))
        case .detach(let inode): .detach(new(inode))
        case .place(let inode, let place): .place(new(inode), place)
        case .takeContent(let inode): .takeContent(new(inode))
        case .takeAttributes(let inode): .takeAttributes(new(inode))
        case .keepBoth(let inode): .keepBoth(new(inode))
        case .renumber(let inode): .renumber(new(inode))
        case .adopt(let inode, let other): .adopt(new(inode), from: new(other))
        case .handOver(let original, let heir): .handOver(from: new(original), to: new(heir))
        case .renounce(let inode): .renounce(new(inode))
        case .agree(let inode, let content): .agree(new(inode), content: content)
        }
    }
}

extension CatalogTransaction {
    /// Gives a node an inode that no node ever had; to the kernel the old one is gone.
    fileprivate mutating func giveNewNumber(to old: Inode) throws -> Inode {
        touch(old)
        try database.run(
            "UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'node'",
            []
        )
        let number = try database.number("SELECT seq FROM sqlite_sequence WHERE name = 'node'", [])
        guard let number else { throw CatalogError.corrupt(detail: "nodes have no numbers") }
        for table in ["node", "motion", "xattr", "conflict"] {
            try database.run("UPDATE \(table) SET inode = ? WHERE inode = ?", [number, old.column])
        }
        for column in ["original", "copy_parent", "original_parent"] {
            try database.run(
                "UPDATE conflict SET \(column) = ? WHERE \(column) = ?",
                [number, old.column]
            )
        }
        touch(Inode(column: number))
        return Inode(column: number)
    }
}
