import Foundation
import Glibc

/// What the helper process is asked to do on the mount: a line of JSON on the socket between both.
struct KernelEventOrder: Codable, Hashable, Sendable {
    /// What is done.
    enum Action: String, Codable, Hashable, Sendable {
        /// Looks whether the mount knows the helper.
        case begin
        /// Makes a file, a folder or a link.
        case makeFile, makeFolder, makeLink
        /// Takes a file or an empty folder away.
        case removeFile, removeFolder
        /// Gives a file the modified time that it has.
        case touch
    }

    /// What is done.
    var action: Action
    /// The mount point.
    var mountPoint: String
    /// The mount's device, as `major:minor`.
    var device: String
    /// The names from the mount's top down to the folder.
    var folder: [String]
    /// The folder's inode; 1 is the mount's top.
    var folderInode: UInt64
    /// The name in the folder.
    var name: String
    /// The modified time.
    var seconds: Int64 = 0
    var nanoseconds: Int64 = 0
}

/// What became of it.
struct KernelEventAnswer: Codable, Hashable, Sendable {
    /// The system's error; zero for none.
    var error: Int32
}

/// Lines of JSON on the socket between the mount and its helper; used by one thread.
struct KernelEventLines {
    private var rest: [UInt8] = []
    /// Bytes of a line at most; paths of the deepest folders stay far below.
    private static let longestLine = 1 << 20

    init() {}

    /// Sends a line; false when the other side is gone.
    func send(_ value: some Encodable, _ descriptor: Int32) -> Bool {
        guard var data = try? ControlCoding.encode(value) else { return false }
        data.append(UInt8(ascii: "\n"))
        while !data.isEmpty {
            let count = unsafe data.withUnsafeBytes { bytes in
                unsafe Glibc.send(
                    descriptor,
                    bytes.baseAddress,
                    bytes.count,
                    Int32(MSG_NOSIGNAL)
                )
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            data = data.dropFirst(count)
        }
        return true
    }

    /// The next line; nil when the other side is gone, or says nothing for too long.
    mutating func receive<Value: Decodable>(
        _ type: Value.Type,
        _ descriptor: Int32
    ) -> Value? {
        while true {
            if let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                defer { rest = Array(rest[(end + 1)...]) }
                return try? ControlCoding.decode(type, from: Data(rest[..<end]))
            }
            guard rest.count < Self.longestLine else { return nil }
            var part = [UInt8](repeating: 0, count: 4096)
            let count = unsafe part.withUnsafeMutableBytes { bytes in
                unsafe read(descriptor, bytes.baseAddress, bytes.count)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return nil }
            rest += part.prefix(count)
        }
    }
}
