import OortModel
import SwiftSFTP
import Testing

@testable import OortSFTP

/// What a server says of a file, as the tree takes it.
@Suite("SFTP's entries")
struct SFTPEntryTests {
    @Test(
        "a size that no file has is taken for the largest one",
        arguments: [.max, 1 << 63, 1 << 54]
    )
    func absurdSize(_ size: UInt64) throws {
        var attributes = SFTPAttributes()
        attributes.size = size
        let entry = try #require(SFTPClient.entry("file", attributes, target: nil))
        #expect(entry.size == ReportedSize.largest)
    }
}
