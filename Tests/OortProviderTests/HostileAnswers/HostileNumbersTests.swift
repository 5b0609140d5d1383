import Foundation
import OortModel
import OortTransport
import Testing

@testable import OortDropbox
@testable import OortGoogleDrive
@testable import OortOneDrive

/// Numbers that no service should send, through each provider's reading of them.
@Suite("hostile numbers")
struct HostileNumbersTests {
    static let sizes: [(json: String, bytes: Int64?)] = [
        ("0", 0), ("12", 12), ("9007199254740992", 1 << 53),
        ("9223372036854775807", nil), ("9223372036854775297", nil), ("-1", nil),
        ("-9223372036854775808", nil), ("9223372036854775808", nil), ("1e99", nil), ("{}", nil),
    ]

    @Test("a file's size is within bounds, or the answer is not of the protocol", arguments: sizes)
    func fileSizes(_ json: String, _ bytes: Int64?) {
        let dropbox = try? DropboxWire.decode(
            DropboxWire.Metadata.self,
            from: Array(
                #"{".tag":"file","name":"f","path_display":"/f","id":"id:1","size":\#(json)}"#.utf8
            )
        )
        #expect(dropbox.flatMap { Item($0) }?.size == bytes)
        #expect((dropbox == nil) == (bytes == nil))
        let drive = try? JSONDecoder().decode(
            DriveFile.self,
            from: Data(#"{"id":"1","name":"f","size":"\#(json)"}"#.utf8)
        )
        #expect(drive?.item(parent: nil).size == bytes)
        #expect((drive == nil) == (bytes == nil))
        let older = try? JSONDecoder().decode(
            DriveFileV2.self,
            from: Data(#"{"id":"1","title":"f","fileSize":"\#(json)"}"#.utf8)
        )
        #expect(older?.v3.item(parent: nil).size == bytes)
        for body in [
            #"{"id":"1","name":"f","file":{},"size":\#(json)}"#,
            #"{"id":"1","name":"f","remoteItem":{"id":"2","file":{},"size":\#(json),"#
                + #""parentReference":{"driveId":"d"}}}"#,
        ] {
            let wire = try? OneDriveAPI.decode(DriveItemWire.self, from: Array(body.utf8))
            let item = wire.flatMap { OneDriveItems.item($0, drive: "x", memory: OneDriveMemory()) }
            #expect(item?.size == bytes)
            #expect((wire == nil) == (bytes == nil))
        }
    }

    @Test(
        "Dropbox may ask for a wait of an hour at most",
        arguments: [
            ("1", 1), ("10000000", 3600), ("9223372036854775807", 3600), ("-5", 0),
            ("9223372036854775808", 1), ("\"x\"", 1),
        ] as [(String, Int64)]
    )
    func waits(_ json: String, _ seconds: Int64) {
        let body =
            #"{"error":{"reason":{".tag":"too_many_requests"},"retry_after":\#(json)}}"#
        let answer = HTTPResponse(
            head: HTTPResponseHead(status: 429, headers: [], httpVersion: "1.1"),
            body: Array(body.utf8)
        )
        #expect(DropboxErrors.error(answer).retryAfter == .seconds(seconds))
    }
}
