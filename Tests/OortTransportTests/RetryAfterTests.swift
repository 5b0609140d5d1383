import Foundation
import Testing

@testable import OortTransport

@Suite("Retry-After")
struct RetryAfterTests {
    @Test(
        "seconds or a date, at most an hour, never negative; anything else is nothing",
        arguments: [
            ("0", 0.0), (" 17 ", 17), ("1.5", 1.5), ("-5", 0), ("99999999999", 3600),
            ("1e308", 3600), ("Sun, 06 Nov 1994 08:49:37 GMT", 37),
            ("Sun, 06 Nov 1994 08:48:00 GMT", 0), ("Mon, 07 Nov 1994 08:49:37 GMT", 3600),
            ("", nil), ("soon", nil), ("nan", nil), ("inf", nil),
            ("Sun, 99 Foo 1994 25:61:61 GMT", nil),
        ] as [(String, Double?)]
    )
    func parsing(_ text: String, _ seconds: Double?) {
        // 1994-11-06 08:49:00 UTC.
        let now = Date(timeIntervalSince1970: 784_111_740)
        #expect(RetryAfter.parse(text, now: now) == seconds.map { .seconds($0) })
    }
}
