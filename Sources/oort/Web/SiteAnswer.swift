import FlyingSocks
import Foundation

/// What is answered to a browser.
struct SiteAnswer: Sendable {
    /// The part after the header fields.
    enum Body: Sendable {
        case data(Data)
        /// Bytes of a file, sent as the browser takes them.
        case file(OpenedFile, Range<Int64>)
    }

    /// The HTTP status.
    var status: Int
    /// Header fields beside those that every answer has.
    var fields: [(String, String)]
    /// The part after the header fields.
    var body: Body
    /// What the page may load and do; `SiteAnswer.policy` where nil.
    var policy: String?
    /// Whether a browser may keep it; else it asks again each time.
    var isKept = false

    /// A page may load from here only, run no script but the one that lies here, send forms here only, and
    /// not be framed.
    static let policy =
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; media-src 'self'; "
        + "frame-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
        + "frame-ancestors 'none'"

    /// Bytes that are read from a file at a time.
    private static let part: Int64 = 256 << 10
    /// How long a browser may take nothing: a film that is paused is asked for anew by a range.
    private static let patience = Duration.seconds(300)

    init(status: Int = 200, fields: [(String, String)] = [], body: Body = .data(Data())) {
        self.status = status
        self.fields = fields
        self.body = body
    }

    /// A page.
    static func page(_ html: HTML, status: Int = 200) -> SiteAnswer {
        SiteAnswer(
            status: status,
            fields: [("Content-Type", "text/html; charset=utf-8")],
            body: .data(Data(html.text.utf8))
        )
    }

    /// A sentence of the program's own.
    static func words(_ words: String, status: Int) -> SiteAnswer {
        SiteAnswer(
            status: status,
            fields: [("Content-Type", "text/plain; charset=utf-8")],
            body: .data(Data((TerminalText.lines(words) + "\n").utf8))
        )
    }

    /// What the program has in itself: nothing of anybody's.
    static func part(_ text: String, type: String) -> SiteAnswer {
        SiteAnswer(fields: [("Content-Type", type)], body: .data(Data(text.utf8)))
    }

    /// Another page, asked for by `GET`; `place` is a path here, percent-encoded.
    static func see(_ place: String) -> SiteAnswer {
        SiteAnswer(status: 303, fields: [("Location", place)])
    }

    /// Sends it, to the last byte; without the body for a `HEAD`.
    ///
    /// - Throws: `SocketError` when the browser disconnects, `CancellationError` when it reads nothing.
    func send(to socket: AsyncSocket, withBody: Bool) async throws {
        let length: Int64
        switch body {
        case .data(let data): length = Int64(data.count)
        case .file(_, let range): length = range.upperBound - range.lowerBound
        }
        let common = [
            ("Content-Length", "\(length)"),
            ("Connection", "close"),
            ("Cache-Control", isKept ? "private, max-age=86400" : "no-store"),
            ("Content-Security-Policy", policy ?? Self.policy),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "same-origin"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Cross-Origin-Opener-Policy", "same-origin"),
        ]
        var head = "HTTP/1.1 \(status) \(reason)\r\n"
        for (name, value) in fields + common { head += "\(name): \(value)\r\n" }
        try await write(Data((head + "\r\n").utf8), to: socket)
        guard withBody else { return }
        switch body {
        case .data(let data): try await write(data, to: socket)
        case .file(let file, let range):
            var offset = range.lowerBound
            while offset < range.upperBound {
                let count = min(Self.part, range.upperBound - offset)
                let data = try await file.read(count, at: offset)
                // It became shorter meanwhile: the browser sees that by the length.
                guard !data.isEmpty else { return }
                try await write(data, to: socket)
                offset += Int64(data.count)
            }
        }
    }

    private func write(_ data: Data, to socket: AsyncSocket) async throws {
        try await ControlServer.within(Self.patience) { try await socket.write(data) }
    }

    private var reason: String {
        switch status {
        case 200: "OK"
        case 206: "Partial Content"
        case 303: "See Other"
        case 400: "Bad Request"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 416: "Range Not Satisfiable"
        case 421: "Misdirected Request"
        case 503: "Service Unavailable"
        default: "Refused"
        }
    }
}
