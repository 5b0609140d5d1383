extension RangeSet<Int64> {
    /// Bytes that the ranges hold.
    var byteCount: Int64 { ranges.reduce(0) { $0 + ($1.upperBound - $1.lowerBound) } }

    /// Whether all of a range is in the set.
    func covers(_ range: Range<Int64>) -> Bool {
        guard
            let first = range.isEmpty
                ? nil : ranges.last(where: { $0.lowerBound <= range.lowerBound })
        else { return range.isEmpty }
        return range.upperBound <= first.upperBound
    }

    /// What of a range is not in the set.
    func gaps(in range: Range<Int64>) -> [Range<Int64>] {
        range.isEmpty ? [] : Array(RangeSet(range).subtracting(self).ranges)
    }

    /// The ranges as the catalog keeps them: pairs of 64-bit little-endian bounds.
    var record: [UInt8] {
        ranges.flatMap { range in
            [range.lowerBound, range.upperBound].flatMap(\.littleEndianBytes)
        }
    }

    /// Reads back `record`; nil when it is not one, or leaves 0 ..< `size`.
    init?(record: [UInt8], size: Int64) {
        guard record.count % 16 == 0 else { return nil }
        self.init()
        for start in stride(from: 0, to: record.count, by: 16) {
            let lower = Int64(littleEndianBytes: record[start..<start + 8])
            let upper = Int64(littleEndianBytes: record[start + 8..<start + 16])
            guard 0 <= lower, lower < upper, upper <= size else { return nil }
            insert(contentsOf: lower..<upper)
        }
    }
}

extension FixedWidthInteger {
    /// The number's bytes, lowest first.
    var littleEndianBytes: [UInt8] {
        (0..<(Self.bitWidth / 8)).map { UInt8(truncatingIfNeeded: self >> ($0 * 8)) }
    }

    /// The number of these bytes, lowest first.
    init(littleEndianBytes bytes: ArraySlice<UInt8>) {
        self = bytes.reversed().reduce(0) { ($0 << 8) | Self(truncatingIfNeeded: $1) }
    }
}
