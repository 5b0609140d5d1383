import OortModel
import Testing

@Suite("Points in time")
struct TimestampTests {
    @Test(
        "RFC 3339 texts of the services are read exactly",
        arguments: [
            ("2015-05-12T15:50:38Z", Int64(1_431_445_838), Int32(0)),
            ("2026-11-21T14:03:00.250Z", 1_795_269_780, 250_000_000),
            ("2026-11-21T15:03:00+01:00", 1_795_269_780, 0),
            ("1969-12-31T23:59:59.500Z", -1, 500_000_000),
        ]
    )
    func reading(text: String, seconds: Int64, nanoseconds: Int32) {
        let time = Timestamp(rfc3339: text)
        #expect(time == Timestamp(seconds: seconds, nanoseconds: nanoseconds))
    }

    @Test("what is no time is nil", arguments: ["", "yesterday", "2026-13-01T00:00:00Z", "\0"])
    func refusing(text: String) { #expect(Timestamp(rfc3339: text) == nil) }

    @Test("writing and reading again gives the time back, to what the service keeps")
    func roundTrip() {
        for millisecond in 0..<1000 {
            let time = Timestamp(
                seconds: 1_700_000_000,
                nanoseconds: Int32(millisecond) * 1_000_000
            )
            #expect(Timestamp(rfc3339: time.rfc3339(.milliseconds)) == time)
            #expect(Timestamp(rfc3339: time.rfc3339(.seconds)) == time.truncated(to: .seconds))
        }
    }

    @Test(
        "a time outside of the years 1 to 9999 is sent as their nearest end, and compared as that",
        arguments: [Int64.max, 253_402_300_800, Int64.min, -62_135_596_801]
    )
    func outOfRange(seconds: Int64) {
        let time = Timestamp(seconds: seconds, nanoseconds: 5)
        // Foundation counts the days before 1582 by the Julian calendar, in writing as in reading.
        let sent = seconds > 0 ? "9999-12-31T23:59:59" : "0001-01-03T00:00:00"
        #expect(time.rfc3339(.seconds) == sent + "Z")
        #expect(time.rfc3339(.milliseconds) == sent + ".000Z")
        for resolution in [TimeResolution.seconds, .milliseconds] {
            let read = Timestamp(rfc3339: time.rfc3339(resolution))
            #expect(read == time.truncated(to: resolution))
        }
    }
}
