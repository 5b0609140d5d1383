import Foundation
public import OortModel

/// Programs that show folders with small pictures of the items in them, and those that make such pictures
/// for them.
public struct PictureViewers: Hashable, Sendable {
    /// The names of their processes, as `/proc/PID/comm` has them: 15 bytes at most, longer ones cut.
    public var programs: Set<String>

    /// The programs of the usual desktops.
    public init() { programs = Self.usual }

    /// File managers, and makers of thumbnails that are asked by them.
    public static let usual: Set<String> = Set(
        [
            "nautilus", "nemo", "nemo-desktop", "caja", "Thunar", "thunar", "dolphin", "pcmanfm",
            "pcmanfm-qt", "io.elementary.files",
            "tumblerd", "gdk-pixbuf-thumbnailer", "glycin-thumbnailer", "totem-video-thumbnailer",
            "evince-thumbnailer", "papers-thumbnailer", "ffmpegthumbnailer",
            "gsf-office-thumbnailer",
        ].map(Onlookers.name)
    )

    /// Whether a thread is one of such a program's, by the name of its process.
    public func include(thread: Int32) -> Bool {
        !programs.isEmpty && ProcessName.of(thread: thread).map(programs.contains) ?? false
    }
}

/// Brings the services' small pictures to where such programs look for them.
public protocol PictureBringer: Sendable {
    /// A thread of some program began to list a folder. Returns at once, from any thread.
    func isListed(_ folder: Inode, by thread: Int32)

    /// A maker of thumbnails was refused a file. Returns at once, from any thread.
    func isRefused(_ file: Inode)
}

/// The name of a process, as the kernel cuts it.
enum ProcessName {
    /// The name of the process that a thread belongs to, since threads have names of their own; nil for
    /// none.
    ///
    /// A program that lists a folder or opens a file waits for this: it reads no more than it needs.
    static func of(thread: Int32) -> String? {
        guard thread > 0, let status = beginning(of: "/proc/\(thread)/status"),
            let process = process(in: status),
            var name = beginning(of: "/proc/\(process)/comm")
        else { return nil }
        if name.last == UInt8(ascii: "\n") { name.removeLast() }
        return String(decoding: name, as: UTF8.self)
    }

    /// The process that a thread's status names: it stands in one of the first lines (`man 5 proc`).
    private static func process(in status: [UInt8]) -> Int32? {
        let line = status.split(separator: UInt8(ascii: "\n"), maxSplits: 8)
            .first { $0.starts(with: "Tgid:".utf8) }
        return line.flatMap { Int32(String(decoding: $0.dropFirst(6), as: UTF8.self)) }
    }

    /// The first bytes of a small file; nil where it cannot be read.
    private static func beginning(of path: String) -> [UInt8]? {
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: 256) { buffer, count in
            count = max(0, unsafe read(file, buffer.baseAddress, buffer.count))
        }
        return bytes.isEmpty ? nil : bytes
    }
}
