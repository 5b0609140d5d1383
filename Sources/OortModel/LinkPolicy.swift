/// Which of the small `NAME.rclonelink` files at a service show as the symbolic links that they hold.
///
/// Another person's link may lead anywhere on this machine, and a program that follows it (an editor, a
/// backup) reads or writes there.
public enum LinkPolicy: String, Hashable, Sendable, CaseIterable {
    /// Those that this account made or owns.
    case own
    /// Those, and of all others the ones whose target is relative and stays, by its text alone, inside
    /// of the account.
    case inside
    /// All.
    case all
    /// None, and none can be made.
    case off
}
