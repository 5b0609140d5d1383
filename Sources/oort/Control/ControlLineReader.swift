import FlyingSocks
import Foundation

/// Reads an answer of the control socket line by line, each as soon as it is there.
///
/// FlyingFox's client hands on what it has read only when it has a buffer full.
struct ControlLineReader: ~Copyable {
    /// What is no answer of a mount's.
    struct NoAnswer: Error {}

    private let socket: AsyncSocket
    private var bytes: ArraySlice<UInt8> = []
    /// Bytes of a header or a line at most.
    private static let longest = 1 << 22

    private init(_ socket: AsyncSocket) { self.socket = socket }

    /// Sends a request; its answer is to be read.
    static func ask(
        _ method: String,
        _ path: String,
        body: Data,
        at address: some SocketAddress
    ) async throws -> ControlLineReader {
        let reader = ControlLineReader(try await AsyncSocket.connected(to: address))
        let head =
            "\(method) \(path) HTTP/1.1\r\nHost: oort\r\nContent-Type: application/json\r\n"
            + "Content-Length: \(body.count)\r\nConnection: close\r\n\r\n"
        try await reader.socket.write(Data(head.utf8) + body)
        return reader
    }

    deinit { try? socket.close() }

    /// Reads the answer to its end; `each` hears of each line of a success.
    ///
    /// - Returns: nil, or the whole answer where it is a refusal.
    mutating func read(each: (Data) throws -> Void) async throws -> Data? {
        let status = try await headLine().split(separator: " ")
        guard status.count >= 2, status[0].hasPrefix("HTTP/1.") else { throw NoAnswer() }
        var length: Int?
        while case let field = try await headLine(), !field.isEmpty {
            let parts = field.split(separator: ":", maxSplits: 1)
            if parts.count == 2, parts[0].lowercased() == "content-length" {
                length = Int(parts[1].trimmingCharacters(in: .whitespaces))
            }
        }
        guard status[1] == "200" else {
            guard let length, (0...Self.longest).contains(length) else { throw NoAnswer() }
            return Data(try await take(length))
        }
        var line = Data()
        while true {
            guard let size = Int(try await headLine(), radix: 16), (0...Self.longest).contains(size)
            else { throw NoAnswer() }
            guard size > 0 else { return nil }
            for byte in try await take(size) {
                guard byte == UInt8(ascii: "\n") else {
                    line.append(byte)
                    continue
                }
                try each(line)
                line = Data()
            }
            guard line.count <= Self.longest, try await headLine().isEmpty else { throw NoAnswer() }
        }
    }

    /// A line up to its CRLF, without that.
    private mutating func headLine() async throws -> String {
        while true {
            if let end = bytes.firstIndex(of: UInt8(ascii: "\n")) {
                let line = bytes[..<end]
                bytes = bytes[(end + 1)...]
                return String(
                    decoding: line.last == UInt8(ascii: "\r") ? line.dropLast() : line,
                    as: UTF8.self
                )
            }
            guard bytes.count < Self.longest else { throw NoAnswer() }
            bytes += try await socket.read(atMost: 4096)
        }
    }

    private mutating func take(_ count: Int) async throws -> ArraySlice<UInt8> {
        while bytes.count < count { bytes += try await socket.read(atMost: 4096) }
        defer { bytes = bytes.dropFirst(count) }
        return bytes.prefix(count)
    }
}
