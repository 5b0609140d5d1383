public import OortModel
import OortCatalog

/// Why bytes could not be read or kept.
public enum ContentError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The disk or the limit is full, and no upload made room in time.
    case noSpace
    /// The content would be larger than its service takes, or than the local disk takes.
    case tooLarge
    /// Local bytes are lost or wrong; `detail` is for the log and for people.
    case damaged(detail: String)
    /// The local disk failed; `code` is the system's error number.
    case disk(code: Int32, detail: String)
    /// The service did not give the bytes.
    case fetch(ProviderError)
    /// The catalog failed.
    case catalog(detail: String)

    /// What happened, in words for the log and for `oort status`.
    public var description: String {
        switch self {
        case .noSpace: "there is no room on the local disk"
        case .tooLarge: "the file is larger than it may be"
        case .disk(DiskFile.readOnlyCode, _): "the local disk is read-only"
        case .damaged(let detail): detail
        case .disk(let code, let detail): "the local disk failed (error \(code): \(detail))"
        case .fetch(let error): "\(error)"
        case .catalog(let detail): "the catalog failed: \(detail)"
        }
    }

    /// The catalog's error in the store's words.
    init(_ error: CatalogError) {
        self = error == .diskFull ? .noSpace : .catalog(detail: "\(error)")
    }

    /// The error that ends work which is no longer needed.
    static var noLongerNeeded: ContentError {
        .fetch(ProviderError(.cancelled, detail: "it is no longer needed"))
    }

    /// Whether the caller no longer waits.
    public var isCancellation: Bool {
        if case .fetch(let error) = self { error.kind == .cancelled } else { false }
    }
}
