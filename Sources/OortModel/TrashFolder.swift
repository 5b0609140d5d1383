import Foundation

/// The name of a deletion's folder in Oort's own trash on a server that has none:
/// `SECONDS-NUMBER-MARK@FOLDER`.
///
/// It says when the deletion was, of which item (`TrashEntry.mark`; older ones do not), and in which folder
/// the thing lay, `/` written `%2F` and `%` written `%25`; a folder of too long a path is left out.
public enum TrashFolder {
    /// Bytes of the longest name that servers take.
    private static let longestName = 255
    /// Seconds for which a deletion stays in the trash.
    private static let length: Int64 = 30 * 86_400

    /// The name of a deletion's folder.
    public static func name(
        seconds: Int64,
        number: UInt32,
        mark: String?,
        of path: RemotePath
    ) -> String {
        var plain = "\(seconds)-\(String(number, radix: 16))"
        if let mark { plain += "-\(mark)" }
        guard let folder = path.parent else { return plain }
        let origin = folder.parts.map { $0.replacing("%", with: "%25") }.joined(separator: "%2F")
        let whole = "\(plain)@\(origin)"
        return ByteNames.bytes(whole).count <= longestName ? whole : plain
    }

    /// What the name of a deletion's folder says.
    public struct Deletion: Sendable {
        /// When the deletion was.
        public var time: Timestamp
        /// The mark of what was deleted.
        public var mark: String?
        /// In which folder it lay; nil where that is not known.
        public var folder: RemotePath?
    }

    /// What a name says; nil for what is no deletion's folder.
    public static func deletion(_ name: String) -> Deletion? {
        let parts = name.cut(atFirst: "@")
        guard let head = (parts.map { String($0.before) } ?? name).cut(atFirst: "-"),
            let seconds = Int64(head.before)
        else { return nil }
        var deletion = Deletion(time: Timestamp(seconds: seconds))
        deletion.mark = head.after.cut(atFirst: "-").map { String($0.after) }
        let folder = parts.map { found in
            RemotePath(
                found.after.isEmpty
                    ? []
                    : String(found.after).components(separatedBy: "%2F")
                        .map { $0.replacing("%25", with: "%") }
            )
        }
        if folder?.parts.allSatisfy({ !$0.isEmpty && $0 != "." && $0 != ".." }) ?? true {
            deletion.folder = folder
        }
        return deletion
    }

    /// The folders of deletions that may be removed for good, in the trash's order: those that were in the
    /// trash for 30 days when `deletion` was made.
    ///
    /// `folders` are the entries of the trash with the server's times; entries that are no deletion's
    /// folder are skipped. A folder is old only if both its name, which the deleting machine wrote, and the
    /// server's time say so, each compared with those of `deletion`, which are both recent: any one clock
    /// may be wrong, this machine's too. If `deletion` is not among them, nothing is old.
    public static func outlived(
        among folders: [(name: String, modified: Timestamp)],
        at deletion: String
    ) -> [String] {
        let times = folders.compactMap { folder in
            self.deletion(folder.name).map {
                (name: folder.name, named: $0.time.seconds, told: folder.modified.seconds)
            }
        }
        guard let now = times.first(where: { $0.name == deletion }) else { return [] }
        func isOld(_ then: Int64, _ now: Int64) -> Bool {
            let (age, overflows) = now.subtractingReportingOverflow(then)
            return !overflows && age > length
        }
        return times.filter { isOld($0.named, now.named) && isOld($0.told, now.told) }.map(\.name)
    }
}
