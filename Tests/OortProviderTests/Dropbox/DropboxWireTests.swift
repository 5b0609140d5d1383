import OortModel
import OortTransport
import Testing

@testable import OortDropbox

@Suite("Dropbox: wire and errors")
struct DropboxWireTests {
    @Test("the content hash of no bytes is that of the documentation")
    func emptyHash() {
        #expect(
            DropboxContentHasher().finalize().value
                == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        )
    }

    @Test(
        "the content hash does not depend on how the bytes arrive",
        arguments: [1000, 4096, 70_001]
    )
    func hashInPieces(_ piece: Int) {
        let bytes = (0..<(9 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        var whole = DropboxContentHasher()
        whole.update(bytes[...])
        var pieces = DropboxContentHasher()
        for start in stride(from: 0, to: bytes.count, by: piece * 64) {
            pieces.update(bytes[start..<min(bytes.count, start + piece * 64)])
        }
        #expect(pieces.finalize() == whole.finalize())
    }

    @Test("an argument in a header field is of ASCII only, beyond the BMP as surrogates")
    func headerText() throws {
        let text = try DropboxWire.headerText(DropboxWire.PathArgument(path: "/Grüße 🌋"))
        #expect(text == #"{"path":"/Gr\u00fc\u00dfe \ud83c\udf0b"}"#)
    }

    private static let errorTable: [(Int, String, ProviderError.Kind)] = [
        (409, #"{"error":{".tag":"path","path":{".tag":"not_found"}}}"#, .notFound),
        (409, #"{"error":{".tag":"reset"}}"#, .cursorLost),
        (
            409,
            #"{"error":{".tag":"path","reason":{".tag":"conflict","conflict":{".tag":"file"}},"upload_session_id":"x"}}"#,
            .nameTaken
        ),
        (
            409,
            #"{"error":{".tag":"to","to":{".tag":"conflict","conflict":{".tag":"file_ancestor"}}}}"#,
            .notAFolder
        ),
        (409, #"{"error":{".tag":"cant_move_folder_into_itself"}}"#, .moveIntoItself),
        (409, #"{"error":{".tag":"too_many_files"}}"#, .limitExceeded),
        (
            409,
            #"{"error":{".tag":"lookup_failed","lookup_failed":{".tag":"incorrect_offset","correct_offset":4}}}"#,
            .sessionLost
        ),
        (
            409, #"{"error":{".tag":"path","path":{".tag":"team_folder_insufficient_space"}}}"#,
            .quotaExceeded
        ),
        (409, #"{"error":{".tag":"something_new"}}"#, .badRequest),
        (409, "<html>", .malformedAnswer),
        (401, #"{"error":{".tag":"missing_scope","required_scope":"x"}}"#, .noPermission),
        (401, #"{"error":{".tag":"invalid_access_token"}}"#, .signedOut),
        (
            429, #"{"error":{"reason":{".tag":"too_many_requests"},"retry_after":15}}"#,
            .rateLimited(retryAfter: .seconds(15))
        ),
        (429, "too many", .rateLimited(retryAfter: .seconds(1))),
        (503, "", .outcomeUnknown(retryAfter: nil)),
        (400, "Error in call to API function", .badRequest),
    ]

    @Test("each error has its kind", arguments: errorTable)
    func errorKinds(_ status: Int, _ body: String, _ kind: ProviderError.Kind) {
        let response = HTTPResponse(
            head: HTTPResponseHead(status: status, headers: [], httpVersion: "1.1"),
            body: Array(body.utf8)
        )
        #expect(DropboxErrors.error(response).kind == kind)
    }

    @Test("a batch's entry is read in each of its shapes")
    func batchEntries() throws {
        let shapes = [
            #"{".tag":"success","metadata":{".tag":"file","name":"a","id":"id:1","path_display":"/a"}}"#,
            #"{".tag":"success","success":{".tag":"file","name":"a","id":"id:1","path_display":"/a"}}"#,
            #"{".tag":"success","name":"a","id":"id:1","path_display":"/a","rev":"012345678"}"#,
        ]
        for shape in shapes {
            let entry = try DropboxWire.decode(
                DropboxWire.BatchEntry.self,
                from: Array(shape.utf8)
            )
            #expect(Item(try entry.outcome())?.kind == .file)
        }
        let failed = try DropboxWire.decode(
            DropboxWire.BatchEntry.self,
            from: Array(
                #"{".tag":"failure","failure":{".tag":"relocation_error","relocation_error":{".tag":"to","to":{".tag":"conflict","conflict":{".tag":"file"}}}}}"#
                    .utf8
            )
        )
        #expect(throws: ProviderError.self) { try failed.outcome() }
        #expect(failed.failure?.tags == ["relocation_error", "to", "conflict", "file"])
    }

    @Test("hostile names and paths make no item", arguments: ["a/b", "", "/"])
    func hostileNames(_ name: String) {
        let metadata = DropboxWire.Metadata(
            tag: "file",
            name: name,
            path_display: "/" + name,
            id: "id:1"
        )
        #expect(Item(metadata) == nil)
    }
}
