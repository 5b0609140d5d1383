/// What comes over a WebSocket.
public enum WebSocketMessage: Hashable, Sendable {
    /// A text, whole.
    case text(String)
    /// A question whether the other side is there, to be answered with the same bytes.
    case ping([UInt8])
    /// The answer to such a question.
    case pong
    /// The end, with its code (RFC 6455, 7.4.1) where one was named.
    case close(code: Int?)
}

/// The frames of a WebSocket as a server sends them (RFC 6455, 5), put together from bytes as they come.
struct WebSocketFrames {
    /// Bytes of the longest message that is taken.
    static let longest = 1 << 20

    /// What came, and how much of it was taken.
    private var bytes: [UInt8] = []
    private var start = 0
    /// The beginning of a message that comes in several frames.
    private var beginning: (isText: Bool, bytes: [UInt8])?

    /// What the server did that it must not do.
    struct Violation: Error, Hashable {
        let words: String
    }

    private enum Opcode: UInt8 {
        case continuation = 0, text, binary
        case close = 8, ping, pong
    }

    mutating func add(_ part: some Sequence<UInt8>) {
        bytes.removeFirst(start)
        start = 0
        bytes += part
    }

    /// The next text, or what controls the connection; nil until more bytes are here.
    ///
    /// - Throws: `Violation`; the connection is to be ended.
    mutating func next() throws(Violation) -> WebSocketMessage? {
        while let (isLast, opcode, payload) = try nextFrame() {
            switch opcode {
            case .ping: return .ping(payload)
            case .pong: return .pong
            case .close:
                return .close(
                    code: payload.count < 2 ? nil : Int(payload[0]) << 8 | Int(payload[1])
                )
            case .text, .binary:
                guard beginning == nil else { throw Violation(words: "a message within another") }
                beginning = (opcode == .text, payload)
            case .continuation:
                guard beginning != nil else { throw Violation(words: "the end of no message") }
                beginning?.bytes += payload
            }
            guard let message = beginning else { continue }
            guard message.bytes.count <= Self.longest else {
                throw Violation(words: "a message of more than \(Self.longest) bytes")
            }
            guard isLast else { continue }
            beginning = nil
            guard message.isText else { continue }
            guard let text = String(validating: message.bytes, as: UTF8.self) else {
                throw Violation(words: "a text that is no UTF-8")
            }
            return .text(text)
        }
        return nil
    }

    private mutating func nextFrame() throws(Violation) -> (Bool, Opcode, [UInt8])? {
        let bytes = bytes[start...]
        guard bytes.count >= 2 else { return nil }
        let (first, second) = (bytes[start], bytes[start + 1])
        guard first & 0x70 == 0, let opcode = Opcode(rawValue: first & 0x0F) else {
            throw Violation(words: "a frame of an unknown kind")
        }
        guard second & 0x80 == 0 else { throw Violation(words: "a frame as from a client") }
        let isLast = first & 0x80 != 0
        var length = UInt64(second & 0x7F)
        var place = start + 2
        if length >= 126 {
            let end = place + (length == 126 ? 2 : 8)
            guard bytes.endIndex >= end else { return nil }
            length = bytes[place..<end].reduce(0) { $0 << 8 | UInt64($1) }
            place = end
        }
        if opcode.rawValue >= Opcode.close.rawValue, !isLast || length > 125 {
            throw Violation(words: "a frame of control that is not short")
        }
        guard length <= UInt64(Self.longest) else {
            throw Violation(words: "a frame of \(length) bytes")
        }
        let end = place + Int(length)
        guard bytes.endIndex >= end else { return nil }
        start = end
        return (isLast, opcode, Array(bytes[place..<end]))
    }

    // MARK: To the server

    /// A text's frame, its bytes mixed with `mask` as a client's have to be.
    static func text(_ text: String, mask: UInt32) -> [UInt8] {
        frame(.text, Array(text.utf8), mask)
    }

    static func ping(mask: UInt32) -> [UInt8] { frame(.ping, [], mask) }

    static func pong(_ bytes: [UInt8], mask: UInt32) -> [UInt8] { frame(.pong, bytes, mask) }

    /// The end, since it is over (1000).
    static func close(mask: UInt32) -> [UInt8] { frame(.close, [0x03, 0xE8], mask) }

    private static func frame(_ opcode: Opcode, _ payload: [UInt8], _ mask: UInt32) -> [UInt8] {
        var frame: [UInt8] = [0x80 | opcode.rawValue]
        switch payload.count {
        case ..<126: frame.append(0x80 | UInt8(payload.count))
        case ..<65_536:
            frame += [0x80 | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
        default:
            frame.append(0x80 | 127)
            for shift in stride(from: 56, through: 0, by: -8) {
                frame.append(UInt8(truncatingIfNeeded: UInt64(payload.count) >> UInt64(shift)))
            }
        }
        let key = (0..<4).map { UInt8(truncatingIfNeeded: mask >> UInt32(24 - 8 * $0)) }
        frame += key
        for (index, byte) in payload.enumerated() { frame.append(byte ^ key[index & 3]) }
        return frame
    }
}
