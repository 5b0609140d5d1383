import OortFileSystem
import OortModel

/// What a file system of one account is to do, in as few lines as possible: the definition of right.
final class ReferenceTree {
    final class Entry {
        var bytes: [UInt8] = []
        var children: [String: Entry]?
        var target: String?
        var mode: UInt16 = 0o644
        var isFolder: Bool { children != nil }
    }

    let root = Entry()

    init() { root.children = [:] }

    func entry(_ path: [String]) -> Entry? {
        var entry: Entry? = root
        for name in path { entry = entry?.children?[name.lowercased()] }
        return entry
    }

    /// Names as typed are kept beside the keys, since comparison is without case.
    private(set) var typed: [ObjectIdentifier: String] = [:]

    func names(_ folder: Entry) -> [String] {
        (folder.children ?? [:]).values.compactMap { typed[ObjectIdentifier($0)] }.sorted()
    }

    private func place(_ entry: Entry, _ name: String, _ folder: Entry) {
        folder.children?[name.lowercased()] = entry
        typed[ObjectIdentifier(entry)] = name
        all.append(entry)
    }

    /// Keeps entries alive, so that their identities are not used again.
    private var all: [Entry] = []

    func make(_ name: String, _ folder: Entry, isFolder: Bool, target: String? = nil)
        throws(FileSystemError)
    {
        if name.contains(":") { throw .nameRefused(reason: "colon") }
        guard folder.children?[name.lowercased()] == nil else { throw .exists }
        let entry = Entry()
        if isFolder { entry.children = [:] }
        entry.target = target
        place(entry, name, folder)
    }

    func unlink(_ name: String, _ folder: Entry) throws(FileSystemError) {
        guard let entry = folder.children?[name.lowercased()] else { throw .notFound }
        guard !entry.isFolder else { throw .isAFolder }
        folder.children?[name.lowercased()] = nil
    }

    func removeFolder(_ name: String, _ folder: Entry) throws(FileSystemError) {
        guard let entry = folder.children?[name.lowercased()] else { throw .notFound }
        guard let children = entry.children else { throw .notAFolder }
        guard children.isEmpty else { throw .notEmpty }
        folder.children?[name.lowercased()] = nil
    }

    private func contains(_ entry: Entry, _ other: Entry) -> Bool {
        entry === other || (entry.children ?? [:]).values.contains { contains($0, other) }
    }

    func rename(
        _ name: String,
        _ folder: Entry,
        _ newName: String,
        _ target: Entry,
        isExclusive: Bool,
        exchanges: Bool
    ) throws(FileSystemError) {
        let key = name.lowercased()
        let newKey = newName.lowercased()
        guard let entry = folder.children?[key] else {
            throw .notFound
        }
        if newName.contains(":") { throw .nameRefused(reason: "colon") }
        if contains(entry, target) { throw .moveIntoItself }
        let other = target.children?[newKey]
        if exchanges {
            guard let other else { throw .notFound }
            if other === entry {
                typed[ObjectIdentifier(entry)] = newName
                return
            }
            if contains(other, folder) { throw .moveIntoItself }
            folder.children?[key] = nil
            target.children?[newKey] = nil
            let oldTyped = typed[ObjectIdentifier(entry)] ?? name
            let otherTyped = typed[ObjectIdentifier(other)] ?? newName
            place(other, oldTyped, folder)
            place(entry, otherTyped, target)
            return
        }
        if let other, other !== entry {
            if isExclusive { throw .exists }
            if other.isFolder {
                guard entry.isFolder else { throw .isAFolder }
                guard other.children?.isEmpty == true else { throw .notEmpty }
            } else if entry.isFolder {
                throw .notAFolder
            }
        }
        folder.children?[key] = nil
        place(entry, newName, target)
    }

    func write(_ entry: Entry, _ bytes: [UInt8], at offset: Int) {
        let end = offset + bytes.count
        if entry.bytes.count < end {
            entry.bytes += [UInt8](repeating: 0, count: end - entry.bytes.count)
        }
        entry.bytes.replaceSubrange(offset..<end, with: bytes)
    }

    func resize(_ entry: Entry, to size: Int) {
        if size < entry.bytes.count {
            entry.bytes.removeLast(entry.bytes.count - size)
        } else {
            entry.bytes += [UInt8](repeating: 0, count: size - entry.bytes.count)
        }
    }
}
