/// Names as bytes, at a server whose protocol does not say how letters are encoded, and as text, in the
/// core.
///
/// Bytes that are not UTF-8 are shown as rclone shows them, so that both read each other's: `‛` and two
/// hexadecimal digits (its encoder/README.md).
public enum ByteNames {
    private static let quote: Unicode.Scalar = "\u{201B}"

    /// The text of a name.
    public static func text(_ name: [UInt8]) -> String {
        if let text = String(validating: name, as: UTF8.self), !text.has(quote) { return text }
        var text = ""
        var rest = name[...]
        while !rest.isEmpty {
            let length = (1...4).first {
                $0 <= rest.count && String(validating: rest.prefix($0), as: UTF8.self) != nil
            }
            guard let length, let part = String(validating: rest.prefix(length), as: UTF8.self)
            else {
                text += "\(quote)\(hex(rest.removeFirst()))"
                continue
            }
            text += part.has(quote) ? "\(quote)\(quote)" : part
            rest = rest.dropFirst(length)
        }
        return text
    }

    /// Why a listing cannot show this name's text: its bytes would come back as another text.
    public static func problem(_ text: String) -> String? {
        self.text(bytes(text)).isSameText(as: text)
            ? nil : "\(quote) in a name stands for bytes that are no text here"
    }

    /// The bytes of a name's text.
    public static func bytes(_ text: String) -> [UInt8] {
        guard text.has(quote) else { return Array(text.utf8) }
        var bytes: [UInt8] = []
        var rest = Array(text.unicodeScalars)[...]
        while let scalar = rest.popFirst() {
            if scalar == quote {
                if rest.first == quote {
                    rest.removeFirst()
                } else if rest.count >= 2,
                    let byte = byte(rest[rest.startIndex], rest[rest.startIndex + 1])
                {
                    bytes.append(byte)
                    rest.removeFirst(2)
                    continue
                }
            }
            bytes += Array(String(scalar).utf8)
        }
        return bytes
    }

    private static let digits = Array("0123456789ABCDEF".unicodeScalars)

    private static func hex(_ byte: UInt8) -> String {
        "\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
    }

    private static func byte(_ high: Unicode.Scalar, _ low: Unicode.Scalar) -> UInt8? {
        guard let high = digits.firstIndex(of: high), let low = digits.firstIndex(of: low) else {
            return nil
        }
        // Valid UTF-8 is never written in this form.
        return high < 8 ? nil : UInt8(high << 4 | low)
    }
}
