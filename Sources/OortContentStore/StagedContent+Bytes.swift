import OortModel

extension StagedContent {
    /// Writes all bytes at `offset`; nil means the end.
    public func write(
        _ bytes: [UInt8],
        at offset: Int64?
    ) throws(ContentError) -> WriteOutcome {
        try unsafe write(bytes.span.bytes, at: offset)
    }
}
