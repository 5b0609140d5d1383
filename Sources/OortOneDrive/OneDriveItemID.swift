import OortModel

/// Where an item lives at the service: ids are unique within a drive only.
struct DriveAddress: Hashable, Sendable, Codable {
    /// The drive, as `OneDriveSpelling.drive` writes it.
    var drive: String
    /// The item, as `OneDriveSpelling.item` writes it.
    var item: String

    /// Takes both ids as the service wrote them.
    init(drive: String, item: String) {
        self.drive = OneDriveSpelling.drive(drive)
        self.item = OneDriveSpelling.item(item)
    }

    /// The resource's path below the API's version.
    var path: String { "/drives/\(PercentEncoding.segment(drive))/items/\(encodedItem)" }

    /// The item's id for a URL.
    var encodedItem: String { PercentEncoding.segment(item) }

    /// The resource's path with the account part of the id at its full 16 digits; nil where that
    /// changes nothing.
    ///
    /// Ids that lost a leading zero are those to which PATCH lies.
    var paddedPath: String? {
        let padded = OneDriveSpelling.paddedItem(item)
        guard padded != item else { return nil }
        return "/drives/\(PercentEncoding.segment(drive))/items/\(PercentEncoding.segment(padded))"
    }
}

/// An item's id in the canonical schema: `drive/item`, and for a folder or file of another drive
/// that was added as a shortcut `drive/item>otherDrive/otherItem`.
///
/// The shortcut and what it leads to are one item for the user. What changes its name, its place or
/// its existence goes to the shortcut; what concerns its content and children goes to the target.
struct OneDriveItemID: Hashable, Sendable {
    /// The entry in the account's own tree (or, below a shortcut, in the other drive).
    var entry: DriveAddress
    /// Where content and children are; the same as `entry` but for shortcuts.
    var target: DriveAddress

    /// An ordinary item.
    init(_ entry: DriveAddress) {
        self.entry = entry
        target = entry
    }

    /// A shortcut into another drive.
    init(entry: DriveAddress, target: DriveAddress) {
        self.entry = entry
        self.target = target
    }

    /// Whether it leads into another drive.
    var isShortcut: Bool { entry != target }

    /// The canonical id; neither separator occurs in the service's ids.
    var itemID: ItemID {
        let own = "\(entry.drive)/\(entry.item)"
        return ItemID(isShortcut ? "\(own)>\(target.drive)/\(target.item)" : own)
    }

    /// Reads an id back.
    ///
    /// - Throws: `.badRequest` when this provider did not write it.
    init(_ id: ItemID) throws(ProviderError) {
        let parts = id.rawValue.parts(between: ">")
        guard (1...2).contains(parts.count), let entry = Self.address(parts[0]) else {
            throw ProviderError(.badRequest, detail: "not an id of OneDrive: \(id)")
        }
        guard parts.count == 2 else {
            self.init(entry)
            return
        }
        guard let target = Self.address(parts[1]) else {
            throw ProviderError(.badRequest, detail: "not an id of OneDrive: \(id)")
        }
        self.init(entry: entry, target: target)
    }

    private static func address(_ text: Substring) -> DriveAddress? {
        guard let (drive, item) = text.cut(atFirst: "/"), !drive.isEmpty, !item.isEmpty else {
            return nil
        }
        return DriveAddress(drive: String(drive), item: String(item))
    }
}

/// One spelling for ids that the service spells in several ways: on personal drives the account
/// number in them is a 64-bit number in hex, in either case, with or without its leading zeros
/// (abraunegg/onedrive issues 3072, 3115, 3336).
enum OneDriveSpelling {
    /// A personal drive's id in 16 lower-case digits; any other drive's as it is.
    static func drive(_ id: String) -> String {
        guard isAccountNumber(id) else { return id }
        return String(repeating: "0", count: 16 - id.utf8.count) + id.lowercased()
    }

    /// An item's id with the account number in upper case and without leading zeros, which is how
    /// the service itself hands them out.
    static func item(_ id: String) -> String {
        guard let (account, item) = id.cut(atFirst: "!"), isAccountNumber(String(account)) else {
            return id
        }
        let number = account.drop { $0 == "0" }.uppercased()
        return (number.isEmpty ? "0" : number) + "!" + item
    }

    /// The same id with the account number's leading zeros.
    static func paddedItem(_ id: String) -> String {
        guard let (number, item) = id.cut(atFirst: "!"), isAccountNumber(String(number)) else {
            return id
        }
        return String(repeating: "0", count: 16 - number.utf8.count) + number + "!" + item
    }

    /// Whether a drive is a personal one: only those have such a number as their id.
    static func isPersonal(drive: String) -> Bool { isAccountNumber(drive) }

    private static func isAccountNumber(_ text: String) -> Bool {
        (4...16).contains(text.utf8.count) && text.utf8.allSatisfy(\.isHexDigit)
    }
}

extension UInt8 {
    fileprivate var isHexDigit: Bool {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
            UInt8(ascii: "A")...UInt8(ascii: "F"):
            true
        default: false
        }
    }
}

/// Percent-encoding of what goes into a URL's path or query.
enum PercentEncoding {
    /// One segment of a path: everything but the unreserved characters (and `!`, which ids hold) as
    /// UTF-8 bytes, `:` too, since it would end a path address.
    static func segment(_ text: String) -> String {
        var result = ""
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "!"):
                result.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                result += byte < 16 ? "%0" : "%"
                result += String(byte, radix: 16, uppercase: true)
            }
        }
        return result
    }

    /// Several segments, with slashes between.
    static func path(_ parts: some Sequence<String>) -> String {
        parts.map(segment).joined(separator: "/")
    }
}
