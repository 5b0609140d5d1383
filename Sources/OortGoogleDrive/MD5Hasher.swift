import Crypto
import OortModel

/// MD5, which Drive computes of every file.
struct MD5Hasher: ContentHasher {
    private var state = Insecure.MD5()

    mutating func update(_ bytes: ArraySlice<UInt8>) { state.update(data: bytes) }

    func finalize() -> ContentHash {
        let digits = Array("0123456789abcdef".utf8)
        let hex = state.finalize().flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        return ContentHash(algorithm: .md5, value: String(decoding: hex, as: UTF8.self))
    }
}
