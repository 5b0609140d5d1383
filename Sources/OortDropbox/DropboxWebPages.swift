import OortModel

/// Dropbox's pages: a folder's by its path, a file's beside its folder.
///
/// The API has no address for an item that is not shared, so the website's own form is used.
struct DropboxWebPages: WebPages {
    func page(of item: ItemReference, isFolder: Bool) async throws(ProviderError) -> String {
        let home = "https://www.dropbox.com/home"
        func address(_ parts: some Sequence<String>) -> String {
            parts.reduce(home) { $0 + "/" + Self.encoded($1) }
        }
        guard !isFolder, let name = item.path.parts.last else { return address(item.path.parts) }
        return address(item.path.parts.dropLast()) + "?preview=" + Self.encoded(name)
    }

    /// Everything but the unreserved characters as bytes of UTF-8.
    private static func encoded(_ text: String) -> String {
        var result = ""
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "_"), UInt8(ascii: "~"):
                result.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                result += (byte < 16 ? "%0" : "%") + String(byte, radix: 16, uppercase: true)
            }
        }
        return result
    }
}
