/// A tree of files of its own at an Infinite Scale or OpenCloud, which is one account here.
///
/// Nothing moves from one to another in one step, and each has its own trash and room: as between
/// accounts.
public struct WebDAVSpace: Hashable, Sendable, Codable {
    /// The server's id of it, `STORAGE$SPACE`.
    public var id: String
    /// Its name, for people.
    public var name: String
    /// Whether it is the person's own; others write in a project's.
    public var isPersonal: Bool

    /// A space with all of its parts.
    public init(id: String, name: String, isPersonal: Bool) {
        self.id = id
        self.name = name
        self.isPersonal = isPersonal
    }
}
