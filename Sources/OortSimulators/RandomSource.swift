/// Random numbers from a seed (SplitMix64): equal seeds give equal accounts and equal faults.
public struct RandomSource: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// A source that always gives the same numbers for the same seed.
    public init(seed: UInt64) { state = seed }

    /// The next 64 bits.
    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A text of `count` characters out of `alphabet`.
    public mutating func text(_ count: Int, of alphabet: String) -> String {
        let letters = Array(alphabet)
        return String((0..<count).map { _ in letters[Int(next() % UInt64(letters.count))] })
    }

    /// A text of `count` hexadecimal digits.
    public mutating func hex(_ count: Int) -> String { text(count, of: "0123456789abcdef") }
}
