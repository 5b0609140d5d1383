/// A size as a service reports it: a JSON number, or a text of decimal digits, of bytes.
///
/// Every size that comes from a service comes in through this type, so that no other code has to
/// expect a negative one, or one with which a sum would overflow.
public struct ReportedSize: Decodable, Hashable, Sendable {
    /// The largest size that is taken for one: 8 PiB, up to which JSON numbers are exact everywhere.
    public static let largest: Int64 = 1 << 53

    /// The size in bytes, from 0 to `largest`.
    public let bytes: Int64

    /// A size in bytes; nil when it is negative or above `largest`.
    public init?(bytes: Int64) {
        guard (0...Self.largest).contains(bytes) else { return nil }
        self.bytes = bytes
    }

    /// - Throws: `DecodingError` when the value is no number, is negative, or above `largest`.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let bytes: Int64?
        if let text = try? container.decode(String.self) {
            bytes = Int64(text)
        } else {
            bytes = try container.decode(Int64.self)
        }
        guard let size = bytes.flatMap({ ReportedSize(bytes: $0) }) else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "not a size in bytes"
            )
        }
        self = size
    }
}

extension Duration {
    /// The longest wait for which a service may ask; a longer one is taken for this.
    public static let longestReportedWait = Duration.seconds(3600)

    /// A wait for which a service asked, from zero to `longestReportedWait`.
    public init(reportedSeconds seconds: Int64) {
        self = min(max(.seconds(seconds), .zero), .longestReportedWait)
    }

    /// Whole milliseconds; the nearest end of the range where there are too many for an `Int64`.
    public var inMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds.multipliedSaturating(by: 1000)
            .addingSaturating(attoseconds / 1_000_000_000_000_000)
    }
}

extension Int64 {
    /// The sum, or the nearest end of the range where the sum overflows.
    public func addingSaturating(_ other: Int64) -> Int64 {
        let (sum, overflows) = addingReportingOverflow(other)
        return overflows ? (other < 0 ? .min : .max) : sum
    }

    /// The product, or the nearest end of the range where the product overflows.
    public func multipliedSaturating(by other: Int64) -> Int64 {
        let (product, overflows) = multipliedReportingOverflow(by: other)
        return overflows ? ((self < 0) == (other < 0) ? .max : .min) : product
    }
}
