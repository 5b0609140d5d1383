import OortModel

/// What `status.php` answers.
struct CloudStatus: Decodable {
    var productname: String?
    var version: String?
    var versionstring: String?
    var productversion: String?
    var maintenance: Bool?
    var extendedSupport: Bool?

    /// The product's own name; nil where it has none.
    ///
    /// The `version` of an Infinite Scale is only for older programs.
    var product: String? {
        let parts = [productname, productversion ?? versionstring ?? version].compactMap(\.self)
        return parts.isEmpty ? nil : String(parts.joined(separator: " ").prefix(80))
    }

    /// The family, which `productname` gives unless an administrator renamed the product; nil for a server
    /// of none.
    ///
    /// Only Infinite Scale and OpenCloud say a `productversion` (reva, `status.go`; owncloud/core and
    /// nextcloud/server, `status.php`).
    var dialect: WebDAVDialect? {
        let name = (productname ?? "").lowercased()
        if name.contains("infinite scale") || name.contains("opencloud") { return .infinitescale }
        if productversion?.isEmpty == false { return .infinitescale }
        if name.contains("owncloud") || name.contains("community") { return .owncloud10 }
        if name.contains("nextcloud") || extendedSupport != nil { return .nextcloud }
        // ownCloud stopped at 10 and 11.
        let major = version?.cut(atFirst: ".").flatMap { Int($0.before) } ?? 0
        guard major >= 8 else { return nil }
        return major >= 12 ? .nextcloud : .owncloud10
    }
}
