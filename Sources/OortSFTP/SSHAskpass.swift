import Foundation
import Glibc
import OortModel
import OortTransport

/// The program by which `ssh` asks (`SSH_ASKPASS` in ssh(1)): it is started with the question as its only
/// argument, under a name in the folder of the login's socket, and writes the answer that it gets there.
///
/// It has no secret of its own, and nothing of one is in its arguments or its environment.
public enum SSHAskpass {
    /// The name by which a program knows that it is this one.
    static let name = "oort-askpass"
    /// The name of the socket beside it.
    static let socket = "a"

    /// Where the running program is, or the version by which its file was replaced meanwhile.
    ///
    /// Not /proc/PID/exe, which nobody else may open of a process whose memory is private.
    public static var program: String {
        let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        return (path?.dropping(ending: " (deleted)")).map { String($0) } ?? path ?? ""
    }

    /// Whether this process was started as it.
    public static var isAsked: Bool {
        CommandLine.arguments.count == 2
            && (CommandLine.arguments[0] as NSString).lastPathComponent == name
    }

    /// Asks, and writes the answer to standard output; without one the exit code is 1.
    public static func run() -> Never {
        PrivateMemory.begin()
        let folder = (CommandLine.arguments[0] as NSString).deletingLastPathComponent
        let line = UnixSocket.connect(to: "\(folder)/\(socket)")
        guard line >= 0, UnixSocket.send(Array(CommandLine.arguments[1].utf8), to: line) else {
            exit(1)
        }
        shutdown(line, Int32(SHUT_WR))
        let answer = UnixSocket.receive(from: line, atMost: longestAnswer)
        guard let answer, !answer.isEmpty else { exit(1) }
        let isWritten = UnixSocket.write(answer + [UInt8(ascii: "\n")], to: STDOUT_FILENO)
        exit(isWritten ? 0 : 1)
    }

    /// The longest answer that `ssh` reads is 1,023 bytes.
    public static let longestAnswer = 1000
}

/// The system's calls for sockets with a path.
enum UnixSocket {
    /// Connects; a negative number where that fails.
    static func connect(to path: String) -> Int32 { open(path, listens: false) }

    /// Listens, for who may open the path, which the owner alone may; a negative number where that fails.
    static func listen(at path: String) -> Int32 { open(path, listens: true) }

    private static func open(_ path: String, listens: Bool) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else {
            errno = ENAMETOOLONG
            return -1
        }
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: bytes) }
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = socket(AF_UNIX, kind, 0)
        guard descriptor >= 0 else { return -1 }
        // What is bound has the mode of the socket, so it is its owner's alone from its first moment.
        if listens { _ = fchmod(descriptor, 0o600) }
        let length = socklen_t(MemoryLayout<sockaddr_un>.size)
        var result = unsafe withUnsafePointer(to: address) { address in
            unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                unsafe listens
                    ? bind(descriptor, address, length)
                    : Glibc.connect(descriptor, address, length)
            }
        }
        if listens, result == 0 { result = Glibc.listen(descriptor, 8) }
        guard result == 0 else {
            let error = errno
            close(descriptor)
            errno = error
            return -1
        }
        return descriptor
    }

    /// The process at the other side, where it is the same person's.
    static func peer(of descriptor: Int32) -> pid_t? {
        // `struct ucred` of socket(7): process, user, group.
        var credentials: [UInt32] = [0, 0, 0]
        var length = socklen_t(MemoryLayout<UInt32>.size * 3)
        guard
            unsafe getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0,
            credentials[1] == geteuid()
        else { return nil }
        return pid_t(exactly: credentials[0])
    }

    /// Lets neither reading nor writing last longer.
    static func setPatience(_ seconds: Int, of descriptor: Int32) {
        var limit = timeval(tv_sec: seconds, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            _ = unsafe setsockopt(descriptor, SOL_SOCKET, option, &limit, size)
        }
    }

    /// All that comes until the other side ends; nil where it fails or is too much.
    static func receive(from descriptor: Int32, atMost limit: Int) -> [UInt8]? {
        var all: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = unsafe recv(descriptor, &buffer, buffer.count, 0)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return nil }
            if count == 0 { return all }
            all += buffer[..<count]
            guard all.count <= limit else { return nil }
        }
    }

    /// Sends all; false where nobody takes it.
    static func send(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
        all(of: bytes) { unsafe Glibc.send(descriptor, $0, $0.count, Int32(MSG_NOSIGNAL)) }
    }

    /// Writes all; false where nobody takes it.
    static func write(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
        all(of: bytes) { unsafe Glibc.write(descriptor, $0, $0.count) }
    }

    private static func all(of bytes: [UInt8], _ body: ([UInt8]) -> Int) -> Bool {
        var done = 0
        while done < bytes.count {
            let count = body(Array(bytes[done...]))
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            done += count
        }
        return true
    }
}
