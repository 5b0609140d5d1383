import OortModel

extension Item {
    /// An item from Dropbox's metadata; nil for a deleted one, and for what is not of the protocol.
    ///
    /// Of the path only the last part is exact: `path_display` may have its parents in another
    /// case than they have. Paths are compared as the service compares.
    init?(_ metadata: DropboxWire.Metadata) {
        guard let id = metadata.id, !id.isEmpty, metadata.tag != "deleted",
            let path = RemotePath(dropbox: metadata)
        else { return nil }
        let isFolder = metadata.tag == "folder" || (metadata.tag == nil && metadata.rev == nil)
        let isNative = metadata.is_downloadable == false
        self.init(
            id: ItemID(id),
            kind: isFolder ? .folder : isNative ? .nativeDocument : .file,
            fileName: metadata.name,
            path: path
        )
        if metadata.sharing_info?.read_only == true { permissions = .read }
        // In a shared folder it is not certain who wrote a file's content.
        isOwn = metadata.sharing_info == nil
        isShared = metadata.sharing_info != nil
        guard !isFolder else { return }
        clientModifiedTime = metadata.client_modified.flatMap { Timestamp(rfc3339: $0) }
        serverModifiedTime = metadata.server_modified.flatMap { Timestamp(rfc3339: $0) }
        tag = metadata.content_hash
        guard !isNative else {
            let info = metadata.export_info
            let names = [info?.export_as].compactMap(\.self) + (info?.export_options ?? [])
            var formats: [ExportFormat] = []
            for format in names.compactMap(DropboxExport.format) where !formats.contains(format) {
                formats.append(format)
            }
            exports = formats
            return
        }
        size = metadata.size?.bytes
        rev = metadata.rev.map { Revision($0) }
        contentHash = metadata.content_hash.map {
            ContentHash(algorithm: .dropboxContentHash, value: $0)
        }
        thumbnail = DropboxThumbnails.isPossible(name: metadata.name, size: size ?? 0)
    }

    /// The root, of which Dropbox has no metadata.
    static let dropboxRoot = Item(
        id: DropboxProvider.rootID,
        kind: .folder,
        fileName: "",
        path: .root
    )
}

extension RemotePath {
    /// The path of an entry; nil when it has none (not mounted) or is not a path.
    init?(dropbox metadata: DropboxWire.Metadata) {
        guard let text = metadata.path_display ?? metadata.path_lower,
            let path = text.dropping(beginning: "/"), !metadata.name.isEmpty,
            !metadata.name.has("/")
        else { return nil }
        var parts = path.parts(between: "/").map(String.init)
        guard parts.allSatisfy({ !$0.isEmpty }) else { return nil }
        parts[parts.count - 1] = metadata.name
        self.init(parts)
    }
}

/// Dropbox's names of export formats.
enum DropboxExport {
    private static let known: [(name: String, type: String, fileExtension: String)] = [
        (
            "docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            "docx"
        ),
        ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"),
        (
            "pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation",
            "pptx"
        ),
        ("pdf", "application/pdf", "pdf"),
        ("markdown", "text/markdown", "md"),
        ("html", "text/html", "html"),
        ("plain_text", "text/plain", "txt"),
    ]

    static func format(_ name: String) -> ExportFormat? {
        known.first { $0.name == name }.map {
            ExportFormat(mimeType: $0.type, fileExtension: $0.fileExtension)
        }
    }

    static func name(of format: ExportFormat) -> String? {
        known.first { $0.type == format.mimeType }?.name
    }
}

/// What Dropbox makes pictures of.
enum DropboxThumbnails {
    private static let extensions: Set<String> = [
        "jpg", "jpeg", "png", "tiff", "tif", "gif", "webp", "ppm", "bmp",
    ]

    static func isPossible(name: String, size: Int64) -> Bool {
        guard let (_, ending) = name.cut(atLast: "."), size > 0, size <= 20 << 20 else {
            return false
        }
        return extensions.contains(ending.lowercased())
    }

    /// The smallest size on offer with at least `edge` pixels, or the largest.
    static func size(edge: Int) -> String {
        let sizes = [
            (32, 32), (64, 64), (128, 128), (256, 256), (480, 320), (640, 480), (960, 640),
            (1024, 768), (2048, 1536),
        ]
        let (width, height) = sizes.first { $0.0 >= edge } ?? (2048, 1536)
        return "w\(width)h\(height)"
    }
}
