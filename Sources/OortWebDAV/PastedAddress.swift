import OortModel

/// An address as a person pastes it, taken apart.
struct PastedAddress {
    var origin: String
    /// The names of its path, decoded.
    var path: [String]
    var user: String?
    /// Where a cloud's own programs may lie, the likeliest first.
    var bases: [[String]] = []
    private var query: String

    /// What an address names at a cloud.
    struct Named {
        var folder: [String] = []
        /// The space, at a server that has spaces.
        var space: String?
        /// The folder's id, where the address has that and no path: `STORAGE$SPACE!ITEM`, or a number.
        var folderID: String?
    }

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
                    "A password does not belong in an address, where other programs see it. Give "
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
        self.query = query
        findCloud()
    }

    private static func split(_ rest: String) -> (path: String, query: String) {
        let noFragment = rest.prefix { $0 != "#" }
        guard let (path, query) = String(noFragment).cut(atFirst: "?") else {
            return (String(noFragment), "")
        }
        return (String(path), String(query))
    }

    /// Finds where a cloud's programs would lie.
    private mutating func findCloud() {
        let programs: Set<String> = [
            "remote.php", "index.php", "ocs", "status.php", "apps", "login", "s", "f", "settings",
            "dav", "webdav", "files", "graph", "account",
        ]
        if let place = path.firstIndex(where: { programs.contains($0) }) {
            bases.append(Array(path[..<place]))
        }
        for count in stride(from: min(path.count, 6), through: 0, by: -1) {
            let base = Array(path.prefix(count))
            if !bases.contains(base) { bases.append(base) }
        }
    }

    /// The space and the folder that a browser's or a WebDAV address names, of a cloud whose programs lie at
    /// `base`; its files as a whole where it names none.
    ///
    /// The old `webdav` stands for the person's own files, behind `remote.php` and at an Infinite Scale without
    /// (reva, `ocdav.go`).
    ///
    /// - Throws: for an address whose place in the account cannot be known: a public link.
    func named(below base: [String]) throws(WebDAVSignInError) -> Named {
        var named = Named()
        var rest = Array(path.dropFirst(base.count))
        if rest.first == "index.php" { rest.removeFirst() }
        let dav = rest.first == "remote.php" ? Array(rest.dropFirst()) : rest
        if dav.starts(with: ["dav", "spaces"]) {
            named.space = dav.dropFirst(2).first
            named.folder = Array(dav.dropFirst(3))
        } else if rest.starts(with: ["files", "spaces"]), rest.count >= 4 {
            // As the web pages have it: by the space's kind and name.
            named.space = rest[2...3].joined(separator: "/")
            named.folder = Array(rest.dropFirst(4))
        } else if dav.starts(with: ["dav", "files"]) {
            named.folder = Array(dav.dropFirst(3))
        } else if dav.first == "webdav" {
            named.folder = Array(dav.dropFirst())
        } else if rest.first == "f", rest.count == 2 {
            let id = rest[1]
            let space = id.cut(atFirst: "!").map { String($0.before) }
            named.space = space ?? (id.has("$") ? id : nil)
            if id.has("!") || named.space == nil { named.folderID = id }
        } else if ["f", "s"].contains(rest.first) {
            throw WebDAVSignInError(
                "Which folder of an account \(text) leads to is not known. Give the server's address, "
                    + "and name the folder: --root FOLDER."
            )
        } else if rest.contains("files") {
            named.folder = Self.folder(query: query)
        }
        return named
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
