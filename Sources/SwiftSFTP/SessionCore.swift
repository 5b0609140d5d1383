import DequeModule
import Foundation
import Synchronization
import SystemPackage

/// The requests in flight of a session, and the thread that carries its packets.
final class SessionCore: Sendable {
    private struct State {
        var lastID: UInt32 = 0
        var waiting: [UInt32: Flight] = [:]
        /// How many of them may take long.
        var longOnes = 0
        var outbox: Deque<(id: UInt32?, packet: [UInt8])> = []
        /// Handles that the server keeps, or is asked for.
        var handles = 0
        /// How many there may be before the opening of a folder waits; nil for any number.
        var mostHandles: Int?
        /// Openings of folders that wait for a handle to be closed.
        var held: Deque<(id: UInt32, packet: [UInt8])> = []
        /// Why the session is over; from then on nothing is taken.
        var end: SFTPError?
        var isWoken = false

        var hasHandle: Bool { mostHandles.map { handles < $0 } ?? true }

        /// Lets the openings go that have waited for a handle.
        mutating func releaseHeld() {
            while hasHandle, let next = held.popFirst() {
                handles += 1
                outbox.append(next)
            }
        }
    }

    /// A request without an answer yet.
    private struct Flight {
        let answer: SFTPPendingAnswer
        let use: SFTPRequest.HandleUse?
        let mayTakeLong: Bool
        /// Whether bytes of it have left.
        var hasLeft = false
    }

    private let state = Mutex(State())
    private let transport: SFTPTransport
    private let silence: Duration
    private let wakeReader: FileDescriptor
    private let wakeWriter: FileDescriptor
    /// The server's greeting.
    let hello: SFTPPendingAnswer
    private let preambleText = Mutex("")

    /// Takes over the transport's descriptors; `silence` is as in `SFTPSession.open`.
    init(_ transport: SFTPTransport, silence: Duration) throws(SFTPError) {
        self.transport = transport
        self.silence = silence
        hello = SFTPPendingAnswer(abandon: { _ in })
        do {
            (wakeReader, wakeWriter) = try FileDescriptor.pipe()
            for descriptor in [wakeReader, wakeWriter, transport.input, transport.output] {
                try descriptor.setNonblocking()
            }
        } catch {
            throw SFTPError(
                .connectionLost(mayHaveBeenDone: false),
                detail: "no descriptors for a session: \(error)"
            )
        }
    }

    /// What the login shell printed before the greeting.
    var preamble: String { preambleText.withLock(\.self) }

    /// Starts the thread, which keeps the core alive until the session is over; the greeting of
    /// version 3 goes first.
    func start() {
        var greeting = PacketWriter()
        greeting.put(string: [1, 0, 0, 0, 3])
        state.withLock { $0.outbox.append((nil, greeting.bytes)) }
        let thread = Thread { self.carry() }
        thread.name = "sftp"
        thread.start()
    }

    /// Keeps within the handles that the server allows: the opening of a folder waits for one.
    ///
    /// A file's does not, so that no operation that has one file open waits for itself, or for another like
    /// it; some handles are left for files.
    func limitHandles(to most: Int) {
        state.withLock { $0.mostHandles = max(1, most - min(most / 4, 16)) }
    }

    /// Puts a request behind those that were given before it.
    func send(_ request: SFTPRequest) -> SFTPPendingAnswer {
        let answer = SFTPPendingAnswer { [weak self] handle in _ = self?.send(.close(handle)) }
        let end: SFTPError? = state.withLock { state in
            if let end = state.end { return end }
            repeat { state.lastID &+= 1 } while state.waiting[state.lastID] != nil
            let id = state.lastID
            let use = request.handleUse
            let flight = Flight(answer: answer, use: use, mayTakeLong: request.mayTakeLong)
            state.waiting[id] = flight
            if flight.mayTakeLong { state.longOnes += 1 }
            if use == .opensFolder, !state.hasHandle {
                state.held.append((id, request.packet(id: id)))
                return nil
            }
            if use?.opens == true { state.handles += 1 }
            state.outbox.append((id, request.packet(id: id)))
            wake(&state)
            return nil
        }
        if let end { answer.deliver(.failure(SFTPError(.notSent, detail: end.detail))) }
        return answer
    }

    /// Ends the session: what has no answer yet fails.
    func stop(_ reason: SFTPError) {
        state.withLock { state in
            state.end = state.end ?? reason
            wake(&state)
        }
    }

    /// Interrupts the thread's waiting, once until it looked.
    private func wake(_ state: inout State) {
        guard !state.isWoken else { return }
        state.isWoken = true
        // A full pipe wakes, too; a closed one has no thread to wake.
        _ = try? wakeWriter.writeAll([0])
    }

    // MARK: On the thread

    private func carry() {
        SFTPTransport.blockBrokenPipeSignal()
        var stream = PacketStream()
        var outgoing: (id: UInt32?, bytes: ArraySlice<UInt8>)?
        var hasGreeting = false
        let room = 256 << 10
        var buffer = [UInt8](repeating: 0, count: room)
        var end: SFTPError?
        // Whether the server no longer reads what is sent: its earlier answers are still read.
        var isDeaf = false
        var quiet = Quiet()
        while end == nil {
            let patience: Duration?
            (end, patience) = state.withLock { state in
                if outgoing == nil, !isDeaf, let next = state.outbox.popFirst() {
                    outgoing = (next.id, next.packet[...])
                }
                return (state.end, self.patience(state))
            }
            guard end == nil else { break }
            let left = quiet.left(of: patience)
            if let left, left <= .zero {
                end = SFTPError(
                    .connectionLost(mayHaveBeenDone: true),
                    detail: "the server has not answered for \(silence.components.seconds) s"
                )
                break
            }
            do {
                let ready =
                    isDeaf
                    ? SFTPTransport.Readiness(mayRead: true)
                    : try transport.wait(
                        wake: wakeReader,
                        toWrite: outgoing != nil,
                        atMost: left
                    )
                if ready.isWoken { drainWakes() }
                if ready.mayWrite, let packet = outgoing {
                    do {
                        let count = try transport.write(packet.bytes)
                        if count > 0, let id = packet.id { noteLeft(id) }
                        if count > 0 { quiet.ends() }
                        let rest = packet.bytes.dropFirst(count)
                        outgoing = rest.isEmpty ? nil : (packet.id, rest)
                    } catch Errno.brokenPipe { isDeaf = true }
                }
                if ready.mayRead {
                    let count = try transport.read(into: &buffer)
                    if count > 0 {
                        stream.append(buffer[..<count])
                        quiet.ends()
                    }
                    if count == 0 || isDeaf && count < 0 { end = ended(stream) }
                    while let packet = try stream.next() {
                        if hasGreeting {
                            try take(packet)
                        } else {
                            hasGreeting = true
                            preambleText.withLock { $0 = stream.preamble }
                            hello.deliver(.success(.extended(Array(packet.dropFirst(5)))))
                        }
                    }
                }
            } catch let error as SFTPError {
                end = error
            } catch {
                end = SFTPError(.connectionLost(mayHaveBeenDone: true), detail: "\(error)")
            }
        }
        finish(end ?? SFTPError(.notSent, detail: "the session was ended"))
    }

    /// How long the server may keep still; nil where it owes no answer.
    private func patience(_ state: State) -> Duration? {
        if state.waiting.isEmpty { return nil }
        return state.longOnes > 0 ? silence * 100 : silence
    }

    private func ended(_ stream: PacketStream) -> SFTPError {
        let said = stream.text.prefix(200)
        return SFTPError(
            .connectionLost(mayHaveBeenDone: true),
            detail: said.isEmpty ? "the server ended the connection" : "the server said: \(said)"
        )
    }

    private func take(_ packet: ArraySlice<UInt8>) throws(SFTPError) {
        let (id, answer) = try SFTPAnswer.decode(packet)
        let flight = state.withLock { state in
            let flight = state.waiting.removeValue(forKey: id)
            if flight?.mayTakeLong == true { state.longOnes -= 1 }
            var keepsHandle = false
            if case .handle = answer { keepsHandle = true }
            if let use = flight?.use, !use.opens || !keepsHandle {
                state.handles -= 1
                state.releaseHeld()
            }
            return flight
        }
        guard let flight else {
            throw SFTPError(.malformedAnswer, detail: "an answer that nothing was asked for")
        }
        flight.answer.deliver(.success(answer))
    }

    private func noteLeft(_ id: UInt32) {
        state.withLock { $0.waiting[id]?.hasLeft = true }
    }

    private func drainWakes() {
        var bytes = [UInt8](repeating: 0, count: 64)
        _ = try? transport.read(from: wakeReader, into: &bytes)
        // Only now: a caller that gave a request before this has written no byte, and the thread looks
        // next.
        state.withLock { $0.isWoken = false }
    }

    private func finish(_ end: SFTPError) {
        let waiting = state.withLock { state in
            state.end = state.end ?? end
            defer { state.waiting = [:] }
            (state.outbox, state.held) = ([], [])
            return state.waiting
        }
        transport.close()
        for flight in waiting.values {
            let isLost = SFTPError.Kind.connectionLost(mayHaveBeenDone: flight.hasLeft)
            let kind = end.kind == .malformedAnswer && flight.hasLeft ? end.kind : isLost
            flight.answer.deliver(.failure(SFTPError(kind, detail: end.detail)))
        }
        hello.deliver(.failure(end))
        // Under the lock, so that no wake-up goes to a descriptor that is another one's by then.
        state.withLock { state in
            state.isWoken = true
            try? wakeReader.close()
            try? wakeWriter.close()
        }
    }
}

/// Since when a server that owes answers has kept still.
private struct Quiet {
    private var since: ContinuousClock.Instant?

    /// A byte came or went.
    mutating func ends() { since = nil }

    /// How much of a patience is left; nil where nothing is owed.
    mutating func left(of patience: Duration?) -> Duration? {
        guard let patience else {
            since = nil
            return nil
        }
        let now = ContinuousClock.now
        let since = since ?? now
        self.since = since
        return patience - (now - since)
    }
}

extension SFTPError.Kind {
    /// Nothing of the request left.
    static let notSent = SFTPError.Kind.connectionLost(mayHaveBeenDone: false)
}
