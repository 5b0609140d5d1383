import OortModel
import Synchronization

/// What the provider remembers while it runs; nothing here outlives the process or is needed to.
final class OneDriveMemory: Sendable {
    /// The account's own drive.
    struct Drive: Sendable {
        var id: String
        var type: String
        var rootItem: String
        /// The service's key of the person; nil where it does not report it.
        var ownerID: String?
        var ownerName: String
        var ownerEmail: String?

        var root: DriveAddress { DriveAddress(drive: id, item: rootItem) }
    }

    /// A pre-signed address of a file's content, and the item for which it was given.
    struct Download: Sendable {
        var url: String
        var tag: String?
        var revision: Revision
        var size: Int64
        var expires: ContinuousClock.Instant
    }

    private struct State {
        var drive: Drive?
        /// Shortcuts by where they lead, so that what lies in another drive finds its parent.
        var shortcuts: [DriveAddress: OneDriveItemID] = [:]
        var downloads: [DriveAddress: Download] = [:]
    }

    private let state = Mutex(State())
    private static let mostDownloads = 20_000
    /// The service's own limit is about an hour.
    private static let downloadLife = Duration.seconds(50 * 60)

    var drive: Drive? {
        get { state.withLock { $0.drive } }
        set { state.withLock { $0.drive = newValue } }
    }

    /// Remembers where a shortcut leads.
    func learn(_ id: OneDriveItemID) {
        guard id.isShortcut else { return }
        state.withLock { $0.shortcuts[id.target] = id }
    }

    /// Forgets a shortcut that is gone.
    func forget(_ id: OneDriveItemID) {
        state.withLock { if $0.shortcuts[id.target] == id { $0.shortcuts[id.target] = nil } }
    }

    /// The canonical id of what lives at an address, a shortcut's where one leads there.
    func itemID(at address: DriveAddress) -> ItemID {
        state.withLock { $0.shortcuts[address]?.itemID } ?? OneDriveItemID(address).itemID
    }

    /// The address of a file's content, if one was given lately.
    func download(of address: DriveAddress) -> Download? {
        state.withLock { state in
            guard let download = state.downloads[address] else { return nil }
            guard download.expires > .now else {
                state.downloads[address] = nil
                return nil
            }
            return download
        }
    }

    /// Forgets an address that no longer works.
    func forgetDownload(of address: DriveAddress) {
        state.withLock { $0.downloads[address] = nil }
    }

    /// Remembers the download address in an answer, if there is one.
    @discardableResult
    func learnDownload(
        _ wire: DriveItemWire,
        at address: DriveAddress,
        isShortcut: Bool
    ) -> Download? {
        guard let url = wire.downloadURL, let size = wire.size?.bytes,
            let revision = OneDriveItems.revision(wire, in: address.drive, isShortcut: isShortcut)
        else { return nil }
        let download = Download(
            url: url,
            tag: wire.eTag,
            revision: revision,
            size: size,
            expires: .now + Self.downloadLife
        )
        state.withLock { state in
            if state.downloads.count >= Self.mostDownloads { state.downloads.removeAll() }
            state.downloads[address] = download
        }
        return download
    }
}

/// The service's items in the canonical schema.
enum OneDriveItems {
    /// The canonical item; nil for what cannot be one (no id, no name, a shortcut to nowhere).
    ///
    /// `drive` is the drive that was asked, for answers that do not name it.
    static func item(
        _ wire: DriveItemWire,
        drive: String,
        memory: OneDriveMemory
    ) -> Item? {
        guard let rawID = wire.id, isUsable(rawID) else { return nil }
        let drive = wire.parentReference?.driveId ?? drive
        let address = DriveAddress(drive: drive, item: rawID)
        guard let name = wire.name, !name.isEmpty else { return nil }
        var id = OneDriveItemID(address)
        if let remote = wire.remoteItem {
            guard let item = remote.id, let other = remote.parentReference?.driveId,
                isUsable(item), isUsable(other)
            else { return nil }
            id = OneDriveItemID(entry: address, target: DriveAddress(drive: other, item: item))
            memory.learn(id)
        }
        let parent = wire.root == nil ? wire.parentReference?.id : nil
        var result = Item(
            id: wire.remoteItem == nil ? memory.itemID(at: address) : id.itemID,
            kind: isFile(wire) ? .file : .folder,
            fileName: name,
            parentID: parent.map { memory.itemID(at: DriveAddress(drive: drive, item: $0)) }
        )
        result.tag = wire.eTag
        // The last to modify it may have renamed it only, so both must be this account.
        let people = [wire.createdBy, wire.lastModifiedBy].map { $0?.user?.id }
        result.isOwn =
            wire.remoteItem == nil && memory.drive?.id == address.drive
            && people.allSatisfy { $0 != nil && $0 == memory.drive?.ownerID }
        let owner = memory.drive?.ownerID
        /// Nil where it is not certain that it is another person.
        func othersName(_ person: IdentityWire?) -> String? {
            guard let owner, let user = person?.user, let id = user.id, id != owner else {
                return nil
            }
            return user.displayName
        }
        result.createdBy = othersName(wire.createdBy)
        result.modifiedBy = othersName(wire.lastModifiedBy)
        result.isShared = wire.shared != nil || wire.remoteItem != nil
        result.description = wire.description.flatMap { $0.isEmpty ? nil : $0 }
        fillTimes(&result, wire)
        if result.kind == .file {
            result.size = (wire.remoteItem?.size ?? wire.size)?.bytes
            let file = wire.remoteItem?.file ?? wire.file
            result.mimeType = file?.mimeType
            result.rev = revision(wire, in: address.drive, isShortcut: id.isShortcut)
            result.contentHash = file?.hashes?.quickXorHash.map {
                ContentHash(algorithm: .quickXor, value: $0)
            }
            if wire.image != nil || wire.photo != nil || wire.video != nil {
                result.thumbnail = true
            }
        } else if !isFolder(wire) {
            // A notebook, an album: it holds what cannot be read here, so nothing goes in, and it
            // must not be taken for an empty folder that `rmdir` may delete. It is shown, not
            // hidden, because the folder above would else look empty while it is not.
            result.permissions = [.read, .share]
        }
        return result
    }

    /// The version of a file's content.
    ///
    /// Personal drives have the cTag in every answer. Elsewhere the change feed leaves it out, and
    /// a listing and the feed must agree: there hash and size are the revision, or the eTag of a
    /// file that has no hash. What a shortcut says of its file is less still: time and size.
    static func revision(
        _ wire: DriveItemWire,
        in drive: String,
        isShortcut: Bool
    ) -> Revision? {
        if isShortcut || wire.remoteItem != nil {
            let remote = wire.remoteItem
            let size = (remote?.size ?? wire.size)?.bytes
            let times = remote?.fileSystemInfo ?? wire.fileSystemInfo
            let time = times?.lastModifiedDateTime ?? wire.lastModifiedDateTime
            return Revision("\(time ?? "?"):\(size ?? 0)")
        }
        guard wire.file != nil else { return nil }
        if OneDriveSpelling.isPersonal(drive: drive), let tag = wire.cTag { return Revision(tag) }
        if let hash = wire.file?.hashes?.quickXorHash, let size = wire.size?.bytes {
            return Revision("\(hash):\(size)")
        }
        if wire.size?.bytes == 0 { return Revision("\(QuickXorHasher().finalize().value):0") }
        return wire.eTag.map { Revision($0) }
    }

    /// The tag that a request can be bound to for a revision; nil where the revision is not one.
    ///
    /// Source: learn.microsoft.com/graph/api/driveitem-delete, "the eTag (or cTag) provided".
    static func contentTag(_ revision: Revision, isShortcut: Bool) -> String? {
        let text = revision.rawValue
        return !isShortcut && text.hasPrefix("\"c:") && text.hasSuffix("\"") ? text : nil
    }

    /// The modified time that the client gave.
    static func modifiedTime(_ wire: DriveItemWire) -> Timestamp? {
        (wire.fileSystemInfo?.lastModifiedDateTime ?? wire.lastModifiedDateTime)
            .flatMap { Timestamp(rfc3339: $0) }
    }

    private static func fillTimes(_ item: inout Item, _ wire: DriveItemWire) {
        let remote = wire.remoteItem
        let info = remote?.fileSystemInfo ?? wire.fileSystemInfo
        let modified = remote?.lastModifiedDateTime ?? wire.lastModifiedDateTime
        let created = remote?.createdDateTime ?? wire.createdDateTime
        item.clientModifiedTime = (info?.lastModifiedDateTime ?? modified)
            .flatMap { Timestamp(rfc3339: $0) }
        item.serverModifiedTime = modified.flatMap { Timestamp(rfc3339: $0) }
        item.createdTime = (info?.createdDateTime ?? created)
            .flatMap { Timestamp(rfc3339: $0) }
    }

    static func isFile(_ wire: DriveItemWire) -> Bool {
        if let remote = wire.remoteItem { return remote.file != nil && remote.folder == nil }
        return wire.file != nil && wire.folder == nil && wire.package == nil
    }

    static func isFolder(_ wire: DriveItemWire) -> Bool {
        if let remote = wire.remoteItem { return remote.folder != nil && remote.package == nil }
        return wire.root != nil || (wire.folder != nil && wire.package == nil)
    }

    /// Ids become part of composed ids and of URLs.
    private static func isUsable(_ id: String) -> Bool {
        !id.isEmpty && id.utf8.count <= 1024
            && id.utf8.allSatisfy {
                $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: ">")
            }
    }
}
