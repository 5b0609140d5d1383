import Foundation
import Testing

@testable import oort

/// A folder of a test's own that goes with it.
final class TemporaryFolder: Sendable {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "oort-test-" + UUID().uuidString.prefix(8)
        try FileManager.default.createDirectory(
            atPath: path,
            withIntermediateDirectories: true
        )
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// The folders of a user whose files are all in here.
    func folders() throws -> Folders {
        try Folders(environment: [
            "HOME": path, "XDG_CONFIG_HOME": path + "/c", "XDG_STATE_HOME": path + "/s",
            "XDG_CACHE_HOME": path + "/k", "XDG_RUNTIME_DIR": path + "/r",
        ])
    }
}
