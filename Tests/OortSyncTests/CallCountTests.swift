import Foundation
import OortCatalog
import OortContentStore
import OortModel
import OortSync
import Testing

/// What a person does, and exactly what the service is asked for it.
@Suite("the calls that an act costs", .timeLimit(.minutes(15)))
struct CallCountTests {
    @Test("a copy with its time is one upload")
    func copyWithTime() async throws {
        try await World.run { world in
            let time = Timestamp(seconds: 1_000_000_000, nanoseconds: 123_000_000)
            try world.write("f", "bytes")
            try world.setModified("f", time)
            try await world.settle()
            #expect(world.cloud.takeCalls() == ["upload": 1])
            #expect(world.cloud.modified("f") == time)
            #expect(try world.node("f").modified == time)
        }
    }

    @Test("a time alone is one call, and none where it does not change")
    func timeAlone() async throws {
        try await World.run { world in
            try world.write("f", "bytes")
            try await world.settle()
            _ = world.cloud.takeCalls()
            let time = Timestamp(seconds: 1_000_000_000)
            try world.setModified("f", time)
            try await world.settle()
            try world.setModified("f", time)
            try await world.settle()
            #expect(world.cloud.takeCalls() == ["setAttributes": 1])
            #expect(world.cloud.modified("f") == time)
        }
    }

    @Test("a folder with many files is renamed and moved by one call")
    func folderRename() async throws {
        let cloud = MemoryCloud()
        cloud.put("d", nil)
        cloud.put("e", nil)
        for number in 0..<300 { cloud.put("d/\(number)", "x\(number)") }
        try await World.run(cloud) { world in
            try await world.agree()
            try world.rename("d", to: "e/new")
            try await world.settle()
            #expect(cloud.takeCalls() == ["move": 1])
        }
    }

    @Test("a backup by renaming keeps the item, also when the new file was sent before")
    func backupAfterUpload() async throws {
        let cloud = MemoryCloud { $0.copiesFiles = true }
        cloud.put("f", "old")
        cloud.put("g", "other")
        try await World.run(cloud) { world in
            try await world.agree()
            let id = world.cloud.id("f")
            try world.write(".f.tmp", "new")
            try await world.settle()
            _ = world.cloud.takeCalls()
            try world.rename("f", to: "f~")
            try world.rename(".f.tmp", to: "f")
            try await world.settle()
            #expect(world.cloud.id("f") == id)
            #expect(world.cloud.tree == ["f": "new", "f~": "old", "g": "other"])
            #expect(world.cloud.takeCalls() == ["copy": 1, "upload": 1, "delete": 1])
            // What was saved so is an old document: it keeps its item where it goes.
            try world.rename("f", to: "g")
            try await world.settle()
            #expect(world.cloud.id("g") == id)
        }
    }

    @Test("what is copied at the service since it is there already is read here")
    func copiedContentStays() async throws {
        try await World.run(MemoryCloud { $0.copiesFiles = true }) { world in
            try world.write("f", "bytes")
            try await world.settle()
            try world.write("g", "bytes")
            #expect(await world.engine.sync(timeout: .seconds(600)).isComplete)
            #expect(world.cloud.takeCalls() == ["upload": 1, "copy": 1])
            let content = try world.open("g")
            #expect(content.isComplete)
            world.store.close(content)
        }
    }

    @Test("a file that is renamed twice and back costs nothing, to another name one call")
    func renames() async throws {
        try await World.run { world in
            try world.write("f", "x")
            try await world.settle()
            _ = world.cloud.takeCalls()
            try world.rename("f", to: "g")
            try world.rename("g", to: "f")
            try await world.settle()
            #expect(world.cloud.takeCalls().isEmpty)
            try world.rename("f", to: "g")
            try world.rename("g", to: "h")
            try await world.settle()
            #expect(world.cloud.takeCalls() == ["move": 1])
        }
    }

    @Test("a symbolic link goes up as a small file and comes down as a link")
    func links() async throws {
        let cloud = MemoryCloud()
        cloud.put("theirs.rclonelink", "over/there")
        try await World.run(cloud) { world in
            try await until { try world.catalog.node(atPath: ["work", "theirs"]) != nil }
            #expect(try world.node("theirs").kind == .symlink)
            try world.makeLink("mine", to: "../anywhere")
            #expect(await world.engine.sync(timeout: .seconds(600)).isComplete)
            #expect(cloud.tree["mine.rclonelink"] == "../anywhere")
            #expect(cloud.takeCalls() == ["upload": 1])
            try world.rename("mine", to: "ours")
            #expect(await world.engine.sync(timeout: .seconds(600)).isComplete)
            #expect(cloud.tree["ours.rclonelink"] == "../anywhere")
            #expect(cloud.takeCalls() == ["move": 1])
        }
    }

    @Test("as many small files go up at once as may be, and of large ones four beside them")
    func atOnce() async throws {
        let cloud = MemoryCloud {
            $0.maximumWritesInFlight = 12
            $0.batchSizes.largestUpload = 10
        }
        try await World.run(cloud) { world in
            for number in 0..<8 {
                try world.write("large\(number)", "more than ten bytes \(number)")
            }
            cloud.hold(.uploads)
            let engine = world.engine
            let push = Task { await engine.sync(timeout: .seconds(600)) }
            try await until { cloud.uploading.count == 4 }
            for number in 0..<40 { try world.write("small\(number)", "\(number)") }
            try await until { cloud.uploading.count == 12 }
            #expect(cloud.uploading.count { $0 > 10 } == 4)
            cloud.release(.uploads)
            #expect(await push.value.isComplete)
            #expect(cloud.takeCalls() == ["upload": 48])
        }
    }

    @Test("many new files go up by one call each, in a time that grows as they do")
    func many() async throws {
        let count =
            ProcessInfo.processInfo.environment["OORT_FILES"].flatMap { Int($0) } ?? 1000
        try await World.run { world in
            for folder in 0..<10 { try world.makeFolder("d\(folder)") }
            for number in 0..<count { try world.write("d\(number % 10)/\(number)", "\(number)") }
            let outcome = await world.engine.sync(timeout: .seconds(600))
            #expect(outcome.isComplete)
            #expect(world.cloud.takeCalls() == ["createFolder": 10, "upload": count])
        }
    }
}
