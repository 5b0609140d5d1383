import OortModel
import Testing

@Suite("Export preference")
struct ExportPreferenceTests {
    private static func formats(_ extensions: String...) -> [ExportFormat] {
        extensions.map { ExportFormat(mimeType: "x/\($0)", fileExtension: $0) }
    }

    @Test("the wished form comes first, by the kind that the first choice tells")
    func order() {
        let preference = ExportPreference(["docx": "pdf", "xlsx": "ods"])
        let ordered = preference.ordered(Self.formats("docx", "odt", "pdf"))
        #expect(ordered == Self.formats("pdf", "docx", "odt"))
        // Ordered twice is ordered once.
        #expect(preference.ordered(ordered) == ordered)
        #expect(
            preference.ordered(Self.formats("pptx", "pdf")) == Self.formats("pptx", "pdf")
        )
        #expect(preference.ordered(Self.formats("xlsx", "csv")) == Self.formats("xlsx", "csv"))
        #expect(preference.ordered([]).isEmpty)
    }
}
