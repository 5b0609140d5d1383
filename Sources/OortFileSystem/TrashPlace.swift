import OortModel

/// What an inode of the desktop's trash stands for.
///
/// Their numbers have the highest bit and another one, which neither a row of the catalog has nor a
/// folder of searches.
enum TrashPlace: Hashable {
    /// `.Trash-UID`, which nothing lists.
    case top
    /// `.Trash-UID/files`.
    case files
    /// `.Trash-UID/info`.
    case info
    /// `.Trash-UID/expunged`, which nothing lists: GIO moves there what it deletes for good.
    case expunged
    /// What was deleted, by the number of its deletion.
    case item(Int64)
    /// The file of `info` that belongs to a deletion.
    case infoOfItem(Int64)
    /// A file of `info` without an item (yet), by its number.
    case note(Int64)

    private static let mark: UInt64 = 1 << 63 | 1 << 61
    private static let kindShift: UInt64 = 56
    private static let numbers: UInt64 = 1 << kindShift - 1

    /// What a number stands for; nil for one that is not of the trash.
    init?(_ inode: Inode) {
        guard inode.rawValue & Self.mark == Self.mark, inode.rawValue & (1 << 62) == 0 else {
            return nil
        }
        let number = Int64(inode.rawValue & Self.numbers)
        switch (inode.rawValue & ~Self.mark) >> Self.kindShift {
        case 0: self = .top
        case 1: self = .files
        case 2: self = .info
        case 3: self = .item(number)
        case 4: self = .infoOfItem(number)
        case 5: self = .note(number)
        case 6: self = .expunged
        default: return nil
        }
    }

    /// The number.
    var inode: Inode {
        let (kind, number): (UInt64, Int64) =
            switch self {
            case .top: (0, 0)
            case .files: (1, 0)
            case .info: (2, 0)
            case .item(let number): (3, number)
            case .infoOfItem(let number): (4, number)
            case .note(let number): (5, number)
            case .expunged: (6, 0)
            }
        return Inode(Self.mark | kind << Self.kindShift | UInt64(number) & Self.numbers)
    }

    /// Whether it is a folder.
    var isFolder: Bool {
        switch self {
        case .top, .files, .info, .expunged: true
        case .item, .infoOfItem, .note: false
        }
    }

    /// The folder above.
    var parent: Inode {
        switch self {
        case .top: .root
        case .files, .info, .expunged: TrashPlace.top.inode
        case .item: TrashPlace.files.inode
        case .infoOfItem, .note: TrashPlace.info.inode
        }
    }
}
