import ArgumentParser
import Foundation
import OortSimulators

/// Something that happens in a demo while a person looks.
enum DemoScene: String, CaseIterable, ExpressibleByArgument, Sendable {
    case edit
    case offline
    case full
    case conflict
    case slow
}

/// Plays one scene, and puts everything back as it was.
struct DemoPlay: Sendable {
    let demo: RunningDemo
    let account: String
    /// Hears that the clouds are as they were: the scene may end at any moment from now on.
    let cloudsAreBack: @Sendable () -> Void
    /// Waits until the scene is to end; shorter when Ctrl-C was pressed.
    let untilOver: @Sendable () async -> Void

    /// The list that all may read and change.
    private static let list = "Documents/Shopping list.txt"

    func play(_ scene: DemoScene) async throws(Failure) {
        switch scene {
        case .edit: try await edit()
        case .offline: try await offline()
        case .full: try await full()
        case .conflict: try await conflict()
        case .slow: try await slow()
        }
    }

    private func edit() async throws(Failure) {
        cloudsAreBack()
        let text = "bread\nbutter\napples\ntea\nolive oil, said Bob at \(Self.time)\n"
        Console.write("Bob changes \(Self.list) at the service, and adds a folder \"From Bob\" ...")
        let start = ContinuousClock.now
        try await write(text, to: Self.list)
        try await write("A note of \(Self.time).\n", to: "From Bob/note.txt")
        try await eventually("Bob's changes do not show") { content(Self.list) == text }
        try await eventually("Bob's folder does not show") { content("From Bob/note.txt") != nil }
        Console.write(
            """
            \(Self.seconds(since: start)) later both are in the mount, and nothing was asked for:

            $ cat \(path(Self.list))
            \(text)
            """
        )
    }

    private func offline() async throws(Failure) {
        // Before anything changes: the account may be one whose network cannot go.
        try await demo.control(account, "GET", "summary")
        let name = "written offline at \(Self.time).txt"
        try await whileOver(
            begin: { () async throws(Failure) in
                for cloud in demo.record.clouds.keys.sorted() {
                    try await demo.control(
                        cloud,
                        "POST",
                        "faults",
                        ["route": "*", "fault": "no_answer", "times": nil]
                    )
                }
                Console.write("The network is gone.")
            },
            during: { () async throws(Failure) in
                try save("Nobody but this machine has this yet.\n", as: name)
                Console.write(
                    """
                    A file was written meanwhile: \(path(name))

                    Try in another terminal:
                      ls -lR \(Shell.quoted(demo.folder(account)))
                      echo hello > \(Shell.quoted(path("mine.txt")))
                      oort status
                    """
                )
            },
            end: { () async throws(Failure) in
                for cloud in demo.record.clouds.keys.sorted() {
                    try await demo.control(cloud, "DELETE", "faults")
                }
                Console.write("The network is back ...")
            }
        )
        try await untilStored(name)
    }

    private func full() async throws(Failure) {
        let name = "too large at \(Self.time).bin"
        let size = 4_000_000
        try await whileOver(
            begin: { () async throws(Failure) in
                let used = JSON(parsing: try await demo.control(account, "GET", "summary"))?[
                    "bytes"
                ]
                try await demo.control(
                    account,
                    "PUT",
                    "account",
                    ["total_bytes": .integer((used?.integer ?? 0) + 1_000_000)]
                )
                Console.write("The account \(account) has 1 MB of room left.")
            },
            during: { () async throws(Failure) in
                try save(String(repeating: "x", count: size), as: name)
                Console.write(
                    """
                    A file of 4 MB was written: \(path(name))
                    The cloud refuses it, it stays whole here, and everything else goes on.

                    Try in another terminal:
                      oort status
                      ls -l \(Shell.quoted(demo.folder(account)))
                    """
                )
            },
            end: { () async throws(Failure) in
                try await demo.control(account, "PUT", "account", [:])
                Console.write("The account has room again ...")
            }
        )
        try await untilStored(name)
    }

    private func conflict() async throws(Failure) {
        let control = ControlClient(folders: demo.folders)
        let folder = (path(Self.list) as NSString).deletingLastPathComponent
        let before = Set((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [])
        _ = try await control.pause(PauseRequest(account: account, seconds: nil))
        do throws(Failure) {
            try save("bread\nmilk, you say at \(Self.time)\n", as: Self.list)
            Console.write("You change \(path(Self.list)),")
            try await write("bread\nwine, said Bob at \(Self.time)\n", to: Self.list)
            Console.write("and Bob changes it at the service before yours arrives ...")
        } catch {
            _ = try? await control.resume(ResumeRequest(account: account))
            throw error
        }
        _ = try await control.resume(ResumeRequest(account: account))
        cloudsAreBack()
        try await eventually("No conflict copy shows") { !added(in: folder, since: before).isEmpty }
        Console.write(
            """
            Both are there; nothing was overwritten:
              \(path(Self.list))
              \(added(in: folder, since: before).map { "\(folder)/\($0)" }.joined(separator: "\n  "))

            Try in another terminal:
              oort conflicts
              oort resolve \(Shell.quoted(path(Self.list))) --keep both
            """
        )
    }

    private func slow() async throws(Failure) {
        try await whileOver(
            begin: { () async throws(Failure) in
                try await demo.control(
                    account,
                    "PUT",
                    "weather",
                    [
                        "latency_ms": 800, "download_bytes_per_second": 200_000,
                        "upload_bytes_per_second": 100_000,
                    ]
                )
                Console.write(
                    "The line to \(account) is slow: 0.8 s a call, 200 kB/s down, 100 kB/s up."
                )
            },
            during: { () async throws(Failure) in
                let start = ContinuousClock.now
                var count = 0
                let walk = FileManager.default.enumerator(atPath: demo.folder(account))
                while walk?.nextObject() != nil { count += 1 }
                Console.write(
                    """
                    Listing all \(count) entries of \(demo.folder(account)) took \
                    \(Self.seconds(since: start)): no call was made for it.

                    Try in another terminal:
                      cp /usr/bin/bash \(Shell.quoted(demo.folder(account)))/   # returns at once
                      oort status --watch
                    """
                )
            },
            end: { () async throws(Failure) in
                try await demo.control(account, "PUT", "weather", [:])
                Console.write("The line is fast again.")
            }
        )
    }

    // The parts of scenes

    /// Changes the clouds for as long as the scene lasts, and puts them back whatever happens.
    private func whileOver(
        begin: () async throws(Failure) -> Void,
        during: () async throws(Failure) -> Void,
        end: () async throws(Failure) -> Void
    ) async throws(Failure) {
        do throws(Failure) {
            try await begin()
            try await during()
        } catch {
            try? await end()
            throw error
        }
        Console.write("\nCtrl-C ends this scene before its time.\n")
        await untilOver()
        try await end()
        cloudsAreBack()
    }

    private func path(_ name: String) -> String { "\(demo.folder(account))/\(name)" }

    private func content(_ name: String) -> String? {
        FileManager.default.contents(atPath: path(name)).map { String(decoding: $0, as: UTF8.self) }
    }

    private func added(in folder: String, since before: Set<String>) -> [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return names.filter { !before.contains($0) }.sorted()
    }

    /// Writes in the mount, as a program would.
    private func save(_ text: String, as name: String) throws(Failure) {
        do {
            try Data(text.utf8).write(to: URL(filePath: path(name)))
        } catch {
            throw Failure("\(path(name)) cannot be written: \(error.reason)")
        }
    }

    /// Writes at the service, as another client.
    private func write(_ text: String, to name: String) async throws(Failure) {
        if let folder = demo.record.folders[account] {
            return try Self.write(text, to: "\(folder)/\(name)")
        }
        try await demo.control(
            account,
            "POST",
            "edit",
            ["op": "write", "path": .string("/" + name), "text": .string(text)]
        )
    }

    /// Writes where a server of this machine has its files, in one step, as programs save.
    private static func write(_ text: String, to path: String) throws(Failure) {
        do {
            try FileManager.default.createDirectory(
                atPath: (path as NSString).deletingLastPathComponent,
                withIntermediateDirectories: true
            )
            try Data(text.utf8).write(to: URL(filePath: path), options: .atomic)
        } catch {
            throw Failure("\(path) cannot be written: \(error.reason)")
        }
    }

    private func untilStored(_ name: String) async throws(Failure) {
        let start = ContinuousClock.now
        let last = try await ControlClient(folders: demo.folders)
            .sync(SyncRequest(path: demo.folder(account), timeoutSeconds: 120)) { _ in }
        let query = name.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? name
        guard last.state == .done else {
            throw Failure("\(name) is not in the cloud yet.", advice: "See `oort status`.")
        }
        try await demo.control(account, "GET", "content?path=/\(query)")
        Console.write("\(Self.seconds(since: start)) later the cloud has \"\(name)\".")
    }

    private func eventually(
        _ failure: String,
        _ condition: () -> Bool
    ) async throws(Failure) {
        let limit = ContinuousClock.now + .seconds(60)
        while !condition() {
            guard ContinuousClock.now < limit else {
                throw Failure("\(failure).", advice: "See `oort status` in the demo's terminal.")
            }
            try? await Task.sleep(for: .milliseconds(100))
        }
    }

    private static var time: String {
        Date.now.formatted(
            Date.VerbatimFormatStyle(
                format:
                    "\(hour: .twoDigits(clock: .twentyFourHour, hourCycle: .zeroBased)).\(minute: .twoDigits).\(second: .twoDigits)",
                timeZone: .current,
                calendar: Calendar(identifier: .gregorian)
            )
        )
    }

    private static func seconds(since start: ContinuousClock.Instant) -> String {
        let parts = (ContinuousClock.now - start).components
        let seconds = Double(parts.seconds) + Double(parts.attoseconds) / 1e18
        return String(format: "%.1f s", seconds)
    }
}
