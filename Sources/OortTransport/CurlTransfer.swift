import DequeModule
import OortModel
import Synchronization

/// One request on its way, shared by the task that waits for it and the loop that carries it.
///
/// All state is under one lock; continuations are resumed and the loop is notified after it is released.
final class CurlTransfer: Sendable {
    typealias HeadResult = Result<HTTPResponseHead, TransportError>
    typealias PartResult = Result<[UInt8]?, TransportError>

    /// What the loop needs to know to judge whether the transfer still lives.
    struct Progress {
        var hasBegun = false
        var hasHead = false
        var bytesMoved: Int64 = 0
        var lastSent: ContinuousClock.Instant?
        var isWaitingForUs = false
        var isSending = false
    }

    private struct State {
        var hasBegun = false
        var partialHead: HTTPResponseHead?
        var head: HTTPResponseHead?
        var headWaiter: CheckedContinuation<HeadResult, Never>?
        var incoming: Deque<[UInt8]> = []
        var incomingBytes = 0
        var received: Int64 = 0
        var reader: CheckedContinuation<PartResult, Never>?
        var end: Result<Void, TransportError>?
        var isReceivePaused = false

        /// Bytes read from the body that libcurl has not taken, the first of them partly taken.
        var outgoing: Deque<[UInt8]> = []
        var outgoingOffset = 0
        var outgoingBytes = 0
        /// Bytes of the body that were read, and that libcurl has taken.
        var read: Int64 = 0
        var sent: Int64 = 0
        var lastSent: ContinuousClock.Instant?
        var isSendPaused = false
        /// Reads ahead; there is one exactly while it runs.
        ///
        /// `end` and `rewind` cancel it.
        var filler: Task<Void, Never>?
        /// How often the body was begun anew; what a filler of an earlier time reads is dropped.
        var rewinds = 0

        /// Takes the oldest part of the answer's body that was not handed out.
        mutating func nextPart() -> [UInt8]? {
            let part = incoming.popFirst()
            incomingBytes -= part?.count ?? 0
            return part
        }

        mutating func takeReader() -> CheckedContinuation<PartResult, Never>? {
            defer { reader = nil }
            return reader
        }
    }

    let request: HTTPRequest
    let usesHTTP2: Bool
    /// The body to be streamed; nil where there is none or libcurl is handed it whole.
    let body: OutgoingBody?
    private let settings: CurlClient.Settings
    private let loop: CurlLoop
    private let state = Mutex(State())

    init(request: HTTPRequest, usesHTTP2: Bool, settings: CurlClient.Settings, loop: CurlLoop) {
        self.request = request
        self.usesHTTP2 = usesHTTP2
        self.settings = settings
        self.loop = loop
        switch request.body {
        case .none: body = nil
        case .bytes(let bytes) where bytes.count <= HTTPRequest.largestCopiedBody: body = nil
        case .bytes, .content, .framed: body = OutgoingBody(request.body)
        }
    }

    // MARK: For the task

    /// Begins the transfer and returns the answer's head.
    func head() async -> HeadResult {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let end = state.withLock { state in
                    if state.end == nil { state.headWaiter = continuation }
                    return state.end
                }
                if case .failure(let error) = end {
                    continuation.resume(returning: .failure(error))
                } else {
                    readAhead()
                    loop.add(self)
                }
            }
        } onCancel: {
            end(.failure(.cancelled))
        }
    }

    /// The next part of the answer's body; nil at its end.
    func part() async -> PartResult {
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let ready: PartResult? = state.withLock { state in
                    if let part = state.nextPart() { return .success(part) }
                    switch state.end {
                    case .success: return .success(nil)
                    case .failure(let error): return .failure(error)
                    case nil: break
                    }
                    guard state.reader == nil else {
                        return .failure(.broken("two readers of one body"))
                    }
                    state.reader = continuation
                    return nil
                }
                if let ready { continuation.resume(returning: ready) }
            }
        } onCancel: {
            end(.failure(.cancelled))
        }
        resumeReceivingIfRead()
        return result
    }

    private func resumeReceivingIfRead() {
        let resumes = state.withLock { state in
            guard state.isReceivePaused, state.incomingBytes <= receiveLimit / 2 else {
                return false
            }
            state.isReceivePaused = false
            return true
        }
        if resumes { loop.resume(self) }
    }

    /// Ends the transfer if it has not ended, and has the loop let it go.
    func end(_ result: Result<Void, TransportError>) {
        if finish(result) { loop.remove(self) }
    }

    // MARK: For the loop

    /// Notes how the transfer ended and wakes its caller; false when it had ended before.
    @discardableResult
    func finish(_ result: Result<Void, TransportError>) -> Bool {
        // The bytes that came last are good, however the transfer ends.
        handOver()
        typealias Woken = (
            CheckedContinuation<HeadResult, Never>?, CheckedContinuation<PartResult, Never>?,
            Task<Void, Never>?
        )
        let woken: Woken? = state.withLock { state in
            guard state.end == nil else { return nil }
            state.end = result
            if case .failure(.cancelled) = result {
                state.incoming = []
                state.incomingBytes = 0
            }
            state.outgoing = []
            defer { (state.headWaiter, state.reader, state.filler) = (nil, nil, nil) }
            return (state.headWaiter, state.reader, state.filler)
        }
        guard let woken else { return false }
        woken.2?.cancel()
        switch result {
        case .success:
            woken.0?.resume(returning: .failure(.broken("the answer had no head")))
            woken.1?.resume(returning: .success(nil))
        case .failure(let error):
            woken.0?.resume(returning: .failure(error))
            woken.1?.resume(returning: .failure(error))
        }
        return true
    }

    var hasEnded: Bool { state.withLock { $0.end != nil } }

    /// Which directions are paused: (receiving, sending).
    var paused: (receiving: Bool, sending: Bool) {
        state.withLock { ($0.isReceivePaused, $0.isSendPaused) }
    }

    var progress: Progress {
        state.withLock { state in
            Progress(
                hasBegun: state.hasBegun,
                hasHead: state.head != nil,
                bytesMoved: state.received + state.sent,
                lastSent: state.lastSent,
                isWaitingForUs: state.isReceivePaused || state.isSendPaused,
                isSending: state.sent < body?.count ?? 0
            )
        }
    }

    /// The request is about to go out.
    ///
    /// False when it went out before and may not twice: libcurl repeats a request by itself when a
    /// reused connection dies without an answer.
    func beginSending() -> Bool {
        state.withLock { state in
            defer { state.hasBegun = true }
            return !state.hasBegun || request.repetition == .harmless
        }
    }

    /// One line of an answer's head, its end of line left out.
    func receiveHeaderLine(_ line: String) {
        let waiter = state.withLock { state -> CheckedContinuation<HeadResult, Never>? in
            guard state.head == nil else { return nil }  // A trailer.
            if let start = HTTPResponseHead(statusLine: line) {
                state.partialHead = start
            } else if !line.isEmpty {
                guard let colon = line.firstIndex(of: ":") else { return nil }
                let value = line[line.index(after: colon)...]
                state.partialHead?.headers.append(
                    (String(line[..<colon]), String(value.trimmingWhitespace()))
                )
            } else if let head = state.partialHead, head.status >= 200 {
                state.head = head
                defer { state.headWaiter = nil }
                return state.headWaiter
            }
            return nil
        }
        guard let waiter, let head = state.withLock({ $0.head }) else { return }
        if case .bytes(let bytes) = request.body, body == nil {
            request.onSent?(Int64(bytes.count))
        }
        waiter.resume(returning: .success(head))
    }

    /// Takes bytes of the body; false when there is no room: receiving is then paused.
    ///
    /// The waiting reader gets them by `handOver`.
    func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
        state.withLock { state in
            guard state.end == nil else { return true }
            guard state.incomingBytes < receiveLimit else {
                state.isReceivePaused = true
                return false
            }
            state.received += Int64(bytes.count)
            state.incomingBytes += bytes.count
            if let last = state.incoming.indices.last,
                state.incoming[last].count + bytes.count <= Self.largestPart
            {
                unsafe state.incoming[last].append(contentsOf: bytes)
            } else {
                unsafe state.incoming.append(Array(bytes))
            }
            return true
        }
    }

    /// Wakes the reader that waits for a part of the body, if there is one.
    ///
    /// libcurl gives 16 KiB at a time, and waking a task costs more than copying as much: so the reader
    /// gets everything that one look at the connections brought.
    func handOver() {
        let woken = state.withLock { state in
            state.reader == nil ? nil : state.nextPart().map { (state.takeReader(), $0) }
        }
        if let (reader, part) = woken { reader?.resume(returning: .success(part)) }
    }

    /// Copies the next bytes of the body into libcurl's buffer.
    ///
    /// - Returns: How many; 0 at the end; nil when they are not there yet: sending is then paused.
    func provide(_ buffer: UnsafeMutableRawBufferPointer) -> Int? {
        guard let body else { return 0 }
        let (count, sent): (Int?, Int64) = state.withLock { state in
            guard state.sent < body.count else { return (0, state.sent) }
            var count = 0
            while let piece = state.outgoing.first {
                let amount = min(piece.count - state.outgoingOffset, buffer.count - count)
                guard amount > 0 else { break }
                let range = state.outgoingOffset..<state.outgoingOffset + amount
                unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
                    .copyBytes(from: piece[range])
                count += amount
                state.outgoingOffset += amount
                if state.outgoingOffset == piece.count {
                    state.outgoing.removeFirst()
                    state.outgoingOffset = 0
                }
            }
            state.outgoingBytes -= count
            state.sent += Int64(count)
            guard count > 0 else {
                state.isSendPaused = true
                return (nil, state.sent)
            }
            state.lastSent = .now
            return (count, state.sent)
        }
        if count != nil { request.onSent?(sent) }
        readAhead()
        return count
    }

    /// Begins the body anew.
    ///
    /// libcurl asks for it when a reused connection dies without an answer and it tries another.
    func rewind() {
        let filler = state.withLock { state in
            state.rewinds += 1
            state.outgoing = []
            (state.outgoingOffset, state.outgoingBytes) = (0, 0)
            (state.read, state.sent) = (0, 0)
            defer { state.filler = nil }
            return state.filler
        }
        filler?.cancel()
        readAhead()
    }

    // MARK: Reading ahead

    /// Starts the filler where there is none and the buffer is half empty.
    private func readAhead() {
        guard let body else { return }
        state.withLock { state in
            guard state.filler == nil, state.end == nil, state.read < body.count,
                state.outgoingBytes <= settings.sendBuffer / 2
            else { return }
            let rewinds = state.rewinds
            state.filler = Task { await self.fill(from: body, rewinds: rewinds) }
        }
    }

    private func fill(from body: OutgoingBody, rewinds: Int) async {
        while let offset = nextOffset(in: body, rewinds: rewinds) {
            let piece: [UInt8]
            do throws(ProviderError) {
                piece = try await body.read(at: offset, atMost: Self.largestPart)
            } catch {
                guard state.withLock({ $0.rewinds == rewinds }) else { return }
                end(.failure(error.kind == .cancelled ? .cancelled : .localContent(error.detail)))
                return
            }
            let resumes = state.withLock { state in
                guard state.end == nil, state.rewinds == rewinds else { return false }
                state.read += Int64(piece.count)
                state.outgoing.append(piece)
                state.outgoingBytes += piece.count
                defer { state.isSendPaused = false }
                return state.isSendPaused
            }
            if resumes { loop.resume(self) }
        }
    }

    /// Where to read on; nil, and the filler is over, when there is enough or all.
    private func nextOffset(in body: OutgoingBody, rewinds: Int) -> Int64? {
        state.withLock { state in
            guard state.rewinds == rewinds else { return nil }
            guard state.end == nil, state.read < body.count,
                state.outgoingBytes < settings.sendBuffer
            else {
                state.filler = nil
                return nil
            }
            return state.read
        }
    }

    private static let largestPart = 256 << 10

    /// Bytes held for a slow reader.
    ///
    /// Small answers share a connection, which a paused one would hold up, so they have room enough
    /// never to be paused.
    private var receiveLimit: Int {
        request.weight == .small ? max(8 << 20, settings.receiveBuffer) : settings.receiveBuffer
    }
}

extension HTTPResponseHead {
    /// A head without fields, from `HTTP/1.1 200 OK`; nil when the line is another.
    init?(statusLine line: String) {
        guard line.hasPrefix("HTTP/") else { return nil }
        let words = line.dropFirst(5).split(separator: " ", maxSplits: 2)
        guard words.count >= 2, let status = Int(words[1]) else { return nil }
        self.init(status: status, headers: [], httpVersion: String(words[0]))
    }
}

extension Substring {
    fileprivate func trimmingWhitespace() -> Substring {
        var text = self
        while let first = text.first, first == " " || first == "\t" { text.removeFirst() }
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        return text
    }
}
