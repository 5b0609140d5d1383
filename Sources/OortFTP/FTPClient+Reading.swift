public import OortModel
import OortTransport

extension FTPClient {
    /// What is read past the end of a range in place of ending the connection, in bytes.
    private static let tolerableRest: Int64 = 256 << 10

    public func read(
        _ path: RemotePath,
        revision: Revision?,
        range: Range<Int64>
    ) async throws(ProviderError) -> ByteStream {
        guard range.lowerBound >= 0 else {
            throw ProviderError(.badRequest, detail: "a range that begins before the file")
        }
        let own = try await self.path(path)
        let taken = try await heard("\(path)") { _ throws(FTPFailure) in
            try await lines.take(.reading)
        }
        let line = taken ?? lines.main
        let size: Int64
        do throws(ProviderError) {
            size = try await check(path, revision, on: line)
        } catch {
            if let taken { await lines.giveBack(taken, .reading) }
            throw error
        }
        let pipe = FTPPipe()
        let part = range.clamped(to: 0..<max(size, 0))
        // Owned by the stream, which cancels it when it is let go.
        let transfer = Task {
            let result: Result<Void, ProviderError>
            do throws(ProviderError) {
                var last: [UInt8] = []
                if !part.isEmpty {
                    do throws(ProviderError) {
                        last = try await receive(own, path, part, of: size, into: pipe, on: line)
                    } catch {
                        // The reply stands for most things: it may have been moved away meanwhile.
                        if error.kind == .noPermission {
                            _ = try await check(path, revision, size: size, on: line)
                        }
                        throw error
                    }
                }
                // What was written in place meanwhile would be mixed with what was read before.
                _ = try await check(path, revision, size: size, on: line)
                // Who has all bytes waits for no end, and would end the look, and the connection.
                if !last.isEmpty { _ = await pipe.put(last) }
                result = .success(())
            } catch { result = .failure(error) }
            if let taken { await lines.giveBack(taken, .reading) }
            pipe.finish(result)
        }
        let reader = Reader(pipe: pipe, transfer: transfer)
        // A move of the file, or of a folder above, waits until the server has opened it.
        try await pipe.begin()
        let bytes = ByteStream { [meter] () async throws(ProviderError) in
            let bytes = try await reader.pipe.next()
            if let bytes {
                meter.received.add(Int64(bytes.count))
                meter.receivedContent.add(Int64(bytes.count))
            }
            return bytes
        }
        return bandwidth.downward(bytes)
    }

    /// Looks whether a file is what is to be read; its size.
    private func check(
        _ path: RemotePath,
        _ revision: Revision?,
        size: Int64? = nil,
        on line: FTPLine
    ) async throws(ProviderError) -> Int64 {
        guard let found = try await find(path, on: line) else {
            throw ProviderError(.notFound, detail: "\(path) is not there")
        }
        guard let entry = found.entry, entry.kind == .file, let current = entry.size else {
            throw ProviderError(.notAFile, detail: "\(path) is no file")
        }
        guard revision == nil || entry.revision == revision, size == nil || size == current else {
            throw ProviderError(.preconditionFailed, detail: "\(path) was changed")
        }
        return current
    }

    /// Has a part of a file sent into the pipe, all of it or an error, but for the last bytes, which are
    /// returned.
    private func receive(
        _ own: FTPPath,
        _ path: RemotePath,
        _ part: Range<Int64>,
        of size: Int64,
        into pipe: FTPPipe,
        on line: FTPLine
    ) async throws(ProviderError) -> [UInt8] {
        let endsWithFile = size - part.upperBound <= Self.tolerableRest
        return try await heard("\(path)") { password throws(FTPFailure) in
            try await line.run { handle, cancellation throws(FTPFailure) in
                var last: [UInt8] = []
                var left = part.upperBound - part.lowerBound
                var isLetGo = false
                let get = { () throws(FTPFailure) in
                    try unsafe handle.retrieve(
                        own,
                        from: part.lowerBound,
                        password: password,
                        cancellation
                    ) { bytes in
                        if left > 0 {
                            let count = Int(min(left, Int64(bytes.count)))
                            let wanted = unsafe UnsafeRawBufferPointer(rebasing: bytes[..<count])
                            left -= Int64(count)
                            if left == 0 {
                                unsafe last = Array(wanted)
                            } else if unsafe !pipe.give(wanted, unless: { handle.mustEnd }) {
                                isLetGo = true
                                return nil
                            }
                        }
                        return left > 0 || endsWithFile ? bytes.count : nil
                    }
                }
                do throws(FTPFailure) { try again(get) } catch {
                    if isLetGo { throw FTPFailure(.cancelled, "ended") }
                    // The transfer was ended here, with all that was wanted.
                    guard left == 0 else { throw error }
                }
                guard left == 0 else {
                    throw FTPFailure(.endedEarly, "the transfer ended \(left) bytes too early")
                }
                return last
            }
        }
    }
}

/// Ends the transfer when its reader has gone.
private final class Reader: Sendable {
    let pipe: FTPPipe
    private let transfer: Task<Void, Never>

    init(pipe: FTPPipe, transfer: Task<Void, Never>) {
        self.pipe = pipe
        self.transfer = transfer
    }

    deinit {
        pipe.letGo()
        transfer.cancel()
    }
}
