import Foundation
import OortCatalog
import OortModel

/// Programs that look at files which nobody asked them to open: makers of thumbnails, indexers, virus
/// scanners.
///
/// They are given what is here, and small files; a large one is not downloaded for them.
public struct Onlookers: Hashable, Sendable {
    /// The names of their processes, as `/proc/PID/comm` has them: 15 bytes at most, longer ones cut.
    public var programs: Set<String>
    /// The largest file that is downloaded for them, in bytes.
    public var largestDownload: Int64

    /// The programs of the usual desktops, and files up to 64 KiB.
    public init() {
        programs = Self.usual
        largestDownload = 64 << 10
    }

    /// Makers of thumbnails of GNOME, Xfce and others, the indexers of GNOME, KDE, Recoll and locate, and
    /// ClamAV.
    ///
    /// KDE makes thumbnails in a process that copies files, too: its name is not among them.
    public static let usual: Set<String> = Set(
        [
            "tumblerd", "gdk-pixbuf-thumbnailer", "glycin-image-rs", "glycin-jxl", "glycin-heif",
            "glycin-raw", "totem-video-thumbnailer", "evince-thumbnailer", "papers-thumbnailer",
            "ffmpegthumbnailer", "gnome-thumbnail-font", "gsf-office-thumbnailer",
            "tracker-miner-fs-3", "tracker-extract-3", "tracker-extract", "localsearch-3",
            "localsearch-extractor-3", "baloo_file", "baloo_file_extractor", "recollindex",
            "updatedb", "updatedb.plocate", "clamscan", "clamd", "clamonacc",
        ].map(Self.name)
    )

    /// A program's name as its process has it.
    public static func name(_ program: String) -> String {
        String(decoding: program.utf8.prefix(15), as: UTF8.self)
    }

    /// Whether a thread is one of such a program's, by the name of its process: threads have names of
    /// their own.
    func include(thread: Int32) -> Bool {
        guard thread > 0, !programs.isEmpty, let process = Self.process(of: thread),
            let data = FileManager.default.contents(atPath: "/proc/\(process)/comm")
        else { return false }
        let name = String(decoding: data, as: UTF8.self)
        return programs.contains(name.dropping(ending: "\n").map(String.init) ?? name)
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

extension CloudFileSystem {
    /// Refuses to open for reading what would have to be downloaded for an onlooker.
    ///
    /// The process is looked at only where a download is in question.
    func refuseOnlooker(_ node: Node, _ mode: OpenMode) throws(FileSystemError) {
        guard !mode.writes, !settings.onlookers.programs.isEmpty else { return }
        switch node.kind {
        case .file where node.size > settings.onlookers.largestDownload: break
        // How long an export is nobody knows before it is made.
        case .nativeDocument: break
        default: return
        }
        if case .staged = node.content { return }
        let availability = try availability(of: node)
        guard availability == .online || availability == .partly,
            settings.onlookers.include(thread: mode.thread)
        else { return }
        throw .noPermission
    }
}
