import Foundation
import OortModel

/// Which forms of a path a route takes.
struct DropboxPathForms: OptionSet, Sendable {
    let rawValue: Int
    static let root = DropboxPathForms(rawValue: 1)
    static let plain = DropboxPathForms(rawValue: 2)
    static let id = DropboxPathForms(rawValue: 4)
    static let revision = DropboxPathForms(rawValue: 8)
    static let namespace = DropboxPathForms(rawValue: 16)

    static let listing: DropboxPathForms = [.root, .plain, .id, .namespace]
    static let read: DropboxPathForms = [.plain, .id, .revision, .namespace]
    static let write: DropboxPathForms = [.plain, .id, .namespace]
    static let create: DropboxPathForms = [.plain, .namespace]

    func accept(_ text: String) -> Bool {
        if text.isEmpty { return contains(.root) }
        if text.begins(with: "/") { return text.utf8.count > 1 && contains(.plain) }
        if text.begins(with: "id:") { return text.utf8.count > 3 && contains(.id) }
        if let digits = text.dropping(beginning: "rev:") {
            return contains(.revision) && digits.count >= 9 && digits.allSatisfy(\.isHexDigit)
        }
        if text.begins(with: "ns:") { return contains(.namespace) }
        return false
    }

    var pattern: String {
        var forms: [String] = []
        if contains(.root) {
            forms.append("(/(.|[\\r\\n])*)?")
        } else {
            forms.append("(/(.|[\\r\\n])*)")
        }
        if contains(.id) { forms.append("id:.*") }
        if contains(.revision) { forms.append("(rev:[0-9a-f]{9,})") }
        if contains(.namespace) { forms.append("(ns:[0-9]+(/.*)?)") }
        return forms.joined(separator: "|")
    }
}

/// A time in the one form that Dropbox takes.
struct DropboxTime: Sendable {
    let timestamp: Timestamp

    init?(_ text: String) {
        guard text.utf8.count == 20, text.hasSuffix("Z"), !text.contains("."),
            let time = Timestamp(rfc3339: text)
        else { return nil }
        timestamp = time
    }
}

/// Where a path leads in a tree.
struct DropboxPlace: Sendable {
    /// The names from the root, those that exist as they are stored.
    var parts: [String]
    /// What is there; nil for nothing.
    var item: SimulatedItem?
    /// The revision that was asked for by `rev:`.
    var revision: SimulatedRevision?
}

extension SimulatedTree {
    /// Where a path in any of its forms leads; the error is a LookupError's tag.
    func place(_ path: String) throws(DropboxLookupError) -> DropboxPlace {
        if path.begins(with: "id:") {
            let end = path.unicodeScalars.firstIndex(of: "/") ?? path.endIndex
            let id = String(path[..<end])
            guard let item = item(id), !isTrashed(id), let parts = self.path(of: id) else {
                throw .notFound
            }
            guard end != path.endIndex else { return DropboxPlace(parts: parts, item: item) }
            return try place(parts: parts + Self.parts(String(path[end...])))
        }
        if let text = path.dropping(beginning: "rev:") {
            let revision = String(text)
            if let item = item(ofRevision: revision),
                let found = item.revisions.last(where: { $0.id == revision })
            {
                return DropboxPlace(
                    parts: self.path(of: item.id) ?? [],
                    item: item,
                    revision: found
                )
            }
            throw .notFound
        }
        if path.begins(with: "ns:") {
            return try place(parts: Self.parts(path.cut(atFirst: "/").map { "/" + $0.after } ?? ""))
        }
        return try place(parts: Self.parts(path))
    }

    private func place(parts: [String]) throws(DropboxLookupError) -> DropboxPlace {
        var current = item(rootID)
        var stored: [String] = []
        for (index, part) in parts.enumerated() {
            guard let folder = current, let next = items(named: part, in: folder.id).first else {
                return DropboxPlace(parts: stored + parts[index...], item: nil)
            }
            stored.append(next.name)
            current = next
        }
        return DropboxPlace(parts: stored, item: current)
    }

    private static func parts(_ path: String) throws(DropboxLookupError) -> [String] {
        guard !path.isEmpty else { return [] }
        guard let below = path.dropping(beginning: "/") else { throw .malformedPath }
        let parts = below.parts(between: "/")
        for part in parts {
            let isMalformed =
                part.isEmpty || part == "." || part == ".." || part.utf16.count > 255
                || part.last?.isWhitespace == true
                || part.unicodeScalars.contains { $0 == "\\" || $0.value == 0x7F || $0.value == 0 }
            if isMalformed { throw .malformedPath }
        }
        return parts.map { String($0).precomposedStringWithCanonicalMapping }
    }

    /// Names that Dropbox never accepts.
    static let disallowedNames: Set<String> = [
        "desktop.ini", "thumbs.db", ".ds_store", "icon\r", ".dropbox", ".dropbox.attr",
    ]
}

/// Why a path leads nowhere.
enum DropboxLookupError: String, Error {
    case notFound = "not_found"
    case malformedPath = "malformed_path"
    case notFile = "not_file"
    case notFolder = "not_folder"
    case unsupportedContentType = "unsupported_content_type"

    var json: JSON { [".tag": .string(rawValue)] }

    /// The error as the member `tag` of a route's union.
    func failure(_ tag: String = "path") -> DropboxFailure {
        .route(DropboxFailure.wrapping(tag, json))
    }
}
