import OortModel

/// A name with its namespace.
struct XMLName: Hashable, Sendable {
    var namespace: String
    var local: String

    static func dav(_ local: String) -> XMLName { XMLName(namespace: "DAV:", local: local) }
    static func owncloud(_ local: String) -> XMLName {
        XMLName(namespace: "http://owncloud.org/ns", local: local)
    }
    static func nextcloud(_ local: String) -> XMLName {
        XMLName(namespace: "http://nextcloud.org/ns", local: local)
    }
    static func sabre(_ local: String) -> XMLName {
        XMLName(namespace: "http://sabredav.org/ns", local: local)
    }
}

/// One element with all that is in it; attributes mean nothing in what is read here.
struct XMLElement: Sendable {
    var name: XMLName
    /// The text directly in it, in one piece.
    var text = ""
    var children: [XMLElement] = []

    func child(_ name: XMLName) -> XMLElement? { children.first { $0.name == name } }

    /// The text without white space at its ends.
    var trimmed: String {
        let bytes = text.utf8
        guard let first = bytes.firstIndex(where: { !$0.isXMLSpace }),
            let last = bytes.lastIndex(where: { !$0.isXMLSpace })
        else { return "" }
        return String(Substring(bytes[first...last]))
    }
}

/// Why a text is not taken for XML.
struct XMLFault: Error, Hashable {
    var reason: String
}

/// Reads the small part of XML that WebDAV's answers are made of, and refuses everything else.
///
/// A document that is cut off, has something behind its end, or declares a document type (entities
/// come with it) is a fault as a whole: half of a listing would read as deletions.
struct XMLScanner {
    private enum Token {
        case start(XMLName)
        case end
        case text(String)
        case documentEnd
    }

    /// How deep elements may lie in each other.
    private static let deepest = 64

    private let bytes: [UInt8]
    private var position = 0
    private var open: [(tag: ArraySlice<UInt8>, namespaces: [String: String])] = []
    private var closesAtOnce = false
    private var hasRoot = false

    /// A scanner of a whole document in UTF-8.
    init(_ body: [UInt8]) throws(XMLFault) {
        guard String(validating: body, as: UTF8.self) != nil else {
            throw XMLFault(reason: "bytes that are no UTF-8")
        }
        bytes = body
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
        // PHP programs put line breaks before the declaration.
        skipSpace()
        if looksAt("<?xml") { try readDeclaration() }
    }

    /// The root element, opened: its children come from `nextChild`.
    mutating func root() throws(XMLFault) -> XMLName {
        while true {
            switch try next() {
            case .start(let name): return name
            case .text(let text):
                guard text.utf8.allSatisfy(\.isXMLSpace) else {
                    throw XMLFault(reason: "text before the first element")
                }
            case .end, .documentEnd: throw XMLFault(reason: "no element")
            }
        }
    }

    /// The next child of the root, whole; nil when root and document have ended as they should.
    mutating func nextChild() throws(XMLFault) -> XMLElement? {
        while true {
            switch try next() {
            case .start(let name): return try element(name)
            case .text: continue
            case .end:
                while true {
                    switch try next() {
                    case .documentEnd: return nil
                    case .text(let text) where text.utf8.allSatisfy(\.isXMLSpace): continue
                    case .text, .start, .end:
                        throw XMLFault(reason: "something behind the last element")
                    }
                }
            case .documentEnd: throw XMLFault(reason: "cut off")
            }
        }
    }

    /// A whole document as one element.
    static func document(_ body: [UInt8]) throws(XMLFault) -> XMLElement {
        var scanner = try XMLScanner(body)
        var root = XMLElement(name: try scanner.root())
        while let child = try scanner.nextChild() { root.children.append(child) }
        return root
    }

    private mutating func element(_ name: XMLName) throws(XMLFault) -> XMLElement {
        var element = XMLElement(name: name)
        while true {
            switch try next() {
            case .start(let name): element.children.append(try self.element(name))
            case .text(let text): element.text += text
            case .end: return element
            case .documentEnd: throw XMLFault(reason: "cut off")
            }
        }
    }

    // MARK: Tokens

    private mutating func next() throws(XMLFault) -> Token {
        if closesAtOnce {
            closesAtOnce = false
            open.removeLast()
            return .end
        }
        while position < bytes.count {
            guard bytes[position] == UInt8(ascii: "<") else { return .text(try readText()) }
            if looksAt("<!--") {
                position += 4
                try skip(past: "-->")
            } else if looksAt("<![CDATA[") {
                guard !open.isEmpty else { throw XMLFault(reason: "text outside of elements") }
                position += 9
                let start = position
                try skip(past: "]]>")
                return .text(String(decoding: bytes[start..<position - 3], as: UTF8.self))
            } else if looksAt("<!") {
                throw XMLFault(reason: "a document type")
            } else if looksAt("<?") {
                position += 2
                try skip(past: "?>")
            } else if looksAt("</") {
                try readEndTag()
                return .end
            } else {
                return .start(try readStartTag())
            }
        }
        guard open.isEmpty, hasRoot else { throw XMLFault(reason: "cut off") }
        return .documentEnd
    }

    private mutating func readDeclaration() throws(XMLFault) {
        let start = position
        try skip(past: "?>")
        let text = String(decoding: bytes[start..<position], as: UTF8.self).lowercased()
        guard let encoding = text.firstRange(of: "encoding") else { return }
        let value = text[encoding.upperBound...].drop { "= \t\r\n\"'".contains($0) }
            .prefix { $0 != "\"" && $0 != "'" }
        guard ["utf-8", "utf8", "us-ascii", "ascii"].contains(String(value)) else {
            throw XMLFault(reason: "another encoding than UTF-8")
        }
    }

    private mutating func readStartTag() throws(XMLFault) -> XMLName {
        guard open.count < Self.deepest else { throw XMLFault(reason: "elements too deep") }
        guard !open.isEmpty || !hasRoot else {
            throw XMLFault(reason: "something behind the last element")
        }
        position += 1
        let tag = try readName()
        var namespaces = open.last?.namespaces ?? ["xml": "http://www.w3.org/XML/1998/namespace"]
        while true {
            let hadSpace = skipSpace()
            guard position < bytes.count else { throw XMLFault(reason: "cut off") }
            if looksAt("/>") {
                position += 2
                closesAtOnce = true
                break
            }
            if bytes[position] == UInt8(ascii: ">") {
                position += 1
                break
            }
            guard hadSpace else { throw XMLFault(reason: "a tag that is none") }
            let name = String(decoding: try readName(), as: UTF8.self)
            skipSpace()
            guard looksAt("=") else { throw XMLFault(reason: "an attribute without a value") }
            position += 1
            skipSpace()
            let value = try readAttributeValue()
            if name == "xmlns" {
                namespaces[""] = value
            } else if let prefix = name.dropping(beginning: "xmlns:") {
                namespaces[String(prefix)] = value
            }
        }
        open.append((tag, namespaces))
        hasRoot = true
        let name = String(decoding: tag, as: UTF8.self)
        guard let (prefix, local) = name.cut(atFirst: ":") else {
            return XMLName(namespace: namespaces[""] ?? "", local: name)
        }
        guard let namespace = namespaces[String(prefix)], !local.isEmpty else {
            throw XMLFault(reason: "a prefix without a namespace")
        }
        return XMLName(namespace: namespace, local: String(local))
    }

    private mutating func readEndTag() throws(XMLFault) {
        position += 2
        let tag = try readName()
        skipSpace()
        guard looksAt(">") else { throw XMLFault(reason: "cut off") }
        position += 1
        guard let last = open.popLast(), last.tag == tag else {
            throw XMLFault(reason: "a tag that ends nothing")
        }
    }

    private mutating func readName() throws(XMLFault) -> ArraySlice<UInt8> {
        let start = position
        while position < bytes.count, bytes[position].isXMLNameByte { position += 1 }
        guard position > start, position < bytes.count else {
            throw XMLFault(reason: "a name is missing")
        }
        return bytes[start..<position]
    }

    private mutating func readAttributeValue() throws(XMLFault) -> String {
        guard position < bytes.count,
            bytes[position] == UInt8(ascii: "\"") || bytes[position] == UInt8(ascii: "'")
        else { throw XMLFault(reason: "a value without quotes") }
        let quote = bytes[position]
        position += 1
        let start = position
        while position < bytes.count, bytes[position] != quote {
            guard bytes[position] != UInt8(ascii: "<") else {
                throw XMLFault(reason: "a tag in a value")
            }
            position += 1
        }
        guard position < bytes.count else { throw XMLFault(reason: "cut off") }
        defer { position += 1 }
        return try Self.decoded(bytes[start..<position])
    }

    private mutating func readText() throws(XMLFault) -> String {
        let start = position
        while position < bytes.count, bytes[position] != UInt8(ascii: "<") { position += 1 }
        return try Self.decoded(bytes[start..<position])
    }

    /// A text with its references replaced: the five of XML and those by number.
    private static func decoded(_ raw: ArraySlice<UInt8>) throws(XMLFault) -> String {
        var result: [UInt8] = []
        result.reserveCapacity(raw.count)
        var place = raw.startIndex
        while place < raw.endIndex {
            let byte = raw[place]
            guard byte >= 0x20 || byte == 9 || byte == 10 || byte == 13 else {
                throw XMLFault(reason: "a control character")
            }
            guard byte == UInt8(ascii: "&") else {
                result.append(byte)
                place += 1
                continue
            }
            guard
                let end = raw[place...].prefix(16).firstIndex(of: UInt8(ascii: ";"))
            else { throw XMLFault(reason: "a reference that does not end") }
            result += try character(String(decoding: raw[place + 1..<end], as: UTF8.self)).utf8
            place = end + 1
        }
        return String(decoding: result, as: UTF8.self)
    }

    private static func character(_ reference: String) throws(XMLFault) -> String {
        switch reference {
        case "lt": return "<"
        case "gt": return ">"
        case "amp": return "&"
        case "quot": return "\""
        case "apos": return "'"
        default: break
        }
        let number =
            if let digits = reference.dropping(beginning: "#x") {
                UInt32(digits, radix: 16)
            } else if let digits = reference.dropping(beginning: "#") {
                UInt32(digits)
            } else {
                UInt32?.none
            }
        guard let number, let scalar = Unicode.Scalar(number),
            number >= 0x20 || number == 9 || number == 10 || number == 13,
            number != 0xFFFE, number != 0xFFFF
        else { throw XMLFault(reason: "a reference to no character") }
        return String(Character(scalar))
    }

    // MARK: Bytes

    private func looksAt(_ text: String) -> Bool { bytes[position...].starts(with: text.utf8) }

    private mutating func skip(past text: String) throws(XMLFault) {
        let wanted = Array(text.utf8)
        while position + wanted.count <= bytes.count {
            if bytes[position] == wanted[0], bytes[position...].starts(with: wanted) {
                position += wanted.count
                return
            }
            position += 1
        }
        throw XMLFault(reason: "cut off")
    }

    @discardableResult
    private mutating func skipSpace() -> Bool {
        let start = position
        while position < bytes.count, bytes[position].isXMLSpace { position += 1 }
        return position > start
    }
}

extension UInt8 {
    fileprivate var isXMLSpace: Bool { self == 32 || self == 9 || self == 10 || self == 13 }

    fileprivate var isXMLNameByte: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"),
            UInt8(ascii: "."), UInt8(ascii: ":"), 0x80...:
            true
        default: false
        }
    }
}

/// Writes text for XML.
enum XMLText {
    static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
