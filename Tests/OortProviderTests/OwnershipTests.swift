import Foundation
import OortModel
import Testing

@testable import OortDropbox
@testable import OortGoogleDrive
@testable import OortOneDrive

/// Whose an item is, by each service's reports; an item without such a report is not the account's own.
@Suite("whose an item is")
struct OwnershipTests {
    @Test(
        "at Dropbox, what lies in no shared folder",
        arguments: [
            ("", true), (#","sharing_info":{"read_only":true}"#, false),
            (#","sharing_info":{"read_only":false,"parent_shared_folder_id":"1"}"#, false),
        ]
    )
    func dropbox(_ fields: String, _ isOwn: Bool) throws {
        let json = #"{".tag":"file","name":"f","path_display":"/f","id":"id:1"\#(fields)}"#
        let wire = try DropboxWire.decode(DropboxWire.Metadata.self, from: Array(json.utf8))
        #expect(Item(wire)?.isOwn == isOwn)
    }

    @Test(
        "at Drive, what is owned and was last changed by this account",
        arguments: [
            (#""ownedByMe":true"#, true), (#""ownedByMe":false"#, false),
            (#""driveId":"d""#, false),
            (#""ownedByMe":true,"lastModifyingUser":{"me":true}"#, true),
            (#""ownedByMe":true,"lastModifyingUser":{"me":false}"#, false),
            (#""ownedByMe":false,"lastModifyingUser":{"me":true}"#, false),
        ]
    )
    func drive(_ fields: String, _ isOwn: Bool) throws {
        let json = #"{"id":"1","name":"f",\#(fields)}"#
        let file = try JSONDecoder().decode(DriveFile.self, from: Data(json.utf8))
        #expect(file.item(parent: nil).isOwn == isOwn)
    }

    @Test(
        "at OneDrive, what was made and last changed by this account, in its own drive",
        arguments: [
            (#"{"user":{"id":"me"}}"#, #"{"user":{"id":"me"}}"#, "mine", true),
            (#"{"user":{"id":"me"}}"#, #"{"user":{"id":"me"}}"#, "other", false),
            (#"{"user":{"id":"x"}}"#, #"{"user":{"id":"me"}}"#, "mine", false),
            (#"{"user":{"id":"me"}}"#, #"{"user":{"id":"x"}}"#, "mine", false),
            ("null", #"{"user":{"id":"me"}}"#, "mine", false),
            (#"{"user":{}}"#, "{}", "mine", false), ("null", "null", "mine", false),
        ]
    )
    func oneDrive(_ maker: String, _ writer: String, _ drive: String, _ isOwn: Bool) throws {
        let json =
            #"{"id":"1","name":"f","file":{},"createdBy":\#(maker),"lastModifiedBy":\#(writer)}"#
        let wire = try OneDriveAPI.decode(DriveItemWire.self, from: Array(json.utf8))
        let memory = OneDriveMemory()
        #expect(OneDriveItems.item(wire, drive: drive, memory: memory)?.isOwn == false)
        memory.drive = OneDriveMemory.Drive(
            id: "mine",
            type: "personal",
            rootItem: "root",
            ownerID: "me",
            ownerName: "Me"
        )
        #expect(OneDriveItems.item(wire, drive: drive, memory: memory)?.isOwn == isOwn)
    }
}
