/// What a native document's text becomes when it is exported: small, but real files.
struct SimulatedExport {
    /// The document's name.
    var title: String
    /// Its text, of which each line becomes a paragraph, a row or a line of a slide.
    var text: String

    /// The document in a format named by its file name extension; plain text for what is unknown.
    func bytes(as format: String) -> [UInt8] {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        switch format {
        case "docx": return Self.document(lines)
        case "xlsx": return Self.spreadsheet(lines)
        case "pptx": return Self.presentation(lines)
        case "pdf": return Self.pdf(lines)
        case "txt":
            // Text exports begin with a byte order mark and use CRLF.
            return Array(("\u{FEFF}" + lines.joined(separator: "\r\n")).utf8)
        case "svg":
            return Array(
                ("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"200\" height=\"100\"><text "
                    + "x=\"10\" y=\"50\">\(Self.escaped(title))</text></svg>\n").utf8
            )
        case "png": return SamplePicture(width: 64, height: 48, seed: 5).png
        case "jpeg": return SamplePicture(width: 64, height: 48, seed: 5).jpeg
        case "html": return Array(Self.html(lines).utf8)
        case "zip", "epub":
            return StoredZip.archive([("index.html", Array(Self.html(lines).utf8))])
        case "odt", "ods", "odp":
            return StoredZip.archive([("content.xml", Array(Self.html(lines).utf8))])
        default: return Array(text.utf8)
        }
    }

    private static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(
            ">",
            with: "&gt;"
        )
    }

    private static func html(_ lines: [String]) -> String {
        "<html><body>" + lines.map { "<p>\(escaped($0))</p>" }.joined() + "</body></html>\n"
    }

    private static let head = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n"
    private static let packageTypes = "http://schemas.openxmlformats.org/package/2006/"
    private static let office = "http://schemas.openxmlformats.org/officeDocument/2006/"
    private static let mediaType = "application/vnd.openxmlformats-officedocument."

    private static func package(
        main: String,
        type: String,
        _ parts: [(name: String, type: String?, text: String)]
    ) -> [UInt8] {
        var types =
            "<Default Extension=\"rels\" ContentType="
            + "\"application/vnd.openxmlformats-package.relationships+xml\"/>"
        types += "<Override PartName=\"/\(main)\" ContentType=\"\(mediaType)\(type)\"/>"
        for part in parts {
            guard let type = part.type, part.name != main else { continue }
            types += "<Override PartName=\"/\(part.name)\" ContentType=\"\(mediaType)\(type)\"/>"
        }
        let relation =
            "<Relationship Id=\"rId1\" Type=\"\(office)relationships/officeDocument\" "
            + "Target=\"\(main)\"/>"
        let fixed = [
            (
                "[Content_Types].xml",
                head + "<Types xmlns=\"\(packageTypes)content-types\">\(types)</Types>"
            ),
            (
                "_rels/.rels",
                head + "<Relationships xmlns=\"\(packageTypes)relationships\">\(relation)"
                    + "</Relationships>"
            ),
        ]
        return StoredZip.archive(
            (fixed + parts.map { ($0.name, head + $0.text) }).map { ($0.0, Array($0.1.utf8)) }
        )
    }

    private static func relations(_ entries: [(id: String, type: String, target: String)]) -> String
    {
        "<Relationships xmlns=\"\(packageTypes)relationships\">"
            + entries.map {
                "<Relationship Id=\"\($0.id)\" Type=\"\(office)relationships/\($0.type)\" "
                    + "Target=\"\($0.target)\"/>"
            }.joined() + "</Relationships>"
    }

    private static func document(_ lines: [String]) -> [UInt8] {
        let space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
        let text = lines.map {
            "<w:p><w:r><w:t xml:space=\"preserve\">\(escaped($0))</w:t></w:r></w:p>"
        }.joined()
        return package(
            main: "word/document.xml",
            type: "wordprocessingml.document.main+xml",
            [
                (
                    "word/document.xml", nil,
                    "<w:document xmlns:w=\"\(space)\"><w:body>\(text)</w:body></w:document>"
                )
            ]
        )
    }

    private static func spreadsheet(_ lines: [String]) -> [UInt8] {
        let space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
        let rows = lines.filter { !$0.isEmpty }.map { line in
            "<row>"
                + line.split(separator: ",", omittingEmptySubsequences: false).map {
                    "<c t=\"inlineStr\"><is><t>\(escaped(String($0)))</t></is></c>"
                }.joined() + "</row>"
        }.joined()
        return package(
            main: "xl/workbook.xml",
            type: "spreadsheetml.sheet.main+xml",
            [
                (
                    "xl/workbook.xml", nil,
                    "<workbook xmlns=\"\(space)\" xmlns:r=\"\(office)relationships\"><sheets>"
                        + "<sheet name=\"Sheet1\" sheetId=\"1\" r:id=\"rId1\"/></sheets></workbook>"
                ),
                (
                    "xl/_rels/workbook.xml.rels", nil,
                    relations([("rId1", "worksheet", "worksheets/sheet1.xml")])
                ),
                (
                    "xl/worksheets/sheet1.xml", "spreadsheetml.worksheet+xml",
                    "<worksheet xmlns=\"\(space)\"><sheetData>\(rows)</sheetData></worksheet>"
                ),
            ]
        )
    }

    private static func presentation(_ lines: [String]) -> [UInt8] {
        let space = "http://schemas.openxmlformats.org/presentationml/2006/main"
        let drawing = "http://schemas.openxmlformats.org/drawingml/2006/main"
        let names = "xmlns:a=\"\(drawing)\" xmlns:p=\"\(space)\" xmlns:r=\"\(office)relationships\""
        let text = lines.map { "<a:p><a:r><a:t>\(escaped($0))</a:t></a:r></a:p>" }.joined()
        let group =
            "<p:nvGrpSpPr><p:cNvPr id=\"1\" name=\"\"/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr>"
            + "<p:grpSpPr/>"
        let shape =
            "<p:sp><p:nvSpPr><p:cNvPr id=\"2\" name=\"Text\"/><p:cNvSpPr/><p:nvPr/></p:nvSpPr>"
            + "<p:spPr/><p:txBody><a:bodyPr/>\(text)</p:txBody></p:sp>"
        return package(
            main: "ppt/presentation.xml",
            type: "presentationml.presentation.main+xml",
            [
                (
                    "ppt/presentation.xml", nil,
                    "<p:presentation \(names)><p:sldIdLst><p:sldId id=\"256\" r:id=\"rId1\"/>"
                        + "</p:sldIdLst><p:sldSz cx=\"9144000\" cy=\"6858000\"/></p:presentation>"
                ),
                (
                    "ppt/_rels/presentation.xml.rels", nil,
                    relations([("rId1", "slide", "slides/slide1.xml")])
                ),
                (
                    "ppt/slides/slide1.xml", "presentationml.slide+xml",
                    "<p:sld \(names)><p:cSld><p:spTree>\(group)\(shape)</p:spTree></p:cSld></p:sld>"
                ),
            ]
        )
    }

    private static func pdf(_ lines: [String]) -> [UInt8] {
        let shown = lines.map { line in
            "(" + line.filter { $0.isASCII && !"()\\".contains($0) } + ") Tj T*"
        }.joined(separator: "\n")
        let stream = "BT /F1 12 Tf 14 TL 50 780 Td\n\(shown)\nET\n"
        let objects = [
            "<< /Type /Catalog /Pages 2 0 R >>",
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources "
                + "<< /Font << /F1 5 0 R >> >> >>",
            "<< /Length \(stream.utf8.count) >>\nstream\n\(stream)endstream",
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        ]
        var file = "%PDF-1.4\n"
        var offsets: [Int] = []
        for (index, object) in objects.enumerated() {
            offsets.append(file.utf8.count)
            file += "\(index + 1) 0 obj\n\(object)\nendobj\n"
        }
        let start = file.utf8.count
        file += "xref\n0 \(objects.count + 1)\n0000000000 65535 f \n"
        for offset in offsets {
            let digits = String(offset)
            file +=
                String(repeating: "0", count: max(0, 10 - digits.count)) + digits
                + " 00000 n \n"
        }
        file +=
            "trailer\n<< /Size \(objects.count + 1) /Root 1 0 R >>\nstartxref\n\(start)\n%%EOF\n"
        return Array(file.utf8)
    }
}
