import Foundation
public import OortModel

/// Microsoft's QuickXorHash: byte i of the content is XORed into a ring of 160 bits at bit 11·i,
/// and at the end the length, little-endian, into the last 8 of its 20 bytes.
///
/// Source: github.com/OneDrive/onedrive-api-docs, docs/code-snippets/quickxorhash. Not a
/// cryptographic hash: only together with the size does equality mean anything.
public struct QuickXorHasher: ContentHasher {
    /// Bytes 160 apart land on the same bits, so rows of 160 bytes are XORed together first, and
    /// only `finalize` turns bits.
    private var row: [UInt8]
    private var length: UInt64 = 0

    private static let width = 160

    /// A hasher that took nothing yet.
    public init() { row = Array(repeating: 0, count: Self.width) }

    public mutating func update(_ bytes: ArraySlice<UInt8>) {
        let source = bytes.span
        let count = source.count
        var next = 0
        var position = Int(length % UInt64(Self.width))
        length &+= UInt64(count)
        var row = self.row.mutableSpan
        while next < count {
            let run = min(Self.width - position, count - next)
            // A plain loop over one span's own indices: the compiler makes vector instructions of
            // it, which is what makes the hash as fast as memory.
            let part = source.extracting(next..<next + run)
            for index in part.indices { row[position + index] ^= part[index] }
            next += run
            position = 0
        }
    }

    public func finalize() -> ContentHash {
        var ring = [UInt8](repeating: 0, count: 20)
        for (index, byte) in row.enumerated() {
            let bit = 11 * index % 160
            let shifted = UInt16(byte) << UInt16(bit % 8)
            ring[bit / 8] ^= UInt8(truncatingIfNeeded: shifted)
            ring[(bit / 8 + 1) % 20] ^= UInt8(truncatingIfNeeded: shifted >> 8)
        }
        for index in 0..<8 {
            ring[12 + index] ^= UInt8(truncatingIfNeeded: length >> UInt64(8 * index))
        }
        return ContentHash(algorithm: .quickXor, value: Self.base64(ring))
    }

    private static func base64(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }
}
