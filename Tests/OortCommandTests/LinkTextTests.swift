import Testing

@testable import oort

@Suite("links in words")
struct LinkTextTests {
    @Test("what whoever has a link may do is said")
    func rights() {
        var link = LinkReport(
            account: "a",
            path: nil,
            url: "https://x",
            mayEdit: false,
            hasPassword: false
        )
        #expect(LinkText.words(link) == "Whoever has the link may read it.")
        link.mayComment = true
        #expect(LinkText.words(link) == "Whoever has the link may read it and comment on it.")
        link.mayEdit = true
        #expect(LinkText.words(link) == "Whoever has the link may read and change it.")
    }
}
