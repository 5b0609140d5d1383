import OortModel

/// Writes the XML of answers, and reads that of requests.
enum S3XML {
    static let namespace = "http://s3.amazonaws.com/doc/2006-03-01/"

    static func document(_ root: String) -> String {
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + root
    }

    /// A root element in S3's namespace.
    static func root(_ name: String, _ inner: String) -> String {
        document("<\(name) xmlns=\"\(namespace)\">\(inner)</\(name)>")
    }

    static func element(_ name: String, _ text: String) -> String {
        "<\(name)>\(escaped(text))</\(name)>"
    }

    /// Control characters are numbered, which XML 1.0 does not allow for most: so does AWS.
    static func escaped(_ text: String) -> String {
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result.append(contentsOf: "&amp;".unicodeScalars)
            case "<": result.append(contentsOf: "&lt;".unicodeScalars)
            case ">": result.append(contentsOf: "&gt;".unicodeScalars)
            case "\"": result.append(contentsOf: "&quot;".unicodeScalars)
            case _ where scalar.value < 0x20 && scalar != "\t" && scalar != "\n":
                result.append(
                    contentsOf: "&#x\(String(scalar.value, radix: 16));".unicodeScalars
                )
            default: result.append(scalar)
            }
        }
        return String(result)
    }

    // MARK: Requests

    /// What stands in each element of a name, in order; elements of one name do not lie in each other
    /// in any request of S3's.
    static func contents(of name: String, in text: Substring) -> [Substring] {
        var found: [Substring] = []
        var rest = text
        while let start = rest.firstRange(of: "<" + name) {
            rest = rest[start.upperBound...]
            guard let end = rest.firstIndex(of: ">") else { break }
            let isThisName = rest[..<end].first.map { " /\n\r\t".contains($0) } ?? true
            let isEmpty = rest[..<end].last == "/"
            rest = rest[rest.index(after: end)...]
            guard isThisName else { continue }
            if isEmpty {
                found.append("")
                continue
            }
            guard let close = rest.firstRange(of: "</\(name)>") else { break }
            found.append(rest[..<close.lowerBound])
            rest = rest[close.upperBound...]
        }
        return found
    }

    /// The text in the first element of a name; nil where there is none.
    static func text(of name: String, in text: Substring) -> String? {
        contents(of: name, in: text).first.map(unescaped)
    }

    /// A text without its entities.
    private static func unescaped(_ text: Substring) -> String {
        guard text.has("&") else { return String(text) }
        var result = ""
        var rest = text
        while let (before, after) = rest.cut(atFirst: "&") {
            result += before
            guard let (name, remainder) = after.cut(atFirst: ";"), let scalar = scalar(name) else {
                result += "&"
                rest = after
                continue
            }
            result.unicodeScalars.append(scalar)
            rest = remainder
        }
        return result + rest
    }

    private static func scalar(_ name: Substring) -> Unicode.Scalar? {
        switch name {
        case "amp": "&"
        case "lt": "<"
        case "gt": ">"
        case "quot": "\""
        case "apos": "'"
        default:
            if let digits = name.dropping(beginning: "#x") {
                UInt32(digits, radix: 16).flatMap(Unicode.Scalar.init)
            } else {
                name.dropping(beginning: "#").flatMap { UInt32($0) }.flatMap(Unicode.Scalar.init)
            }
        }
    }
}

/// Percent-encoding as S3 has it.
enum S3Percent {
    private static let digits = Array("0123456789ABCDEF".utf8)

    /// Every byte but the unreserved ones as `%XX`.
    static func encoded(
        _ bytes: some Sequence<UInt8>,
        keepsSlash: Bool,
        spaceAsPlus: Bool = false
    ) -> String {
        var result: [UInt8] = []
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "_"), UInt8(ascii: "~"):
                result.append(byte)
            case UInt8(ascii: "/") where keepsSlash: result.append(byte)
            case UInt8(ascii: " ") where spaceAsPlus: result.append(UInt8(ascii: "+"))
            default: result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// The bytes of a text; nil where a `%` is followed by something else than two digits.
    static func decoded(_ text: some StringProtocol, plusIsSpace: Bool = false) -> [UInt8]? {
        var result: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "%"):
                guard let high = rest.popFirst().flatMap(value),
                    let low = rest.popFirst().flatMap(value)
                else { return nil }
                result.append(high << 4 | low)
            case UInt8(ascii: "+") where plusIsSpace: result.append(UInt8(ascii: " "))
            default: result.append(byte)
            }
        }
        return result
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        Character(Unicode.Scalar(digit)).hexDigitValue.map { UInt8($0) }
    }
}
