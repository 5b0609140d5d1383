import FlyingSocks
import Foundation

/// Serves the page on 127.0.0.1, one request for each connection.
struct SiteServer: Sendable {
    private let listener: Socket
    /// The port on which it listens.
    let port: UInt16

    /// How long a browser may take for its request.
    private static let patience = Duration.seconds(20)

    /// Takes a port; 0 is one that the kernel chooses.
    ///
    /// - Throws: `Failure` naming the port when another program has it, or when it needs privileges.
    init(port wished: UInt16) throws(Failure) {
        do {
            let socket = try Socket(domain: AF_INET)
            do {
                ControlServer.keepFromChildren(socket)
                // Connections of an earlier run that are not forgotten yet do not keep the port.
                try socket.setValue(true, for: .localAddressReuse)
                try socket.bind(to: try sockaddr_in.inet(ip4: "127.0.0.1", port: wished))
                try socket.listen()
                guard case .ip4(_, let port) = try socket.sockname() else {
                    throw SocketError.unsupportedAddress
                }
                listener = socket
                self.port = port
            } catch {
                try? socket.close()
                throw error
            }
        } catch {
            throw Self.failure(error, port: wished)
        }
    }

    private static func failure(_ error: any Error, port: UInt16) -> Failure {
        if case SocketError.failed(_, let code, _) = error {
            if code == EADDRINUSE {
                return Failure(
                    "Port \(port) is taken by another program.",
                    advice: "Name another one with --port, or none: then a free one is chosen."
                )
            }
            if code == EACCES {
                return Failure(
                    "Port \(port) is for the system's own programs.",
                    advice: "Name one above 1023 with --port."
                )
            }
        }
        return Failure("The page cannot be served: \(error.reason)")
    }

    /// Answers until the task is cancelled.
    func run(
        _ answer: @escaping @Sendable (SiteRequest) async -> SiteAnswer
    ) async throws {
        let pool: some AsyncSocketPool = .ePoll()
        try await pool.prepare()
        let listener = try AsyncSocket(socket: listener, pool: pool)
        defer { try? listener.close() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await pool.run() }
            group.addTask {
                await ControlServer.accept(from: listener) { await serve($0, answer) }
            }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    private func serve(
        _ socket: AsyncSocket,
        _ answer: @Sendable (SiteRequest) async -> SiteAnswer
    ) async {
        guard SocketOwner.isOurs(socket.socket) else {
            let refusal = SiteAnswer.words(
                "This page is for the user who started `oort web` alone.",
                status: 403
            )
            try? await refusal.send(to: socket, withBody: true)
            // Not longer: other programs' connections must not keep out the page's own.
            return await ControlServer.drain(socket, for: .milliseconds(200))
        }
        do {
            let request = try await ControlServer.within(Self.patience) {
                try await SiteRequest.read(from: socket)
            }
            try await answer(request).send(to: socket, withBody: request.method != "HEAD")
        } catch let refusal as ControlRefusal {
            let words = SiteAnswer.words(refusal.failure.message, status: refusal.status)
            try? await words.send(to: socket, withBody: true)
            await ControlServer.drain(socket)
        } catch {
            // The browser went away, or said nothing for too long.
        }
    }
}

/// Whose program is at the other end of a connection of this machine.
///
/// The cookie alone would not do: browsers send cookies of 127.0.0.1 to every port of it, so
/// another user's server could be shown the cookie.
enum SocketOwner {
    /// Whether the other end belongs to the user whose process this is.
    static func isOurs(_ socket: Socket) -> Bool {
        guard case .ip4(let theirs, let theirPort)? = try? socket.remotePeer(),
            case .ip4(let ours, let ourPort)? = try? socket.sockname()
        else { return false }
        // The kernel gives the table in parts: a line may be missed while others come and go.
        for _ in 0..<3 {
            // The second one has those that were made for either version of the protocol.
            for path in ["/proc/net/tcp", "/proc/net/tcp6"] {
                guard let file = FileHandle(forReadingAtPath: path),
                    let data = try? file.readToEnd()
                else { continue }
                let owner = owner(
                    of: (theirs, theirPort),
                    connectedTo: (ours, ourPort),
                    in: String(decoding: data, as: UTF8.self)
                )
                if let owner { return owner == getuid() }
            }
        }
        return false
    }

    /// The user of the socket that has one address and is connected to another; nil where there is none.
    ///
    /// `table` is /proc/net/tcp (`man 5 proc`): a line for each socket with its address, the other one
    /// and, in the eighth column, its user.
    static func owner(
        of one: (address: String, port: UInt16),
        connectedTo other: (address: String, port: UInt16),
        in table: String
    ) -> uid_t? {
        guard let one = entry(one), let other = entry(other) else { return nil }
        for line in table.split(separator: "\n").dropFirst() {
            let columns = line.split(separator: " ")
            guard columns.count > 7,
                (columns[1] == one && columns[2] == other)
                    || (columns[1] == mapped + one && columns[2] == mapped + other)
            else { continue }
            return uid_t(columns[7])
        }
        return nil
    }

    /// What stands before an address of version 4 in one of version 6 (RFC 4291, 2.5.5.2).
    private static let mapped = "0000000000000000FFFF0000"

    /// `127.0.0.1` and `8080` as `0100007F:1F90`: the address as a number of this machine's order.
    private static func entry(_ place: (address: String, port: UInt16)) -> String? {
        let bytes = place.address.split(separator: ".").compactMap { UInt8($0) }
        guard bytes.count == 4 else { return nil }
        // x86 and ARM both have the last byte first.
        let digits = bytes.reversed().map { hex(UInt16($0), 2) }.joined()
        return digits + ":" + hex(place.port, 4)
    }

    private static func hex(_ number: UInt16, _ count: Int) -> String {
        let digits = String(number, radix: 16, uppercase: true)
        return String(repeating: "0", count: count - digits.count) + digits
    }
}
