import Foundation
import OortModel
import Testing

@Suite("Numbers from services")
struct ReportedNumbersTests {
    @Test(
        "a size is a number or a text of digits, from 0 to 8 PiB; anything else is none",
        arguments: [
            ("0", 0), ("5", 5), ("\"7\"", 7), ("9007199254740992", 1 << 53),
            ("9007199254740993", nil), ("9223372036854775807", nil), ("-1", nil), ("\"-1\"", nil),
            ("9223372036854775808", nil), ("1e300", nil), ("1.5", nil), ("\"\"", nil),
            ("\"x\"", nil), ("true", nil), ("[]", nil), ("{}", nil),
        ] as [(String, Int64?)]
    )
    func sizes(_ json: String, _ bytes: Int64?) {
        let size = try? JSONDecoder().decode(ReportedSize.self, from: Data(json.utf8))
        #expect(size?.bytes == bytes)
        if let bytes { #expect(ReportedSize(bytes: bytes) == size) }
    }

    @Test(
        "a wait that a service asks for is at most an hour, and never negative",
        arguments: [(-1, 0), (0, 0), (17, 17), (3601, 3600), (.max, 3600), (.min, 0)]
            as [(Int64, Int64)]
    )
    func waits(_ seconds: Int64, _ taken: Int64) {
        #expect(Duration(reportedSeconds: seconds) == .seconds(taken))
    }

    @Test("sums, products and milliseconds end at the ends of their range")
    func saturation() {
        #expect(Int64.max.addingSaturating(1) == .max && Int64.min.addingSaturating(-1) == .min)
        #expect(Int64(3).addingSaturating(-5) == -2)
        #expect(Int64.max.multipliedSaturating(by: 2) == .max)
        #expect(Int64.max.multipliedSaturating(by: -2) == .min)
        #expect(Int64(-3).multipliedSaturating(by: 5) == -15)
        #expect(Duration.seconds(Int64.max).inMilliseconds == .max)
        #expect(Duration.seconds(Int64.min).inMilliseconds == .min)
        #expect(Duration.milliseconds(1250).inMilliseconds == 1250)
        #expect(Timestamp(seconds: .max, nanoseconds: 999_999_999).inMilliseconds == .max)
        #expect(Timestamp(seconds: .min).inMilliseconds == .min)
        #expect(Timestamp(seconds: -1, nanoseconds: 500_000_000).inMilliseconds == -500)
    }

    @Test("no quota is negative, and what is free never overflows")
    func quota() {
        #expect(Quota(used: -5, total: -1) == Quota(used: 0, total: 0))
        #expect(Quota(used: .min, total: .max).free == .max)
        #expect(Quota(used: .max, total: 1).free == 0)
        #expect(Quota(used: 1, total: nil).free == nil)
    }

    @Test("a list whose pages lead back to themselves ends in an error")
    func circles() throws {
        var walk = PageWalk()
        try walk.goOn(to: "a")
        try walk.goOn(to: "b")
        #expect(throws: ProviderError.self) { try walk.goOn(to: "a") }
    }

    @Test("a walk keeps little of each page, however long what leads to it is")
    func longTokens() throws {
        var walk = PageWalk()
        for number in 0..<10 {
            try walk.goOn(to: String(repeating: "folder ", count: 100_000) + "\(number)")
        }
        var kept = ""
        dump(walk, to: &kept)
        #expect(kept.utf8.count < 10_000)
    }
}
