import Foundation

/// The folders and files that programs watch with inotify or fanotify, as far as this user may see
/// (`man 5 proc`, /proc/PID/fdinfo).
enum KernelWatchers {
    /// The inodes of a device that are watched.
    ///
    /// - Parameter device: as `major:minor`.
    /// - Returns: their inodes; none where nothing can be seen.
    static func inodes(on device: String) -> Set<UInt64> {
        let parts = device.split(separator: ":").compactMap { UInt64($0) }
        guard parts.count == 2 else { return [] }
        let number = parts[0] << 20 | parts[1]
        let files = FileManager.default
        var inodes: Set<UInt64> = []
        for process in (try? files.contentsOfDirectory(atPath: "/proc")) ?? []
        where process.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")) ~= $0 }) {
            let folder = "/proc/\(process)/fd"
            for descriptor in (try? files.contentsOfDirectory(atPath: folder)) ?? [] {
                // What a descriptor of a file leads to is not looked at.
                guard let target = target("\(folder)/\(descriptor)"), target.contains("notify")
                else {
                    continue
                }
                let info = text("/proc/\(process)/fdinfo/\(descriptor)")
                inodes.formUnion(self.inodes(in: info, on: number))
            }
        }
        return inodes
    }

    /// The inodes of a device that lines of fdinfo name, both in hexadecimal.
    static func inodes(in text: String, on device: UInt64) -> Set<UInt64> {
        var inodes: Set<UInt64> = []
        for line in text.split(separator: "\n") where line.contains("notify ") {
            var inode: UInt64?
            var isOfDevice = false
            for word in line.split(separator: " ") {
                if word.hasPrefix("ino:") { inode = UInt64(word.dropFirst(4), radix: 16) }
                if word.hasPrefix("sdev:") {
                    isOfDevice = UInt64(word.dropFirst(5), radix: 16) == device
                }
            }
            if let inode, isOfDevice { inodes.insert(inode) }
        }
        return inodes
    }

    /// What a link of /proc says, which is not followed: `anon_inode:inotify`, for one.
    private static func target(_ path: String) -> String? {
        var bytes = [CChar](repeating: 0, count: 64)
        let count = unsafe readlink(path, &bytes, bytes.count)
        guard count > 0 else { return nil }
        let text = String(decoding: bytes.prefix(count).map(UInt8.init(bitPattern:)), as: UTF8.self)
        return text.hasPrefix("anon_inode:") ? text : nil
    }

    /// What a file of /proc holds, which has no size that could be asked for; empty when it is gone.
    private static func text(_ path: String) -> String {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        var content: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 16_384)
        // A watch is a line of some hundred bytes: more than anybody has.
        while content.count < 64 << 20 {
            let count = unsafe read(descriptor, &part, part.count)
            guard count > 0 else { break }
            content += part.prefix(count)
        }
        return String(decoding: content, as: UTF8.self)
    }
}
