/// The texts that a PNG picture carries (PNG specification, 11.3.3: `tEXt`), as far as thumbnails have them.
enum PNGText {
    private static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
    /// A chunk's length, type and check sum.
    private static let frame = 12

    private struct Chunk {
        var type: ArraySlice<UInt8>
        var data: ArraySlice<UInt8>
        /// All of it, with its frame.
        var bytes: ArraySlice<UInt8>
        func has(_ name: String) -> Bool { type.elementsEqual(name.utf8) }
    }

    /// The texts before the picture's data, by their keywords; nil for what is no PNG, or cut before
    /// that.
    static func texts(in png: [UInt8]) -> [String: String]? {
        guard png.starts(with: signature) else { return nil }
        var texts: [String: String] = [:]
        var rest = png.dropFirst(signature.count)
        while let chunk = next(&rest) {
            if chunk.has("IDAT") { return texts }
            guard chunk.has("tEXt"), let end = chunk.data.firstIndex(of: 0) else { continue }
            texts[latin(chunk.data[..<end])] = latin(chunk.data[(end + 1)...])
        }
        return nil
    }

    /// The picture with these texts, of ASCII, in place of those that it has; nil for what is no whole
    /// PNG.
    static func replacing(_ texts: [(String, String)], in png: [UInt8]) -> [UInt8]? {
        guard png.starts(with: signature) else { return nil }
        var result = signature
        var rest = png.dropFirst(signature.count)
        var isFirst = true
        while let chunk = next(&rest) {
            guard isFirst == chunk.has("IHDR") else { return nil }
            if !["tEXt", "zTXt", "iTXt", "eXIf", "tIME"].contains(where: chunk.has) {
                result += chunk.bytes
            }
            if isFirst {
                for (key, value) in texts {
                    result += framed("tEXt", Array(key.utf8) + [0] + Array(value.utf8))
                }
            }
            isFirst = false
            if chunk.has("IEND") { return result }
        }
        return nil
    }

    private static func next(_ rest: inout ArraySlice<UInt8>) -> Chunk? {
        guard rest.count >= frame else { return nil }
        let start = rest.startIndex
        let length = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
        guard length <= rest.count - frame else { return nil }
        let chunk = Chunk(
            type: rest[(start + 4)..<(start + 8)],
            data: rest[(start + 8)..<(start + 8 + length)],
            bytes: rest.prefix(length + frame)
        )
        rest = rest.dropFirst(length + frame)
        return chunk
    }

    private static func framed(_ type: String, _ data: [UInt8]) -> [UInt8] {
        let body = Array(type.utf8) + data
        return bigEndian(UInt32(truncatingIfNeeded: data.count)) + body + bigEndian(checkSum(body))
    }

    private static func bigEndian(_ number: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
    }

    /// The CRC of the specification's annex D.
    private static func checkSum(_ bytes: [UInt8]) -> UInt32 {
        var sum: UInt32 = .max
        for byte in bytes {
            sum ^= UInt32(byte)
            for _ in 0..<8 { sum = sum & 1 == 1 ? 0xEDB8_8320 ^ (sum >> 1) : sum >> 1 }
        }
        return ~sum
    }

    private static func latin(_ bytes: some Sequence<UInt8>) -> String {
        var text = String.UnicodeScalarView()
        for byte in bytes { text.append(Unicode.Scalar(byte)) }
        return String(text)
    }
}
