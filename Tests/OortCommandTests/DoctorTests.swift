import Foundation
import Testing

@testable import oort

@Suite("The doctor", .timeLimit(.minutes(15)))
struct DoctorTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test("what FUSE lacks is found, each thing by itself")
    func fuse() async throws {
        let program = folder.path + "/fusermount3"
        try Data("#!/bin/sh\n".utf8).write(to: URL(filePath: program))
        unsafe chmod(program, 0o755)
        let configuration = folder.path + "/fuse.conf"
        var needs = MountRequirements(
            device: "/dev/null",
            configuration: configuration,
            searchPath: folder.path,
            user: 0
        )
        func troubles() async -> [String] {
            await MachineChecks.fuse(needs).filter { $0.state == .trouble }.map(\.message)
        }
        #expect(await troubles() == [])
        needs.device = folder.path + "/none"
        #expect(await troubles().first?.contains("/none cannot be opened") == true)
        needs.device = "/dev/null"
        try Data("mount_max = 0\n".utf8).write(to: URL(filePath: configuration))
        #expect(await troubles() == [], "root may mount as many as there are")
        needs.user = 1000
        needs.mountTable = folder.path + "/none"
        if needs.helper == "/usr/bin/fusermount3" {
            #expect(await troubles().contains { $0.contains("users cannot unmount") })
        }
        #expect(await troubles().contains { $0.contains("allows 0") })
    }

    @Test("a look that hangs ends with its time, and the others are not held up")
    func hanging() async throws {
        let (never, hold) = AsyncStream<Void>.makeStream()
        let checks = [
            Doctor.Check(name: "slow", limit: .milliseconds(50), advice: "wait") {
                for await _ in never {}
                return []
            },
            Doctor.Check(name: "quick", limit: .seconds(60), advice: "") { [.ok("quick", "is")] },
        ]
        let findings = await Doctor(checks).examine()
        hold.finish()
        #expect(findings.map(\.check) == ["slow", "quick"])
        #expect(findings.first?.state == .trouble)
        #expect(findings.first?.advice == "wait")
    }

    @Test("a folder that is another's, a link or no folder is found")
    func folders() async throws {
        let folders = try folder.folders()
        #expect(await MachineChecks.disk(folders).allSatisfy { $0.state == .ok })
        try Data().write(to: URL(filePath: folder.path + "/k"))
        try FileManager.default.createDirectory(
            atPath: folder.path + "/s",
            withIntermediateDirectories: true
        )
        try FileManager.default.createSymbolicLink(
            atPath: folders.state,
            withDestinationPath: folder.path
        )
        let troubles = await MachineChecks.disk(folders).filter { $0.state == .trouble }
        #expect(troubles.count == 2)
    }

    @Test(
        "a proxy's password is not shown",
        arguments: [
            ("http://ada:secret@proxy:3128", "http://proxy:3128"), ("ada:se@cret@proxy", "proxy"),
            ("http://proxy:3128/", "http://proxy:3128/"),
        ]
    )
    func proxy(address: String, shown: String) async throws {
        #expect(NetworkChecks.withoutPassword(address) == shown)
        let patient = await Patient(folders: try folder.folders())
        let finding = NetworkChecks(patient, environment: ["HTTPS_PROXY": address]).proxy()
        #expect(finding.message.contains(shown) && !finding.message.contains("cret"))
    }

    @Test("only what needs somebody makes the report an ill one")
    func report() {
        let ok = Finding.ok("fuse", "fine")
        let unknown = Finding.unknown("clock", "who knows")
        #expect(DoctorReport([ok, unknown]).isWell)
        let forged = Finding.trouble("disk", "a\nok  all\u{1B}[2J", advice: "one\ntwo")
        let report = DoctorReport([ok, forged])
        #expect(!report.isWell)
        #expect(
            report.text == """
                ok fuse  fine
                !! disk  a\\nok  all\\u{1b}[2J
                         one
                         two

                One thing needs you.
                """
        )
    }
}
