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
}
