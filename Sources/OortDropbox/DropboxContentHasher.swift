import Crypto
public import OortModel

/// Dropbox's content hash: SHA-256 over the SHA-256 of each block of 4 MiB.
///
/// Source: dropbox.com/developers/reference/content-hash.
public struct DropboxContentHasher: ContentHasher {
    /// Bytes of a block; parts of sessions are multiples of it.
    public static let blockSize = 4 << 20

    private var outer = SHA256()
    private var block = SHA256()
    private var filled = 0

    /// A hasher of no bytes yet.
    public init() {}

    public mutating func update(_ bytes: ArraySlice<UInt8>) {
        var rest = bytes
        while !rest.isEmpty {
            let part = rest.prefix(Self.blockSize - filled)
            block.update(data: part)
            filled += part.count
            rest = rest.dropFirst(part.count)
            if filled == Self.blockSize { closeBlock() }
        }
    }

    private mutating func closeBlock() {
        outer.update(data: Array(block.finalize()))
        block = SHA256()
        filled = 0
    }

    public func finalize() -> ContentHash {
        var last = self
        if last.filled > 0 { last.closeBlock() }
        let digits = Array("0123456789abcdef".utf8)
        let text = last.outer.finalize().flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        return ContentHash(
            algorithm: .dropboxContentHash,
            value: String(decoding: text, as: UTF8.self)
        )
    }

    /// The hash of bytes at hand.
    static func hash(_ bytes: [UInt8]) -> ContentHash {
        var hasher = DropboxContentHasher()
        hasher.update(bytes[...])
        return hasher.finalize()
    }
}
