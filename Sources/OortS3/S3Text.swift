import Crypto

/// Texts as S3 writes them.
enum S3Text {
    /// Every byte but the unreserved characters of RFC 3986 as `%XX`; a slash stays where
    /// `keepsSlash`.
    ///
    /// It is the only spelling for which all stores compute the same signature.
    static func percentEncoded(_ text: String, keepsSlash: Bool) -> String {
        var result: [UInt8] = []
        result.reserveCapacity(text.utf8.count)
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "_"), UInt8(ascii: "~"):
                result.append(byte)
            case UInt8(ascii: "/") where keepsSlash:
                result.append(byte)
            default:
                result.append(UInt8(ascii: "%"))
                result.append(upperDigits[Int(byte >> 4)])
                result.append(upperDigits[Int(byte & 15)])
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Reads back a form-encoded text: `%XX`, and `+` for a space, which stores written in Go answer;
    /// nil when it is none, or no UTF-8.
    static func formDecoded(_ text: String) -> String? {
        var result: [UInt8] = []
        var bytes = Array(text.utf8)[...]
        while let byte = bytes.popFirst() {
            switch byte {
            case UInt8(ascii: "+"): result.append(UInt8(ascii: " "))
            case UInt8(ascii: "%"):
                guard let high = bytes.popFirst().flatMap(digit),
                    let low = bytes.popFirst().flatMap(digit)
                else { return nil }
                result.append(high << 4 | low)
            default: result.append(byte)
            }
        }
        return String(validating: result, as: UTF8.self)
    }

    /// Lower-case hex digits.
    static func hex(_ bytes: some Sequence<UInt8>) -> String {
        var result: [UInt8] = []
        for byte in bytes {
            result.append(lowerDigits[Int(byte >> 4)])
            result.append(lowerDigits[Int(byte & 15)])
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// The bytes of hex digits; nil when the text holds anything else.
    static func bytes(hex text: String) -> [UInt8]? {
        let digits = text.utf8.map(digit)
        guard digits.count.isMultiple(of: 2) else { return nil }
        var result: [UInt8] = []
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = digits[index], let low = digits[index + 1] else { return nil }
            result.append(high << 4 | low)
        }
        return result
    }

    static func sha256(_ bytes: some Sequence<UInt8>) -> String {
        hex(SHA256.hash(data: Array(bytes)))
    }

    private static let upperDigits = Array("0123456789ABCDEF".utf8)
    private static let lowerDigits = Array("0123456789abcdef".utf8)

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
