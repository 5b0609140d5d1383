import Crypto
import Foundation
import OortModel

/// Writes the properties of items, and reads the little that requests say in XML.
enum DAVXML {
    static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;")
            .replacing(">", with: "&gt;").replacing("\"", with: "&quot;")
    }

    /// The number in an id.
    static func number(of id: String) -> String {
        String(Int64(id.prefix { $0.isNumber }) ?? 0)
    }

    static func hasPreview(_ item: SimulatedItem) -> Bool {
        [".jpg", ".png"].contains { item.name.lowercased().hasSuffix($0) }
    }

    /// The local names of all elements in a body.
    static func names(in body: [UInt8]) -> Set<String> {
        let text = String(decoding: body, as: UTF8.self)
        return Set(
            text.split(separator: "<").compactMap { part in
                let tag = part.prefix { !" />\r\n\t".contains($0) }
                return tag.split(separator: ":").last.map(String.init)
            }
        )
    }

    /// The text of the first element of a local name.
    static func text(of name: String, in body: [UInt8]) -> String? {
        let text = String(decoding: body, as: UTF8.self)
        for part in text.split(separator: "<") {
            let tag = part.prefix { !" />\r\n\t".contains($0) }
            guard tag.split(separator: ":").last.map(String.init) == name,
                let end = part.firstIndex(of: ">")
            else { continue }
            return String(part[part.index(after: end)...])
        }
        return nil
    }

    /// How an item is shared, by the numbers of the family: a person 0, a group 1, a link 3.
    static func shareTypes(_ item: SimulatedItem, hasLink: Bool) -> String? {
        var types = item.extra["share-types"]?.elements?.compactMap(\.integer) ?? []
        types += Set(item.sharees.map { $0.isGroup ? 1 : 0 }).sorted()
        if hasLink { types.append(3) }
        return types.isEmpty
            ? nil : types.map { "<oc:share-type>\($0)</oc:share-type>" }.joined()
    }

    /// With whom the person shares an item, as Nextcloud lists it.
    static func sharees(_ item: SimulatedItem, hasLink: Bool) -> String {
        func sharee(_ id: String, _ name: String, _ type: Int) -> String {
            "<nc:sharee><nc:id>\(escaped(id))</nc:id><nc:display-name>\(escaped(name))"
                + "</nc:display-name><nc:type>\(type)</nc:type></nc:sharee>"
        }
        var all = item.sharees.map { sharee($0.id, $0.name, $0.isGroup ? 1 : 0) }
        if hasLink { all.append(sharee("", "", 3)) }
        return all.joined()
    }

    /// The tags of an item, as Nextcloud lists them: by name.
    static func systemTags(_ item: SimulatedItem) -> String {
        item.tags.sorted().enumerated().map { number, tag in
            "<nc:system-tag oc:can-assign=\"true\" oc:id=\"\(number + 1)\" "
                + "oc:user-assignable=\"true\" oc:user-visible=\"true\">\(escaped(tag))"
                + "</nc:system-tag>"
        }.joined()
    }

    /// A file's tag is its revision's; a folder's follows from all that is below, but for what lies in an
    /// external storage where the server `overlooks` that.
    static func tag(
        _ item: SimulatedItem,
        in tree: SimulatedTree,
        overlooks: Bool = false
    ) -> String {
        guard item.isFolder else { return item.head?.id ?? "" }
        var hasher = Insecure.MD5()
        hasher.update(data: Array(item.id.utf8))
        let isOverlooked = overlooks && item.extra["mount-type"]?.text == "external"
        for child in isOverlooked ? [] : tree.children(of: item.id) {
            let tag = tag(child, in: tree, overlooks: overlooks)
            hasher.update(data: Array("\(child.id)/\(child.name)/\(tag)/".utf8))
        }
        return hasher.finalize().map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }
            .joined()
    }

    static func httpDate(_ time: Timestamp) -> String { dates.string(from: time.date) }

    // Made once: that takes as long as fifty dates.
    private static let dates = {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(identifier: "GMT")
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter
    }()

    /// Lower-case hex, as the sabre family writes places.
    static func encoded(_ parts: [String]) -> String {
        parts.map { part in
            part.utf8.map { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"),
                    UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
                    UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"):
                    String(Unicode.Scalar(byte))
                default: (byte < 16 ? "%0" : "%") + String(byte, radix: 16)
                }
            }.joined()
        }.joined(separator: "/")
    }

    /// A resource with the properties that were asked for, and those that it does not have.
    static func response(
        href: String,
        _ values: [String: String],
        asked: Set<String>,
        status: String = "200 OK",
        prefixes others: [String: String] = [:]
    ) -> String {
        func prefix(_ name: String) -> String? { others[name] ?? prefixes[name] }
        func tag(_ name: String) -> String { "\(prefix(name) ?? "d"):\(name)" }
        let known = asked.filter { prefix($0) != nil }
        let found = known.filter { values[$0] != nil }.sorted()
        let missing = known.filter { values[$0] == nil }.sorted()
        var text = "<d:response><d:href>\(escaped(href))</d:href>"
        text += "<d:propstat><d:prop>"
        for name in found { text += "<\(tag(name))>\(values[name] ?? "")</\(tag(name))>" }
        text += "</d:prop><d:status>HTTP/1.1 \(status)</d:status></d:propstat>"
        if !missing.isEmpty {
            text += "<d:propstat><d:prop>"
            for name in missing { text += "<\(tag(name))/>" }
            text += "</d:prop><d:status>HTTP/1.1 404 Not Found</d:status></d:propstat>"
        }
        return text + "</d:response>"
    }

    static func multistatus(_ responses: [String]) -> SimulatorAnswer {
        let text =
            "<?xml version=\"1.0\"?>\n<d:multistatus xmlns:d=\"DAV:\" "
            + "xmlns:s=\"http://sabredav.org/ns\" xmlns:oc=\"http://owncloud.org/ns\" "
            + "xmlns:nc=\"http://nextcloud.org/ns\">" + responses.joined() + "</d:multistatus>"
        return SimulatorAnswer(
            status: 207,
            headers: [("Content-Type", "application/xml; charset=utf-8")],
            body: .bytes(Array(text.utf8))
        )
    }

    private static let prefixes: [String: String] = [
        "resourcetype": "d", "getetag": "d", "getlastmodified": "d", "getcontentlength": "d",
        "getcontenttype": "d", "displayname": "d", "quota-used-bytes": "d",
        "quota-available-bytes": "d", "id": "oc", "fileid": "oc", "permissions": "oc",
        "owner-display-name": "oc", "data-fingerprint": "oc", "share-types": "oc",
        "size": "oc", "checksums": "oc", "mount-type": "nc", "is-mount-root": "nc",
        "sharees": "nc", "system-tags": "nc",
        "is-federated": "nc", "creation_time": "nc", "has-preview": "nc", "is-encrypted": "nc",
        "trashbin-filename": "nc", "trashbin-original-location": "nc",
        "trashbin-deletion-time": "nc",
    ]
}
