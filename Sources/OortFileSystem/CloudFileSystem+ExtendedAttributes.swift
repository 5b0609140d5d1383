import Foundation
import OortCatalog
public import OortModel

/// `user.oort.*` shows the canonical schema; other `user.*` are kept on this machine.
extension CloudFileSystem {
    private static let prefix = "user.oort."
    private static let descriptionName = "user.oort.description"
    private static let largestValue = 65_536

    public func extendedAttribute(_ name: String, of inode: Inode) -> Outcome<[UInt8]> {
        guard name.begins(with: "user.") else { return .failure(.notSupported) }
        return .now { () throws(FileSystemError) in
            let node = try node(inode)
            if let ending = name.dropping(beginning: Self.prefix) {
                let key = String(ending)
                guard let value = try schema(of: node, only: key)[key] else {
                    throw .noAttribute
                }
                return Array(value.utf8)
            }
            let value = try FileSystemError.translating { () throws(CatalogError) in
                try catalog.extendedAttribute(name, of: inode)
            }
            guard let value else { throw .noAttribute }
            return value
        }
    }

    public func extendedAttributes(of inode: Inode) -> Outcome<[String]> {
        .now { () throws(FileSystemError) in
            let node = try node(inode)
            // Linux gives `user.` attributes to files and folders only: what it refuses to show
            // must not be listed.
            guard node.mayHaveAttributes else { return [] }
            let own = try FileSystemError.translating { () throws(CatalogError) in
                try catalog.extendedAttributes(of: inode)
            }
            return try own + schema(of: node, only: nil).keys.sorted().map { Self.prefix + $0 }
        }
    }

    public func setExtendedAttribute(
        _ name: String,
        to value: [UInt8],
        of inode: Inode,
        mustExist: Bool?
    ) -> Outcome<Void> {
        guard name.begins(with: "user.") else { return .failure(.notSupported) }
        return .now { () throws(FileSystemError) in
            guard !settings.isReadOnly, inode != .root else { throw .readOnly }
            guard value.count <= Self.largestValue else { throw .attributeTooLarge }
            let node = try node(inode)
            if name.begins(with: Self.prefix) {
                try setDescription(name, value, of: node, mustExist: mustExist)
                return
            }
            if let mustExist {
                let exists = try FileSystemError.translating { () throws(CatalogError) in
                    try catalog.extendedAttribute(name, of: inode) != nil
                }
                guard exists || !mustExist else { throw .noAttribute }
                guard !exists || mustExist else { throw .exists }
            }
            _ = try FileSystemError.translating { () throws(CatalogError) in
                try catalog.setExtendedAttribute(name, to: value, of: inode)
            }
        }
    }

    public func removeExtendedAttribute(_ name: String, of inode: Inode) -> Outcome<Void> {
        guard name.begins(with: "user.") else { return .failure(.notSupported) }
        return .now { () throws(FileSystemError) in
            guard !settings.isReadOnly, inode != .root else { throw .readOnly }
            let node = try node(inode)
            if name.begins(with: Self.prefix) {
                try setDescription(name, [], of: node, mustExist: true)
                return
            }
            let had = try FileSystemError.translating { () throws(CatalogError) in
                try catalog.setExtendedAttribute(name, to: nil, of: inode)
            }
            guard had else { throw .noAttribute }
        }
    }

    private func setDescription(
        _ name: String,
        _ value: [UInt8],
        of node: Node,
        mustExist: Bool?
    ) throws(FileSystemError) {
        // `mv` to another account and `cp -a` copy what they see listed; of all errors this is the one
        // that they take as "cannot be kept here" and go on without a word.
        guard name == Self.descriptionName else { throw .notSupported }
        guard traits(of: node.account)?.setsDescription == true, !node.isAccountRoot else {
            throw .notSupported
        }
        guard node.permissions.contains(.write) else { throw .noPermission }
        let exists = node.itemDescription.map { !$0.isEmpty } ?? false
        if mustExist == true, !exists { throw .noAttribute }
        if mustExist == false, exists { throw .exists }
        guard let text = String(validating: value, as: UTF8.self) else { throw .invalid }
        var change = NodeAttributes()
        change.description = text
        _ = try FileSystemError.translating { () throws(CatalogError) in
            try catalog.setAttributes(change, of: node.inode)
        }
    }

    /// The canonical schema of an item, as texts; `only` saves work when one is asked for.
    private func schema(
        of node: Node,
        only: String?
    ) throws(FileSystemError) -> [String: String] {
        guard node.inode != .root else { return [:] }
        func wants(_ key: String) -> Bool { only == nil || only == key }
        return try FileSystemError.translating { () throws(CatalogError) in
            var schema: [String: String] = [:]
            let details = try catalog.details(of: node.inode).flatMap { Details($0) }
            schema["originalFileName"] = details?.originalFileName
            schema["serverModifiedTime"] = details?.serverModified?.rfc3339(.nanoseconds)
            schema["tag"] = details?.tag
            schema["version"] = details?.version
            schema["thumbnail"] = details?.thumbnail.map { $0 ? "yes" : "no" }
            schema["id"] = node.remoteID.flatMap(Self.servicesOwn)
            schema["kind"] = Self.kindName(node.kind)
            schema["fileName"] = node.serviceName
            if !node.isAccountRoot, details?.hasModified ?? true {
                schema["clientModifiedTime"] = node.modified.rfc3339(.nanoseconds)
            }
            schema["createdTime"] = node.created?.rfc3339(.nanoseconds)
            schema["rev"] = node.revision?.rawValue
            schema["contentHash"] = node.hash?.description
            schema["mimeType"] = node.mimeType
            schema["permissions"] = Self.permissionNames(node.permissions)
            if node.kind == .shortcut { schema["shortcutTarget"] = node.target }
            // A document's is not known before it was exported.
            let hasSize = node.kind == .nativeDocument ? node.size > 0 : node.kind != .folder
            if hasSize { schema["size"] = String(node.size) }
            if let text = node.itemDescription, !text.isEmpty { schema["description"] = text }
            if wants("path") {
                schema["path"] = try catalog.servicePath(of: node.inode).map {
                    $0.parts.isEmpty ? "/" : $0.description
                }
            }
            if wants("parentID"), let parent = node.parent, parent != .root {
                schema["parentID"] = try catalog.node(parent).remoteID.flatMap(Self.servicesOwn)
            }
            if wants("status") {
                switch try catalog.status(of: node.inode) {
                case .synced: schema["status"] = node.kind.isLocalOnly ? "local" : "synced"
                case .pending: schema["status"] = "pending"
                case .failing(let detail): schema["status"] = "failing: \(detail)"
                }
            }
            return schema
        }
    }

    /// An id, unless a provider made it up for what has none at the service.
    private static func servicesOwn(_ id: ItemID) -> String? {
        id.rawValue.begins(with: "oort:") ? nil : id.rawValue
    }

    private static func kindName(_ kind: NodeKind) -> String {
        switch kind {
        case .folder: "folder"
        case .file, .symlink: "file"
        case .shortcut: "shortcut"
        case .nativeDocument: "native document"
        case .fifo: "pipe"
        case .socket: "socket"
        }
    }

    private static func permissionNames(_ permissions: Permissions) -> String {
        let all: [(Permissions, String)] = [
            (.read, "read"), (.write, "write"), (.delete, "delete"), (.share, "share"),
        ]
        return all.filter { permissions.contains($0.0) }.map(\.1).joined(separator: ",")
    }
}

extension Node {
    /// Whether Linux lets programs see `user.` attributes of what this is.
    fileprivate var mayHaveAttributes: Bool {
        switch kind {
        case .file, .folder, .nativeDocument: true
        case .symlink, .shortcut, .fifo, .socket: false
        }
    }
}

/// What the service said of an item and the catalog only keeps (`Catalog.details`).
private struct Details {
    var originalFileName: String?
    var tag: String?
    var version: String?
    var thumbnail: Bool?
    var serverModified: Timestamp?
    /// Whether the service knows when the content was modified.
    var hasModified: Bool

    init?(_ json: String) {
        guard let object = try? JSONSerialization.jsonObject(with: Data(json.utf8)),
            let details = object as? [String: Any]
        else { return nil }
        originalFileName = details["originalFileName"] as? String
        tag = details["tag"] as? String
        version = details["version"] as? String
        thumbnail = (details["thumbnail"] as? NSNumber)?.boolValue
        hasModified = details["modified"] != nil
        if let parts = details["serverModified"] as? [NSNumber], parts.count == 2 {
            serverModified = Timestamp(
                seconds: parts[0].int64Value,
                nanoseconds: parts[1].int32Value
            )
        }
    }
}
