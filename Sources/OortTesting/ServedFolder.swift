import Foundation
public import OortModel
public import OortSimulators

/// A folder of this machine that a server serves, for who uses it past the server.
public struct ServedFolder: Sendable {
    private let root: String
    private let isForAll: Bool

    /// A folder by its path; `isForAll` says that the server runs as another user, who must have all rights
    /// to what is made.
    public init(_ root: String, isForAll: Bool = false) {
        self.root = root
        self.isForAll = isForAll
    }

    /// Changes something as a person at the server would.
    public func apply(_ edit: SimulatorEdit) throws {
        let files = FileManager.default
        switch edit {
        case .write(let parts, let content, let time):
            try makeFolder(parts.dropLast())
            // Written in place, as most programs do.
            let path = place(parts)
            if !files.fileExists(atPath: path) { try Data().write(to: URL(filePath: path)) }
            let handle = try FileHandle(forWritingTo: URL(filePath: path))
            try handle.truncate(atOffset: 0)
            try handle.write(contentsOf: Data(content.bytes))
            try handle.close()
            var attributes: [FileAttributeKey: Any] = [.posixPermissions: isForAll ? 0o666 : 0o644]
            if let time {
                attributes[.modificationDate] = Date(timeIntervalSince1970: Double(time.seconds))
            }
            try files.setAttributes(attributes, ofItemAtPath: path)
        case .share, .tag, .lend: throw NoSuchAbility()
        case .makeFolder(let parts): try makeFolder(parts[...])
        case .move(let from, let to):
            try makeFolder(to.dropLast())
            try files.moveItem(atPath: place(from), toPath: place(to))
        case .trash(let parts), .remove(let parts): try files.removeItem(atPath: place(parts))
        }
    }

    /// Puts a whole tree into the folder.
    public func fill(from tree: SimulatedTree) throws {
        for (path, content) in tree.portable {
            guard let content else {
                try makeFolder(path.parts[...])
                continue
            }
            try apply(.write(path: path.parts, content, modifiedTime: nil))
        }
    }

    /// All that lies there; what begins with `.oort-` is Oort's own.
    public func truth() throws -> [RemotePath: TrueItem] {
        var found: [RemotePath: TrueItem] = [:]
        var folders = [RemotePath.root]
        while let folder = folders.popLast() {
            let names = try FileManager.default.contentsOfDirectory(atPath: place(folder.parts))
            for name in names where !name.hasPrefix(".oort-") {
                let path = folder.appending(name)
                let attributes = try FileManager.default.attributesOfItem(atPath: place(path.parts))
                if attributes[.type] as? FileAttributeType == .typeDirectory {
                    found[path] = .folder
                    folders.append(path)
                } else {
                    let size = attributes[.size] as? Int64 ?? -1
                    found[path] = .file(size: size)
                }
            }
        }
        return found
    }

    /// The bytes of a file; nil where there is none.
    public func bytes(at path: RemotePath) -> [UInt8]? {
        FileManager.default.contents(atPath: place(path.parts)).map { Array($0) }
    }

    private func place(_ parts: [String]) -> String {
        ([root] + parts).joined(separator: "/")
    }

    private func makeFolder(_ parts: ArraySlice<String>) throws {
        for end in parts.indices {
            let path = place(Array(parts[...end]))
            guard !FileManager.default.fileExists(atPath: path) else { continue }
            try FileManager.default.createDirectory(
                atPath: path,
                withIntermediateDirectories: false,
                attributes: [.posixPermissions: isForAll ? 0o777 : 0o755]
            )
        }
    }
}

extension SampleAccount {
    /// What any server of files could hold: a large folder that is more than a page of any (of S3 1000),
    /// and no very large file.
    public static var ofFiles: SampleAccount {
        var sample = SampleAccount(
            allowsDuplicates: false,
            allowsSlashes: false,
            allowsShortcuts: false,
            nativeName: { _, _ in nil }
        )
        sample.largeFolderCount = 1100
        sample.largeFileSize = 3_000_000
        return sample
    }
}

extension SimulatedTree {
    /// The sample account as any server of files could hold it.
    public static func sampleOfFiles() -> SimulatedTree {
        var tree = SimulatedTree(
            rules: SimulatedTreeRules(
                comparison: .exact,
                keepsPathLog: false,
                makeID: { _, random in random.hex(32) },
                makeRevisionID: { $0.hex(32) }
            ),
            rootID: "root",
            rootName: "",
            seed: 1
        )
        SampleAccount.ofFiles.fill(&tree)
        return tree
    }

    /// Files with their contents, and folders, each after the one in which it lies.
    public var portable: [(path: RemotePath, content: SimulatedContent?)] {
        descendants(of: rootID)
            .compactMap { item in
                path(of: item.id).map { (RemotePath($0), item.head?.content) }
            }
            .sorted { $0.0.parts.count < $1.0.parts.count }
    }
}
