import Foundation
import Testing

@testable import oort

@Suite("Pauses and limits")
struct PaceTests {
    private let now = Date(timeIntervalSince1970: 1000)

    @Test("a pause of everything holds for each account, and one can be taken out of it")
    func everything() {
        var pace = Pace()
        #expect(pace.pause(of: "a", at: now) == nil)
        pace.everything = Pace.Pause(until: now + 10)
        pace.accounts["b"] = Pace.Pause()
        #expect(pace.pause(of: "a", at: now) == Pace.Pause(until: now + 10))
        // The longer one.
        #expect(pace.pause(of: "b", at: now) == Pace.Pause())
        #expect(pace.pause(of: "a", at: now + 10) == nil)
        #expect(pace.nextEnd == now + 10)
        pace.resume("a", of: ["a", "b", "c"])
        #expect(pace.pause(of: "a", at: now) == nil)
        #expect(pace.pause(of: "b", at: now) == Pace.Pause())
        #expect(pace.pause(of: "c", at: now) == Pace.Pause(until: now + 10))
        pace.forgetPast(at: now + 11)
        #expect(Array(pace.accounts.keys) == ["b"] && pace.nextEnd == nil)
        pace.resume(nil, of: ["a", "b", "c"])
        #expect(pace == Pace())
    }

    @Test("what is kept comes back, and what is no such file is an error")
    func kept() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/pace.json"
        #expect(try Pace.read(path) == Pace())
        var pace = Pace(uploadLimit: 5, downloadLimit: nil, everything: Pace.Pause(until: now))
        pace.accounts["my account"] = Pace.Pause()
        try pace.write(path)
        #expect(try Pace.read(path) == pace)
        try Data("{".utf8).write(to: URL(fileURLWithPath: path))
        #expect(throws: (any Error).self) { try Pace.read(path) }
    }

    @Test("a limit below which nothing gets anywhere is refused")
    func least() throws {
        #expect(throws: Failure.self) { try LimitRequest(up: 100).check() }
        #expect(throws: Failure.self) { try LimitRequest(down: 0).check() }
        try LimitRequest(up: LimitRequest.least, down: nil, off: true).check()
        for seconds in [0, -1, .infinity, .nan, 1e300] {
            #expect(throws: Failure.self) { try PauseRequest(seconds: seconds).check() }
        }
        try PauseRequest(account: nil, seconds: nil).check()
    }
}
