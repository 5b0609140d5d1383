public import Logging

/// A log handler that hands each line, with all that stands beside it, to a closure.
public struct CapturedLog: LogHandler {
    private let write: @Sendable (String) -> Void
    public var logLevel = Logger.Level.trace
    public var metadata: Logger.Metadata = [:]

    /// Hands the lines to `write`.
    public init(_ write: @escaping @Sendable (String) -> Void) { self.write = write }

    public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    public func log(event: LogEvent) {
        write("\(event.message) \(metadata) \(event.metadata ?? [:])")
    }
}
