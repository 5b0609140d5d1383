import Synchronization

/// Bytes that arrive over time, pulled by one reader: they are not sent faster than it reads.
///
/// Letting the stream go without reading it to the end cancels the transfer.
public struct ByteStream: Sendable {
    /// How many bytes may come, up to the end of a part, before the service has confirmed their revision; 0
    /// where nothing has to be confirmed.
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
            gate.begin()
            guard gate.mayPass else {
                try await gate.pass()
                return try await stream.next()
            }
            guard let part = try await stream.next() else {
                try await gate.passEnd()
                return nil
            }
            gate.note(part.count)
            return part
        }
    }

    /// As much as the kernel asks for at once when a program begins to read.
    private static let mostProvisional = 128 << 10

    /// Bytes of which the first come at once, and all others, and the end, once `confirmation` has
    /// succeeded; its error is thrown otherwise.
    ///
    /// The confirmation begins when the first part is asked for, and is cancelled when the stream is let
    /// go.
    public func confirmed(
        by confirmation: @escaping @Sendable () async -> Result<Void, ProviderError>
    ) -> ByteStream {
        ByteStream(self, Gate(confirmation, provisional: Self.mostProvisional))
    }

    /// Lets all bytes come without a confirmation, which begins with `confirm`.
    ///
    /// For a reader that hands none of them on before they were compared with the revision's hash, or
    /// confirmed. To be called before the first part is asked for.
    public func letAllPass() { gate?.letAllPass() }

    /// Waits until the service has confirmed the revision of the bytes.
    ///
    /// - Throws: `.preconditionFailed` where they are of another revision than the one asked for.
    public func confirm() async throws(ProviderError) { try await gate?.pass() }

    /// Lets the first bytes through at once, and the others after the confirmation.
    private final class Gate: Sendable {
        private struct State {
            /// How many bytes may come before the confirmation; nil: all, and the end.
            var left: Int?
            /// The confirmation, once it has begun.
            var task: Task<Result<Void, ProviderError>, Never>?
        }

        private let confirmation: @Sendable () async -> Result<Void, ProviderError>
        private let state: Mutex<State>

        init(
            _ confirmation: @escaping @Sendable () async -> Result<Void, ProviderError>,
            provisional: Int
        ) {
            self.confirmation = confirmation
            state = Mutex(State(left: provisional))
        }

        deinit { state.withLock { $0.task }?.cancel() }

        func letAllPass() { state.withLock { $0.left = nil } }

        /// Asks for the confirmation while bytes come, unless all may come without it.
        func begin() {
            state.withLock { state in
                if state.left != nil { start(&state) }
            }
        }

        /// Owned by the gate, which cancels it when it goes.
        @discardableResult
        private func start(_ state: inout State) -> Task<Result<Void, ProviderError>, Never> {
            if let task = state.task { return task }
            let task = Task { [confirmation] in await confirmation() }
            state.task = task
            return task
        }

        /// Whether more may come before the confirmation.
        var mayPass: Bool { state.withLock { $0.left ?? 1 } > 0 }

        /// Waits for the confirmation, which the end needs, too, unless all may come without it.
        func passEnd() async throws(ProviderError) {
            if state.withLock({ $0.left != nil }) { try await pass() }
        }

        func note(_ count: Int) {
            state.withLock { state in
                if let left = state.left { state.left = left - count }
            }
        }

        func pass() async throws(ProviderError) {
            let confirmation = state.withLock { start(&$0) }
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
