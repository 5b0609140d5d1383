/// The families of servers that speak WebDAV and more.
public enum WebDAVDialect: String, Hashable, Sendable, Codable, CaseIterable {
    /// RFC 4918 and nothing to rely on: what the server can do was tried at the sign-in.
    case plain
    /// Nextcloud: file ids, folder tags that change with anything below, uploads in parts.
    case nextcloud
    /// ownCloud 10: the same family, earlier.
    case owncloud10
    /// ownCloud Infinite Scale and OpenCloud.
    case infinitescale

    /// Whether the server is of the family that has ids and folder tags.
    var isCloud: Bool { self != .plain }

    /// Whether the server refuses what is stale or taken by the fields of HTTP: in place of these
    /// Infinite Scale is looked at before an upload that makes a file, a read and a deletion.
    var heedsConditions: Bool { self == .nextcloud || self == .owncloud10 }
}
