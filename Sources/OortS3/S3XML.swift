import OortModel

/// An element of an answer: its texts joined, without the spaces between elements.
struct S3Element {
    /// The name without a prefix.
    var name: String
    /// The text directly in it.
    var text = ""
    /// The elements directly in it, in order.
    var children: [S3Element] = []

    /// The first element of a name directly in this one.
    func first(_ name: String) -> S3Element? { children.first { $0.name == name } }

    /// All elements of a name directly in this one.
    func all(_ name: String) -> [S3Element] { children.filter { $0.name == name } }

    /// The text of the first element of a name directly in this one.
    func text(of name: String) -> String? { first(name)?.text }

    /// Reads a whole document.
    ///
    /// Strict where it matters: a document that is cut, or in which anything follows, is none; there
    /// are no document types, no entities but XML's own, and not more than 16 levels.
    ///
    /// - Throws: `.malformedAnswer`, which holds nothing of the document.
    init(document bytes: [UInt8]) throws(ProviderError) {
        guard String(validating: bytes, as: UTF8.self) != nil else {
            throw S3Parser.failure("no UTF-8")
        }
        var parser = S3Parser(bytes)
        self = try parser.document()
    }

    fileprivate init(name: String) { self.name = name }
}

/// Reads elements, texts, named and numbered characters, comments and CDATA; nothing else.
private struct S3Parser {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    static func failure(_ words: String) -> ProviderError {
        ProviderError(.malformedAnswer, detail: "the store's XML cannot be read: \(words)")
    }

    mutating func document() throws(ProviderError) -> S3Element {
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
        try skipBetweenElements()
        guard starts(with: "<") else { throw Self.failure("no element") }
        let root = try element(depth: 0)
        try skipBetweenElements()
        guard position == bytes.count else { throw Self.failure("something follows its end") }
        return root
    }

    /// Skips white space, comments and instructions.
    private mutating func skipBetweenElements() throws(ProviderError) {
        while position < bytes.count {
            if Self.isSpace(bytes[position]) {
                position += 1
            } else if starts(with: "<!--") {
                position += 4
                try skip(past: "-->")
            } else if starts(with: "<?") {
                position += 2
                try skip(past: "?>")
            } else {
                return
            }
        }
    }

    private mutating func element(depth: Int) throws(ProviderError) -> S3Element {
        guard depth < 16 else { throw Self.failure("too many levels") }
        position += 1
        let fullName = try name()
        var result = S3Element(name: Self.localName(fullName))
        guard try !attributesEndElement() else { return result }
        var text: [UInt8] = []
        while true {
            let start = position
            while position < bytes.count, bytes[position] != UInt8(ascii: "<"),
                bytes[position] != UInt8(ascii: "&")
            { position += 1 }
            text += bytes[start..<position]
            guard position < bytes.count else { throw Self.failure("it is cut") }
            if bytes[position] == UInt8(ascii: "&") {
                text += try character()
            } else if starts(with: "</") {
                position += 2
                guard try name() == fullName else { throw Self.failure("ends do not match") }
                while position < bytes.count, Self.isSpace(bytes[position]) { position += 1 }
                try expect(">")
                result.text =
                    result.children.isEmpty ? String(decoding: text, as: UTF8.self) : ""
                return result
            } else if starts(with: "<!--") {
                position += 4
                try skip(past: "-->")
            } else if starts(with: "<![CDATA[") {
                position += 9
                let start = position
                try skip(past: "]]>")
                text += bytes[start..<position - 3]
            } else if starts(with: "<?") {
                position += 2
                try skip(past: "?>")
            } else if starts(with: "<!") {
                throw Self.failure("a declaration")
            } else {
                result.children.append(try element(depth: depth + 1))
            }
        }
    }

    /// Skips attributes to the end of a tag; true where the tag is an element without content.
    private mutating func attributesEndElement() throws(ProviderError) -> Bool {
        while position < bytes.count {
            let byte = bytes[position]
            if Self.isSpace(byte) {
                position += 1
            } else if byte == UInt8(ascii: ">") {
                position += 1
                return false
            } else if starts(with: "/>") {
                position += 2
                return true
            } else {
                _ = try name()
                while position < bytes.count, Self.isSpace(bytes[position]) { position += 1 }
                try expect("=")
                while position < bytes.count, Self.isSpace(bytes[position]) { position += 1 }
                guard position < bytes.count,
                    bytes[position] == UInt8(ascii: "\"") || bytes[position] == UInt8(ascii: "'")
                else { throw Self.failure("an attribute without a value") }
                let mark = bytes[position]
                position += 1
                guard let end = bytes[position...].firstIndex(of: mark) else {
                    throw Self.failure("it is cut")
                }
                position = end + 1
            }
        }
        throw Self.failure("it is cut")
    }

    private mutating func name() throws(ProviderError) -> String {
        let start = position
        while position < bytes.count, Self.isNamePart(bytes[position]) { position += 1 }
        guard position > start else { throw Self.failure("an element without a name") }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    /// The bytes of `&name;` or `&#number;`.
    private mutating func character() throws(ProviderError) -> [UInt8] {
        guard let end = bytes[position...].prefix(12).firstIndex(of: UInt8(ascii: ";")) else {
            throw Self.failure("a character without an end")
        }
        let word = String(decoding: bytes[position + 1..<end], as: UTF8.self)
        position = end + 1
        switch word {
        case "amp": return [UInt8(ascii: "&")]
        case "lt": return [UInt8(ascii: "<")]
        case "gt": return [UInt8(ascii: ">")]
        case "quot": return [UInt8(ascii: "\"")]
        case "apos": return [UInt8(ascii: "'")]
        default:
            let digits =
                word.dropping(beginning: "#x").map { UInt32($0, radix: 16) }
                ?? word.dropping(beginning: "#").map { UInt32($0) } ?? nil
            guard let number = digits, number > 0, let scalar = Unicode.Scalar(number) else {
                throw Self.failure("an unknown character")
            }
            return Array(String(scalar).utf8)
        }
    }

    private mutating func skip(past text: StaticString) throws(ProviderError) {
        while position < bytes.count {
            if starts(with: text) {
                position += text.utf8CodeUnitCount
                return
            }
            position += 1
        }
        throw Self.failure("it is cut")
    }

    private mutating func expect(_ text: StaticString) throws(ProviderError) {
        guard starts(with: text) else {
            throw Self.failure(position < bytes.count ? "a tag of another form" : "it is cut")
        }
        position += text.utf8CodeUnitCount
    }

    private func starts(with text: StaticString) -> Bool {
        bytes[position...].starts(with: text.description.utf8)
    }

    private static func isSpace(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
    }

    private static func isNamePart(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: ":"), UInt8(ascii: "_"),
            UInt8(ascii: "-"), UInt8(ascii: "."), 0x80...:
            true
        default: false
        }
    }

    private static func localName(_ name: String) -> String {
        name.cut(atLast: ":").map { String($0.after) } ?? name
    }
}
