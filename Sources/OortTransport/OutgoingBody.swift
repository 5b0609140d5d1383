import OortModel

/// A request's body as a row of bytes that can be read piece by piece.
struct OutgoingBody: Sendable {
    private enum Segment {
        case bytes([UInt8])
        case content(any ContentSource, Range<Int64>)

        var count: Int64 {
            switch self {
            case .bytes(let bytes): Int64(bytes.count)
            case .content(_, let range): range.upperBound - range.lowerBound
            }
        }
    }

    private let segments: [Segment]
    /// Bytes in all.
    let count: Int64

    init(_ body: HTTPRequest.Body) {
        segments =
            switch body {
            case .none: []
            case .bytes(let bytes): [.bytes(bytes)]
            case .content(let source, let range): [.content(source, range)]
            case .framed(let prefix, let source, let range, let suffix):
                [.bytes(prefix), .content(source, range), .bytes(suffix)]
            }
        count = segments.reduce(0) { $0 + $1.count }
    }

    /// At most `limit` bytes from `offset`, which lies before the end; never none.
    func read(at offset: Int64, atMost limit: Int) async throws(ProviderError) -> [UInt8] {
        var start = offset
        for segment in segments {
            guard start >= segment.count else {
                let count = Int(min(Int64(limit), segment.count - start))
                switch segment {
                case .bytes(let bytes): return Array(bytes[Int(start)..<Int(start) + count])
                case .content(let source, let range):
                    let bytes = try await source.read(at: range.lowerBound + start, count: count)
                    guard bytes.count == count else {
                        throw ProviderError(
                            .localContent,
                            detail: "\(bytes.count) bytes instead of \(count)"
                        )
                    }
                    return bytes
                }
            }
            start -= segment.count
        }
        throw ProviderError(.localContent, detail: "read past the end of the body")
    }
}

extension HTTPRequest.Body {
    /// Bytes in all.
    public var count: Int64 { OutgoingBody(self).count }
}
