import OortModel
import OortTransport
import Testing

@Suite("Times of header fields")
struct HTTPDateTests {
    @Test(
        "times are read in every form that servers have",
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Sun, 6 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Sun, 06 Nov 1994 08:49:37 +0000", 784_111_777),
            ("Sun, 06 Nov 1994 10:49:37 +0200", 784_111_777),
            ("Sun, 06 Nov 1994 07:19:37 -0130", 784_111_777),
            ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777),
            ("1994-11-06T08:49:37Z", 784_111_777),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Thu, 29 Feb 2024 23:59:59 GMT", 1_709_251_199),
        ]
    )
    func times(_ text: String, _ seconds: Int64) {
        #expect(HTTPDate.parse(text)?.seconds == seconds)
    }

    @Test(
        "what is no time is none, and never 1970",
        arguments: [
            "", "yesterday", "0", "Sun, 32 Nov 1994 08:49:37 GMT", ", , , ,", "-", "Sun, -",
        ]
    )
    func noTimes(_ text: String) { #expect(HTTPDate.parse(text) == nil) }
}
