public import OortModel

/// What is looked for.
public struct SearchQuery: Hashable, Sendable {
    /// The words, all of which must be found: in the item's name or description or, but for one of them,
    /// in the names of the folders above it.
    public var words: [String]
    /// The folder below which it must lie; nil for anywhere.
    public var folder: Inode?
    /// What it must be; nil for anything.
    public var kind: SearchKind?
    /// The time since which it was modified.
    public var modifiedSince: Timestamp?
    /// Bytes that it must have more than.
    public var largerThan: Int64?
    /// The most results.
    public var limit: Int

    /// The most words that are looked for at once.
    public static let mostWords = 32

    /// A search for words anywhere.
    public init(words: [String], limit: Int = 100) {
        self.words = words
        self.limit = limit
    }

    /// Whether there is anything in the words that a name could have.
    public var hasWords: Bool { words.contains { SearchTerm($0) != nil } }
}

/// One result of a search.
public struct SearchHit: Hashable, Sendable {
    /// The item.
    public var inode: Inode
    /// The account that it lies in.
    public var account: AccountID
    /// The names from the account's down, as shown.
    public var path: [String]
    /// What it is to the file system.
    public var node: NodeKind
    /// Bytes of content.
    public var size: Int64
    /// When it was modified.
    public var modified: Timestamp
}

/// What a search found.
public struct SearchAnswer: Hashable, Sendable {
    /// The best first.
    public var hits: [SearchHit]
    /// How many names were looked at one by one, since the index does not have them yet.
    public var unindexed: Int
    /// Whether there may be more that fits: there is so much that not all was looked at, or that the
    /// limit cut it off.
    public var isCut: Bool
}

/// What a file is for, by its name's ending or its media type.
public enum SearchKind: String, CaseIterable, Codable, Hashable, Sendable {
    /// A folder.
    case folder
    /// Text, tables, slides, mail, books.
    case document
    /// A picture or drawing.
    case image
    /// A film.
    case video
    /// Music or speech.
    case audio
    /// Files packed into one.
    case archive
    /// Source and configuration.
    case code

    /// What an item of a name, as shown, and of a media type is; nil for what is none of these.
    public static func of(_ node: NodeKind, name: String, type: String?) -> SearchKind? {
        switch node {
        case .folder: return .folder
        case .nativeDocument: return .document
        case .fifo, .socket: return nil
        case .file, .symlink, .shortcut: break
        }
        let parts = name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        if parts.count > 1, let last = parts.last, let ending = String(last) {
            if let kind = kinds[ending.lowercased()] { return kind }
        }
        guard let type = type?.lowercased() else { return nil }
        for (beginning, kind) in types where type.begins(with: beginning) { return kind }
        return nil
    }

    /// The first that a media type begins with.
    private static let types: [(String, SearchKind)] = [
        ("image/", .image), ("video/", .video), ("audio/", .audio), ("text/x-", .code),
        ("application/json", .code), ("application/javascript", .code), ("text/", .document),
        ("application/pdf", .document), ("application/msword", .document),
        ("application/vnd.ms-", .document), ("application/vnd.openxmlformats", .document),
        ("application/vnd.oasis.opendocument", .document), ("application/zip", .archive),
        ("application/x-tar", .archive), ("application/gzip", .archive),
        ("application/x-7z", .archive),
    ]

    private static let kinds: [String: SearchKind] = {
        let endings: [(SearchKind, String)] = [
            (
                .document,
                "pdf doc docx docm dot dotx odt ott rtf txt md markdown rst tex pages wpd xls xlsx xlsm "
                    + "ods csv tsv numbers ppt pptx pptm odp key epub mobi azw3 djvu eml msg "
                    + "vcf ics htm html mht one org log"
            ),
            (
                .image,
                "jpg jpeg jpe png gif webp tif tiff bmp svg heic heif avif jxl raw dng cr2 cr3 nef arw "
                    + "orf rw2 psd ai eps xcf ico ppm pgm kra odg drawio"
            ),
            (
                .video,
                "mp4 m4v mov mkv avi webm wmv flv mpg mpeg mts m2ts 3gp ogv vob"
            ),
            (.audio, "mp3 m4a aac flac wav ogg oga opus wma aif aiff mid midi amr m4b ape"),
            (
                .archive,
                "zip tar gz tgz bz2 tbz xz txz zst 7z rar lz lz4 lzma cab iso dmg deb rpm jar apk "
                    + "cpio"
            ),
            (
                .code,
                "c h cc cpp cxx hpp hh m mm swift rs go py pyi ipynb rb pl pm php js mjs cjs jsx ts tsx "
                    + "java kt kts scala cs fs vb lua r jl hs ml mli ex exs erl clj el lisp "
                    + "dart sh bash zsh fish ps1 bat sql css scss sass less vue svelte xml xsl "
                    + "json json5 yaml yml toml ini cfg conf cmake gradle make mk diff patch"
            ),
        ]
        var kinds: [String: SearchKind] = [:]
        for (kind, all) in endings {
            for ending in all.split(separator: " ") { kinds[String(ending)] = kind }
        }
        return kinds
    }()
}
