import OortModel

/// A path from the server's root, of bytes that a command of the protocol can hold.
struct FTPPath: Hashable, Sendable {
    /// Begins with a slash, and ends with none but that of the root.
    let bytes: [UInt8]

    private init(bytes: [UInt8]) { self.bytes = bytes }

    /// A path that a server named; nil where it does not begin at the root, or no command can hold it.
    init?(absolute bytes: [UInt8]) {
        guard bytes.first == 0x2F else { return nil }
        let names = bytes.split(separator: 0x2F)
        guard names.allSatisfy({ Self.problem($0) == nil }) else { return nil }
        self.bytes = [0x2F] + names.joined(separator: [0x2F])
    }

    /// The path of what lies in this folder.
    ///
    /// - Throws: `.nameRefused` for a name that no command can hold.
    func appending(_ name: String) throws(ProviderError) -> FTPPath {
        let name = ByteNames.bytes(name)
        if let problem = Self.problem(name[...]) {
            throw ProviderError(.nameRefused, detail: problem)
        }
        return FTPPath(bytes: (bytes == [0x2F] ? [] : bytes) + [0x2F] + name)
    }

    /// What keeps a name's bytes from being in a command; nil where nothing does.
    static func problem(_ name: ArraySlice<UInt8>) -> String? {
        if name.isEmpty || name == [0x2E] || name == [0x2E, 0x2E] {
            return "no file has such a name"
        }
        if name.contains(0x2F) { return "a slash cannot be in a name" }
        if name.contains(where: { $0 == 0x0A || $0 == 0x0D }) {
            return "FTP ends each command with a line break: none can be in a name"
        }
        if name.contains(where: { $0 < 0x20 || $0 == 0x7F }) {
            return "FTP takes no control characters in names"
        }
        // It begins a command of Telnet's, on which FTP lies (RFC 959, 2.3); no UTF-8 has it.
        if name.contains(0xFF) { return "FTP takes no byte FF in names" }
        return nil
    }

    /// The path in a URL, behind the slash that ends the server's part: every byte is written so that
    /// libcurl gives back the same one.
    var encoded: String {
        var text = ""
        for (index, byte) in bytes.enumerated() {
            let isPlain =
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte)
                || (0x61...0x7A).contains(byte) || byte == 0x2F && index > 0
            if isPlain {
                text.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                let digits = String(byte, radix: 16, uppercase: true)
                text += byte < 16 ? "%0\(digits)" : "%\(digits)"
            }
        }
        return text
    }

    /// The path for people.
    var text: String { ByteNames.text(bytes) }
}
