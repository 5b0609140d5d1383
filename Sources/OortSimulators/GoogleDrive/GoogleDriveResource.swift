import Foundation
import OortModel
import Synchronization

/// The media types of Drive's own kinds of items.
enum GoogleDriveType {
    static let prefix = "application/vnd.google-apps."
    static let folder = prefix + "folder"
    static let shortcut = prefix + "shortcut"

    static func of(_ item: SimulatedItem) -> String {
        switch item.kind {
        case .folder: folder
        case .shortcut: shortcut
        case .nativeDocument(let type): item.mimeType ?? prefix + type.rawValue
        case .file: item.mimeType ?? guess(item.name)
        }
    }

    /// The type that the service gives to a content that came without one.
    static func guess(_ name: String) -> String {
        switch name.split(separator: ".").last?.lowercased() {
        case "txt": "text/plain"
        case "jpg", "jpeg": "image/jpeg"
        case "png": "image/png"
        case "pdf": "application/pdf"
        case "json": "application/json"
        case "html": "text/html"
        default: "application/octet-stream"
        }
    }

    private static let office = "application/vnd.openxmlformats-officedocument."
    private static let openDocument = "application/vnd.oasis.opendocument."

    /// `about.exportFormats`.
    static let exports: [String: [String]] = [
        prefix + "document": [
            office + "wordprocessingml.document", openDocument + "text", "application/rtf",
            "application/pdf", "text/plain", "text/html", "application/epub+zip",
            "text/markdown", "application/zip",
        ],
        prefix + "spreadsheet": [
            office + "spreadsheetml.sheet", openDocument + "spreadsheet", "application/pdf",
            "text/csv", "text/tab-separated-values", "application/zip",
        ],
        prefix + "presentation": [
            office + "presentationml.presentation", openDocument + "presentation",
            "application/pdf", "text/plain",
        ],
        prefix + "drawing": ["image/svg+xml", "image/png", "image/jpeg", "application/pdf"],
        prefix + "script": [prefix + "script+json"],
    ]

    /// The file name extension of an export's media type, by which `SimulatedExport` knows it.
    static func exportFormat(_ mimeType: String) -> String {
        switch mimeType {
        case office + "wordprocessingml.document": "docx"
        case office + "spreadsheetml.sheet": "xlsx"
        case office + "presentationml.presentation": "pptx"
        case openDocument + "text": "odt"
        case openDocument + "spreadsheet": "ods"
        case openDocument + "presentation": "odp"
        case "application/pdf": "pdf"
        case "application/zip": "zip"
        case "application/epub+zip": "epub"
        case "text/plain": "txt"
        case "text/html": "html"
        case "image/svg+xml": "svg"
        case "image/png": "png"
        case "image/jpeg": "jpeg"
        default: ""
        }
    }

    static let imports: [String: [String]] = [
        "text/plain": [prefix + "document"],
        office + "wordprocessingml.document": [prefix + "document"],
        "text/csv": [prefix + "spreadsheet"],
        office + "spreadsheetml.sheet": [prefix + "spreadsheet"],
        office + "presentationml.presentation": [prefix + "presentation"],
    ]

    /// The kind of document that a media type names; nil for other types.
    static func document(_ mimeType: String) -> SimulatedItem.NativeDocument? {
        guard mimeType.hasPrefix(prefix) else { return nil }
        let name = String(mimeType.dropFirst(prefix.count))
        if let known = SimulatedItem.NativeDocument(rawValue: name) { return known }
        return ["form", "script", "site", "map", "jam"].contains(name) ? .document : nil
    }
}

extension GoogleDriveSimulator {
    /// What the service says about an item: the wanted fields, in v3's words.
    func resource(
        of item: SimulatedItem,
        in tree: SimulatedTree,
        for request: SimulatorRequest,
        mask: GoogleDriveFieldMask
    ) -> JSON {
        let root = tree.root(of: item.id)
        let driveID = drive(root)
        let role = role(on: item, in: tree)
        let isTrashed = tree.isTrashed(item.id)
        let mimeType = GoogleDriveType.of(item)
        var fields: [String: JSON] = [
            "kind": "drive#file", "id": .string(item.id), "name": .string(item.name),
            "mimeType": .string(mimeType), "starred": item.extra["starred"] ?? false,
            "trashed": .bool(isTrashed), "explicitlyTrashed": .bool(item.trashedTime != nil),
            "spaces": ["drive"], "version": .string(String(item.version * 2 + 1)),
            "createdTime": Self.time(item.createdTime),
            "modifiedTime": Self.time(item.modifiedTime),
            "viewedByMe": true, "modifiedByMe": .bool(role == .owner),
            "isAppAuthorized": true, "writersCanShare": true,
            "viewersCanCopyContent": true, "copyRequiresWriterPermission": false,
            "hasThumbnail": .bool(hasThumbnail(item)), "thumbnailVersion": "0",
            "webViewLink": .string("https://drive.google.com/file/d/\(item.id)/view"),
            "quotaBytesUsed": .string(String(item.size)),
            "capabilities": capabilities(of: item, role: role),
            "lastModifyingUser": person(isMe: !item.isStrangers),
        ]
        if let parent = item.parentID { fields["parents"] = [.string(parent)] }
        if let text = item.description { fields["description"] = .string(text) }
        if let time = item.trashedTime { fields["trashedTime"] = Self.time(time) }
        for name in [
            "properties", "appProperties", "viewedByMeTime", "folderColorRgb", "sharedWithMeTime",
            "originalFilename",
        ] {
            if let value = item.extra[name] { fields[name] = value }
        }
        if let driveID {
            fields["driveId"] = .string(driveID)
            fields["teamDriveId"] = .string(driveID)
        } else {
            let isMine = role == .owner && !item.isStrangers
            fields["ownedByMe"] = .bool(isMine)
            fields["owners"] = [person(isMe: isMine)]
            fields["shared"] = .bool(
                !isMine || item.extra["isPublic"] != nil || !item.sharees.isEmpty
            )
            if item.extra["sharedWithMeTime"] != nil { fields["sharingUser"] = person(isMe: false) }
        }
        switch item.kind {
        case .file: addContent(of: item, to: &fields, for: request, mask: mask)
        case .folder: break
        case .shortcut(let target):
            fields["shortcutDetails"] = [
                "targetId": .string(target),
                "targetMimeType": .string(
                    tree.item(target).map { GoogleDriveType.of($0) } ?? "application/octet-stream"
                ),
            ]
        case .nativeDocument:
            // Quota use, not the length of anything that can be read.
            fields["size"] = .string(String(1024 + item.size / 3))
            let types = GoogleDriveType.exports[mimeType] ?? []
            if !types.isEmpty {
                fields["exportLinks"] = .object(
                    Dictionary(uniqueKeysWithValues: types.map { ($0, link($0, item, request)) })
                )
            }
        }
        if hasThumbnail(item) {
            fields["thumbnailLink"] = .string(
                request.url(host: "lh3.googleusercontent.com", path: "/thumb/\(item.id)=s220")
            )
        }
        return mask.applied(to: .object(fields))
    }

    private func addContent(
        of item: SimulatedItem,
        to fields: inout [String: JSON],
        for request: SimulatorRequest,
        mask: GoogleDriveFieldMask
    ) {
        let content = item.head?.content ?? Self.emptyContent
        fields["size"] = .string(String(content.size))
        fields["headRevisionId"] = .string(item.head?.id ?? "0")
        fields["originalFilename"] = item.extra["originalFilename"] ?? .string(item.name)
        if let dot = item.name.lastIndex(of: "."), dot != item.name.startIndex {
            let ending = String(item.name[item.name.index(after: dot)...])
            fields["fileExtension"] = .string(ending)
            fields["fullFileExtension"] = .string(ending)
        }
        fields["webContentLink"] = .string(
            request.url(host: "drive.google.com", path: "/uc?id=\(item.id)&export=download")
        )
        if mask.wants("md5Checksum") { fields["md5Checksum"] = .string(content.md5) }
        if mask.wants("sha1Checksum") { fields["sha1Checksum"] = .string(content.sha1) }
        if mask.wants("sha256Checksum") { fields["sha256Checksum"] = .string(content.sha256) }
    }

    private func link(_ type: String, _ item: SimulatedItem, _ request: SimulatorRequest) -> JSON {
        let type = type.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? type
        return .string(
            request.url(
                host: "docs.google.com",
                path: "/feeds/download/export?id=\(item.id)&type=\(type)"
            )
        )
    }

    /// The same item in v2's words.
    func resourceV2(
        of item: SimulatedItem,
        in tree: SimulatedTree,
        for request: SimulatorRequest,
        mask: GoogleDriveFieldMask
    ) -> JSON {
        let v3 = resource(of: item, in: tree, for: request, mask: .everything)
        var fields: [String: JSON] = [
            "kind": "drive#file", "etag": .string(Self.etag(of: item)),
            "labels": [
                "starred": v3["starred"] ?? false, "hidden": false, "restricted": false,
                "viewed": true, "trashed": v3["trashed"] ?? false,
            ],
        ]
        let names = [
            ("id", "id"), ("name", "title"), ("mimeType", "mimeType"),
            ("description", "description"), ("createdTime", "createdDate"),
            ("modifiedTime", "modifiedDate"), ("sharedWithMeTime", "sharedWithMeDate"),
            ("version", "version"), ("size", "fileSize"), ("md5Checksum", "md5Checksum"),
            ("sha1Checksum", "sha1Checksum"), ("sha256Checksum", "sha256Checksum"),
            ("headRevisionId", "headRevisionId"), ("originalFilename", "originalFilename"),
            ("fileExtension", "fileExtension"), ("quotaBytesUsed", "quotaBytesUsed"),
            ("shared", "shared"), ("driveId", "driveId"), ("teamDriveId", "teamDriveId"),
            ("thumbnailLink", "thumbnailLink"), ("webContentLink", "webContentLink"),
            ("explicitlyTrashed", "explicitlyTrashed"), ("spaces", "spaces"),
            ("ownedByMe", "ownedByMe"), ("capabilities", "capabilities"),
            ("shortcutDetails", "shortcutDetails"),
            ("webViewLink", "alternateLink"),
        ]
        for (old, new) in names { if let value = v3[old] { fields[new] = value } }
        fields["owners"] = .array(
            (v3["owners"]?.elements ?? []).map {
                [
                    "kind": "drive#user", "displayName": $0["displayName"] ?? .null,
                    "isAuthenticatedUser": $0["me"] ?? false,
                    "permissionId": $0["permissionId"] ?? .null,
                ]
            }
        )
        fields["parents"] = .array(
            (v3["parents"]?.elements ?? []).map {
                [
                    "kind": "drive#parentReference", "id": $0,
                    "isRoot": .bool($0.text == tree.rootID),
                ]
            }
        )
        return mask.applied(to: .object(fields))
    }

    static func etag(of item: SimulatedItem) -> String { "\"MTY\(item.version)-\(item.id)\"" }
    static func time(_ time: Timestamp) -> JSON { .string(time.rfc3339(.milliseconds)) }

    /// The service's key of the account's person.
    var permissionID: String { "1076915035000615071511\(account.person.number)" }

    func person(isMe: Bool) -> JSON {
        isMe
            ? [
                "kind": "drive#user", "displayName": .string(account.displayName), "me": true,
                "permissionId": .string(permissionID), "emailAddress": .string(account.email),
            ]
            : [
                "kind": "drive#user", "displayName": "Grace Other", "me": false,
                "permissionId": "04418214570006000000000", "emailAddress": "grace@example.org",
            ]
    }

    func hasThumbnail(_ item: SimulatedItem) -> Bool {
        item.kind == .file && item.size > 0 && GoogleDriveType.of(item).hasPrefix("image/")
    }

    // MARK: Who may do what

    enum Role: Int, Comparable {
        case reader
        case writer
        case owner

        static func < (left: Role, right: Role) -> Bool { left.rawValue < right.rawValue }
    }

    /// The root of a shared drive, by its id; nil for anything else.
    func drive(_ id: String) -> String? { state.withLock { $0.drives.contains(id) ? id : nil } }

    /// The account's role on an item: owner, or the one that was given when it was shared.
    func role(on item: SimulatedItem, in tree: SimulatedTree) -> Role {
        if tree.isReadOnly(item.id) { return .reader }
        let root = tree.root(of: item.id)
        if root == tree.rootID { return .owner }
        if drive(root) != nil { return .owner }
        switch tree.item(root)?.extra["role"]?.text {
        case "writer": return .writer
        case "owner": return .owner
        default: return .reader
        }
    }

    private func capabilities(of item: SimulatedItem, role: Role) -> JSON {
        let canEdit = role >= .writer
        let isRoot = item.parentID == nil && role == .owner
        let isFolder = item.isFolder
        return [
            "canEdit": .bool(canEdit), "canRename": .bool(canEdit && !isRoot),
            "canTrash": .bool(role == .owner && !isRoot), "canUntrash": .bool(role == .owner),
            "canDelete": .bool(role == .owner && !isRoot), "canShare": .bool(canEdit),
            "canDownload": .bool(!isFolder), "canCopy": .bool(!isFolder),
            "canAddChildren": .bool(isFolder && canEdit), "canListChildren": .bool(isFolder),
            "canRemoveChildren": .bool(isFolder && canEdit), "canComment": true,
            "canModifyContent": .bool(canEdit && !isFolder),
            "canReadRevisions": .bool(!isFolder),
        ]
    }
}
