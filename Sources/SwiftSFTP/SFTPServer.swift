/// An extension of the protocol; its name and version count.
struct SFTPExtension: Hashable, Sendable {
    let name: String
    let version: String

    static let posixRename = SFTPExtension(name: "posix-rename@openssh.com", version: "1")
    static let statvfs = SFTPExtension(name: "statvfs@openssh.com", version: "2")
    static let fsync = SFTPExtension(name: "fsync@openssh.com", version: "1")
    static let setAttributesOfLink = SFTPExtension(name: "lsetstat@openssh.com", version: "1")
    static let limits = SFTPExtension(name: "limits@openssh.com", version: "1")
    static let copyData = SFTPExtension(name: "copy-data", version: "1")
}

/// What a server said of itself, and what it takes.
public struct SFTPServer: Hashable, Sendable {
    /// The extensions that it offers, by name, with their versions.
    public let extensions: [String: String]
    /// The most bytes that it gives for one read.
    public internal(set) var largestRead: Int
    /// The most bytes that it takes in one write.
    public internal(set) var largestWrite: Int
    /// The most handles at once; nil where it names no limit.
    public internal(set) var mostHandles: Int?
    /// What the login shell printed before the protocol began.
    public let preamble: String

    /// Bytes that every server must take in one read or write (the draft's section 3).
    static let guaranteedBytes = 32_768

    init(extensions: [String: String], preamble: String) {
        self.extensions = extensions
        self.preamble = preamble
        largestRead = Self.guaranteedBytes
        largestWrite = Self.guaranteedBytes
    }

    /// Whether the server offers all that a request needs.
    public func takes(_ request: SFTPRequest) -> Bool {
        request.requiredExtension.map(offers) ?? true
    }

    /// Whether it offers other versions of the protocol too, as ProFTPD's mod_sftp does, and OpenSSH's
    /// server does not.
    public var offersVersions: Bool { extensions["versions"] != nil }

    /// Whether it copies between two open files (`SFTPRequest.copy`).
    public var offersCopies: Bool { offers(.copyData) }

    func offers(_ wanted: SFTPExtension) -> Bool { extensions[wanted.name] == wanted.version }

    /// Takes over the answer to `limits`: the largest packet, read and write, and the most handles;
    /// 0 is no limit.
    mutating func setLimits(_ answer: [UInt8]) throws(SFTPError) {
        var reader = PacketReader(answer[...])
        let packet = try reader.longNumber()
        let read = try reader.longNumber()
        let write = try reader.longNumber()
        let handles = try reader.longNumber()
        // A megabyte is more than the window of an SSH channel makes use of.
        func bytes(_ told: UInt64) -> Int {
            let room = packet == 0 ? UInt64.max : packet - min(packet, 1024)
            let most = min(told == 0 ? UInt64.max : told, room, 1 << 20)
            return max(Self.guaranteedBytes, Int(most))
        }
        largestRead = bytes(read)
        largestWrite = bytes(write)
        mostHandles = handles == 0 ? nil : Int(clamping: handles)
    }
}

/// What the file system of a path holds.
public struct SFTPFileSystem: Hashable, Sendable {
    /// Bytes in all, those included that only root may use.
    public let total: UInt64
    /// Bytes that are free, those included that only root may use.
    public let free: UInt64
    /// Bytes that the login may still use.
    public let available: UInt64
    /// Whether nothing can be written, by whomever.
    public let isReadOnly: Bool
    /// Whether it can hold more files: some file systems hold so many and no more.
    public let takesFiles: Bool
    /// The number of the file system: another one is another disk.
    public let id: UInt64
    /// The most bytes of a name.
    public let longestName: Int

    init(_ answer: [UInt8]) throws(SFTPError) {
        var reader = PacketReader(answer[...])
        var numbers: [UInt64] = []
        for _ in 0..<11 { numbers.append(try reader.longNumber()) }
        let size = numbers[1] == 0 ? numbers[0] : numbers[1]
        func bytes(_ blocks: UInt64) -> UInt64 {
            let (product, overflows) = blocks.multipliedReportingOverflow(by: size)
            return overflows ? .max : product
        }
        total = bytes(numbers[2])
        free = bytes(numbers[3])
        available = bytes(numbers[4])
        // Some file systems count no files: they say that there are 0 of 0.
        takesFiles = numbers[5] == 0 || numbers[7] > 0
        isReadOnly = numbers[9] & 1 != 0
        id = numbers[8]
        longestName = Int(clamping: numbers[10])
    }
}
