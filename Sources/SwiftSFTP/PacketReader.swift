/// Takes a packet apart; everything in it comes from outside and is checked against its bounds.
struct PacketReader {
    private let bytes: ArraySlice<UInt8>
    private var position: Int

    init(_ bytes: ArraySlice<UInt8>) {
        self.bytes = bytes
        position = bytes.startIndex
    }

    /// Bytes that were not read yet.
    var remaining: Int { bytes.endIndex - position }

    /// - Throws: `.malformedAnswer` where the packet ends before; so do all that follow.
    mutating func byte() throws(SFTPError) -> UInt8 {
        guard remaining >= 1 else { throw .cutShort }
        defer { position += 1 }
        return bytes[position]
    }

    mutating func number() throws(SFTPError) -> UInt32 {
        guard remaining >= 4 else { throw .cutShort }
        defer { position += 4 }
        return bytes[position..<position + 4].reduce(0) { $0 << 8 | UInt32($1) }
    }

    mutating func longNumber() throws(SFTPError) -> UInt64 {
        let high = try number()
        return UInt64(high) << 32 | UInt64(try number())
    }

    mutating func string() throws(SFTPError) -> ArraySlice<UInt8> {
        let length = try number()
        guard let count = Int(exactly: length), count <= remaining else { throw .cutShort }
        defer { position += count }
        return bytes[position..<position + count]
    }

    mutating func text() throws(SFTPError) -> String {
        String(decoding: try string(), as: UTF8.self)
    }
}

extension SFTPError {
    fileprivate static var cutShort: SFTPError {
        SFTPError(.malformedAnswer, detail: "a packet ends before its last field")
    }
}
