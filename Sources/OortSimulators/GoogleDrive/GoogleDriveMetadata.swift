import OortModel

/// The body of a create, an update or a copy.
struct GoogleDriveMetadata: Sendable {
    var id: String?
    var name: String?
    var parents: [String]?
    var mimeType: String?
    var createdTime: Timestamp?
    var modifiedTime: Timestamp?
    var description: String?
    var trashed: Bool?
    var shortcutTarget: String?
    private var extra: [String: JSON] = [:]

    static let empty = GoogleDriveMetadata()

    private init() {}

    /// Reads a body.
    ///
    /// Unknown fields are passed over; known ones that cannot be written are refused.
    init(_ bytes: [UInt8], isUpdate: Bool = false) throws(GoogleDriveSimulator.Failure) {
        guard !bytes.isEmpty else { return }
        guard let json = JSON(parsing: bytes), let fields = json.fields else {
            throw GoogleDriveSimulator.Failure(400, "parseError", "Parse Error")
        }
        for (field, value) in fields where GoogleDriveSchema.file.parts[field] != nil {
            let isWritable =
                Self.writable.contains(field)
                || (isUpdate ? Self.writableInUpdate : Self.writableInCreate).contains(field)
            guard isWritable || value == .null else {
                throw GoogleDriveSimulator.Failure(
                    403,
                    "fieldNotWritable",
                    "The resource body includes fields which are not directly writable."
                )
            }
        }
        id = fields["id"]?.text
        name = fields["name"]?.text
        parents = fields["parents"]?.elements?.compactMap(\.text)
        mimeType = fields["mimeType"]?.text.flatMap { $0.isEmpty ? nil : $0 }
        description = fields["description"]?.text
        trashed = fields["trashed"]?.bool
        shortcutTarget = fields["shortcutDetails"]?["targetId"]?.text
        createdTime = try Self.time(fields["createdTime"], "createdTime")
        modifiedTime = try Self.time(fields["modifiedTime"], "modifiedTime")
        for name in Self.kept { extra[name] = fields[name] }
    }

    /// The body of an update by v2.
    init(v2 bytes: [UInt8], setsModifiedDate: Bool) throws(GoogleDriveSimulator.Failure) {
        guard !bytes.isEmpty else { return }
        guard let json = JSON(parsing: bytes), let fields = json.fields else {
            throw GoogleDriveSimulator.Failure(400, "parseError", "Parse Error")
        }
        name = fields["title"]?.text
        mimeType = fields["mimeType"]?.text
        // PUT sets all metadata: a description that is not sent is gone.
        description = fields["description"]?.text ?? ""
        if setsModifiedDate {
            modifiedTime = try Self.time(fields["modifiedDate"], "modifiedDate")
        }
    }

    private static let writable: Set = [
        "name", "mimeType", "modifiedTime", "description", "properties", "appProperties",
        "starred", "originalFilename", "viewedByMeTime", "folderColorRgb", "contentHints",
        "contentRestrictions", "writersCanShare", "copyRequiresWriterPermission",
        "viewersCanCopyContent", "shortcutDetails", "kind", "downloadRestrictions",
    ]
    private static let writableInCreate: Set = ["id", "parents", "createdTime"]
    private static let writableInUpdate: Set = ["trashed"]
    private static let kept = [
        "properties", "appProperties", "starred", "originalFilename", "viewedByMeTime",
        "folderColorRgb",
    ]

    private static func time(
        _ value: JSON?,
        _ field: String
    ) throws(GoogleDriveSimulator.Failure) -> Timestamp? {
        guard let text = value?.text else { return nil }
        guard let time = Timestamp(rfc3339: text) else { throw .invalid(field) }
        return time.truncated(to: .milliseconds)
    }

    /// Whether an update with this body changes fields of the item itself.
    var changesFields: Bool {
        modifiedTime != nil || description != nil || mimeType != nil || !extra.isEmpty
    }

    /// Puts what an item keeps beside name, place and times.
    func apply(to item: inout SimulatedItem) {
        if let description { item.description = description.isEmpty ? nil : description }
        for (field, value) in extra {
            guard field.lowercased().hasSuffix("properties"), let new = value.fields else {
                item.extra[field] = value
                continue
            }
            // PATCH merges, null takes a key away.
            let merged = (item.extra[field]?.fields ?? [:]).merging(new) { $1 }
            item.extra[field] = .object(merged.filter { $0.value != .null })
        }
    }
}
