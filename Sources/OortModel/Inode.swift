/// Our 64-bit number for an item, given to the kernel: the item's row in the catalog, never reused,
/// the same after a remount.
public struct Inode: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// The number; 1 is the mount's root.
    public let rawValue: UInt64

    /// Wraps a number.
    public init(_ rawValue: UInt64) { self.rawValue = rawValue }

    /// The mount's root, which holds the accounts.
    public static let root = Inode(1)

    /// Lower numbers, which were given out earlier, first.
    public static func < (left: Inode, right: Inode) -> Bool { left.rawValue < right.rawValue }

    /// The number, for logs.
    public var description: String { String(rawValue) }
}
