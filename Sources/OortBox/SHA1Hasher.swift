import Crypto
import OortModel

/// SHA-1 over the whole content, in lower-case hex, as in Box's `sha1`.
struct SHA1Hasher: ContentHasher {
    private var function = Insecure.SHA1()

    mutating func update(_ bytes: ArraySlice<UInt8>) { function.update(data: bytes) }

    func finalize() -> ContentHash {
        ContentHash(algorithm: .sha1, value: Self.hexadecimal(digest))
    }

    /// The digest's bytes.
    var digest: [UInt8] { Array(function.finalize()) }

    private static func hexadecimal(_ bytes: [UInt8]) -> String {
        bytes.map { (byte: UInt8) in
            (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }.joined()
    }

    /// The bytes that a hash in hex spells; nil where it is no SHA-1.
    static func bytes(of hash: ContentHash) -> [UInt8]? {
        let digits = Array(hash.value.utf8)
        guard hash.algorithm == .sha1, digits.count == 40 else { return nil }
        var bytes: [UInt8] = []
        for start in stride(from: 0, to: 40, by: 2) {
            let pair = String(decoding: digits[start..<start + 2], as: UTF8.self)
            guard let byte = UInt8(pair, radix: 16) else { return nil }
            bytes.append(byte)
        }
        return bytes
    }
}
