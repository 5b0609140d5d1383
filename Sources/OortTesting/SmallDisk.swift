import Foundation

/// A disk that is smaller than the real one: the files below a folder take what their sizes say.
public struct SmallDisk: Sendable {
    /// Bytes that it has in all.
    public let capacity: Int64

    /// A disk of so many bytes.
    public init(capacity: Int64) { self.capacity = capacity }

    /// Bytes that are free while the files below a folder are all that it holds.
    public func freeBytes(below folder: String) -> Int64 {
        let files = FileManager.default.enumerator(atPath: folder)
        var used: Int64 = 0
        while files?.nextObject() != nil {
            guard let attributes = files?.fileAttributes,
                attributes[.type] as? FileAttributeType == .typeRegular
            else { continue }
            used += (attributes[.size] as? NSNumber)?.int64Value ?? 0
        }
        return capacity - used
    }
}
