/// Cuts what a server sends into packets; before the first one comes whatever its login shell prints.
struct PacketStream {
    /// The most bytes of one packet: what a megabyte of data needs, and room for long folders.
    private static let largestPacket = 4 << 20
    /// The most bytes that a login shell may print.
    private static let longestPreamble = 16 << 10
    /// How the answer to version 3 goes on after its length: its type and its version.
    private static let hello: [UInt8] = [2, 0, 0, 0, 3]

    private var buffer: [UInt8] = []
    private var position = 0
    private var hasBegun = false
    /// What came before the first packet, as text.
    private(set) var preamble = ""

    mutating func append(_ bytes: some Sequence<UInt8>) {
        if position > 0 {
            buffer.removeFirst(position)
            position = 0
        }
        buffer.append(contentsOf: bytes)
    }

    /// The next whole packet, without its length; nil where more bytes are needed.
    ///
    /// - Throws: `.malformedAnswer` for a length that no packet has.
    mutating func next() throws(SFTPError) -> ArraySlice<UInt8>? {
        if !hasBegun {
            guard try findBeginning() else { return nil }
        }
        guard buffer.count - position >= 4 else { return nil }
        let length = buffer[position..<position + 4].reduce(0) { $0 << 8 | Int($1) }
        guard (5...Self.largestPacket).contains(length) else {
            throw SFTPError(.malformedAnswer, detail: "a packet of \(length) bytes")
        }
        let start = position + 4
        guard buffer.count - start >= length else { return nil }
        position = start + length
        return buffer[start..<position]
    }

    private mutating func findBeginning() throws(SFTPError) -> Bool {
        let lengthBytes = 4
        var start = 0
        while start + lengthBytes + Self.hello.count <= buffer.count, start <= Self.longestPreamble
        {
            // No greeting has 64 KiB, so its length begins with two zeros.
            if buffer[start] == 0, buffer[start + 1] == 0,
                buffer[(start + lengthBytes)...].starts(with: Self.hello)
            {
                preamble = String(decoding: buffer[..<start], as: UTF8.self)
                position = start
                hasBegun = true
                return true
            }
            start += 1
        }
        guard start <= Self.longestPreamble else {
            preamble = text
            throw SFTPError(
                .malformedAnswer,
                detail: "the server prints text in place of the protocol: \(text.prefix(200))"
            )
        }
        return false
    }

    /// What came so far and is no packet, as text.
    var text: String { String(decoding: buffer[position...], as: UTF8.self) }
}
