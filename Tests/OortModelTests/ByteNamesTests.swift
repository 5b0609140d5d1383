import OortModel
import Testing

@Suite("names that are bytes")
struct ByteNamesTests {
    @Test("what a listing shows gives its bytes back, and is no problem as a new name")
    func roundTrip() {
        for bytes: [UInt8] in [
            Array("plain".utf8), Array("‛quote".utf8), Array("‛‛".utf8), [0xFF, 0xFE],
            [0x61, 0x80, 0x62], Array("‛FE".utf8), Array("🌋".utf8),
        ] {
            let text = ByteNames.text(bytes)
            #expect(ByteNames.bytes(text) == bytes)
            #expect(ByteNames.problem(text) == nil)
        }
    }

    @Test(
        "a text that no listing shows is a problem as a new name",
        arguments: ["‛", "‛quote", "a‛b", "‛41", "‛‛‛"]
    )
    func problems(_ text: String) { #expect(ByteNames.problem(text) != nil) }
}
