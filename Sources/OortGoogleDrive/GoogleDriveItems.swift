import OortModel

/// The folders that Drive does not have and a file system needs: places for items that lie in no
/// folder of ours.
enum SyntheticFolder: String, CaseIterable {
    /// Holds the top items that others share with us.
    case sharedWithMe = "oort:shared-with-me"
    /// Holds the shared drives.
    case sharedDrives = "oort:shared-drives"

    init?(_ id: ItemID) { self.init(rawValue: id.rawValue) }

    var id: ItemID { ItemID(rawValue) }

    private var name: String {
        switch self {
        case .sharedWithMe: "Shared with me"
        case .sharedDrives: "Shared drives"
        }
    }

    /// Drive's own page of what the folder shows.
    var page: String {
        switch self {
        case .sharedWithMe: "https://drive.google.com/drive/shared-with-me"
        case .sharedDrives: "https://drive.google.com/drive/shared-drives"
        }
    }

    /// The folder as an ordinary, read-only item in the root.
    func item(in root: ItemID) -> Item {
        var item = Item(id: id, kind: .folder, fileName: name, parentID: root)
        item.permissions = .read
        return item
    }
}

extension DriveFile {
    /// The item in canonical terms.
    ///
    /// `time` is when the service took its last change, where that is known. Nil for what has no
    /// place in the tree: the roots themselves, and own items that lie in no folder (Drive's own
    /// pages do not show those either).
    func item(changed time: String? = nil, rootID: ItemID) -> Item? {
        guard !id.isEmpty, id != rootID.rawValue, id != driveId else { return nil }
        let parent: ItemID
        if let first = parents?.first {
            parent = ItemID(first)
        } else if ownedByMe != true, driveId == nil || sharedWithMeTime != nil {
            parent = SyntheticFolder.sharedWithMe.id
        } else {
            return nil
        }
        return item(parent: parent, changed: time)
    }

    /// The item in canonical terms, in the given folder.
    func item(parent: ItemID?, changed time: String? = nil) -> Item {
        var item = Item(id: ItemID(id), kind: kind, fileName: name ?? "Untitled", parentID: parent)
        item.originalFileName = originalFilename
        item.description = description
        item.clientModifiedTime = modifiedTime.flatMap { Timestamp(rfc3339: $0) }
        item.serverModifiedTime = time.flatMap { Timestamp(rfc3339: $0) }
        item.createdTime = createdTime.flatMap { Timestamp(rfc3339: $0) }
        item.mimeType = mimeType
        item.thumbnail = hasThumbnail
        item.version = version
        item.isTrashed = trashed ?? false
        // The last to modify it may have renamed it only, so both must be this account.
        item.isOwn = ownedByMe == true && lastModifyingUser?.me != false
        item.owner = owners?.first?.othersName
        item.modifiedBy = lastModifyingUser?.othersName
        item.isShared = shared == true
        item.permissions = permissions
        switch item.kind {
        case .file:
            item.size = size?.bytes
            item.tag = md5Checksum
            item.rev = headRevisionId.map { Revision($0) }
            item.contentHash = md5Checksum.map { ContentHash(algorithm: .md5, value: $0) }
        case .nativeDocument:
            // Their `size` is quota use and has nothing to do with the length of an export.
            item.tag = modifiedTime
            item.exports = NativeExports.formats(ofMimeType: mimeType ?? "")
        case .shortcut: item.shortcutTarget = shortcutDetails?.targetId.map { ItemID($0) }
        case .folder: break
        }
        return item
    }

    private var kind: ItemKind {
        switch mimeType {
        case DriveType.folder: .folder
        case DriveType.shortcut: .shortcut
        case .some(let type) where type.hasPrefix(DriveType.nativePrefix) && md5Checksum == nil:
            .nativeDocument
        default: .file
        }
    }

    private var permissions: Permissions {
        guard let capabilities else { return .all }
        var result: Permissions = []
        let isFolder = mimeType == DriveType.folder
        if isFolder || capabilities.canDownload ?? true { result.insert(.read) }
        if capabilities.canEdit ?? true || (isFolder && capabilities.canAddChildren ?? false) {
            result.insert(.write)
        }
        if capabilities.canTrash ?? true { result.insert(.delete) }
        if capabilities.canShare ?? true { result.insert(.share) }
        return result
    }
}

extension DriveDrive {
    /// The drive as a folder of "Shared drives".
    ///
    /// It can be filled, but not moved or trashed.
    var item: Item {
        var item = Item(
            id: ItemID(id),
            kind: .folder,
            fileName: name ?? "Untitled",
            parentID: SyntheticFolder.sharedDrives.id
        )
        item.createdTime = createdTime.flatMap { Timestamp(rfc3339: $0) }
        item.permissions = capabilities?.canAddChildren ?? true ? [.read, .write] : .read
        return item
    }
}

/// The forms in which Google's editors hand out their documents, the one that keeps most first.
///
/// Source: `about.exportFormats` and the guide "Export MIME types for Google Workspace documents".
enum NativeExports {
    private static let pdf = ExportFormat(mimeType: "application/pdf", fileExtension: "pdf")
    private static let plainText = ExportFormat(mimeType: "text/plain", fileExtension: "txt")
    private static let office = "application/vnd.openxmlformats-officedocument."
    private static let openDocument = "application/vnd.oasis.opendocument."

    private static let byType: [String: [ExportFormat]] = [
        "document": [
            .init(mimeType: office + "wordprocessingml.document", fileExtension: "docx"),
            .init(mimeType: openDocument + "text", fileExtension: "odt"),
            pdf,
            .init(mimeType: "application/rtf", fileExtension: "rtf"),
            plainText,
            .init(mimeType: "text/markdown", fileExtension: "md"),
            .init(mimeType: "application/epub+zip", fileExtension: "epub"),
            .init(mimeType: "text/html", fileExtension: "html"),
        ],
        "spreadsheet": [
            .init(mimeType: office + "spreadsheetml.sheet", fileExtension: "xlsx"),
            .init(mimeType: openDocument + "spreadsheet", fileExtension: "ods"),
            pdf,
            .init(mimeType: "text/csv", fileExtension: "csv"),
            .init(mimeType: "text/tab-separated-values", fileExtension: "tsv"),
        ],
        "presentation": [
            .init(mimeType: office + "presentationml.presentation", fileExtension: "pptx"),
            .init(mimeType: openDocument + "presentation", fileExtension: "odp"),
            pdf,
            plainText,
        ],
        "drawing": [
            .init(mimeType: "image/svg+xml", fileExtension: "svg"),
            .init(mimeType: "image/png", fileExtension: "png"),
            .init(mimeType: "image/jpeg", fileExtension: "jpg"),
            pdf,
        ],
        "script": [
            .init(
                mimeType: "application/vnd.google-apps.script+json",
                fileExtension: "json"
            )
        ],
    ]

    /// The forms of a document of this media type; of what Drive exports in none (forms, sites, maps,
    /// other programs' documents) its page's address.
    static func formats(ofMimeType mimeType: String) -> [ExportFormat] {
        guard mimeType.hasPrefix(DriveType.nativePrefix) else { return [] }
        return byType[String(mimeType.dropFirst(DriveType.nativePrefix.count))]
            ?? [AddressFile.format]
    }
}
