/// The `fields` parameter: which parts of an answer are wanted.
///
/// Grammar: `a,b(c,d/e),f/g,*`; an unknown name is refused, as the service does.
struct GoogleDriveFieldMask {
    /// A field's wanted parts; empty means all of it.
    indirect enum Selection {
        case all
        case some([String: Selection])
    }

    /// A name that the resource does not have.
    struct Invalid: Error {
        var name: String
    }

    let selection: Selection

    static let everything = GoogleDriveFieldMask(selection: .all)

    private init(selection: Selection) { self.selection = selection }

    /// Reads a mask and checks its names against what the resource has.
    init(_ text: String, for schema: GoogleDriveSchema) throws(Invalid) {
        var parser = Parser(rest: Substring(text.filter { !$0.isWhitespace }))
        let parsed = try parser.list()
        guard parser.rest.isEmpty else { throw Invalid(name: String(parser.rest)) }
        try Self.check(parsed, against: schema)
        selection = parsed
    }

    /// Whether a field is wanted, at least in part.
    func wants(_ name: String) -> Bool {
        switch selection {
        case .all: true
        case .some(let names): names[name] != nil
        }
    }

    /// The mask of a field's own parts.
    func below(_ name: String) -> GoogleDriveFieldMask {
        guard case .some(let names) = selection, let found = names[name] else {
            return .everything
        }
        return GoogleDriveFieldMask(selection: found)
    }

    /// The wanted parts of an answer.
    func applied(to value: JSON) -> JSON { Self.apply(selection, to: value) }

    private static func apply(_ selection: Selection, to value: JSON) -> JSON {
        guard case .some(let names) = selection else { return value }
        switch value {
        case .array(let values): return .array(values.map { apply(selection, to: $0) })
        case .object(let fields):
            var kept: [String: JSON] = [:]
            for (name, below) in names {
                if let field = fields[name] { kept[name] = apply(below, to: field) }
            }
            return .object(kept)
        default: return value
        }
    }

    private static func check(
        _ selection: Selection,
        against schema: GoogleDriveSchema
    ) throws(Invalid) {
        guard case .some(let names) = selection else { return }
        for (name, below) in names {
            guard let part = schema.parts[name] else {
                if schema.isOpen { continue }
                throw Invalid(name: name)
            }
            try check(below, against: part)
        }
    }

    private struct Parser {
        var rest: Substring

        mutating func list() throws(Invalid) -> Selection {
            var names: [String: Selection] = [:]
            var isAll = false
            repeat {
                let (name, below) = try entry()
                if name == "*" { isAll = true } else { names[name] = below }
            } while take(",")
            return isAll ? .all : .some(names)
        }

        mutating func entry() throws(Invalid) -> (String, Selection) {
            let name = rest.prefix { !",()/".contains($0) }
            guard !name.isEmpty else { throw Invalid(name: String(rest.prefix(1))) }
            rest = rest.dropFirst(name.count)
            if take("/") {
                let (next, below) = try entry()
                return (String(name), next == "*" ? .all : .some([next: below]))
            }
            guard take("(") else { return (String(name), .all) }
            let below = try list()
            guard take(")") else { throw Invalid(name: String(name)) }
            return (String(name), below)
        }

        mutating func take(_ character: Character) -> Bool {
            guard rest.first == character else { return false }
            rest = rest.dropFirst()
            return true
        }
    }
}

/// Which fields a resource has.
struct GoogleDriveSchema: Sendable {
    var parts: [String: GoogleDriveSchema] = [:]
    /// Whether any name is accepted: maps with arbitrary keys.
    var isOpen = false

    static let open = GoogleDriveSchema(isOpen: true)

    init(isOpen: Bool) { self.isOpen = isOpen }

    init(_ names: String, _ nested: [String: GoogleDriveSchema] = [:]) {
        for name in names.split(whereSeparator: \.isWhitespace) { parts[String(name)] = .open }
        parts.merge(nested) { $1 }
    }

    private static let user = GoogleDriveSchema(
        "kind displayName photoLink me permissionId emailAddress"
    )
    private static let userV2 = GoogleDriveSchema(
        "kind displayName picture isAuthenticatedUser permissionId emailAddress"
    )
    static let permission = GoogleDriveSchema(
        """
        kind id type emailAddress domain role allowFileDiscovery displayName photoLink \
        expirationTime permissionDetails deleted pendingOwner view teamDrivePermissionDetails
        """
    )
    private static let capabilities = GoogleDriveSchema(
        """
        canAcceptOwnership canAddChildren canAddFolderFromAnotherDrive canAddMyDriveParent \
        canChangeCopyRequiresWriterPermission canChangeSecurityUpdateEnabled \
        canChangeViewersCanCopyContent canComment canCopy canDelete canDeleteChildren canDownload \
        canEdit canListChildren canModifyContent canModifyContentRestriction \
        canModifyEditorContentRestriction canModifyLabels canModifyOwnerContentRestriction \
        canMoveChildrenOutOfDrive canMoveChildrenOutOfTeamDrive canMoveChildrenWithinDrive \
        canMoveChildrenWithinTeamDrive canMoveItemIntoTeamDrive canMoveItemOutOfDrive \
        canMoveItemOutOfTeamDrive canMoveItemWithinDrive canMoveItemWithinTeamDrive \
        canMoveTeamDriveItem canReadDrive canReadLabels canReadRevisions canReadTeamDrive \
        canRemoveChildren canRemoveContentRestriction canRemoveMyDriveParent canRename canShare \
        canTrash canTrashChildren canUntrash canDisableInheritedPermissions \
        canEnableInheritedPermissions canChangeItemDownloadRestriction
        """
    )
    private static let shortcut = GoogleDriveSchema("targetId targetMimeType targetResourceKey")

    static let file = GoogleDriveSchema(
        """
        kind id name mimeType description starred trashed explicitlyTrashed trashedTime parents \
        spaces version webContentLink webViewLink iconLink hasThumbnail thumbnailLink \
        thumbnailVersion viewedByMe viewedByMeTime createdTime modifiedTime modifiedByMeTime \
        modifiedByMe sharedWithMeTime teamDriveId driveId shared ownedByMe viewersCanCopyContent \
        copyRequiresWriterPermission writersCanShare permissionIds hasAugmentedPermissions \
        folderColorRgb originalFilename fullFileExtension fileExtension md5Checksum sha1Checksum \
        sha256Checksum size quotaBytesUsed headRevisionId isAppAuthorized resourceKey \
        inheritedPermissionsDisabled imageMediaMetadata videoMediaMetadata contentHints \
        contentRestrictions linkShareMetadata labelInfo downloadRestrictions exportLinks
        """,
        [
            "owners": user, "lastModifyingUser": user, "sharingUser": user, "trashingUser": user,
            "capabilities": capabilities, "permissions": permission, "shortcutDetails": shortcut,
            "properties": .open, "appProperties": .open,
        ]
    )
    static let fileList = GoogleDriveSchema(
        "kind nextPageToken incompleteSearch",
        ["files": file]
    )
    static let fileV2 = GoogleDriveSchema(
        """
        kind id etag title mimeType description alternateLink createdDate modifiedDate \
        modifiedByMeDate sharedWithMeDate version fileSize md5Checksum sha1Checksum sha256Checksum \
        headRevisionId originalFilename fileExtension quotaBytesUsed shared ownerNames editable \
        driveId teamDriveId thumbnailLink downloadUrl webContentLink explicitlyTrashed spaces \
        ownedByMe
        """,
        [
            "owners": userV2,
            "labels": GoogleDriveSchema("starred hidden trashed restricted viewed"),
            "parents": GoogleDriveSchema("kind id selfLink parentLink isRoot"),
            "capabilities": capabilities, "shortcutDetails": shortcut,
        ]
    )
    private static let driveFields = """
        kind id name createdTime themeId colorRgb backgroundImageLink backgroundImageFile hidden \
        orgUnitId restrictions
        """
    static let drive = GoogleDriveSchema(driveFields, ["capabilities": .open])
    static let driveList = GoogleDriveSchema(
        "kind nextPageToken",
        ["drives": drive, "teamDrives": drive]
    )
    static let changeList = GoogleDriveSchema(
        "kind nextPageToken newStartPageToken",
        [
            "changes": GoogleDriveSchema(
                "kind type changeType removed time fileId driveId teamDriveId",
                ["file": file, "drive": drive, "teamDrive": drive]
            )
        ]
    )
    static let about = GoogleDriveSchema(
        """
        kind maxImportSizes maxUploadSize appInstalled folderColorPalette driveThemes \
        teamDriveThemes canCreateDrives canCreateTeamDrives exportFormats importFormats
        """,
        [
            "user": user,
            "storageQuota": GoogleDriveSchema(
                "limit usage usageInDrive usageInDriveTrash"
            ),
        ]
    )
    static let revision = GoogleDriveSchema(
        """
        kind id mimeType modifiedTime keepForever published publishedLink publishAuto \
        publishedOutsideDomain originalFilename md5Checksum size exportLinks
        """,
        ["lastModifyingUser": user]
    )
    static let revisionList = GoogleDriveSchema(
        "kind nextPageToken",
        ["revisions": revision]
    )
    static let permissionList = GoogleDriveSchema(
        "kind nextPageToken",
        ["permissions": permission]
    )
    static let any = GoogleDriveSchema.open
}
