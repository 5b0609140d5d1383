import FlyingFox
import FlyingSocks
import Foundation

/// An answer's body on its way out: in large parts, not faster than the weather allows, and cut
/// where a fault says so.
struct AnswerBytes: AsyncBufferedSequence {
    typealias Element = UInt8

    static let partSize = 256 << 10

    let source: @Sendable (Range<Int64>) -> [UInt8]
    let size: Int64
    let bytesPerSecond: Int64?
    let cutAfter: Int64?

    init(_ body: SimulatorAnswer.Body, bytesPerSecond: Int64?, cutAfter: Int?) {
        switch body {
        case .bytes(let bytes), .chunked(let bytes):
            source = { Array(bytes[Int($0.lowerBound)..<Int($0.upperBound)]) }
            size = Int64(bytes.count)
        case .content(let content, let range):
            source = {
                content.bytes(
                    in: range.lowerBound + $0.lowerBound..<range.lowerBound + $0.upperBound
                )
            }
            size = Int64(range.count)
        }
        self.bytesPerSecond = bytesPerSecond
        self.cutAfter = cutAfter.map(Int64.init)
    }

    func makeAsyncIterator() -> Iterator { Iterator(bytes: self) }

    struct Iterator: AsyncBufferedIteratorProtocol {
        let bytes: AnswerBytes
        var offset: Int64 = 0
        let began = ContinuousClock.now

        init(bytes: AnswerBytes) { self.bytes = bytes }

        mutating func next() async throws -> UInt8? {
            try await nextBuffer(suggested: 1)?.first
        }

        mutating func nextBuffer(suggested count: Int) async throws -> [UInt8]? {
            if let cut = bytes.cutAfter, offset >= cut { throw SimulatorError.cut }
            guard offset < bytes.size else { return nil }
            var end = Swift.min(bytes.size, offset + Int64(Swift.max(1, count)))
            if let cut = bytes.cutAfter { end = Swift.min(end, cut) }
            if let rate = bytes.bytesPerSecond {
                // Small parts, so that a slow line trickles as a real one does; smaller ones at
                // first, so that the first bytes do not wait for many others.
                let part = Swift.min(Swift.max(rate / 2000, offset), rate / 20)
                end = Swift.min(end, offset + Swift.max(1, part))
                try await Task.sleep(
                    until: began + .seconds(Double(end) / Double(Swift.max(1, rate)))
                )
            }
            let part = bytes.source(offset..<end)
            offset = end
            return part
        }
    }
}

/// Cuts the connection before the first byte of an answer: FlyingFox closes the connection when
/// the handler of an upgrade throws, and has no other way to answer nothing.
struct ConnectionCutter: WSHandler {
    func makeFrames(
        for client: AsyncThrowingStream<WSFrame, any Error>
    ) async throws -> AsyncStream<WSFrame> {
        throw SimulatorError.cut
    }
}
