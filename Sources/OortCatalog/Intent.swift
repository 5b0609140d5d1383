import Foundation
public import OortModel
public import OortPlanner

/// An operation that was begun and has no answer yet, stored before the request goes out: after a lost
/// answer or a restart the service is asked whether it was done.
public struct Intent: Codable, Hashable, Sendable {
    /// What was asked.
    public enum Kind: String, Codable, Sendable {
        /// A folder, a file, or a backup's copy: something new.
        case createFolder, upload, duplicate
        /// A change of an existing item.
        case replace, move, delete, setAttributes
    }

    /// What was asked.
    public var kind: Kind
    /// Where the item is to be: the folder's inode, and the name.
    public var parent: UInt64?
    /// The name that it is to have.
    public var name: String?
    /// The folder's path at that moment, in the service's names.
    public var folderPath: [String]?
    /// The folder's id at that moment.
    public var folderID: String?
    /// The hash of what was sent, where it was known before.
    public var hash: String?
    /// The item whose content was sent, and its revision, where that was another item's.
    public var source: [String]?
    /// Bytes of what was sent.
    public var size: Int64?
    /// The staged content that was sent, where it was one.
    public var staged: Int64?
    /// The id of the file that the service was told to copy, where no bytes were sent.
    public var originalID: String?
    /// That file's path at that moment, in the service's names.
    public var originalPath: [String]?
    /// The id that the client chose.
    public var reservedID: String?
    /// The file that takes over a backup's identity.
    public var heir: UInt64?
    /// The modified time that was set or sent: seconds since 1970, and nanoseconds of the next one.
    public var modified: [Int64]?
    /// The created time that was sent with a new file.
    public var created: [Int64]?
    /// The newest inode at that moment: an item that was reported since has a larger one.
    public var newestInode: UInt64?
    /// The description that was set.
    public var description: String?
    /// The account's last enumeration at that moment.
    public var enumeration: Int64?

    /// The intent of an operation.
    public init(_ action: RemoteOperation.Action) {
        func place(_ place: Place) {
            parent = place.parent.rawValue
            name = place.name
        }
        func bytes(_ identity: ContentIdentity) {
            hash = identity.hash?.description
            size = identity.size
            staged = identity.staged.flatMap { $0 > 0 ? $0 : nil }
        }
        switch action {
        case .createFolder(let at):
            kind = .createFolder
            place(at)
        case .upload(let at, let identity):
            kind = .upload
            place(at)
            bytes(identity)
        case .duplicate(let at, let inode):
            kind = .duplicate
            place(at)
            heir = inode.rawValue
        case .replace(_, let identity):
            kind = .replace
            bytes(identity)
        case .move(let to, _):
            kind = .move
            place(to)
        case .delete: kind = .delete
        case .setAttributes(let time, let text):
            kind = .setAttributes
            modified = time?.parts
            description = text
        }
    }

    /// The modified time that was set or sent.
    public var modifiedTime: Timestamp? { Timestamp(parts: modified) }

    /// Whether it sends a file's bytes.
    var hasBytes: Bool { kind == .upload || kind == .replace }

    /// Where a new item is to appear.
    public var expected: Place? {
        guard let parent, let name else { return nil }
        switch kind {
        case .createFolder, .upload, .duplicate: return Place(parent: Inode(parent), name: name)
        case .replace, .move, .delete, .setAttributes: return nil
        }
    }

    /// The folder as it was addressed.
    public var folder: ItemReference? {
        guard let folderID, let folderPath else { return nil }
        return ItemReference(id: ItemID(folderID), path: RemotePath(folderPath))
    }

    /// The file that the service was told to copy, as it was addressed; nil where bytes were sent.
    public var original: ItemReference? {
        guard let originalID, let originalPath else { return nil }
        return ItemReference(id: ItemID(originalID), path: RemotePath(originalPath))
    }

    init(json: String) throws { self = try JSONDecoder().decode(Self.self, from: Data(json.utf8)) }

    func json() throws -> String {
        String(decoding: try JSONEncoder().encode(self), as: UTF8.self)
    }
}
