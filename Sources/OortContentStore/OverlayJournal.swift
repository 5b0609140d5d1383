/// The sidecar of an overlay: which bytes of the staged file take the place of the base's.
///
/// A record is appended before its write is acknowledged, so that the death of the process loses nothing
/// that a program believes written. 24 bytes a record: kind, checksum, and two 64-bit bounds,
/// little-endian.
struct OverlayJournal {
    /// One record.
    enum Record: Hashable {
        /// These bytes are in the staged file.
        case written(Range<Int64>)
        /// The base counts up to here only: the file was cut.
        case cut(Int64)
        /// These bytes did not reach the disk before the machine died: the base's count again.
        case lost(Range<Int64>)
        /// Nothing of the base was read before, and another revision may take its place.
        case baseUnread
        /// Bytes of the base were used: no other revision takes its place from here on.
        case baseRead
    }

    /// The content of a journal.
    struct Contents: Hashable {
        /// Bytes of the staged file that take the place of the base's, below `baseEnd`.
        var own = RangeSet<Int64>()
        /// Up to where the base counts.
        var baseEnd: Int64
        /// Whether no byte of the base was used yet.
        var isBaseUnread = false
    }

    static let recordSize = 24

    private let file: DiskFile
    private var end: Int64

    /// A new, empty journal in an empty file.
    init(file: DiskFile) {
        self.file = file
        end = 0
    }

    /// A journal read back.
    ///
    /// A torn last record was never acknowledged and is cut off; a record that
    /// is damaged before a good one means that bytes are lost.
    ///
    /// - Throws: `.damaged`, `.disk`.
    init(
        reading file: DiskFile,
        baseSize: Int64
    ) throws(ContentError) {
        let size = try file.size()
        let bytes = try file.read(at: 0, count: Int(size))
        var contents = Contents(baseEnd: baseSize)
        var position = 0
        while position + Self.recordSize <= bytes.count,
            let record = Self.record(bytes[position..<position + Self.recordSize])
        {
            contents.apply(record)
            position += Self.recordSize
        }
        var later = position + Self.recordSize
        while later + Self.recordSize <= bytes.count {
            guard Self.record(bytes[later..<later + Self.recordSize]) == nil else {
                throw .damaged(detail: "the record of written ranges is damaged")
            }
            later += Self.recordSize
        }
        self.file = file
        self.contents = contents
        end = Int64(position)
        if end < size { try file.resize(to: end) }
    }

    /// The content of the journal when it was read.
    private(set) var contents = Contents(baseEnd: 0)

    /// Appends a record.
    mutating func append(_ record: Record) throws(ContentError) {
        try file.write(Self.bytes(record)[...], at: end)
        end += Int64(Self.recordSize)
    }

    /// Makes the journal survive the death of the machine.
    func synchronise() throws(ContentError) { try file.synchronise() }

    private static func bytes(_ record: Record) -> [UInt8] {
        let (kind, lower, upper): (UInt32, Int64, Int64) =
            switch record {
            case .written(let range): (1, range.lowerBound, range.upperBound)
            case .cut(let end): (2, end, end)
            case .lost(let range): (3, range.lowerBound, range.upperBound)
            case .baseUnread: (4, 0, 0)
            case .baseRead: (5, 0, 0)
            }
        let body = lower.littleEndianBytes + upper.littleEndianBytes
        return kind.littleEndianBytes + checksum(kind, body[...]).littleEndianBytes + body
    }

    private static func record(_ bytes: ArraySlice<UInt8>) -> Record? {
        let start = bytes.startIndex
        let kind = UInt32(littleEndianBytes: bytes[start..<start + 4])
        let sum = UInt32(littleEndianBytes: bytes[start + 4..<start + 8])
        let lower = Int64(littleEndianBytes: bytes[start + 8..<start + 16])
        let upper = Int64(littleEndianBytes: bytes[start + 16..<start + 24])
        guard checksum(kind, bytes[(start + 8)...]) == sum, lower >= 0, lower <= upper else {
            return nil
        }
        switch kind {
        case 1: return .written(lower..<upper)
        case 2: return .cut(lower)
        case 3: return .lost(lower..<upper)
        case 4: return .baseUnread
        case 5: return .baseRead
        default: return nil
        }
    }

    /// FNV-1a: enough to tell a torn record.
    private static func checksum(_ kind: UInt32, _ bytes: ArraySlice<UInt8>) -> UInt32 {
        (kind.littleEndianBytes + bytes).reduce(2_166_136_261) { ($0 ^ UInt32($1)) &* 16_777_619 }
    }
}

extension OverlayJournal.Contents {
    mutating func apply(_ record: OverlayJournal.Record) {
        switch record {
        case .written(let range): own.insert(contentsOf: range)
        case .cut(let end):
            baseEnd = min(baseEnd, end)
            own.remove(contentsOf: end..<Int64.max)
        case .lost(let range): own.remove(contentsOf: range)
        case .baseUnread: isBaseUnread = true
        case .baseRead: isBaseUnread = false
        }
    }
}
