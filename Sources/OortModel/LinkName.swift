/// The names of the small files that hold symbolic links at a service (rclone's convention).
public enum LinkName {
    /// What such a name ends in.
    public static let ending = ".rclonelink"

    /// The name of the file that holds the link `link`.
    public static func file(_ link: String) -> String { link + ending }

    /// The link that a file of this name may hold; nil for other files.
    public static func link(_ file: String) -> String? {
        guard let name = file.dropping(ending: ending), !name.isEmpty else { return nil }
        return String(name)
    }

    /// Whether a file of this name and size may hold a link: longer than any target, or empty, it is none,
    /// whoever made it.
    public static func mayBeLink(_ file: String, size: Int64?) -> Bool {
        link(file) != nil && size.map { (1...4095).contains($0) } ?? false
    }
}
