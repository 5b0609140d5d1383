import GRDB
public import OortModel

/// What the service reported of an item and no column of `node` stores, for `user.oort.*`.
public struct ItemDetails: Hashable, Sendable {
    /// The name at upload, where the service keeps it.
    public var originalFileName: String?
    /// When the service took the last change.
    public var serverModifiedTime: Timestamp?
    /// The service's tag of the whole item.
    public var tag: String?
    /// The service's counter of changes.
    public var version: String?
    /// Whether the service can render a thumbnail; nil when only a request can say.
    public var thumbnail: Bool?
    /// Whose it is, where that is not the account's own person.
    public var owner: String?
    /// Who made it, where that is not the account's own person.
    public var createdBy: String?
    /// Who changed it last, where that is not the account's own person.
    public var modifiedBy: String?
    /// Whether the service reported that others can reach it.
    public var isShared: Bool
    /// With whom the account's own person shares it, as one text; nil where nobody is known.
    public var sharedWith: String?
    /// The tags that people gave it, as one text; nil where none are known.
    public var tags: String?
    /// Whether the service knew when the content was modified.
    public var hasModifiedTime: Bool
}

extension Catalog {
    /// What the service reported of an item and no column stores; nil for what it never reported.
    public func details(of inode: Inode) throws(CatalogError) -> ItemDetails? {
        try read { database in
            try Self.toldItem(inode, database).map { item in
                ItemDetails(
                    originalFileName: item.originalFileName,
                    serverModifiedTime: Timestamp(parts: item.serverModified),
                    tag: item.tag,
                    version: item.version,
                    thumbnail: item.thumbnail,
                    owner: item.owner,
                    createdBy: item.createdBy,
                    modifiedBy: item.modifiedBy,
                    isShared: item.isShared == true,
                    sharedWith: item.sharedWith,
                    tags: item.tags,
                    hasModifiedTime: item.modified != nil
                )
            }
        }
    }

    /// What the service last reported of an item on which both sides agree, as far as `details`, the id,
    /// the name, the hash, the type and the tags give it; nil for what it never reported.
    static func toldItem(_ inode: Inode, _ database: Database) throws -> StoredItem? {
        try database.first(
            """
            SELECT details, remote_id, mime_type,
                CASE WHEN synced_parent IS NULL THEN ifnull(service_name, name)
                    ELSE synced_name END,
                CASE WHEN synced_parent IS NULL THEN hash ELSE synced_hash END, tags
            FROM node LEFT JOIN motion ON motion.inode = node.inode WHERE node.inode = ?
            """,
            [inode.column]
        ) { row -> StoredItem? in
            guard let details = row[0] as String? else { return nil }
            var item = StoredItem(Item(id: ItemID(row[1]), kind: .file, fileName: row[3]))
            (item.hash, item.mimeType) = (row[4], row[2])
            try item.read(details: details)
            item.tags = row[5]
            return item
        } ?? nil
    }
}

/// The text of `node.details`: fields of one letter, whose strings begin with their length in bytes. It
/// leaves out what a column of the row has.
///
/// An account of a million items has as many of these; JSON with everything that the service reported was
/// half of the catalog. Older versions of Oort wrote rows so; such a row is read as it is until the service
/// reports its item again.
extension StoredItem {
    /// The text for a row of this item; `hasName` and `hasHash` say whether the row, or its base, has
    /// the item's name and hash.
    func details(hasName: Bool, hasHash: Bool) -> String {
        var text = DetailsText()
        if kind != NodeKind.file.rawValue { text.add("k", kind) }
        if let modified { text.add("m", modified) }
        if let serverModified {
            if serverModified == modified {
                text.add("S")
            } else {
                text.add("s", serverModified)
            }
        }
        if let created {
            if created == modified { text.add("C") } else { text.add("c", created) }
        }
        if let originalFileName {
            if hasName, originalFileName.isSameText(as: fileName) {
                text.add("O")
            } else {
                text.add("o", originalFileName)
            }
        }
        if let tag {
            if hasHash, let hashValue, tag.isSameText(as: hashValue) {
                text.add("H")
            } else {
                text.add("h", tag)
            }
        }
        if let version { text.add("v", version) }
        if let thumbnail { text.add(thumbnail ? "T" : "t") }
        if let isOwn { text.add(isOwn ? "W" : "w") }
        // Mostly the three are the same person.
        if let owner { text.add("a", owner) }
        if let createdBy {
            if owner?.isSameText(as: createdBy) == true {
                text.add("B")
            } else {
                text.add("b", createdBy)
            }
        }
        if let modifiedBy {
            if (createdBy ?? owner)?.isSameText(as: modifiedBy) == true {
                text.add("E")
            } else {
                text.add("e", modifiedBy)
            }
        }
        if isShared == true { text.add("z") }
        if let sharedWith { text.add("g", sharedWith) }
        if permissions != Permissions.all.rawValue { text.add("p", Int64(permissions)) }
        if let target { text.add("l", target) }
        for form in exports ?? [] where form.count == 2 {
            text.add("x", form[0])
            text.add("y", form[1])
        }
        return text.text
    }

    /// The values for `details = iif(remote_id IS ?, ?, ?)`: in a row of another id than the item's, the
    /// text includes the item's id.
    func detailsArguments(hasName: Bool, hasHash: Bool) -> StatementArguments {
        let details = details(hasName: hasName, hasHash: hasHash)
        var another = DetailsText()
        another.add("i", id)
        return [id, details, details + another.text]
    }

    /// The value of the hash, without its algorithm.
    private var hashValue: String? {
        hash.flatMap { ContentHash(description: $0) }?.value
    }

    /// Fills this with what `details` has; what that leaves to the row must be set already.
    ///
    /// - Throws: `.corrupt` where it is no such text.
    mutating func read(details: String) throws {
        if details.utf8.first == UInt8(ascii: "{") {
            let own = (fileName, hash, mimeType)
            self = try StoredItem(json: details)
            (fileName, hash) = (own.0, own.1)
            mimeType = mimeType ?? own.2
            return
        }
        (kind, permissions) = (NodeKind.file.rawValue, Permissions.all.rawValue)
        var forms: [[String]] = []
        var reader = DetailsReader(details)
        while let letter = reader.letter() {
            switch letter {
            case "k": kind = try reader.number()
            case "m": modified = try reader.time()
            case "s": serverModified = try reader.time()
            case "S": serverModified = modified
            case "c": created = try reader.time()
            case "C": created = modified
            case "o": originalFileName = try reader.string()
            case "O": originalFileName = fileName
            case "h": tag = try reader.string()
            case "H": tag = hashValue
            case "v": version = try reader.string()
            case "T", "t": thumbnail = letter == "T"
            case "W", "w": isOwn = letter == "W"
            case "a": owner = try reader.string()
            case "b": createdBy = try reader.string()
            case "B": createdBy = owner
            case "e": modifiedBy = try reader.string()
            case "E": modifiedBy = createdBy ?? owner
            case "z": isShared = true
            case "g": sharedWith = try reader.string()
            case "p": permissions = UInt8(truncatingIfNeeded: try reader.number())
            case "l": target = try reader.string()
            case "x": forms.append([try reader.string()])
            case "y":
                let ending = try reader.string()
                if !forms.isEmpty { forms[forms.count - 1].append(ending) }
            case "i": id = try reader.string()
            default: throw reader.error
            }
        }
        if !forms.isEmpty { exports = forms }
    }

    /// The item that a text of `details` describes, in a row of this id; only what `read` gives.
    init(details: String, of id: String?) throws {
        self.init(Item(id: ItemID(id ?? ""), kind: .file, fileName: ""))
        try read(details: details)
    }
}

/// A text of `node.details` that is being written.
private struct DetailsText {
    private(set) var text = ""

    /// A field whose presence says something.
    mutating func add(_ letter: Character) { text.append(letter) }

    mutating func add(_ letter: Character, _ number: Int64) {
        text.append(letter)
        text += String(number)
    }

    mutating func add(_ letter: Character, _ told: String) {
        let value = told.withoutNUL
        add(letter, Int64(value.utf8.count))
        text.append(":")
        text += value
    }

    /// A time: seconds, and as many digits of the next one as it has.
    mutating func add(_ letter: Character, _ parts: [Int64]) {
        guard let time = Timestamp(parts: parts) else { return }
        add(letter, time.seconds)
        guard time.nanoseconds > 0 else { return }
        var digits = String(Int64(time.nanoseconds) + 1_000_000_000).dropFirst()
        while digits.last == "0" { digits.removeLast() }
        text.append(".")
        text += digits
    }
}

/// Reads a text of `node.details` field by field.
private struct DetailsReader {
    private let text: String.UTF8View
    private var place: String.Index

    init(_ text: String) {
        self.text = text.utf8
        place = text.startIndex
    }

    var error: CatalogError { .corrupt(detail: "the details of an item cannot be read") }

    /// The letter of the next field; nil at the end.
    mutating func letter() -> Character? {
        guard place < text.endIndex else { return nil }
        defer { text.formIndex(after: &place) }
        return Character(Unicode.Scalar(text[place]))
    }

    mutating func number() throws -> Int64 {
        let start = place
        if place < text.endIndex, text[place] == UInt8(ascii: "-") {
            text.formIndex(after: &place)
        }
        skipDigits()
        guard let number = Int64(Substring(text[start..<place])) else { throw error }
        return number
    }

    mutating func string() throws -> String {
        let count = try number()
        guard place < text.endIndex, text[place] == UInt8(ascii: ":") else { throw error }
        text.formIndex(after: &place)
        guard count >= 0, let length = Int(exactly: count),
            let end = text.index(place, offsetBy: length, limitedBy: text.endIndex),
            let string = String(text[place..<end])
        else { throw error }
        place = end
        return string
    }

    mutating func time() throws -> [Int64] {
        let seconds = try number()
        guard place < text.endIndex, text[place] == UInt8(ascii: ".") else { return [seconds, 0] }
        text.formIndex(after: &place)
        let start = place
        skipDigits()
        let digits = String(Substring(text[start..<place]))
        guard (1...9).contains(digits.count),
            let nanoseconds = Int64(digits + String(repeating: "0", count: 9 - digits.count))
        else { throw error }
        return [seconds, nanoseconds]
    }

    private mutating func skipDigits() {
        while place < text.endIndex, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(text[place]) {
            text.formIndex(after: &place)
        }
    }
}
