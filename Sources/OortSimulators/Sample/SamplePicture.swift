/// Small real pictures made in code: a sky, a sun and a sea, different for each seed.
public struct SamplePicture: Sendable {
    /// Pixels across; a multiple of 8.
    public let width: Int
    /// Pixels down; a multiple of 8.
    public let height: Int
    private let seed: UInt64

    /// A picture of at least 8 by 8 pixels; both are cut to multiples of 8.
    public init(width: Int, height: Int, seed: UInt64) {
        self.width = Swift.max(8, width / 8 * 8)
        self.height = Swift.max(8, height / 8 * 8)
        self.seed = seed
    }

    /// Red, green and blue of the 8 by 8 block at a place.
    private func color(_ column: Int, _ row: Int) -> (Int, Int, Int) {
        let across = Double(column) / Double(width / 8)
        let down = Double(row) / Double(height / 8)
        let shift = Int(seed % 5) * 24
        let sunX = 0.2 + 0.6 * Double((seed / 5) % 7) / 7
        let distance = (across - sunX) * (across - sunX) * 2 + (down - 0.35) * (down - 0.35)
        if distance < 0.012 { return (255, 236, 150) }
        if down > 0.62 {
            let wave = (column * 7 + row * 13 + Int(seed % 11)) % 5 * 9
            return (20 + wave, 70 + wave + shift / 3, 120 + wave)
        }
        return (
            Int(240 - 90 * (0.62 - down)) - shift / 2, Int(120 + 140 * down), 90 + shift
        )
    }

    // MARK: JPEG

    /// Baseline JPEG in which each block has one color, so that only DC coefficients are coded.
    public var jpeg: [UInt8] {
        var out: [UInt8] = [0xFF, 0xD8]
        func segment(_ marker: UInt8, _ payload: [UInt8]) {
            let length = payload.count + 2
            out += [0xFF, marker, UInt8(length >> 8), UInt8(length & 255)] + payload
        }
        segment(0xE0, Array("JFIF".utf8) + [0, 1, 1, 0, 0, 1, 0, 1, 0, 0])
        // A quantizer of 8 makes the DC coefficient the block's mean less 128.
        segment(0xDB, [0] + [UInt8](repeating: 8, count: 64))
        segment(
            0xC0,
            [8, UInt8(height >> 8), UInt8(height & 255), UInt8(width >> 8), UInt8(width & 255), 3]
                + [1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0]
        )
        // DC: twelve codes of four bits, the code being the category. AC: only "end of block".
        segment(0xC4, [0x00, 0, 0, 0, 12] + [UInt8](repeating: 0, count: 12) + Array(0..<12))
        segment(0xC4, [0x10, 1] + [UInt8](repeating: 0, count: 15) + [0])
        segment(0xDA, [3, 1, 0, 2, 0, 3, 0, 0, 63, 0])
        out += entropyCoded
        return out + [0xFF, 0xD9]
    }

    private var entropyCoded: [UInt8] {
        var out: [UInt8] = []
        var pending: UInt32 = 0
        var count = 0
        func put(_ value: Int, bits: Int) {
            guard bits > 0 else { return }
            pending = pending << UInt32(bits) | UInt32(value & ((1 << bits) - 1))
            count += bits
            while count >= 8 {
                let byte = UInt8(truncatingIfNeeded: pending >> UInt32(count - 8))
                out.append(byte)
                if byte == 0xFF { out.append(0) }
                count -= 8
            }
        }
        var last = [0, 0, 0]
        for row in 0..<height / 8 {
            for column in 0..<width / 8 {
                let (red, green, blue) = color(column, row)
                let luma = (299 * red + 587 * green + 114 * blue) / 1000
                let levels = [luma - 128, (blue - luma) * 564 / 1000, (red - luma) * 713 / 1000]
                for component in 0..<3 {
                    let level = Swift.min(127, Swift.max(-128, levels[component]))
                    let difference = level - last[component]
                    last[component] = level
                    let category = Int.bitWidth - abs(difference).leadingZeroBitCount
                    put(category, bits: 4)
                    put(difference < 0 ? difference - 1 : difference, bits: category)
                    put(0, bits: 1)
                }
            }
        }
        put(0x7F, bits: (8 - count % 8) % 8)
        return out
    }

    // MARK: PNG

    /// PNG without compression (stored deflate blocks).
    public var png: [UInt8] {
        var raw: [UInt8] = []
        for row in 0..<height {
            raw.append(0)
            for column in 0..<width {
                let (red, green, blue) = color(column / 8, row / 8)
                for level in [red, green, blue] {
                    raw.append(UInt8(Swift.min(255, Swift.max(0, level))))
                }
            }
        }
        var out: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        func chunk(_ type: String, _ payload: [UInt8]) {
            let body = Array(type.utf8) + payload
            out += Self.bigEndian(UInt32(payload.count)) + body + Self.bigEndian(Self.crc(body))
        }
        chunk(
            "IHDR",
            Self.bigEndian(UInt32(width)) + Self.bigEndian(UInt32(height)) + [8, 2, 0, 0, 0]
        )
        chunk("IDAT", Self.stored(raw))
        chunk("IEND", [])
        return out
    }

    private static func stored(_ raw: [UInt8]) -> [UInt8] {
        var out: [UInt8] = [0x78, 0x01]
        var offset = 0
        while offset < raw.count {
            let end = Swift.min(raw.count, offset + 65535)
            let count = UInt16(end - offset)
            out += [end == raw.count ? 1 : 0]
            out += [UInt8(count & 255), UInt8(count >> 8)]
            out += [UInt8(~count & 255), UInt8(~count >> 8)]
            out += raw[offset..<end]
            offset = end
        }
        var low: UInt32 = 1
        var high: UInt32 = 0
        for byte in raw {
            low = (low + UInt32(byte)) % 65521
            high = (high + low) % 65521
        }
        return out + bigEndian(high << 16 | low)
    }

    private static func bigEndian(_ value: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> UInt32($0)) }
    }

    static func crc(_ bytes: [UInt8]) -> UInt32 {
        var crc: UInt32 = 0xFFFF_FFFF
        for byte in bytes {
            crc ^= UInt32(byte)
            for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0xEDB8_8320 : crc >> 1 }
        }
        return ~crc
    }
}
