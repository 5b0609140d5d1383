import Foundation

/// The name of a deletion's folder in Oort's own trash on a server that has none: `SECONDS-NUMBER@FOLDER`.
///
/// It says when the deletion was and in which folder the thing lay, `/` written `%2F` and `%` written
/// `%25`; a folder of too long a path is left out.
public enum TrashFolder {
    /// Bytes of the longest name that servers take.
    private static let longestName = 255

    /// The name of a deletion's folder.
    public static func name(seconds: Int64, number: UInt32, of path: RemotePath) -> String {
        let plain = "\(seconds)-\(String(number, radix: 16))"
        guard let folder = path.parent else { return plain }
        let origin = folder.parts.map { $0.replacing("%", with: "%25") }.joined(separator: "%2F")
        let whole = "\(plain)@\(origin)"
        return ByteNames.bytes(whole).count <= longestName ? whole : plain
    }

    /// When a deletion was, and in which folder the thing lay; nil for what is no deletion's folder.
    public static func deletion(_ name: String) -> (time: Timestamp, folder: RemotePath?)? {
        let parts = name.cut(atFirst: "@")
        guard let head = (parts.map { String($0.before) } ?? name).cut(atFirst: "-"),
            let seconds = Int64(head.before)
        else { return nil }
        let folder = parts.map { found in
            RemotePath(
                found.after.isEmpty
                    ? []
                    : String(found.after).components(separatedBy: "%2F")
                        .map { $0.replacing("%25", with: "%") }
            )
        }
        guard folder?.parts.allSatisfy({ !$0.isEmpty && $0 != "." && $0 != ".." }) ?? true else {
            return (Timestamp(seconds: seconds), nil)
        }
        return (Timestamp(seconds: seconds), folder)
    }
}
