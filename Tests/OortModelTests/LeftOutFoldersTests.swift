import OortModel
import Testing

@Suite("Folders that are left out")
struct LeftOutFoldersTests {
    @Test("a path, and all below it, compared as the service compares")
    func paths() {
        let exact = LeftOutFolders([["a", "b"], ["C"], []], comparedBy: .exact)
        #expect(exact.include(["a", "b"]) && exact.include(["a", "b", "c"]))
        #expect(exact.include(["C"]))
        #expect(!exact.include(["a"]) && !exact.include(["b"]) && !exact.include(["c"]))
        #expect(!exact.include([]) && !exact.include(["A", "b"]))
        #expect(exact.mayInclude(named: "b") && !exact.mayInclude(named: "a"))
        #expect(exact.below(["a"]) == [["a", "b"]] && exact.below(["a", "b"]).isEmpty)
        #expect(exact.below([]).count == 2)
        let folded = LeftOutFolders([["Old Things"]], comparedBy: .caseInsensitive)
        #expect(folded.include(["old things", "x"]) && folded.mayInclude(named: "OLD THINGS"))
        #expect(LeftOutFolders([[]], comparedBy: .exact).isEmpty)
    }
}
