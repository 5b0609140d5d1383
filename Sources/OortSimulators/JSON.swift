import Foundation

/// A JSON value whose shape is known only at run time.
///
/// Reading is Foundation's; writing is done here because one protocol wants its JSON inside header
/// fields, with everything outside of ASCII escaped, which Foundation cannot do.
public enum JSON: Hashable, Sendable {
    /// `null`.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// A number without fraction.
    case integer(Int64)
    /// Any other number.
    case number(Double)
    /// A text.
    case string(String)
    /// A list.
    case array([JSON])
    /// Fields by name.
    case object([String: JSON])

    /// Reads JSON; nil when it is none.
    public init?(parsing bytes: some Sequence<UInt8>) {
        guard let value = try? JSONDecoder().decode(JSON.self, from: Data(bytes)) else {
            return nil
        }
        self = value
    }

    /// A text, or `null` for nil.
    public init(_ text: String?) { self = text.map(JSON.string) ?? .null }

    /// A field of an object; nil when this is no object or has no such field.
    public subscript(name: String) -> JSON? {
        if case .object(let fields) = self { fields[name] } else { nil }
    }

    /// The text, if it is one.
    public var text: String? {
        if case .string(let text) = self { text } else { nil }
    }

    /// The number, if it is one without fraction.
    public var integer: Int64? {
        if case .integer(let value) = self { value } else { nil }
    }

    /// The number, if it is one.
    public var number: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .number(let value): value
        default: nil
        }
    }

    /// The truth value, if it is one.
    public var bool: Bool? {
        if case .bool(let value) = self { value } else { nil }
    }

    /// The list, if it is one.
    public var elements: [JSON]? {
        if case .array(let values) = self { values } else { nil }
    }

    /// The fields, if it is an object.
    public var fields: [String: JSON]? {
        if case .object(let fields) = self { fields } else { nil }
    }

    /// The object with the given fields put in, over those of the same name.
    public func merging(_ others: [String: JSON]) -> JSON {
        guard case .object(let fields) = self else { return self }
        return .object(fields.merging(others) { $1 })
    }

    /// The object without those fields that are `null`.
    public var withoutNulls: JSON {
        guard case .object(let fields) = self else { return self }
        return .object(fields.filter { $0.value != .null })
    }

    /// The value as JSON in UTF-8.
    public var bytes: [UInt8] {
        var out: [UInt8] = []
        write(to: &out, asciiOnly: false)
        return out
    }

    /// The value as JSON of ASCII only, fit for a header field.
    public var headerText: String {
        var out: [UInt8] = []
        write(to: &out, asciiOnly: true)
        return String(decoding: out, as: UTF8.self)
    }

    private func write(to out: inout [UInt8], asciiOnly: Bool) {
        switch self {
        case .null: out += "null".utf8
        case .bool(let value): out += (value ? "true" : "false").utf8
        case .integer(let value): out += String(value).utf8
        case .number(let value): out += (value.isFinite ? String(value) : "null").utf8
        case .string(let text): Self.write(text, to: &out, asciiOnly: asciiOnly)
        case .array(let values):
            out.append(UInt8(ascii: "["))
            for (index, value) in values.enumerated() {
                if index > 0 { out.append(UInt8(ascii: ",")) }
                value.write(to: &out, asciiOnly: asciiOnly)
            }
            out.append(UInt8(ascii: "]"))
        case .object(let fields):
            out.append(UInt8(ascii: "{"))
            var isFirst = true
            for (name, value) in fields {
                if !isFirst { out.append(UInt8(ascii: ",")) }
                isFirst = false
                Self.write(name, to: &out, asciiOnly: asciiOnly)
                out.append(UInt8(ascii: ":"))
                value.write(to: &out, asciiOnly: asciiOnly)
            }
            out.append(UInt8(ascii: "}"))
        }
    }

    private static func write(_ text: String, to out: inout [UInt8], asciiOnly: Bool) {
        out.append(UInt8(ascii: "\""))
        for unit in text.utf8.contains(where: { $0 >= 0x7F }) && asciiOnly ? [] : Array(text.utf8) {
            switch unit {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                out.append(UInt8(ascii: "\\"))
                out.append(unit)
            case 0..<0x20: out += escape(UInt16(unit))
            default: out.append(unit)
            }
        }
        if asciiOnly, text.utf8.contains(where: { $0 >= 0x7F }) {
            for unit in text.utf16 {
                switch unit {
                case 0x22, 0x5C: out += [0x5C, UInt8(unit)]
                case 0x20..<0x7F: out.append(UInt8(unit))
                default: out += escape(unit)
                }
            }
        }
        out.append(UInt8(ascii: "\""))
    }

    private static func escape(_ unit: UInt16) -> [UInt8] {
        let digits = String(unit, radix: 16)
        return Array(("\\u" + String(repeating: "0", count: 4 - digits.count) + digits).utf8)
    }
}

extension JSON: Decodable {
    /// Reads any JSON value.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let text = try? container.decode(String.self) {
            self = .string(text)
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Int64.self) {
            self = .integer(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let values = try? container.decode([JSON].self) {
            self = .array(values)
        } else {
            self = .object(try container.decode([String: JSON].self))
        }
    }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByStringInterpolation,
    ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral, ExpressibleByNilLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    /// A text.
    public init(stringLiteral value: String) { self = .string(value) }
    /// A number.
    public init(integerLiteral value: Int64) { self = .integer(value) }
    /// A truth value.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// `null`.
    public init(nilLiteral: ()) { self = .null }
    /// A list.
    public init(arrayLiteral elements: JSON...) { self = .array(elements) }
    /// An object; of two fields of one name the last counts.
    public init(dictionaryLiteral elements: (String, JSON)...) {
        self = .object(Dictionary(elements) { $1 })
    }
}
