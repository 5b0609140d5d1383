import Synchronization

/// Bytes that arrive over time, pulled by one reader: nobody sends faster than it reads.
///
/// Letting the stream go without reading it to the end cancels the transfer.
public struct ByteStream: Sendable {
    /// How many bytes come at most, up to the end of a part, before the service has confirmed whose
    /// they are; 0 where nothing has to be confirmed.
    ///
    /// Until `confirm` has returned, they may be of another revision than the one asked for.
    public let provisionalBytes: Int
    private let gate: Gate?
    private let pull: @Sendable () async throws(ProviderError) -> [UInt8]?

    /// A stream whose every part comes from `pull`; nil is the end.
    public init(pull: @escaping @Sendable () async throws(ProviderError) -> [UInt8]?) {
        provisionalBytes = 0
        gate = nil
        self.pull = pull
    }

    /// The bytes of a stream, each part of which waits for `body`, which is given its count of bytes.
    public init(
        _ stream: ByteStream,
        pacedBy body: @escaping @Sendable (Int) async throws(ProviderError) -> Void
    ) {
        provisionalBytes = stream.provisionalBytes
        gate = stream.gate
        pull = { () async throws(ProviderError) -> [UInt8]? in
            guard let part = try await stream.next() else { return nil }
            try await body(part.count)
            return part
        }
    }

    private init(_ stream: ByteStream, _ gate: Gate) {
        provisionalBytes = Self.mostProvisional
        self.gate = gate
        pull = { () async throws(ProviderError) -> [UInt8]? in
            guard gate.mayPass else {
                try await gate.pass()
                return try await stream.next()
            }
            guard let part = try await stream.next() else {
                try await gate.pass()
                return nil
            }
            gate.note(part.count)
            return part
        }
    }

    /// As much as the kernel asks for at once when a program begins to read.
    private static let mostProvisional = 128 << 10

    /// These bytes, of which the first come at once, and all others, and the end, when
    /// `confirmation` has succeeded; its error is thrown otherwise.
    ///
    /// The confirmation is cancelled when the stream is let go.
    public func confirmed(
        by confirmation: Task<Result<Void, ProviderError>, Never>
    ) -> ByteStream {
        ByteStream(self, Gate(confirmation, provisional: Self.mostProvisional))
    }

    /// Waits until the service has confirmed whose the bytes are.
    ///
    /// - Throws: `.preconditionFailed` where they are of another revision than the one asked for.
    public func confirm() async throws(ProviderError) { try await gate?.pass() }

    /// Lets the first bytes through, and the others after the confirmation.
    private final class Gate: Sendable {
        private let confirmation: Task<Result<Void, ProviderError>, Never>
        private let left: Atomic<Int>

        init(_ confirmation: Task<Result<Void, ProviderError>, Never>, provisional: Int) {
            self.confirmation = confirmation
            left = Atomic(provisional)
        }

        deinit { confirmation.cancel() }

        /// Whether more may come before the confirmation.
        var mayPass: Bool { left.load(ordering: .acquiring) > 0 }

        func note(_ count: Int) { left.subtract(count, ordering: .acquiringAndReleasing) }

        func pass() async throws(ProviderError) {
            let result = await withTaskCancellationHandler {
                await confirmation.value
            } onCancel: {
                confirmation.cancel()
            }
            try result.get()
        }
    }

    /// The next part, never empty; nil at the end.
    ///
    /// - Throws: `ProviderError` when the transfer broke; what came before is good, the stream is
    ///   then over.
    public func next() async throws(ProviderError) -> [UInt8]? { try await pull() }

    /// All bytes to the end.
    ///
    /// - Throws: `.malformedAnswer` when there are more than `limit` bytes.
    public func collect(atMost limit: Int) async throws(ProviderError) -> [UInt8] {
        var bytes: [UInt8] = []
        while let part = try await next() {
            guard bytes.count + part.count <= limit else {
                throw ProviderError(.malformedAnswer, detail: "more than \(limit) bytes")
            }
            bytes += part
        }
        return bytes
    }
}

/// The content of an upload: immutable while it goes up, readable anywhere and more than once.
public protocol ContentSource: Sendable {
    /// Bytes in all.
    var size: Int64 { get }

    /// Exactly `count` bytes from `offset`; both lie within `size`.
    ///
    /// - Throws: `ProviderError` of kind `.localContent` when the local disk fails.
    func read(at offset: Int64, count: Int) async throws(ProviderError) -> [UInt8]
}

/// Computes a content's hash piece by piece.
public protocol ContentHasher: Sendable {
    /// Takes the next bytes of the content.
    mutating func update(_ bytes: ArraySlice<UInt8>)
    /// The hash of all bytes taken.
    func finalize() -> ContentHash
}

/// A content held in memory.
public struct BytesSource: ContentSource {
    /// The content.
    public let bytes: [UInt8]

    /// A content of these bytes.
    public init(_ bytes: [UInt8]) { self.bytes = bytes }

    public var size: Int64 { Int64(bytes.count) }

    public func read(at offset: Int64, count: Int) async throws(ProviderError) -> [UInt8] {
        guard offset >= 0, count >= 0, offset + Int64(count) <= size else {
            throw ProviderError(.localContent, detail: "read past the end")
        }
        return Array(bytes[Int(offset)..<Int(offset) + count])
    }
}
