import Crypto
import OortModel

/// The checksums that a request may carry beside its body (`x-amz-checksum-…`), and `Content-MD5`.
enum S3Checksums {
    /// The value of an algorithm in Base64; nil for one that is not known here.
    static func value(_ algorithm: String, of bytes: [UInt8]) -> String? {
        switch algorithm.lowercased() {
        case "crc32": crc(bytes, crc32, size: 4)
        case "crc32c": crc(bytes, crc32c, size: 4)
        case "crc64nvme": crc(bytes, crc64nvme, size: 8)
        case "sha1": Base64.encode(Array(Insecure.SHA1.hash(data: bytes)))
        case "sha256": Base64.encode(Array(SHA256.hash(data: bytes)))
        case "md5": Base64.encode(Array(Insecure.MD5.hash(data: bytes)))
        default: nil
        }
    }

    /// Refuses a body that is not what its fields say, and gives those checksums back that are to be kept.
    static func check(
        _ bytes: [UInt8],
        _ fields: [String: String]
    ) throws(S3Failure) -> [String: String] {
        if let text = fields["content-md5"] {
            guard let digest = Base64.decode(text), digest.count == 16 else {
                throw S3Failure(
                    400,
                    "InvalidDigest",
                    "The Content-MD5 you specified was invalid."
                )
            }
            guard digest == Array(Insecure.MD5.hash(data: bytes)) else {
                throw badDigest("Content-MD5")
            }
        }
        var kept: [String: String] = [:]
        for (name, text) in fields {
            guard let algorithm = name.dropping(beginning: "x-amz-checksum-"),
                algorithm != "algorithm", algorithm != "type", algorithm != "mode"
            else { continue }
            guard let value = value(String(algorithm), of: bytes) else {
                throw S3Failure(
                    400,
                    "InvalidRequest",
                    "The algorithm type you specified in x-amz-checksum- header is invalid."
                )
            }
            guard value == text else { throw badDigest(String(algorithm).uppercased()) }
            kept[name] = value
        }
        return kept
    }

    private static func badDigest(_ name: String) -> S3Failure {
        S3Failure(
            400,
            "BadDigest",
            "The \(name) you specified did not match what we received."
        )
    }

    // MARK: Cyclic redundancy checks, all of them reflected, with all ones before and after

    private static let crc32 = table(0xEDB8_8320)
    private static let crc32c = table(0x82F6_3B78)
    private static let crc64nvme = table(0x9A6C_9329_AC4B_C9B5)

    private static func table(_ polynomial: UInt64) -> [UInt64] {
        (0..<256).map { byte in
            var value = UInt64(byte)
            for _ in 0..<8 { value = value & 1 == 1 ? value >> 1 ^ polynomial : value >> 1 }
            return value
        }
    }

    private static func crc(_ bytes: [UInt8], _ table: [UInt64], size: Int) -> String {
        let ones = UInt64.max >> UInt64(64 - size * 8)
        var value = ones
        for byte in bytes { value = table[Int((value ^ UInt64(byte)) & 0xFF)] ^ (value >> 8) }
        value ^= ones
        return Base64.encode(
            (0..<size).reversed().map { UInt8(truncatingIfNeeded: value >> UInt64($0 * 8)) }
        )
    }
}
