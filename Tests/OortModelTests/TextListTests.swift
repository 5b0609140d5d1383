import OortModel
import Testing

@Suite("short texts that are shown as one")
struct TextListTests {
    @Test(
        "each comes once, in its order, without what would break the line it is shown in",
        arguments: [
            ([], ""), (["", " ", "\n\t", "\u{202E}"], ""), (["urgent"], "urgent"),
            (["urgent", "tax 2026"], "urgent; tax 2026"),
            (["b", "a", "b", " b ", "a\n"], "b; a"),
            (["one\ntwo\u{0}\u{1B}[31mthree\u{7F}"], "one two [31mthree"),
            (["x\u{85}y\u{2028}z\u{A0}\u{3000}w"], "x y z w"),
            (["\u{202E}gpj.exe\u{202C}\u{2066}\u{200F}\u{FEFF}"], "gpj.exe"),
            (["a; b", "a, b"], "a, b"), (["Doe, Jane", "R&D <x>"], "Doe, Jane; R&D <x>"),
            (["é", "e\u{301}"], "é; e\u{301}"), (["👩‍👩‍👧", "会议"], "👩‍👩‍👧; 会议"),
        ] as [([String], String)]
    )
    func shown(_ texts: [String], _ joined: String) {
        let list = TextList(texts)
        #expect(list.joined.isSameText(as: joined), "\(list.joined.debugDescription)")
        #expect(list.isEmpty == joined.isEmpty)
        #expect(TextList(joined: list.joined) == list)
    }

    @Test("ten thousand are as many as can be shown, and how many more there are")
    func many() {
        let list = TextList((1...10_000).map { "person \($0)" } + ["person 7"])
        #expect(list.joined.hasPrefix("person 1; person 2; "))
        #expect(list.joined.hasSuffix("person 100; and 9900 more"))
    }

    @Test("however long they are, the whole is not")
    func long() {
        let one = TextList([String(repeating: "ü", count: 1_000_000)])
        #expect(one.joined.utf8.count == TextList.longestText + "…".utf8.count)
        #expect(one.joined.hasSuffix("ü…"))
        // No white space, and no part of a character, is left at the cut.
        let words = TextList([String(repeating: "a", count: 199) + " b"])
        #expect(words.joined == String(repeating: "a", count: 199) + "…")
        let many = TextList(
            (0..<10_000).map { "\($0) " + String(repeating: "x", count: 100_000) }.prefix(500)
        )
        #expect(many.joined.utf8.count < TextList.longest + 20)
        #expect(many.joined.hasSuffix(" more"))
        #expect(TextList([String(repeating: "\n", count: 1_000_000) + "x"]).joined == "x")
    }
}
