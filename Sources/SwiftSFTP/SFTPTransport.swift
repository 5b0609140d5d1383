import Foundation
public import SystemPackage

/// The descriptors that a session's bytes travel on: two, or one that is both.
///
/// The receiver of a transport owns its descriptors.
public struct SFTPTransport: Sendable {
    /// Where the server's bytes come from: a pipe or a socket.
    public let input: FileDescriptor
    /// Where the server's bytes go to.
    public let output: FileDescriptor

    /// A transport over an end of each of two pipes, or over a socket.
    public init(input: FileDescriptor, output: FileDescriptor) {
        self.input = input
        self.output = output
    }

    struct Readiness {
        var mayRead = false
        var mayWrite = false
        var isWoken = false
    }

    /// Blocks the thread until there is something to do, or for so long; nil is without end.
    func wait(
        wake: FileDescriptor,
        toWrite: Bool,
        atMost limit: Duration?
    ) throws -> Readiness {
        // Rounded up, so that the thread does not look in vain.
        let milliseconds: Int32 =
            limit.map { limit in
                let (seconds, rest) = limit.components
                let whole = min(seconds, 1_000_000) * 1000
                return Int32(clamping: whole + rest / 1_000_000_000_000_000 + 1)
            } ?? -1
        var descriptors = [
            pollfd(fd: input.rawValue, events: Int16(POLLIN), revents: 0),
            pollfd(fd: wake.rawValue, events: Int16(POLLIN), revents: 0),
            pollfd(fd: toWrite ? output.rawValue : -1, events: Int16(POLLOUT), revents: 0),
        ]
        while unsafe poll(&descriptors, nfds_t(descriptors.count), milliseconds) < 0 {
            guard errno == EINTR else { throw Errno(rawValue: errno) }
        }
        return Readiness(
            mayRead: descriptors[0].revents != 0,
            mayWrite: descriptors[2].revents != 0,
            isWoken: descriptors[1].revents != 0
        )
    }

    /// Writes what fits; 0 where nothing does.
    func write(_ bytes: ArraySlice<UInt8>) throws -> Int {
        do {
            return try unsafe bytes.withUnsafeBytes { try unsafe output.write($0) }
        } catch Errno.wouldBlock { return 0 }
    }

    /// Reads what came; 0 at the end, less where nothing came.
    func read(into buffer: inout [UInt8]) throws -> Int { try read(from: input, into: &buffer) }

    func read(from descriptor: FileDescriptor, into buffer: inout [UInt8]) throws -> Int {
        do {
            return try unsafe buffer.withUnsafeMutableBytes { try unsafe descriptor.read(into: $0) }
        } catch Errno.wouldBlock { return -1 }
    }

    func close() {
        try? input.close()
        if output != input { try? output.close() }
    }

    /// A peer that is gone is an error of the write that finds it so, not the process's end.
    static func blockBrokenPipeSignal() {
        var signals = sigset_t()
        unsafe sigemptyset(&signals)
        unsafe sigaddset(&signals, SIGPIPE)
        unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
    }
}

extension FileDescriptor {
    func setNonblocking() throws {
        let flags = fcntl(rawValue, F_GETFL)
        guard flags >= 0, fcntl(rawValue, F_SETFL, flags | O_NONBLOCK) >= 0 else {
            throw Errno(rawValue: errno)
        }
    }
}
