import OortModel

extension StagedContent {
    /// Writes all bytes at `offset`; nil means the end.
    ///
    /// - Throws: `.tooLarge` when the content would have more than `limit` bytes; nothing is written
    ///   then.
    public func write(
        _ bytes: [UInt8],
        at offset: Int64?,
        upTo limit: Int64 = .max
    ) throws(ContentError) -> WriteOutcome {
        try unsafe write(bytes.span.bytes, at: offset, upTo: limit)
    }
}
