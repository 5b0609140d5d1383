/// What a server answered to one command: a code of three digits and lines of text.
struct FTPReply: Hashable, Sendable {
    /// The code, 100 to 599.
    var code: Int
    /// The lines' bytes, without the code on the first and the last, and without line ends.
    var lines: [[UInt8]]

    /// Whether it was done.
    var isGood: Bool { (200..<400).contains(code) }

    /// The words of the last line, for people and for the log.
    var words: String {
        let text = String(decoding: lines.last ?? [], as: UTF8.self)
        return "\(code) \(text.unicodeScalars.prefix(300).map(String.init).joined())"
    }
}

/// Puts a server's replies together from the lines of the control connection (RFC 959, 4.2).
struct FTPReplies: Sendable {
    /// Those that are complete.
    private(set) var all: [FTPReply] = []
    /// Whether there was more than any server has to say.
    private(set) var isTooMuch = false
    private var open: FTPReply?
    private var size = 0

    /// The most bytes of replies to one transfer that are kept.
    private static let most = 4 << 20

    /// Takes the next line, with its end.
    mutating func take(line: some Collection<UInt8>) {
        size += line.count
        guard size <= Self.most else {
            isTooMuch = true
            return
        }
        var line = Array(line)
        while let last = line.last, last == 0x0A || last == 0x0D { line.removeLast() }
        let code = Self.code(line)
        if var reply = open {
            if let code, code == reply.code, line.count == 3 || line[3] == 0x20 {
                reply.lines.append(Array(line.dropFirst(4)))
                all.append(reply)
                open = nil
            } else {
                reply.lines.append(line)
                open = reply
            }
            return
        }
        guard let code else { return }
        let reply = FTPReply(code: code, lines: [Array(line.dropFirst(4))])
        if line.count > 3, line[3] == UInt8(ascii: "-") { open = reply } else { all.append(reply) }
    }

    private static func code(_ line: [UInt8]) -> Int? {
        guard line.count >= 3, line.prefix(3).allSatisfy({ (0x30...0x39).contains($0) }),
            (0x31...0x35).contains(line[0])
        else { return nil }
        return line.prefix(3).reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }
}
