/// What a server answers.
public enum SFTPAnswer: Hashable, Sendable {
    /// It was done, or why not, with the server's words.
    case status(SFTPStatus, String)
    /// An open file or folder.
    case handle(SFTPHandle)
    /// Bytes that were read.
    case data([UInt8])
    /// Entries of a folder, or one path.
    case names([SFTPEntry])
    /// Attributes.
    case attributes(SFTPAttributes)
    /// The answer to an extension, to be read by who asked.
    case extended([UInt8])

    /// An answer and the number of its request; `packet` begins after the length.
    static func decode(_ packet: ArraySlice<UInt8>) throws(SFTPError) -> (id: UInt32, SFTPAnswer) {
        var reader = PacketReader(packet)
        let type = try reader.byte()
        let id = try reader.number()
        return (id, try decode(type, &reader))
    }

    private static func decode(
        _ type: UInt8,
        _ reader: inout PacketReader
    ) throws(SFTPError) -> SFTPAnswer {
        switch type {
        case 101:
            let status = SFTPStatus(rawValue: try reader.number())
            // Some old servers send no words.
            return .status(status, reader.remaining > 0 ? try reader.text() : "")
        case 102: return .handle(SFTPHandle(bytes: Array(try reader.string())))
        case 103: return .data(Array(try reader.string()))
        case 104:
            var entries: [SFTPEntry] = []
            for _ in 0..<(try reader.number()) {
                let name = try SFTPPath(try reader.string())
                _ = try reader.string()
                entries.append(SFTPEntry(name: name, attributes: try SFTPAttributes(from: &reader)))
            }
            return .names(entries)
        case 105: return .attributes(try SFTPAttributes(from: &reader))
        case 201:
            var rest: [UInt8] = []
            while reader.remaining > 0 { rest.append(try reader.byte()) }
            return .extended(rest)
        default: throw SFTPError(.malformedAnswer, detail: "a packet of type \(type)")
        }
    }
}
