import Crypto
import OortModel

/// SHA-256 of a whole content: plain servers have no hash of their own.
struct SHA256Hasher: ContentHasher {
    private var hash = SHA256()

    mutating func update(_ bytes: ArraySlice<UInt8>) { hash.update(data: bytes) }

    func finalize() -> ContentHash {
        ContentHash(algorithm: .sha256, value: hex(hash.finalize()))
    }
}

/// SHA-1 of a whole content, as the clouds compute it.
struct SHA1Hasher: ContentHasher {
    private var hash = Insecure.SHA1()

    mutating func update(_ bytes: ArraySlice<UInt8>) { hash.update(data: bytes) }

    func finalize() -> ContentHash { ContentHash(algorithm: .sha1, value: hex(hash.finalize())) }
}

private func hex(_ digest: some Sequence<UInt8>) -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(
        decoding: digest.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] },
        as: UTF8.self
    )
}
