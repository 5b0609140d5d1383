import DequeModule

/// How much of one file is in flight: the window of an SSH channel, beyond which more outstanding
/// requests bring nothing (OpenSSH's channels.h: 64 packets of 32 KiB).
private let windowBytes = 2 << 20

/// Reads a range of an open file in order, with as many requests in flight as a channel carries.
public struct SFTPByteReader {
    private struct Piece {
        let offset: UInt64
        let count: Int
        let answer: SFTPPendingAnswer
    }

    private let session: SFTPSession
    private let handle: SFTPHandle
    private var pieces: Deque<Piece> = []
    private var inFlight = 0
    private var next: UInt64
    private let end: UInt64
    /// The file's attributes, asked for behind the last bytes: OpenSSH answers in order; a server that
    /// works side by side may have looked before.
    private var attributes: SFTPPendingAnswer?

    /// A reader of `range`, in bytes from the file's start.
    public init(_ session: SFTPSession, _ handle: SFTPHandle, range: Range<UInt64>) {
        self.session = session
        self.handle = handle
        next = range.lowerBound
        end = range.upperBound
    }

    /// Asks for as much as a channel carries, which `read` does by itself.
    public mutating func begin() {
        while inFlight < windowBytes, next < end {
            let count = Int(min(UInt64(session.server.largestRead), end - next))
            pieces.append(ask(next, count))
            next += UInt64(count)
        }
        if next >= end, attributes == nil { attributes = session.send(.attributesOfHandle(handle)) }
    }

    /// The file's attributes as they were after the last bytes were read.
    public mutating func lastAttributes() async throws(SFTPError) -> SFTPAttributes {
        guard let attributes else { return try await session.attributes(of: handle) }
        return try await attributes.answer().attributes()
    }

    /// The next bytes, at least one; nil at the end of the range or of the file.
    public mutating func read() async throws(SFTPError) -> [UInt8]? {
        begin()
        guard let piece = pieces.popFirst() else { return nil }
        inFlight -= piece.count
        let bytes: [UInt8]
        do throws(SFTPError) {
            bytes = try await piece.answer.answer().data()
        } catch {
            guard error.kind == .status(.endOfFile) else { throw error }
            finish()
            return nil
        }
        guard !bytes.isEmpty, bytes.count <= piece.count else {
            throw SFTPError(.malformedAnswer, detail: "\(bytes.count) bytes for \(piece.count)")
        }
        let missing = piece.count - bytes.count
        if missing > 0 {
            pieces.prepend(ask(piece.offset + UInt64(bytes.count), missing))
            // What was asked for before is not the last word any longer.
            attributes = session.send(.attributesOfHandle(handle))
        }
        return bytes
    }

    private mutating func ask(_ offset: UInt64, _ count: Int) -> Piece {
        inFlight += count
        let request = SFTPRequest.read(handle, at: offset, count: UInt32(clamping: count))
        return Piece(offset: offset, count: count, answer: session.send(request))
    }

    private mutating func finish() {
        pieces = []
        inFlight = 0
        next = end
    }
}

/// Writes an open file from an offset on, with as many requests in flight as a channel carries.
public struct SFTPByteWriter {
    private let session: SFTPSession
    private let handle: SFTPHandle
    private var asked: Deque<(end: UInt64, answer: SFTPPendingAnswer)> = []
    private var next: UInt64
    /// Up to where the server has confirmed all bytes, from the file's start.
    public private(set) var confirmed: UInt64

    /// A writer that begins at an offset in bytes.
    public init(_ session: SFTPSession, _ handle: SFTPHandle, at offset: UInt64) {
        self.session = session
        self.handle = handle
        next = offset
        confirmed = offset
    }

    /// Sends bytes; returns when there is room in the window.
    public mutating func write(_ bytes: some RandomAccessCollection<UInt8>) async throws(SFTPError)
    {
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = rest.prefix(session.server.largestWrite)
            rest = rest.dropFirst(piece.count)
            let answer = session.send(.write(handle, at: next, Array(piece)))
            next += UInt64(piece.count)
            asked.append((next, answer))
            while next - confirmed > UInt64(windowBytes) { try await confirmFirst() }
        }
    }

    /// Waits until the server has confirmed all bytes.
    public mutating func finish() async throws(SFTPError) {
        while !asked.isEmpty { try await confirmFirst() }
    }

    private mutating func confirmFirst() async throws(SFTPError) {
        guard let (end, answer) = asked.popFirst() else { return }
        try await answer.answer()
        confirmed = end
    }
}
