import OortSimulators

/// Random numbers that their seed repeats, on every machine.
public struct SeededNumbers: RandomNumberGenerator, Sendable {
    private var source: RandomSource

    /// The numbers of a seed, which a failing test is to print.
    public init(seed: UInt64) { source = RandomSource(seed: seed) }

    /// The next 64 bits.
    public mutating func next() -> UInt64 { source.next() }

    /// So many random bytes.
    public mutating func bytes(_ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        while bytes.count < count {
            var word = next()
            for _ in 0..<min(8, count - bytes.count) {
                bytes.append(UInt8(truncatingIfNeeded: word))
                word >>= 8
            }
        }
        return bytes
    }
}
