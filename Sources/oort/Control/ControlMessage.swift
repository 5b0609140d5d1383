import FlyingSocks
import Foundation

/// One request as it came over the control socket, within limits that no client of ours comes near.
struct ControlMessage: Sendable {
    /// `GET` or `POST`, or whatever else was sent.
    let method: String
    /// The path, without a query.
    let path: String
    /// The whole body.
    let body: Data

    /// Whether it is for a client that waits for bytes: without that client they are not needed.
    var endsWithClient: Bool {
        ["/versions/read", "/versions/restore", "/watch"].contains(path)
    }

    /// Bytes of the request line and the header fields together.
    private static let longestHead = 16 << 10
    /// Bytes of a body.
    private static let longestBody = 1 << 20

    /// Reads one request.
    ///
    /// - Throws: `ControlRefusal` for something that is no request, or too long; `SocketError` when the
    ///   client disconnects.
    static func read(from socket: AsyncSocket) async throws -> ControlMessage {
        var bytes: [UInt8] = []
        var end: Int?
        while end == nil {
            guard bytes.count < longestHead else {
                throw ControlRefusal(431, "The request's header is longer than 16 KiB.")
            }
            // The end may lie across the border of two parts.
            let searched = max(0, bytes.count - 3)
            bytes += try await socket.read(atMost: 4096)
            end = endOfHead(bytes, from: searched)
        }
        let head = bytes.prefix(end ?? 0).split(separator: UInt8(ascii: "\n")).map { line in
            line.last == UInt8(ascii: "\r") ? line.dropLast() : line
        }
        let words = (head.first ?? []).split(separator: UInt8(ascii: " ")).map {
            String(decoding: $0, as: UTF8.self)
        }
        guard words.count == 3, words[2].hasPrefix("HTTP/1.") else {
            throw ControlRefusal(400, "This is no HTTP/1.1 request.")
        }
        let length = try bodyLength(head.dropFirst())
        var body = Data(bytes.dropFirst(end ?? 0).prefix(length))
        while body.count < length {
            body += try await socket.read(atMost: length - body.count)
        }
        let path = words[1].utf8.prefix { $0 != UInt8(ascii: "?") }
        return ControlMessage(method: words[0], path: String(Substring(path)), body: body)
    }

    /// Where the empty line ends.
    static func endOfHead(_ bytes: [UInt8], from start: Int) -> Int? {
        let (feed, back) = (UInt8(ascii: "\n"), UInt8(ascii: "\r"))
        for index in start..<bytes.count where bytes[index] == feed {
            let rest = bytes[(index + 1)...].prefix(2)
            if rest.first == feed { return index + 2 }
            if rest.elementsEqual([back, feed]) { return index + 3 }
        }
        return nil
    }

    /// The length that a body has by the header fields.
    ///
    /// - Throws: `ControlRefusal` for what is no length, and above the limit.
    static func bodyLength(_ fields: ArraySlice<ArraySlice<UInt8>>) throws -> Int {
        var length: Int?
        for field in fields {
            let parts = field.split(separator: UInt8(ascii: ":"), maxSplits: 1)
            guard parts.count == 2 else { continue }
            let name = String(decoding: parts[0], as: UTF8.self).lowercased()
            let value = String(decoding: parts[1], as: UTF8.self)
                .trimmingCharacters(in: .whitespaces)
            switch name {
            case "content-length":
                let isNumber =
                    !value.isEmpty
                    && value.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")) ~= $0 }
                guard isNumber, length == nil else {
                    throw ControlRefusal(400, "The request's Content-Length is not one number.")
                }
                guard let number = Int(value), number <= longestBody else {
                    throw ControlRefusal(413, "The request's body is longer than 1 MiB.")
                }
                length = number
            case "transfer-encoding":
                throw ControlRefusal(411, "A request's body needs a Content-Length.")
            default: continue
            }
        }
        return length ?? 0
    }
}

/// Why a request is not carried out, as an HTTP status and words.
struct ControlRefusal: Error {
    /// The HTTP status.
    let status: Int
    /// What is wrong with the request.
    let failure: Failure

    init(_ status: Int, _ words: String, advice: String? = nil) {
        self.init(status, Failure(words, advice: advice))
    }

    init(_ status: Int, _ failure: Failure) {
        self.status = status
        self.failure = failure
    }
}

/// What is answered to a request.
struct ControlAnswer: Sendable {
    /// The part after the header fields.
    enum Body: Sendable {
        case whole(Data)
        /// Lines of JSON, each sent when it is there by what the closure is given.
        case lines(@Sendable ((Data) async throws -> Void) async throws -> Void)
    }

    /// The HTTP status.
    let status: Int
    /// The media type.
    let type: String
    /// The part after the header fields.
    let body: Body

    /// A value as JSON.
    static func json(_ value: some Encodable, status: Int = 200) throws -> ControlAnswer {
        ControlAnswer(
            status: status,
            type: "application/json",
            body: .whole(try ControlCoding.encode(value))
        )
    }

    /// Values as lines of JSON, each when it is there.
    static func lines(_ values: AsyncStream<some Encodable & Sendable>) -> ControlAnswer {
        ControlAnswer(
            status: 200,
            type: "application/x-ndjson",
            body: .lines { send in
                for await value in values { try await send(try ControlCoding.encode(value)) }
            }
        )
    }

    /// Why nothing was done.
    static func refusal(_ refusal: ControlRefusal) throws -> ControlAnswer {
        let failure = refusal.failure
        return try json(
            ControlFailure(message: failure.message, advice: failure.advice),
            status: refusal.status
        )
    }

    /// Sends it, to the last line.
    ///
    /// - Throws: `SocketError` when the client goes away.
    func send(to socket: AsyncSocket) async throws {
        let head = "HTTP/1.1 \(status) \(reason)\r\nContent-Type: \(type)\r\nConnection: close\r\n"
        switch body {
        case .whole(let data):
            try await socket.write(Data("\(head)Content-Length: \(data.count)\r\n\r\n".utf8) + data)
        case .lines(let each):
            try await socket.write(Data("\(head)Transfer-Encoding: chunked\r\n\r\n".utf8))
            try await each { data in
                let line = data + [UInt8(ascii: "\n")]
                let size = String(line.count, radix: 16)
                try await socket.write(Data("\(size)\r\n".utf8) + line + Data("\r\n".utf8))
            }
            try await socket.write(Data("0\r\n\r\n".utf8))
        }
    }

    private var reason: String {
        switch status {
        case 200: "OK"
        case 404: "Not Found"
        case 409: "Conflict"
        case 500: "Internal Server Error"
        default: "Refused"
        }
    }
}
