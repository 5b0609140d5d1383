import OortModel
import OortSimulators
import OortWebDAV
import Testing

@Suite("uploads to an OpenCloud", .timeLimit(.minutes(5)))
struct InfiniteScaleUploadTests {
    private static let large = (0..<7_500_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }

    @Test("an upload that broke off goes on where it stopped, and one that is over is known")
    func resumed() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client(partSize: 1 << 20)
            let path = RemotePath(["large"])
            let observer = Remembering()
            #expect(
                await failure {
                    try await client.put(
                        Self.large,
                        to: path,
                        content: BrokenContent(size: Int64(Self.large.count), good: Self.large),
                        observer: observer
                    )
                } == .localContent
            )
            let session = try #require(observer.session)
            #expect(session.confirmedBytes == 3 << 20)
            cloud.simulator.clearCalls()
            // An answer that is lost costs a question, and no byte twice.
            cloud.simulator.add(FaultRule(.doneButNoAnswer, at: "PATCH data"))
            try await client.put(Self.large, to: path, session: session, observer: observer)
            #expect(cloud.item("large")?.head?.content.bytes == Self.large)
            #expect(cloud.simulator.counts["HEAD data"]?.calls == 2)
            #expect(observer.session == nil)
            let again = try await client.put(Self.large, to: path, session: session)
            #expect(again.size == Int64(Self.large.count))
            #expect(cloud.item("large")?.revisions.count == 1)
            let other = Self.large.reversed() as [UInt8]
            #expect(
                await failure { try await client.put(other, to: path, session: session) }
                    == .sessionLost
            )
        }
    }

    @Test("an upload whose bytes all came is not sent again while the server makes a file of it")
    func finishing() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client(partSize: 1 << 20)
            let path = RemotePath(["large"])
            let observer = Remembering()
            cloud.service.habits.finishing = 4
            // The answer of the last part is lost, and its file is not there at first.
            let lost = await failure {
                try await client.put(Self.large, to: path, observer: observer)
            }
            #expect(lost == .outcomeUnknown(retryAfter: nil))
            #expect(cloud.item("large") == nil)
            cloud.simulator.clearCalls()
            let again = await failure {
                try await client.put(
                    Self.large,
                    to: path,
                    session: observer.session,
                    observer: observer
                )
            }
            #expect(again == .outcomeUnknown(retryAfter: nil))
            let session = try #require(observer.session)
            try await client.put(Self.large, to: path, session: session, observer: observer)
            #expect(cloud.simulator.counts["PATCH data"] == nil)
            #expect(cloud.simulator.counts["POST spaces"] == nil)
            #expect(cloud.item("large")?.revisions.count == 1 && observer.session == nil)
        }
    }

    @Test("an upload that the server makes no file of rests until its session's end")
    func neverFinished() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client(partSize: 1 << 20)
            let path = RemotePath(["large"])
            let observer = Remembering()
            cloud.service.habits.failsToFinish = true
            for _ in 0..<3 {
                let kind = await failure {
                    try await client.put(
                        Self.large,
                        to: path,
                        session: observer.session,
                        observer: observer
                    )
                }
                #expect(kind == .outcomeUnknown(retryAfter: nil))
            }
            #expect(cloud.simulator.counts["PATCH data"]?.calls == 8)
            cloud.service.habits.failsToFinish = false
            var session = try #require(observer.session)
            #expect(session.confirmedBytes == Int64(Self.large.count))
            session.expires = Timestamp(seconds: Timestamp.now.seconds - 1)
            #expect(
                await failure {
                    try await client.put(
                        Self.large,
                        to: path,
                        session: session,
                        observer: observer
                    )
                } == .sessionLost
            )
            #expect(observer.session == nil)
            try await client.put(Self.large, to: path, observer: observer)
            #expect(cloud.item("large")?.head?.content.bytes == Self.large)
        }
    }

    @Test("an upload that is over without a file has an unknown outcome, and its session ends")
    func thrownAway() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client(partSize: 1 << 20)
            let observer = Remembering()
            cloud.service.habits.failsToFinish = true
            _ = await failure {
                try await client.put(Self.large, to: .init(["large"]), observer: observer)
            }
            let session = try #require(observer.session)
            cloud.service.loseUploadSessions()
            #expect(
                await failure {
                    try await client.put(
                        Self.large,
                        to: .init(["large"]),
                        session: session,
                        observer: observer
                    )
                } == .outcomeUnknown(retryAfter: nil)
            )
            #expect(observer.session == nil)
        }
    }

    @Test("an upload that broke off before its file was renamed is begun anew at the new place")
    func renamedMeanwhile() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client(partSize: 1 << 20)
            let observer = Remembering()
            _ = await failure {
                try await client.put(
                    Self.large,
                    to: .init(["big.iso"]),
                    content: BrokenContent(size: Int64(Self.large.count), good: Self.large),
                    observer: observer
                )
            }
            let session = try #require(observer.session)
            try await client.put(
                Self.large,
                to: .init(["film.iso"]),
                session: session,
                observer: observer
            )
            #expect(try await client.names() == ["film.iso"] && observer.session == nil)
            #expect(cloud.item("film.iso")?.head?.content.bytes == Self.large)
            #expect(cloud.simulator.counts["DELETE data"]?.calls == 1)
        }
    }

    @Test("what somebody made while an upload of the name had broken off is seen before its end")
    func madeMeanwhile() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client(partSize: 1 << 20)
            let path = RemotePath(["large"])
            let observer = Remembering()
            _ = await failure {
                try await client.put(
                    Self.large,
                    to: path,
                    content: BrokenContent(size: Int64(Self.large.count), good: Self.large),
                    observer: observer
                )
            }
            let session = try #require(observer.session)
            cloud.write("theirs", to: ["large"])
            #expect(
                await failure {
                    try await client.put(
                        Self.large,
                        to: path,
                        session: session,
                        observer: observer
                    )
                } == .nameTaken
            )
            #expect(cloud.text("large") == "theirs" && observer.session == nil)
            #expect(cloud.simulator.counts["DELETE data"]?.calls == 1)
        }
    }

    @Test("a part that the server does not keep is an error, and is not sent for ever")
    func noProgress() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client(partSize: 1 << 20)
            let observer = Remembering()
            cloud.service.habits.forgottenParts = 20
            #expect(
                await failure {
                    try await client.put(Self.large, to: .init(["large"]), observer: observer)
                } == .malformedAnswer
            )
            #expect(cloud.simulator.counts["PATCH data"]?.calls == 1)
            cloud.service.habits.forgottenParts = 0
            let session = try #require(observer.session)
            try await client.put(Self.large, to: .init(["large"]), session: session)
            #expect(cloud.item("large")?.head?.content.bytes == Self.large)
        }
    }

    @Test("what a proxy before the server lets not through whole goes up in parts")
    func smallBodies() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client(partSize: 1 << 20)
            let some = Array(Self.large.prefix(3_000_000))
            cloud.simulator.add(FaultRule(.status(413, retryAfterSeconds: nil), at: "PUT spaces"))
            let entry = try await client.put(some, to: RemotePath(["some"]))
            #expect(entry.size == 3_000_000)
            #expect(cloud.item("some")?.head?.content.bytes == some)
            #expect(cloud.simulator.counts["PATCH data"]?.calls == 3)
        }
    }

    @Test("a save of somebody else while a large one is under way is seen before its end")
    func staleAtTheEnd() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client(partSize: 1 << 20)
            let first = try await client.put("first", to: "large")
            let observer = Remembering()
            _ = await failure {
                try await client.put(
                    Self.large,
                    to: .init(["large"]),
                    before: .file(first.revision),
                    content: BrokenContent(size: Int64(Self.large.count), good: Self.large),
                    observer: observer
                )
            }
            let session = try #require(observer.session)
            cloud.write("theirs", to: ["large"])
            #expect(
                await failure {
                    try await client.put(
                        Self.large,
                        to: .init(["large"]),
                        before: .file(first.revision),
                        session: session,
                        observer: observer
                    )
                } == .preconditionFailed
            )
            #expect(cloud.text("large") == "theirs" && observer.session == nil)
        }
    }

    @Test("a file that somebody made just before has its content and its name again")
    func lostRace() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client(partSize: 1 << 20)
            cloud.service.habits.races = 1
            #expect(await failure { try await client.put("mine", to: "small") } == .nameTaken)
            #expect(cloud.text("small") == "theirs")
            cloud.service.habits.races = 1
            #expect(
                await failure { try await client.put(Self.large, to: .init(["large"])) }
                    == .nameTaken
            )
            #expect(cloud.text("large") == "theirs")
            // What was sent is not lost either: it goes up under another name.
            try await client.put("mine", to: "small (2)")
        }
    }

    @Test("a new file whose answer is lost is there, and wrote over nothing of somebody else's")
    func lostCreation() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client()
            cloud.simulator.add(FaultRule(.doneButNoAnswer, at: "PUT spaces"))
            let entry = try await client.put("mine", to: "new")
            #expect(entry.size == 4 && cloud.item("new")?.revisions.count == 1)
            #expect(cloud.simulator.counts["PUT spaces"]?.calls == 1)
            cloud.simulator.add(FaultRule(.doneButNoAnswer, at: "PUT spaces"))
            cloud.service.habits.races = 1
            #expect(await failure { try await client.put("mine", to: "both") } == .nameTaken)
            #expect(cloud.text("both") == "theirs")
            // What never came is sent again by who asked for it.
            cloud.simulator.add(FaultRule(.noAnswer, at: "PUT spaces"))
            let kind = await failure { try await client.put("mine", to: "never") }
            #expect(kind == .outcomeUnknown(retryAfter: nil) && cloud.item("never") == nil)
        }
    }

    @Test(
        "a file that was written over is given back although that answer is lost",
        arguments: [Fault.doneButNoAnswer, .doneButStatus(504)]
    )
    func lostReturn(fault: Fault) async throws {
        try await OpenCloud.with { cloud in
            cloud.service.habits.races = 1
            cloud.simulator.add(FaultRule(fault, at: "COPY versions"))
            let kind = await failure { try await cloud.client().put("mine", to: "file") }
            #expect(kind == .nameTaken)
            #expect(cloud.text("file") == "theirs")
        }
    }

    @Test("a file that could not be given back is unknown, and the very same content needs not be")
    func noReturn() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client()
            cloud.service.habits.races = 1
            cloud.simulator.add(FaultRule(.noAnswer, at: "COPY versions"))
            let kind = await failure { try await client.put("mine", to: "left") }
            #expect(kind == .outcomeUnknown(retryAfter: nil) && cloud.text("left") == "mine")
            cloud.service.habits.races = 1
            let entry = try await client.put("theirs", to: "same")
            #expect(entry.size == 6 && cloud.text("same") == "theirs")
        }
    }

    @Test("which of several versions was written over is not guessed")
    func severalVersions() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client()
            cloud.service.habits.raceTexts = ["theirs", "theirs, too"]
            cloud.service.habits.races = 1
            let kind = await failure { try await client.put("mine", to: "file") }
            #expect(kind == .outcomeUnknown(retryAfter: nil) && cloud.text("file") == "mine")
            #expect(cloud.item("file")?.revisions.count == 3)
        }
    }

    @Test("what the server looks over for long has an unknown outcome, and is not sent again")
    func longProcessing() async throws {
        try await OpenCloud.with { cloud in
            let client = cloud.client(partSize: 1 << 20)
            for bytes in [Array("small".utf8), Self.large] {
                let path = RemotePath(["\(bytes.count)"])
                let observer = Remembering()
                cloud.service.habits.processing = 9
                let kind = await failure {
                    try await client.put(bytes, to: path, observer: observer)
                }
                guard case .outcomeUnknown = kind else {
                    Issue.record("\(String(describing: kind))")
                    return
                }
                cloud.simulator.clearCalls()
                cloud.service.habits.processing = 0
                if let session = observer.session {
                    let entry = try await client.put(bytes, to: path, session: session)
                    #expect(entry.size == Int64(bytes.count))
                    #expect(cloud.simulator.counts["PATCH data"] == nil)
                } else {
                    while await failure({ _ = try await client.entry(at: path) }) == .locked {}
                    #expect(try await client.entry(at: path).size == Int64(bytes.count))
                }
                #expect(cloud.item("\(bytes.count)")?.revisions.count == 1)
            }
        }
    }
}
