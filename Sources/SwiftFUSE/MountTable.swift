import Glibc

/// What this process's mount namespace has mounted (`man 5 proc`, /proc/PID/mountinfo).
public struct MountTable: Sendable {
    /// One mount.
    public struct Row: Hashable, Sendable {
        /// Where it is mounted, without symbolic links.
        public var path: String
        /// The type, for FUSE `fuse` or `fuse.<subtype>`.
        public var type: String
        /// What is mounted.
        public var source: String
        /// The device, as `major:minor`; the minor number names the connection of a FUSE mount.
        public var device: String

        /// Whether a FUSE daemon serves it.
        public var isFUSE: Bool { type == "fuse" || type.hasPrefix("fuse.") }
    }

    /// The mounts in the order in which they were made.
    public var rows: [Row]

    /// Reads the table as it is now.
    ///
    /// - Throws: what `open` or `read` of /proc/self/mountinfo says.
    public static func current() throws(Errno) -> MountTable {
        MountTable(text: String(decoding: try readFile("/proc/self/mountinfo"), as: UTF8.self))
    }

    /// Reads lines of mountinfo; those that are not such are left out.
    init(text: String) {
        rows = text.split(separator: "\n").compactMap { line in
            let fields = line.split(separator: " ")
            guard let dash = fields.firstIndex(of: "-"), dash >= 6, dash + 2 < fields.count else {
                return nil
            }
            return Row(
                path: Self.unescaped(fields[4]),
                type: String(fields[dash + 1]),
                source: Self.unescaped(fields[dash + 2]),
                device: String(fields[2])
            )
        }
    }

    /// The uppermost mount at exactly this path.
    public func mount(at path: String) -> Row? { rows.last { $0.path == path } }

    /// Space, tab, newline and backslash stand as three octal digits after a backslash.
    private static func unescaped(_ field: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = Array(field.utf8)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "\\"), rest.count >= 3,
                let code = UInt8(String(decoding: rest.prefix(3), as: UTF8.self), radix: 8)
            {
                bytes.append(code)
                rest = rest.dropFirst(3)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func readFile(_ path: String) throws(Errno) -> [UInt8] {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .current }
        defer { close(descriptor) }
        var content: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = unsafe part.withUnsafeMutableBytes { buffer in
                unsafe read(descriptor, buffer.baseAddress, buffer.count)
            }
            if count < 0 { throw .current }
            if count == 0 { return content }
            content += part.prefix(count)
        }
    }
}
