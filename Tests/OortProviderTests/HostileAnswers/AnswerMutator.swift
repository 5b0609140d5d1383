import Foundation
import OortSimulators

/// Makes hostile answers out of good ones, from a seed.
struct AnswerMutator {
    private var random: RandomSource

    init(seed: UInt64) { random = RandomSource(seed: seed) }

    /// True with a chance of one in `count`.
    mutating func happens(oneIn count: Int) -> Bool {
        Int.random(in: 0..<count, using: &random) == 0
    }

    /// A number from 0.
    mutating func index(below count: Int) -> Int { Int.random(in: 0..<count, using: &random) }

    private mutating func pick<Value>(_ values: [Value]) -> Value? {
        values.randomElement(using: &random)
    }

    // MARK: Bodies

    /// A body with some of it changed: as JSON if it is JSON, else as bytes.
    mutating func body(_ bytes: [UInt8]) -> [UInt8] {
        guard !happens(oneIn: 6), let json = JSON(parsing: bytes) else { return raw(bytes) }
        var mutated = json
        for _ in 0..<Int.random(in: 1...3, using: &random) {
            mutated = mutate(mutated, depth: 0)
        }
        return mutated.bytes
    }

    private mutating func raw(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        switch Int.random(in: 0..<9, using: &random) {
        case 0: return []
        case 1: return Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &random)))
        case 2: return Array("<html><body>502 Bad Gateway</body></html>".utf8)
        case 3: return Array(String(repeating: "[", count: 100_000).utf8)
        case 4: return Array("null".utf8)
        case 5: return [0xEF, 0xBB, 0xBF] + bytes
        case 6:
            let place = Int.random(in: 0...bytes.count, using: &random)
            bytes.insert(contentsOf: [0xFF, 0xC0, 0x80, 0, 0xED, 0xA0, 0x80], at: place)
            return bytes
        case 7:
            let place = Int.random(in: 0...bytes.count, using: &random)
            bytes.insert(contentsOf: Array(#""\ud800\u0000","#.utf8), at: place)
            return bytes
        default:
            for _ in 0..<Int.random(in: 1...20, using: &random) where !bytes.isEmpty {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                bytes[place] = UInt8.random(in: 0...255, using: &random)
            }
            return bytes
        }
    }

    /// Changes one place somewhere in the value.
    private mutating func mutate(_ json: JSON, depth: Int) -> JSON {
        // The deeper, the rarer is it to go on: half of all changes hit the upper levels.
        let goesOn = depth == 0 ? !happens(oneIn: 12) : !happens(oneIn: 4)
        switch json {
        case .object(var fields) where goesOn && !fields.isEmpty:
            guard let name = pick(fields.keys.sorted()), let value = fields[name] else { break }
            switch Int.random(in: 0..<8, using: &random) {
            case 0: fields[name] = nil
            case 1:
                fields[name] = nil
                fields[text()] = value
            default: fields[name] = mutate(value, depth: depth + 1)
            }
            return .object(fields)
        case .array(var values) where goesOn && !values.isEmpty:
            let place = Int.random(in: 0..<values.count, using: &random)
            switch Int.random(in: 0..<8, using: &random) {
            case 0: values.remove(at: place)
            case 1: values.append(values[place])
            case 2: values.shuffle(using: &random)
            default: values[place] = mutate(values[place], depth: depth + 1)
            }
            return .array(values)
        default: break
        }
        return value(like: json)
    }

    /// A hostile value: mostly of the same type, so that it gets further.
    private mutating func value(like json: JSON) -> JSON {
        if !happens(oneIn: 3) {
            switch json {
            case .string: return .string(text())
            case .integer, .number: return number()
            case .bool(let value): return .bool(!value)
            default: break
            }
        }
        switch Int.random(in: 0..<8, using: &random) {
        case 0: return .null
        case 1: return .bool(happens(oneIn: 2))
        case 2: return number()
        case 3: return .array([])
        case 4: return .object([:])
        case 5: return .array([json, .null, .string(text())])
        case 6:
            return (0..<400).reduce(json) { inner, _ in .array([inner]) }
        default: return .string(text())
        }
    }

    private mutating func number() -> JSON {
        pick([
            .integer(0), .integer(-1), .integer(.max), .integer(.min), .integer(1 << 53),
            .integer(Int64(Int32.max) + 1), .number(1e300), .number(-1e300), .number(0.5),
            .number(1e19), .number(-9.3e18),
        ]) ?? .null
    }

    // MARK: Texts

    private mutating func text() -> String { pick(Self.texts) ?? "" }

    /// A hostile header field of an answer.
    mutating func field() -> String { (pick(Self.texts + Self.fields) ?? "").filter(\.isASCII) }

    private static let texts: [String] = [
        "", ".", "..", "/", "//", "a/b", "../../../etc/passwd", "/..", "\\", "\0", "a\0b", "\r\n",
        "\u{7F}", "\u{1B}[2J", "\u{202E}txt.exe", "\u{FEFF}x", "\u{200F}", "e\u{301}",
        "/\u{301}", String(repeating: "n", count: 10_000),
        "x" + String(repeating: "\u{301}", count: 10_000), String(repeating: "a/", count: 5_000),
        "🌋", "%2e%2e%2f", "%", "%zz", "id:", "rev:", "root", "oort:root", "null", "-1", "0",
        "99999999999999999999", "9223372036854775807", "-9223372036854775808", "1e309", "NaN",
        "9999-12-31T23:59:59Z", "99999999-01-01T00:00:00Z", "-0001-01-01T00:00:00Z",
        "2026-13-45T99:99:99Z", "2026-01-01T00:00:00." + String(repeating: "9", count: 400) + "Z",
        "2026-02-29T00:00:00+99:99", "T", "complete", "in_progress", "failed", "other", "http://",
        "http://127.0.0.1:1/", "file:///etc/passwd", "https://[::1", "application/",
        "application/vnd.google-apps.folder", "application/vnd.google-apps.shortcut", "=", "====",
        "0-", "-", "5-2", "0-99999999999999999999",
    ]

    private static let fields: [String] = [
        "bytes=0-", "bytes=0--1", "bytes=5-2", "bytes 0-1/0", "bytes */-1",
        "bytes=0-99999999999999999999",
        "{}", "[", "\"", "W/\"\"", "text/html", "multipart/mixed; boundary=", "multipart/mixed",
        "multipart/mixed; boundary=\"", "chunked", "gzip", "1e300", "Thu, 99 Foo 2026 25:61:61 GMT",
    ]
}
