import OortModel

/// An address as a person pastes it, taken apart.
struct PastedAddress {
    var origin: String
    /// The names of its path, decoded.
    var path: [String]
    /// The folder that a browser's or a WebDAV address of a cloud names.
    var folder: [String] = []
    /// The space that it names, at a server that has such.
    var space: String?
    /// What it names of a folder where that is no path: `STORAGE$SPACE!ITEM`, or a number.
    var folderID: String?
    var user: String?
    /// Where a cloud's programs may lie, the likeliest first.
    var bases: [[String]] = []

    var text: String { origin + (path.isEmpty ? "" : "/" + PercentEncoding.path(path)) }

    init(_ pasted: String) throws(WebDAVSignInError) {
        var text = pasted.trimmed
        guard !text.isEmpty else { throw WebDAVSignInError("Give the server's address.") }
        let schemes = [
            ("https://", "https"), ("davs://", "https"), ("webdavs://", "https"),
            ("http://", "http"), ("dav://", "http"), ("webdav://", "http"),
        ]
        var scheme: String?
        for (spelling, meant) in schemes where text.lowercased().hasPrefix(spelling) {
            scheme = meant
            text = String(text.dropFirst(spelling.count))
            break
        }
        guard text.firstRange(of: "://") == nil || scheme != nil else {
            throw WebDAVSignInError(
                "\(pasted.trimmed) is not an address that begins with https://."
            )
        }
        let end = text.firstIndex { $0 == "/" || $0 == "?" || $0 == "#" } ?? text.endIndex
        var authority = String(text[..<end])
        let rest = String(text[end...])
        if let (before, after) = authority.cut(atLast: "@") {
            guard !before.has(":") else {
                throw WebDAVSignInError(
                    "A password does not belong into an address, where other programs see it. Give "
                        + "the address without it."
                )
            }
            user = PercentEncoding.decoded(before)
            authority = String(after)
        }
        let host = authority.lowercased()
        guard !host.isEmpty, host.utf8.allSatisfy({ $0 > 32 && $0 != UInt8(ascii: "\\") }) else {
            throw WebDAVSignInError("\(pasted.trimmed) names no server.")
        }
        let isLocal = Self.host(of: "x://" + host).map(Self.isLoopback) == true
        let chosen = scheme ?? (isLocal ? "http" : "https")
        guard chosen == "https" || isLocal else {
            throw WebDAVSignInError(
                "Over http:// anybody on the way could read the password. Give the address with "
                    + "https://."
            )
        }
        origin = "\(chosen)://\(host)"
        let (pathText, query) = Self.split(rest)
        guard let names = PercentEncoding.names(ofReference: pathText.isEmpty ? "/" : pathText)
        else { throw WebDAVSignInError("\(pasted.trimmed) is not an address that can be asked.") }
        path = names
        findCloud(query: query)
    }

    private static func split(_ rest: String) -> (path: String, query: String) {
        let noFragment = rest.prefix { $0 != "#" }
        guard let (path, query) = String(noFragment).cut(atFirst: "?") else {
            return (String(noFragment), "")
        }
        return (String(path), String(query))
    }

    /// Cuts back to where a cloud's programs would lie, and keeps the folder that is meant.
    private mutating func findCloud(query: String) {
        let programs: Set<String> = [
            "remote.php", "index.php", "ocs", "status.php", "apps", "login", "s", "f", "settings",
            "dav", "files", "graph", "account",
        ]
        if let place = path.firstIndex(where: { programs.contains($0) }) {
            var rest = Array(path[place...])
            if rest.first == "index.php" { rest.removeFirst() }
            let dav = rest.first == "remote.php" ? Array(rest.dropFirst()) : rest
            if dav.starts(with: ["dav", "spaces"]) {
                space = dav.dropFirst(2).first
                folder = Array(dav.dropFirst(3))
            } else if rest.starts(with: ["files", "spaces"]), rest.count >= 4 {
                // As the web pages have it: by the space's kind and name.
                space = rest[2...3].joined(separator: "/")
                folder = Array(rest.dropFirst(4))
            } else if dav.starts(with: ["dav", "files"]) {
                folder = Array(dav.dropFirst(3))
            } else if rest.first == "f", rest.count == 2 {
                let id = rest[1]
                space = id.cut(atFirst: "!").map { String($0.before) } ?? (id.has("$") ? id : nil)
                if id.has("!") || space == nil { folderID = id }
            } else if rest.starts(with: ["remote.php", "webdav"]) {
                folder = Array(rest.dropFirst(2))
            } else if rest.contains("files") {
                folder = Self.folder(query: query)
            }
            bases.append(Array(path[..<place]))
        }
        for count in stride(from: min(path.count, 6), through: 0, by: -1) {
            let base = Array(path.prefix(count))
            if !bases.contains(base) { bases.append(base) }
        }
    }

    /// The folder in a browser's `?dir=/Photos`.
    private static func folder(query: String) -> [String] {
        for pair in query.parts(between: "&") {
            guard let value = pair.dropping(beginning: "dir=") else { continue }
            let plain = value.replacing("+", with: "%20").replacing("%2F", with: "/")
                .replacing("%2f", with: "/")
            return PercentEncoding.names(ofReference: String(plain)) ?? []
        }
        return []
    }

    /// The host of an origin, without its port; nil where a name or a password stands before it, which may
    /// look like a host and a port.
    static func host(of origin: String) -> String? {
        guard let scheme = origin.firstRange(of: "://") else { return origin }
        let authority = origin[scheme.upperBound...]
        guard !authority.has("@") else { return nil }
        if authority.first == "[" {
            return String(authority.prefix { $0 != "]" }) + "]"
        }
        return String(authority.prefix { $0 != ":" })
    }

    private static func isLoopback(_ host: String) -> Bool {
        host == "localhost" || host == "[::1]"
            || host.begins(with: "127.") && host.utf8.allSatisfy { $0 <= UInt8(ascii: "9") }
    }
}
