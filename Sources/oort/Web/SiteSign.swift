/// What stands for a file or folder of which there is no picture: drawn here, so that it needs no font.
enum SiteSign: String, CaseIterable {
    case folder
    case link
    case picture
    case film
    case sound
    case pdf
    case text
    case other

    /// The sign of one thing in a folder.
    static func of(_ entry: MountFiles.Entry) -> SiteSign {
        switch entry.kind {
        case .folder: return .folder
        case .link: return .link
        case .other: return .other
        case .file: break
        }
        switch MediaKind.of(entry.path.names.last ?? []).form {
        case .picture: return .picture
        case .film: return .film
        case .sound: return .sound
        case .pdf: return .pdf
        case .text: return .text
        case .other: return .other
        }
    }

    /// The sign that an address of the page names: `/sign/NAME.svg`.
    init?(address: String) {
        guard let sign = Self.allCases.first(where: { address == "/sign/\($0.rawValue).svg" })
        else {
            return nil
        }
        self = sign
    }

    /// The drawing, in a colour that shows on light and dark.
    var picture: String {
        """
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" fill="none" stroke="#7483b5" \
        stroke-width="2" stroke-linejoin="round" stroke-linecap="round">\(lines)</svg>

        """
    }

    private var lines: String {
        let sheet = "<path d=\"M7 3h12l6 6v20H7z\"/>"
        return switch self {
        case .folder:
            "<path fill=\"#7483b5\" fill-opacity=\".3\" d=\"M3 8h9l3 3h14v15H3z\"/>"
        case .link: sheet + "<path d=\"M12 21l8-8M14 13h6v6\"/>"
        case .picture:
            sheet + "<circle cx=\"13\" cy=\"13\" r=\"2\"/><path d=\"M8 25l6-6 4 4 3-3 4 4\"/>"
        case .film: sheet + "<path fill=\"#7483b5\" d=\"M13 13l7 4.500-7 4.500z\"/>"
        case .sound:
            sheet + "<circle cx=\"14\" cy=\"22\" r=\"2.500\"/><path d=\"M16.500 22v-9l4 2\"/>"
        case .pdf: sheet + "<path d=\"M11 24v-8h3a2.500 2.500 0 0 1 0 5h-3\"/>"
        case .text: sheet + "<path d=\"M11 14h10M11 18h10M11 22h6\"/>"
        case .other: sheet
        }
    }
}
