/// Builds one packet: numbers in network byte order, strings as their length and their bytes
/// (draft-ietf-secsh-filexfer-02, section 3).
struct PacketWriter {
    private(set) var bytes: [UInt8] = []

    mutating func put(_ byte: UInt8) { bytes.append(byte) }

    mutating func put(_ number: UInt32) {
        for shift in stride(from: 24, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: number >> UInt32(shift)))
        }
    }

    mutating func put(_ number: UInt64) {
        put(UInt32(truncatingIfNeeded: number >> 32))
        put(UInt32(truncatingIfNeeded: number))
    }

    mutating func put(string: some Collection<UInt8>) {
        put(UInt32(truncatingIfNeeded: string.count))
        bytes.append(contentsOf: string)
    }

    mutating func put(text: String) { put(string: text.utf8) }
}
