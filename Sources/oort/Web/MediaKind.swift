/// What a browser may do with a file, by the ending of its name alone: never by what the file says of
/// itself.
struct MediaKind: Hashable, Sendable {
    /// How a page shows it.
    enum Form: Hashable, Sendable {
        case picture
        case film
        case sound
        case pdf
        case text
        case other
    }

    /// How a page shows it.
    let form: Form
    /// The `Content-Type`.
    let type: String
    /// Whether it may come in place; else the browser only saves it.
    var isShown: Bool { form != .other }

    /// What may run programs is sent as text, or, in a sandbox, as a picture.
    private static let known: [String: MediaKind] = {
        let lists: [(Form, [(String, String)])] = [
            (
                .picture,
                [
                    ("jpg", "image/jpeg"), ("jpeg", "image/jpeg"), ("png", "image/png"),
                    ("gif", "image/gif"), ("webp", "image/webp"), ("avif", "image/avif"),
                    ("bmp", "image/bmp"), ("ico", "image/x-icon"), ("svg", "image/svg+xml"),
                ]
            ),
            (
                .film,
                [
                    ("mp4", "video/mp4"), ("m4v", "video/mp4"), ("webm", "video/webm"),
                    ("ogv", "video/ogg"), ("mov", "video/quicktime"), ("mkv", "video/x-matroska"),
                ]
            ),
            (
                .sound,
                [
                    ("mp3", "audio/mpeg"), ("m4a", "audio/mp4"), ("ogg", "audio/ogg"),
                    ("oga", "audio/ogg"), ("opus", "audio/ogg"), ("flac", "audio/flac"),
                    ("wav", "audio/wav"), ("aac", "audio/aac"),
                ]
            ),
            (.pdf, [("pdf", "application/pdf")]),
        ]
        var known: [String: MediaKind] = [:]
        for (form, types) in lists {
            for (ending, type) in types { known[ending] = MediaKind(form: form, type: type) }
        }
        let texts = """
            asc bash bat bib c cc cfg cfgs cmake conf cpp cs css csv dart diff el env fish go gradle h \
            hpp hs htm html ics ini java js json jsonl kt less lisp log lua m make markdown md mjs ml \
            nix org patch php pl plist properties ps1 py r rb rs rst scala scss sh sql srt sub svelte \
            swift tex toml ts tsv tsx txt vcf vim vtt xhtml xml yaml yml zig zsh
            """
        for ending in texts.split(separator: " ") {
            known[String(ending)] = MediaKind(form: .text, type: "text/plain; charset=utf-8")
        }
        return known
    }()

    private static let plain = MediaKind(form: .other, type: "application/octet-stream")

    /// Of a file of this name.
    static func of(_ name: [UInt8]) -> MediaKind {
        let parts = name.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count > 1, let last = parts.last,
            let ending = String(validating: last, as: UTF8.self)
        else { return plain }
        return known[ending.lowercased()] ?? plain
    }

    /// The type of a small picture by its first bytes, of those that services render; nil for others.
    static func ofPicture(_ bytes: some Collection<UInt8>) -> String? {
        if bytes.starts(with: [0xFF, 0xD8, 0xFF]) { return "image/jpeg" }
        if bytes.starts(with: [0x89, 0x50, 0x4E, 0x47]) { return "image/png" }
        if bytes.starts(with: "GIF8".utf8) { return "image/gif" }
        if bytes.starts(with: "RIFF".utf8), bytes.dropFirst(8).starts(with: "WEBP".utf8) {
            return "image/webp"
        }
        return nil
    }

    /// What a page may do that shows the file by itself, as a Content-Security-Policy.
    ///
    /// A browser's own PDF viewer does not start in a sandbox; it runs no script of the file's with the
    /// rights of this page.
    var policy: String {
        form == .pdf
            ? "frame-ancestors 'self'"
            : "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; "
                + "media-src 'self'; frame-ancestors 'none'"
    }
}
