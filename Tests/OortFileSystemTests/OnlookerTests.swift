import Foundation
import Testing

@testable import OortFileSystem

@Suite("Onlookers")
struct OnlookerTests {
    @Test("a process is known by its name; nobody and no such process are no onlookers")
    func names() throws {
        let own = try #require(FileManager.default.contents(atPath: "/proc/self/comm"))
        let name = String(decoding: own, as: UTF8.self).split(separator: "\n").first.map(
            String.init
        )
        var onlookers = Onlookers()
        #expect(!onlookers.include(thread: getpid()))
        onlookers.programs = [try #require(name)]
        #expect(onlookers.include(thread: getpid()))
        for nobody: Int32 in [0, -1, .max] { #expect(!onlookers.include(thread: nobody)) }
        onlookers.programs = []
        #expect(!onlookers.include(thread: getpid()))
    }

    @Test("names are cut as the kernel cuts them")
    func cutNames() {
        #expect(Onlookers.name("gdk-pixbuf-thumbnailer") == "gdk-pixbuf-thum")
        #expect(Onlookers.usual.contains("tracker-extract"))
        #expect(Onlookers.usual.allSatisfy { $0.utf8.count <= 15 })
    }
}
