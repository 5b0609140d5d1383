/// Bytes in addresses and forms (RFC 3986; application/x-www-form-urlencoded of the URL Standard).
enum PercentCoding {
    /// Bytes with all but letters, digits and `-._~` as `%XX`.
    static func encoded(_ bytes: some Sequence<UInt8>) -> String {
        var result = ""
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "_"), UInt8(ascii: "~"):
                result.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                let digits = String(byte, radix: 16, uppercase: true)
                result += byte < 16 ? "%0\(digits)" : "%\(digits)"
            }
        }
        return result
    }

    /// A path with its slashes, all else encoded.
    static func encodedPath(_ path: String) -> String {
        path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .map { encoded($0) }.joined(separator: "/")
    }

    /// The bytes that a text stands for; nil where a `%` is without two digits behind it.
    static func decoded(_ text: some Sequence<UInt8>, plusIsSpace: Bool = false) -> [UInt8]? {
        var result: [UInt8] = []
        var bytes = text.makeIterator()
        while let byte = bytes.next() {
            switch byte {
            case UInt8(ascii: "%"):
                guard let high = bytes.next().flatMap(digit), let low = bytes.next().flatMap(digit)
                else { return nil }
                result.append(high << 4 | low)
            case UInt8(ascii: "+") where plusIsSpace: result.append(UInt8(ascii: " "))
            default: result.append(byte)
            }
        }
        return result
    }

    /// The fields of a form or of a query; of several of one name the first; those that are not
    /// UTF-8 are left out.
    static func fields(_ text: some Collection<UInt8>) -> [String: String] {
        var fields: [String: String] = [:]
        for pair in text.split(separator: UInt8(ascii: "&")) {
            let parts = pair.split(
                separator: UInt8(ascii: "="),
                maxSplits: 1,
                omittingEmptySubsequences: false
            )
            let texts = parts.map { part in
                decoded(part, plusIsSpace: true).flatMap { String(validating: $0, as: UTF8.self) }
            }
            guard let name = texts.first ?? nil, let value = texts.count > 1 ? texts[1] : ""
            else { continue }
            if fields[name] == nil { fields[name] = value }
        }
        return fields
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
