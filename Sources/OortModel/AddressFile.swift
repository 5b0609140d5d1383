/// The small file in which desktops keep a web address: the form in which an item is read that is only a
/// page at its service.
public enum AddressFile {
    /// Its form.
    public static let format = ExportFormat(
        mimeType: "application/x-mswinurl",
        fileExtension: "url"
    )

    /// The bytes for an address.
    public static func content(of address: String) -> [UInt8] {
        // A line break in the address would begin another setting.
        let line = address.unicodeScalars.filter { $0.value >= 0x20 && $0.value != 0x7F }
        return Array("[InternetShortcut]\r\nURL=\(String(String.UnicodeScalarView(line)))\r\n".utf8)
    }
}
