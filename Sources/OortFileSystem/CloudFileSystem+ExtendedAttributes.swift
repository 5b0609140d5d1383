import OortCatalog
import OortContentStore
public import OortModel

/// `user.oort.*` shows the canonical schema; other `user.*` are stored on this machine.
extension CloudFileSystem {
    private static let prefix = "user.oort."
    private static let availabilityKey = "availability"
    private static let descriptionName = "user.oort.description"
    private static let sharedWithKey = "sharedWith"
    private static let largestValue = 65_536

    public func extendedAttribute(_ name: String, of inode: Inode) -> Outcome<[UInt8]> {
        guard name.begins(with: "user.") else { return .failure(.notSupported) }
        if name.isSameText(as: Self.prefix + Self.sharedWithKey),
            let asked = sharesThatAreAskedFor(inode)
        {
            return asked
        }
        return .now { () throws(FileSystemError) in
            let node = try node(inode)
            if let ending = name.dropping(beginning: Self.prefix) {
                let key = String(ending)
                if key == Self.availabilityKey, inode != .root, node.mayHaveAttributes {
                    return Array(try availability(of: node).rawValue.utf8)
                }
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

    /// With whom an item is shared, from a service that is asked for it; nil where none is.
    ///
    /// It is asked for by its name only, and never listed: a program that shows all attributes of a folder's
    /// items must not ask a service for each.
    private func sharesThatAreAskedFor(_ inode: Inode) -> Outcome<[UInt8]>? {
        let lister: any FolderLister
        do throws(FileSystemError) {
            let node = try node(inode)
            guard !inode.isOfMount, !node.isAccountRoot, node.mayHaveAttributes,
                node.remoteID != nil, let known = self.lister(of: node.account),
                known.tellsShares
            else { return nil }
            lister = known
        } catch { return .failure(error) }
        return waiting.later { () throws(FileSystemError) in
            let told: TextList
            do throws(ProviderError) {
                told = try await self.shares.sharedWith(inode, by: lister)
            } catch {
                switch error.kind {
                // The service does not tell it to this person, or not of this item.
                case .noPermission, .unsupported, .notFound: throw .noAttribute
                default: throw FileSystemError(error)
                }
            }
            guard !told.isEmpty else { throw .noAttribute }
            return Array(told.joined.utf8)
        }
    }

    public func extendedAttributes(of inode: Inode) -> Outcome<[String]> {
        .now { () throws(FileSystemError) in
            let node = try node(inode)
            // Linux allows `user.` attributes on files and folders only: what it refuses to show must not
            // be listed.
            guard node.mayHaveAttributes else { return [] }
            let own = try FileSystemError.translating { () throws(CatalogError) in
                try catalog.extendedAttributes(of: inode)
            }
            var keys = try schema(of: node, only: nil).keys.sorted()
            // Listed without being computed: for a folder that means looking at much that lies in it.
            if inode != .root { keys.append(Self.availabilityKey) }
            return own + keys.map { Self.prefix + $0 }
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
            try checkChangeable(inode)
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
            try checkChangeable(inode)
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
        // `mv` to another account and `cp -a` copy the attributes that are listed; this is the one error
        // that they take as "cannot be stored here", and go on without a message.
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

    /// How much of an item's bytes is on this machine.
    func availability(of node: Node) throws(FileSystemError) -> Availability {
        try FileSystemError.translating { () throws(CatalogError) in
            let moment = Timestamp.now.inMilliseconds
            let stored = try catalog.availability(of: node, at: moment)
            // The state of contents in use is stored a little later.
            guard case .revision(let item, let revision) = node.content,
                let present = store.present(
                    ContentKey(account: node.account, item: item, revision: revision)
                )
            else { return stored }
            guard present.isComplete else { return present.bytes > 0 ? .partly : .online }
            return try catalog.nearestPin(of: node.inode, at: moment) == nil ? .cached : .pinned
        }
    }

    /// The canonical schema of an item, as texts; `only` saves work when one is asked for.
    private func schema(
        of node: Node,
        only: String?
    ) throws(FileSystemError) -> [String: String] {
        guard !node.inode.isOfMount else { return [:] }
        func wants(_ key: String) -> Bool { only == nil || only == key }
        return try FileSystemError.translating { () throws(CatalogError) in
            var schema: [String: String] = [:]
            let details = try catalog.details(of: node.inode)
            schema["originalFileName"] = details?.originalFileName
            schema["serverModifiedTime"] = details?.serverModifiedTime?.rfc3339(.nanoseconds)
            schema["tag"] = details?.tag
            schema["version"] = details?.version
            schema["thumbnail"] = details?.thumbnail.map { $0 ? "yes" : "no" }
            schema["owner"] = details?.owner
            schema["createdBy"] = details?.createdBy
            schema["modifiedBy"] = details?.modifiedBy
            if details?.isShared == true { schema["shared"] = "yes" }
            schema[Self.sharedWithKey] = details?.sharedWith
            schema["tags"] = details?.tags
            schema["id"] = node.remoteID.flatMap(Self.servicesOwn)
            schema["kind"] = Self.kindName(node.kind)
            schema["fileName"] = node.serviceName
            if !node.isAccountRoot, details?.hasModifiedTime ?? true {
                schema["clientModifiedTime"] = node.modified.rfc3339(.nanoseconds)
            }
            schema["createdTime"] = node.created?.rfc3339(.nanoseconds)
            schema["rev"] = node.revision?.rawValue
            schema["contentHash"] = node.hash?.description
            schema["mimeType"] = node.mimeType
            schema["permissions"] = Self.permissionNames(node.permissions)
            if node.kind == .shortcut { schema["shortcutTarget"] = node.target }
            // A document's size is not known before it was exported.
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
                let isLocal = node.kind.isLocalOnly || node.isHeld
                switch isLocal ? .synced : try catalog.status(of: node.inode) {
                case .synced: schema["status"] = isLocal ? "local" : "synced"
                case .pending: schema["status"] = "pending"
                case .failing(let detail): schema["status"] = "failing: \(detail)"
                }
            }
            return schema
        }
    }

    /// An id, unless the provider made it up for an item without one.
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
    /// Whether Linux lets programs see `user.` attributes of this kind of item.
    fileprivate var mayHaveAttributes: Bool {
        switch kind {
        case .file, .folder, .nativeDocument: true
        case .symlink, .shortcut, .fifo, .socket: false
        }
    }
}
