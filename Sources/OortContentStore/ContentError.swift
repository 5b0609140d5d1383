public import OortModel

/// Why bytes could not be read or kept.
public enum ContentError: Error, Hashable, Sendable {
    /// The disk or the limit is full, and no upload made room in time.
    case noSpace
    /// Local bytes are lost or not what they should be; `detail` is for the log and for people.
    case damaged(detail: String)
    /// The local disk failed; `code` is the system's error number.
    case disk(code: Int32, detail: String)
    /// The service did not give the bytes.
    case fetch(ProviderError)
    /// The catalog failed.
    case catalog(detail: String)

    /// Whether nobody waits any longer.
    public var isCancellation: Bool {
        if case .fetch(let error) = self { error.kind == .cancelled } else { false }
    }
}
