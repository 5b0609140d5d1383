import Foundation
import OortModel

/// The canonical item as the catalog stores it: what the service said last of an item in motion,
/// and the remainder that `user.oort.*` shows.
struct StoredItem: Codable {
    var id: String
    var kind: Int64
    var fileName: String
    var path: [String]?
    var originalFileName: String?
    var description: String?
    var modified: [Int64]?
    var serverModified: [Int64]?
    var created: [Int64]?
    var size: Int64?
    var mimeType: String?
    var parentID: String?
    var thumbnail: Bool?
    var tag: String?
    var revision: String?
    var version: String?
    var hash: String?
    var permissions: UInt8
    /// Whether this account owns the item and wrote its content; nil in what older versions stored.
    var isOwn: Bool?
    var owner: String?
    var createdBy: String?
    var modifiedBy: String?
    /// Nil for no, too, which takes no room.
    var isShared: Bool?
    var sharedWith: String?
    /// Nil where the service did not say, and what is known of them holds; empty for none.
    var tags: String?
    var target: String?
    var exports: [[String]]?

    init(_ item: Item) {
        id = item.id.rawValue
        kind = NodeKind(item).rawValue
        fileName = item.fileName
        path = item.path?.parts
        originalFileName = item.originalFileName
        description = item.description
        modified = item.clientModifiedTime?.parts
        serverModified = item.serverModifiedTime?.parts
        created = item.createdTime?.parts
        // The border to the tree: nothing beyond it expects a size with which a sum overflows.
        size = item.size.map { min(max($0, 0), ReportedSize.largest) }
        mimeType = item.mimeType
        parentID = item.parentID?.rawValue
        thumbnail = item.thumbnail
        tag = item.tag
        revision = item.rev?.rawValue
        version = item.version
        hash = item.contentHash?.description
        permissions = item.permissions.rawValue
        isOwn = item.isOwn
        (owner, createdBy, modifiedBy) = (item.owner, item.createdBy, item.modifiedBy)
        isShared = item.isShared ? true : nil
        sharedWith = item.sharedWith.isEmpty ? nil : item.sharedWith.joined
        tags = item.tags?.joined
        target = item.shortcutTarget?.rawValue
        if !item.exports.isEmpty { exports = item.exports.map { [$0.mimeType, $0.fileExtension] } }
    }

    init(json: String) throws { self = try JSONDecoder().decode(Self.self, from: Data(json.utf8)) }

    func json() throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return String(decoding: try encoder.encode(self), as: UTF8.self)
    }

    /// What it is to the file system.
    var nodeKind: NodeKind { NodeKind(rawValue: kind) ?? .file }

    /// The name under which it is shown, before duplicates are numbered.
    var shownName: String {
        var item = Item(id: ItemID(id), kind: .file, fileName: fileName)
        switch nodeKind {
        case .nativeDocument:
            item.kind = .nativeDocument
            item.exports = (exports ?? []).compactMap {
                $0.count == 2 ? ExportFormat(mimeType: $0[0], fileExtension: $0[1]) : nil
            }
        case .folder: item.kind = .folder
        case .shortcut: item.kind = .shortcut
        case .file, .symlink, .fifo, .socket: break
        }
        return ShownName.shown(item, isLink: nodeKind == .symlink)
    }

    /// The modified time, where the service told one.
    var modifiedTime: Timestamp? { Timestamp(parts: modified) ?? Timestamp(parts: serverModified) }

    var createdTime: Timestamp? { Timestamp(parts: created) }
}

extension NodeKind {
    /// What an item of the service is to the file system, but for links: `StoredItem.decideKind`.
    init(_ item: Item) {
        switch item.kind {
        case .folder: self = .folder
        case .file: self = .file
        case .shortcut: self = .shortcut
        case .nativeDocument: self = .nativeDocument
        }
    }
}
