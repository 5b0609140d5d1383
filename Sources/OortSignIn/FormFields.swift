/// Fields of a form or a query, in order.
struct FormFields {
    private(set) var fields: [(name: String, value: String)] = []

    init(_ fields: [(name: String, value: String)] = []) { self.fields = fields }

    mutating func add(_ name: String, _ value: String?) {
        if let value { fields.append((name, value)) }
    }

    /// The fields percent-encoded (RFC 3986), good for a query and for a form's body alike.
    var encoded: String {
        fields.map { "\(Self.encode($0.name))=\(Self.encode($0.value))" }.joined(separator: "&")
    }

    /// `url` with the fields added to its query.
    func appended(to url: String) -> String {
        url + (url.contains("?") ? "&" : "?") + encoded
    }

    /// `text` with every secret value of these fields taken out: some services repeat what they
    /// were sent in their error answers.
    func redacted(_ text: String) -> String {
        fields.reduce(text) { text, field in
            guard Self.secrets.contains(field.name), !field.value.isEmpty else { return text }
            return text.split(separator: field.value, omittingEmptySubsequences: false)
                .joined(separator: "<secret>")
        }
    }

    private static let secrets: Set = [
        "client_secret", "code", "code_verifier", "device_code", "refresh_token", "token",
    ]

    private static let hexDigits = Array("0123456789ABCDEF".utf8)

    private static func encode(_ text: String) -> String {
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "_"), UInt8(ascii: "~"):
                bytes.append(byte)
            default:
                bytes += [
                    UInt8(ascii: "%"), hexDigits[Int(byte >> 4)], hexDigits[Int(byte & 15)],
                ]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
