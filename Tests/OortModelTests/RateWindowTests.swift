import OortModel
import Testing

@Suite("Rates")
struct RateWindowTests {
    @Test("a rate is known after two whole seconds, and is of the last ten")
    func rate() {
        var window = RateWindow()
        #expect(window.perSecond(at: .seconds(5)) == nil)
        window.add(100, at: .milliseconds(700))
        #expect(window.perSecond(at: .milliseconds(1900)) == nil)
        for tenth in 10..<40 { window.add(10, at: .milliseconds(tenth * 100)) }
        #expect(window.perSecond(at: .milliseconds(2999)) == nil)
        #expect(window.perSecond(at: .milliseconds(3000)) == 100)
        #expect(window.perSecond(at: .milliseconds(4000)) == 100)
        // What passed before the window counts no longer.
        #expect(window.perSecond(at: .seconds(12)) == 20)
        #expect(window.perSecond(at: .seconds(15)) == nil)
        #expect(window.total == 400)
    }

    @Test("after a silence it is measured anew")
    func silence() {
        var window = RateWindow()
        for second in 0..<5 { window.add(1000, at: .seconds(second)) }
        window.add(5, at: .seconds(100))
        #expect(window.perSecond(at: .seconds(102)) == nil)
        window.add(8, at: .seconds(101))
        window.add(4, at: .seconds(102))
        #expect(window.perSecond(at: .seconds(103)) == 6)
    }
}
