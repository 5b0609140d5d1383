import Foundation
import SwiftSFTP
import SystemPackage
import Testing

/// What a server sends is checked before it is believed.
@Suite("a server that breaks the protocol", .timeLimit(.minutes(15)))
struct HostileServerTests {
    private static let greeting = "\\000\\000\\000\\005\\002\\000\\000\\000\\003"

    /// What becomes of a listing at a server that answers every request with these bytes.
    private func listing(answers: String) async throws -> SFTPError.Kind? {
        let (process, transport) = try ServerProcess.start(
            "printf '\(Self.greeting)\(answers)'; exec sleep 600"
        )
        defer { ServerProcess.end(process) }
        return await failure {
            let session = try await SFTPSession.open(over: transport)
            _ = try await session.entries(of: SFTPPath("/"))
        }
    }

    @Test(
        "lengths, types and numbers that no packet has end the session",
        arguments: [
            "\\377\\377\\377\\377",
            "\\000\\000\\000\\000",
            "\\000\\000\\000\\005\\146\\000\\000\\000\\001",
            "\\000\\000\\000\\011\\146\\000\\000\\000\\001\\177\\377\\377\\377",
            "\\000\\000\\000\\005\\001\\000\\000\\000\\001",
            "\\000\\000\\000\\011\\145\\000\\000\\000\\143\\000\\000\\000\\000",
        ]
    )
    func malformed(answers: String) async throws {
        let kind = try await listing(answers: answers)
        // The answer can come before the request has left.
        #expect(kind == .malformedAnswer || kind == .connectionLost(mayHaveBeenDone: false))
    }

    @Test("text in place of the protocol is an error that quotes it")
    func chatter() async throws {
        let (process, transport) = try ServerProcess.start(
            "echo 'This account is closed.'; exit 0"
        )
        defer { ServerProcess.end(process) }
        do throws(SFTPError) {
            _ = try await SFTPSession.open(over: transport)
            Issue.record("a session with a shell")
        } catch { #expect(error.detail.contains("This account is closed.")) }
    }

    @Test("endless text ends, and a server that says nothing is given up")
    func endless() async throws {
        let (process, transport) = try ServerProcess.start("exec yes 'All work and no play'")
        defer { ServerProcess.end(process) }
        let kind = await failure { _ = try await SFTPSession.open(over: transport) }
        #expect(kind == .malformedAnswer)
        let (silent, silence) = try ServerProcess.start("exec sleep 600")
        defer { ServerProcess.end(silent) }
        let given = await failure {
            _ = try await SFTPSession.open(over: silence, patience: .milliseconds(50))
        }
        #expect(given == .connectionLost(mayHaveBeenDone: false))
    }

    @Test("a server that greets and answers nothing more is given up, one that owes nothing is not")
    func standstill() async throws {
        let (process, transport) = try ServerProcess.start(
            "printf '\(Self.greeting)'; exec sleep 600"
        )
        defer { ServerProcess.end(process) }
        let session = try await SFTPSession.open(over: transport, silence: .milliseconds(100))
        // It owes nothing yet, however long that lasts.
        try await Task.sleep(for: .milliseconds(300))
        let given = await failure { _ = try await session.attributes(of: SFTPPath("/")) }
        #expect(given == .connectionLost(mayHaveBeenDone: true))
        let after = await failure { _ = try await session.attributes(of: SFTPPath("/")) }
        #expect(after == .connectionLost(mayHaveBeenDone: false))
    }

    @Test("random answers neither crash nor hang")
    func random() async throws {
        let seed =
            ProcessInfo.processInfo.environment["OORT_SEED"].flatMap { UInt64($0) }
            ?? UInt64.random(in: 0...UInt64.max)
        print("OORT_SEED=\(seed)")
        var state = seed
        func next(_ bound: UInt64) -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (state >> 33) % bound
        }
        for _ in 0..<100 {
            var bytes: [UInt8] = [0, 0, 0, 5, 2, 0, 0, 0, 3]
            for id in 1...6 as ClosedRange<UInt8> {
                let type = [101, 102, 103, 104, 105, 201][Int(next(6))] as UInt8
                let body = (0..<next(40)).map { _ in UInt8(next(4) == 0 ? next(256) : next(3)) }
                bytes += [0, 0, 0, UInt8(5 + body.count), type, 0, 0, 0, id] + body
            }
            let file = NSTemporaryDirectory() + "sftp-\(UUID().uuidString)"
            try Data(bytes).write(to: URL(fileURLWithPath: file))
            defer { try? FileManager.default.removeItem(atPath: file) }
            let (process, transport) = try ServerProcess.start("cat '\(file)'")
            _ = await failure {
                let session = try await SFTPSession.open(over: transport)
                _ = try await session.attributes(of: SFTPPath("/"))
                _ = try await session.entries(of: SFTPPath("/"))
            }
            ServerProcess.end(process)
        }
    }
}
