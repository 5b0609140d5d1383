import OortModel
import Testing

@Suite("How names are compared")
struct NameRulesTests {
    @Test("without case, scalar by scalar and without context")
    func folding() {
        let comparison = NameRules.Comparison.caseInsensitive
        #expect(comparison.key("ΣΑΣ") == "σασ")
        #expect(comparison.key("Straße") == "straße")
        #expect(comparison.key("İ") == "İ")
        #expect(comparison.key("ÄÖ") == "äö")
        // Normal forms stay two names.
        #expect(
            Array(comparison.key("e\u{301}").unicodeScalars)
                != Array(comparison.key("\u{e9}").unicodeScalars)
        )
    }

    @Test("Dropbox's way composes first")
    func composing() {
        let comparison = NameRules.Comparison.composedCaseInsensitive
        #expect(Array(comparison.key("E\u{301}").utf8) == Array("\u{e9}".utf8))
        #expect(comparison.key("README.md") == "readme.md")
        #expect(Array(comparison.stored("E\u{301}.TXT").utf8) == Array("\u{c9}.TXT".utf8))
        for other in [NameRules.Comparison.exact, .caseInsensitive] {
            #expect(Array(other.stored("E\u{301}").utf8) == Array("E\u{301}".utf8))
        }
    }

    @Test("a name with a slash is refused, whatever combines with it, where paths are addresses")
    func slashes() {
        for (allows, name) in [(false, "a/b"), (false, "/\u{301}"), (true, "a/b")] {
            let rules = NameRules(
                comparison: .exact,
                allowsDuplicates: false,
                allowsSlash: allows
            ) { _, _, _ in nil }
            #expect((rules.refusal(name, .file, 0) == nil) == allows)
            #expect(rules.refusal("a∕b", .folder, 0) == nil)
        }
    }

    @Test("a hash reads back from how it is stored")
    func hashes() {
        let hash = ContentHash(algorithm: .quickXor, value: "aCgD:G9jw=")
        #expect(ContentHash(description: hash.description) == hash)
        #expect(ContentHash(description: "none") == nil)
    }
}
