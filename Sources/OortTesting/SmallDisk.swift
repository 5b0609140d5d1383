import Foundation
import Glibc

/// A disk that is smaller than the real one: the files below a folder take what their sizes say, less the
/// holes in them.
public struct SmallDisk: Sendable {
    /// Bytes that it has in all.
    public let capacity: Int64

    /// A disk of so many bytes.
    public init(capacity: Int64) { self.capacity = capacity }

    /// Bytes that are free while the files below a folder are all that it holds.
    public func freeBytes(below folder: String) -> Int64 {
        let files = FileManager.default.enumerator(atPath: folder)
        var used: Int64 = 0
        while let path = files?.nextObject() as? String {
            guard let attributes = files?.fileAttributes,
                attributes[.type] as? FileAttributeType == .typeRegular
            else { continue }
            let size = (attributes[.size] as? NSNumber)?.int64Value ?? 0
            used += min(size, Self.allocatedBytes(folder + "/" + path) ?? size)
        }
        return capacity - used
    }

    /// Bytes that a file takes without the holes in it.
    private static func allocatedBytes(_ path: String) -> Int64? {
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else { return nil }
        return Int64(status.st_blocks) * 512
    }
}
