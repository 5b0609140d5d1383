import OortModel
import Testing

@Suite("Moments that something waits for")
struct WaitMomentTests {
    @Test(
        "a moment has come, is to come, or was written before the clock was set back",
        arguments: [
            (999, 1000, nil), (1000, 1000, nil), (1001, 1000, 1),
            (1000 + WaitMoment.longest, 1000, WaitMoment.longest),
            (1001 + WaitMoment.longest, 1000, nil), (0, .min, nil), (.max - 1, -5, nil),
            (WaitMoment.never, 1000, .max), (.min, .max, nil),
        ] as [(Int64, Int64, Int64?)]
    )
    func wait(moment: Int64, now: Int64, expected: Int64?) {
        #expect(WaitMoment.wait(until: moment, now: now) == expected)
    }
}
