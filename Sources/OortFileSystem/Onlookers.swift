public import OortCatalog
public import OortModel
import Synchronization

/// Programs that look at files which no person asked them to open: makers of thumbnails, indexers, virus
/// scanners.
///
/// They get files that are here, and small ones; a large file is not downloaded for them.
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
        !programs.isEmpty && ProcessName.of(thread: thread).map(programs.contains) ?? false
    }
}

extension CloudFileSystem {
    /// Whether opening a file for reading is refused, since it would have to be downloaded for an onlooker.
    ///
    /// The process is looked at only where a download is in question.
    func isRefused(_ node: Node, _ mode: OpenMode) throws(FileSystemError) -> Bool {
        guard !mode.writes, !settings.onlookers.programs.isEmpty else { return false }
        return try wouldBeDownloaded(node) && settings.onlookers.include(thread: mode.thread)
    }

    /// Whether opening the file would download it, and it is not small.
    private func wouldBeDownloaded(_ node: Node) throws(FileSystemError) -> Bool {
        switch node.kind {
        case .file where node.size > settings.onlookers.largestDownload: break
        // The length of an export is not known before it is made.
        case .nativeDocument: break
        default: return false
        }
        if case .staged = node.content { return false }
        let availability = try availability(of: node)
        return availability == .online || availability == .partly
    }

    /// Whether a maker of thumbnails would have the file downloaded; false where that is not known.
    public func wouldBeFetched(_ node: Node) -> Bool {
        do throws(FileSystemError) { return try wouldBeDownloaded(node) } catch { return false }
    }

    /// The answer to an onlooker that is refused a file; for a maker of thumbnails, the bringer of the
    /// service's pictures is notified.
    func refuse(_ node: Node, _ mode: OpenMode) -> Outcome<Opened> {
        if let bringer = pictures.withLock({ $0 }),
            settings.pictureViewers.include(thread: mode.thread)
        {
            bringer.isRefused(node.inode)
        }
        return .failure(.noPermission)
    }

    /// Sets what brings small pictures of the items that programs show; nil for nothing.
    public func setPictures(_ bringer: (any PictureBringer)?) {
        pictures.withLock { $0 = bringer }
    }

    public func listingBegins(_ folder: Inode, thread: Int32) {
        guard !folder.isOfMount, let bringer = pictures.withLock({ $0 }) else { return }
        bringer.isListed(folder, by: thread)
    }
}
