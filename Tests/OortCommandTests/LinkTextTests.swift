import Foundation
import Testing

@testable import oort

@Suite("links in words")
struct LinkTextTests {
    @Test("a link ends with the last second of a day that there is")
    func ends() throws {
        for text in ["2027-02-30", "2027-13-01", "2027-02-29", "soon", "", "-1d"] {
            #expect(LinkEnd(argument: text) == nil)
        }
        let end = try #require(LinkEnd(argument: "2028-02-29")).date
        let parts = Calendar(identifier: .gregorian)
            .dateComponents([.year, .month, .day, .hour, .minute, .second], from: end)
        #expect([parts.year, parts.month, parts.day] == [2028, 2, 29])
        #expect([parts.hour, parts.minute, parts.second] == [23, 59, 59])
    }

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
        (link.mayEdit, link.mayComment, link.hasOtherRights) = (false, nil, true)
        #expect(!LinkText.words(link).contains("may read"))
    }
}
