import Glibc

/// A port of loopback for a server that a test starts; no other program gets it until this goes.
///
/// The kernel gives out no port that a socket is bound to. A server may listen there all the same, since
/// both have SO_REUSEADDR and this one never listens (`man 7 ip`): each server sets it, to start anew where
/// one has just ended. Until it listens, connections are refused.
public final class HeldPort: Sendable {
    /// The port's number.
    public let number: UInt16
    private let descriptor: CInt

    /// Holds a port of the kernel's choice, or the one wished for.
    public init(_ wish: UInt16 = 0) throws(NoPort) {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw NoPort() }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = wish.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = descriptor
        let isBound = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                unsafe bind(descriptor, generic, length) == 0
                    && getsockname(descriptor, generic, &length) == 0
            }
        }
        number = UInt16(bigEndian: address.sin_port)
        // Not before: two that have it are bound to one port.
        var yes: CInt = 1
        let size = socklen_t(MemoryLayout<CInt>.size)
        guard isBound, unsafe setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, size) == 0
        else {
            close(descriptor)
            throw NoPort()
        }
    }

    deinit { close(descriptor) }

    /// Holds a port and the one that lies so many above it.
    public static func pair(apart: UInt16) throws(NoPort) -> (HeldPort, HeldPort) {
        for _ in 0..<1000 {
            let low = try HeldPort()
            let (number, isBeyond) = low.number.addingReportingOverflow(apart)
            if !isBeyond, let high = try? HeldPort(number) { return (low, high) }
        }
        throw NoPort()
    }

    /// No port can be held.
    public struct NoPort: Error {}
}
