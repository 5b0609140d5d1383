import Foundation
import OortModel

extension OneDriveSimulator {
    /// QuickXorHash by its definition: byte i at bit 11·i of a ring of 160 bits, the length XORed
    /// into the last 8 of 20 bytes.
    ///
    /// Written apart from Oort's own, so that the one checks the other.
    static func quickXor(_ content: SimulatedContent) -> String {
        content.digest("quickXor") { content in
            // Byte i and byte i + 160 land on the same bits.
            var columns = [UInt8](repeating: 0, count: 160)
            var column = 0
            content.forEachBlock(of: 160 << 12) { block in
                for byte in block {
                    columns[column] ^= byte
                    column = column == 159 ? 0 : column + 1
                }
            }
            var ring = [UInt8](repeating: 0, count: 20)
            for (index, byte) in columns.enumerated() {
                for bit in 0..<8 where byte & (1 << UInt8(bit)) != 0 {
                    let place = (11 * index + bit) % 160
                    ring[place / 8] ^= 1 << UInt8(place % 8)
                }
            }
            let length = UInt64(content.size)
            for index in 0..<8 { ring[12 + index] ^= UInt8(length >> UInt64(8 * index) & 0xFF) }
            return Data(ring).base64EncodedString()
        }
    }
}
