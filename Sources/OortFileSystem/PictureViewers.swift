import Foundation
public import OortModel

/// Programs that show folders with small pictures of what is in them, and those that make such pictures
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

/// Whoever brings the services' small pictures to where such programs look for them.
public protocol PictureBringer: Sendable {
    /// A thread of some program began to list a folder. Returns at once, from any thread.
    func isListed(_ folder: Inode, by thread: Int32)

    /// A maker of thumbnails was refused a file. Returns at once, from any thread.
    func isRefused(_ file: Inode)
}

/// The name of a process, as the kernel cuts it.
enum ProcessName {
    /// Of the process that a thread belongs to, since threads have names of their own; nil for none.
    static func of(thread: Int32) -> String? {
        guard thread > 0, let process = process(of: thread),
            let data = FileManager.default.contents(atPath: "/proc/\(process)/comm")
        else { return nil }
        let name = String(decoding: data, as: UTF8.self)
        return name.dropping(ending: "\n").map(String.init) ?? name
    }

    private static func process(of thread: Int32) -> Int32? {
        guard let data = FileManager.default.contents(atPath: "/proc/\(thread)/status") else {
            return nil
        }
        for line in String(decoding: data, as: UTF8.self).parts(between: "\n") {
            guard let rest = line.dropping(beginning: "Tgid:") else { continue }
            return Int32(rest.trimmingCharacters(in: .whitespaces))
        }
        return nil
    }
}
