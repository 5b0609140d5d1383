import Foundation

/// What a native document's text becomes when it is exported: small, but real Office files.
public struct SimulatedExport: Sendable {
    /// The document's text.
    public let text: String

    /// An export of a text.
    public init(text: String) { self.text = text }

    /// The document in a form named by its file name extension; plain text for what is unknown.
    public func bytes(as format: String) -> [UInt8] {
        switch format {
        case "docx": wordDocument
        case "xlsx": workbook
        case "pptx": slides
        case "html", "zip": Array("<html><body><pre>\(Self.escape(text))</pre></body></html>".utf8)
        case "png": SamplePicture(width: 64, height: 64, seed: 5).png
        case "jpeg": SamplePicture(width: 64, height: 64, seed: 5).jpeg
        default: Array(text.utf8)
        }
    }

    private var lines: [Substring] { text.split(separator: "\n") }

    private static func escape(_ text: some StringProtocol) -> String {
        String(text).replacing("&", with: "&amp;").replacing("<", with: "&lt;")
            .replacing(">", with: "&gt;")
    }

    private static let head = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n"
    private static let office = "http://schemas.openxmlformats.org"

    private static func package(
        main: String, type: String, parts: [(name: String, text: String)]
    ) -> [UInt8] {
        let overrides = parts.first.map {
            "<Override PartName=\"/\($0.name)\" ContentType=\"application/vnd."
                + "openxmlformats-officedocument.\(type).main+xml\"/>"
        }
        var files: [(name: String, text: String)] = [
            (
                "[Content_Types].xml",
                head + "<Types xmlns=\"\(office)/package/2006/content-types\">"
                    + "<Default Extension=\"rels\" ContentType=\"application/vnd."
                    + "openxmlformats-package.relationships+xml\"/>"
                    + "<Default Extension=\"xml\" ContentType=\"application/xml\"/>"
                    + (overrides ?? "") + "</Types>"
            ),
            (
                "_rels/.rels",
                head + "<Relationships xmlns=\"\(office)/package/2006/relationships\">"
                    + "<Relationship Id=\"rId1\" Type=\"\(office)/officeDocument/2006/"
                    + "relationships/officeDocument\" Target=\"\(main)\"/></Relationships>"
            ),
        ]
        files += parts
        return Archive.stored(files.map { ($0.name, Array($0.text.utf8)) })
    }

    private var wordDocument: [UInt8] {
        let paragraphs = lines.map {
            "<w:p><w:r><w:t xml:space=\"preserve\">\(Self.escape($0))</w:t></w:r></w:p>"
        }.joined()
        let document =
            Self.head + "<w:document xmlns:w=\"\(Self.office)/wordprocessingml/2006/main\">"
            + "<w:body>\(paragraphs)</w:body></w:document>"
        return Self.package(
            main: "word/document.xml", type: "wordprocessingml.document",
            parts: [("word/document.xml", document)])
    }

    private var workbook: [UInt8] {
        let rows = lines.map { line in
            let cells = line.split(separator: ",", omittingEmptySubsequences: false).map {
                "<c t=\"inlineStr\"><is><t>\(Self.escape($0))</t></is></c>"
            }.joined()
            return "<row>\(cells)</row>"
        }.joined()
        let main = "\(Self.office)/spreadsheetml/2006/main"
        let relations = "\(Self.office)/officeDocument/2006/relationships"
        let book =
            Self.head + "<workbook xmlns=\"\(main)\" xmlns:r=\"\(relations)\"><sheets>"
            + "<sheet name=\"Sheet1\" sheetId=\"1\" r:id=\"rId1\"/></sheets></workbook>"
        let links =
            Self.head + "<Relationships xmlns=\"\(Self.office)/package/2006/relationships\">"
            + "<Relationship Id=\"rId1\" Type=\"\(relations)/worksheet\" "
            + "Target=\"worksheets/sheet1.xml\"/></Relationships>"
        let sheet =
            Self.head + "<worksheet xmlns=\"\(main)\"><sheetData>\(rows)</sheetData></worksheet>"
        return Self.package(
            main: "xl/workbook.xml", type: "spreadsheetml.sheet",
            parts: [
                ("xl/workbook.xml", book), ("xl/_rels/workbook.xml.rels", links),
                ("xl/worksheets/sheet1.xml", sheet),
            ])
    }

    private var slides: [UInt8] {
        let presentation =
            Self.head + "<p:presentation xmlns:p=\"\(Self.office)/presentationml/2006/main\">"
            + "<p:sldSz cx=\"9144000\" cy=\"6858000\"/><p:notesSz cx=\"6858000\" cy=\"9144000\"/>"
            + "</p:presentation>"
        return Self.package(
            main: "ppt/presentation.xml", type: "presentationml.presentation",
            parts: [("ppt/presentation.xml", presentation), ("docProps/text.xml", Self.escape(text))])
    }
}

/// Zip without compression.
enum Archive {
    static func stored(_ files: [(name: String, bytes: [UInt8])]) -> [UInt8] {
        var out: [UInt8] = []
        var directory: [UInt8] = []
        for (name, bytes) in files {
            let name = Array(name.utf8)
            // Version, flags, no compression, 1980-01-01 00:00, then sizes and checksum.
            let common =
                little(20, 2) + little(0x0800, 2) + little(0, 2) + little(0, 2) + little(33, 2)
                + little(Int(SamplePicture.crc(bytes)), 4) + little(bytes.count, 4)
                + little(bytes.count, 4) + little(name.count, 2) + little(0, 2)
            directory +=
                [0x50, 0x4B, 1, 2] + little(20, 2) + common + little(0, 2) + little(0, 2)
                + little(0, 2) + little(0, 4) + little(out.count, 4) + name
            out += [0x50, 0x4B, 3, 4] + common + name + bytes
        }
        let start = out.count
        out += directory
        return out + [0x50, 0x4B, 5, 6] + little(0, 2) + little(0, 2) + little(files.count, 2)
            + little(files.count, 2) + little(directory.count, 4) + little(start, 4) + little(0, 2)
    }

    private static func little(_ value: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
    }
}
