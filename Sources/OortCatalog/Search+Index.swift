import GRDB
import OortModel

/// Where a search looks, using the index.
///
/// An item has some of the words in its own name, and the others above it. The index knows names only. So
/// items with all words in their names are asked for first: they fit best. Then each word is asked for by
/// itself, and all items with one of the rarer words are looked at. What remains has only frequent words,
/// and lies below a folder with another one: these folders are found by their names, since they are few,
/// and the items below them are compared with those that the index has for the frequent words. If filters
/// leave few items, these are listed first, and the index need not be asked.
extension Search {
    func askIndex() throws {
        let wanted = try listWanted()
        if let wanted, wanted.inodes.map({ $0.count <= bounds.few }) == true {
            for inode in wanted.inodes ?? [] { try look(at: inode) }
            return
        }
        try askTogether(in: wanted)
        guard terms.count > 1 else { return }
        guard foundCount < enough else {
            isCut = true
            return
        }
        try askApart(in: wanted)
    }

    /// Items with all words in their own names.
    private func askTogether(in wanted: Region?) throws {
        // Where a letter or two are enough, the index takes long to say how many items there are.
        if terms.allSatisfy(\.isFoundInside),
            let few = try few(question(terms, .inside), in: wanted)
        {
            for inode in few { try look(at: inode) }
            return
        }
        for fit in [SearchTerm.Fit.beginning, .word, .inside] {
            // Two words cannot both come first; and where no term may be inside a word, there is no more.
            if fit == .beginning && terms.count > 1 { continue }
            if fit == .inside && !terms.contains(where: \.isFoundInside) { continue }
            guard foundCount < enough else {
                isCut = true
                return
            }
            try ask(question(terms, fit), in: wanted)
        }
    }

    /// Items with some of the words in their own names, and the others above them.
    private func askApart(in wanted: Region?) throws {
        var frequent: [SearchTerm] = []
        for term in terms {
            if let few = try few(question([term], .inside), in: wanted) {
                for inode in few { try look(at: inode) }
            } else {
                frequent.append(term)
            }
        }
        guard !frequent.isEmpty else { return }
        // Items with all words in their names fit better than items in a folder with one of them.
        guard foundCount < query.limit else {
            isCut = true
            return
        }
        for (term, folders) in try foldersToLookBelow(frequent) {
            var region = try folders.flatMap { try below($0) }
            if let wanted { region = region?.intersection(wanted) ?? wanted }
            if let inodes = region?.inodes, inodes.count <= bounds.few {
                for inode in inodes { try look(at: inode) }
                continue
            }
            for other in frequent where other != term {
                guard foundCount < enough else {
                    isCut = true
                    return
                }
                try ask(question([other], .inside), in: region)
            }
        }
    }

    /// The words that a folder must have above items with only `frequent` ones in their names, each with
    /// these folders; nil for more than a few.
    private func foldersToLookBelow(
        _ frequent: [SearchTerm]
    ) throws -> [(term: SearchTerm, folders: [Int64]?)] {
        var found: [(term: SearchTerm, folders: [Int64]?)] = []
        let rare = terms.filter { !frequent.contains($0) }
        // Each rare word is in a folder's name; of the frequent ones any may be.
        for term in rare.isEmpty ? terms : rare {
            let indexed = try few(question([term], .inside, of: .folder), in: nil)
            found.append((term, indexed.map { $0 + unindexedFolders(named: term) }))
        }
        if rare.isEmpty { return found.filter { $0.folders?.isEmpty != true } }
        return found.min { ($0.folders?.count ?? .max) < ($1.folders?.count ?? .max) }.map { [$0] }
            ?? []
    }

    // MARK: What filters leave

    /// A part of the tree.
    private struct Region {
        /// The items, the latest first; nil for more than can be listed.
        var inodes: [Int64]?
        /// The folders that they lie in; nil where the part is not made of folders.
        var folders: Set<Int64>?

        /// What lies in both, as far as is known.
        func intersection(_ other: Region) -> Region {
            let both: [Int64]?
            if let inodes, let others = other.inodes {
                let others = Set(others)
                both = inodes.filter(others.contains)
            } else {
                both = inodes ?? other.inodes
            }
            if let folders, let others = other.folders {
                return Region(inodes: both, folders: folders.intersection(others))
            }
            return Region(inodes: both, folders: folders ?? other.folders)
        }
    }

    /// What the query's filters leave; nil where they leave too much to list it.
    private func listWanted() throws -> Region? {
        var region: Region?
        if let folder = query.folder, folder != .root { region = try below([folder.column]) }
        if let size = query.largerThan, let large = try larger(than: size) {
            region = region?.intersection(large) ?? large
        }
        return region
    }

    /// All that lies below folders; nil for more folders than can be listed.
    private func below(_ folders: [Int64]) throws -> Region? {
        var known = Set(folders)
        var queue = folders
        while let folder = queue.popLast() {
            try database.each(
                "SELECT inode FROM node WHERE parent = ? AND kind = 0",
                [folder]
            ) { row in
                let inode: Int64 = row[0]
                if known.insert(inode).inserted { queue.append(inode) }
                return true
            }
            guard known.count <= bounds.folders else { return nil }
        }
        var inodes: [Int64] = []
        for folder in known {
            try database.each("SELECT inode FROM node WHERE parent = ?", [folder]) { row in
                inodes.append(row[0])
                return inodes.count <= bounds.listed
            }
            guard inodes.count <= bounds.listed else {
                return Region(inodes: nil, folders: known)
            }
        }
        return Region(inodes: inodes.sorted(by: >), folders: known)
    }

    /// Items with more bytes; nil for more than can be listed, and where no index can say.
    private func larger(than size: Int64) throws -> Region? {
        guard size >= Self.leastLarge else { return nil }
        let inodes = try database.all(
            // SQLite uses the index where the query has the index's own words.
            "SELECT inode FROM node WHERE size > ? AND size >= \(Self.leastLarge) LIMIT ?",
            [size, bounds.listed + 1]
        ) { $0[0] as Int64 }
        guard inodes.count <= bounds.listed else { return nil }
        return Region(inodes: inodes.sorted(by: >))
    }

    /// Bytes from which the catalog has an index of sizes.
    static let leastLarge: Int64 = 1 << 20

    // MARK: Asking

    private var enough: Int { max(bounds.enough, query.limit) }

    /// The query for names that have all terms, at least this well where that is possible.
    private func question(
        _ terms: [SearchTerm],
        _ fit: SearchTerm.Fit,
        of kind: SearchKind? = nil
    ) -> String {
        var parts = terms.compactMap { $0.query(fit) ?? $0.query(.word) }.map { "(\($0))" }
        if let kind = kind ?? query.kind { parts.append("\"\(kind.mark)\"") }
        return parts.joined(separator: " AND ")
    }

    /// Looks at what the index finds, the latest first, until there is enough.
    private func ask(_ question: String, in region: Region?) throws {
        var count = 0
        try inodes(question, among: region?.inodes) { inode in
            let most = foundCount < query.limit ? bounds.most : bounds.some
            guard count < most, foundCount < enough else {
                isCut = true
                return false
            }
            count += 1
            try look(at: inode, in: region?.inodes == nil ? region?.folders : nil)
            return true
        }
    }

    /// All that the index finds; nil for more than a few.
    private func few(_ question: String, in region: Region?) throws -> [Int64]? {
        var few: [Int64] = []
        try inodes(question, among: region?.inodes) { inode in
            few.append(inode)
            return few.count <= bounds.few
        }
        return few.count <= bounds.few ? few : nil
    }

    /// What the index finds, the latest first; only those among `others`, which has the same order.
    private func inodes(
        _ question: String,
        among others: [Int64]?,
        _ body: (Int64) throws -> Bool
    ) throws {
        var rest = others.map { $0[...] }
        try database.each(
            "SELECT rowid FROM search_index WHERE search_index MATCH ? ORDER BY rowid DESC",
            [question]
        ) { row in
            let inode: Int64 = row[0]
            guard rest != nil else { return try body(inode) }
            while let next = rest?.first, next > inode { rest?.removeFirst() }
            guard let next = rest?.first else { return false }
            return try next == inode ? body(inode) : true
        }
    }
}
