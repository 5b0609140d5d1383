import OortModel
import Testing

@testable import OortFTP

@Suite("Listings for programs")
struct FTPFactsTests {
    private func facts(_ line: String) -> FTPFacts? { FTPFacts(Array(line.utf8)) }

    @Test("a line is read with all of its facts")
    func line() {
        let facts = facts(
            "modify=20261123153240;perm=adfrw;size=3;type=file;unique=FE00UF781E5;UNIX.mode=0644; a file"
        )
        #expect(facts?.name == Array("a file".utf8))
        #expect(facts?.kind == .file)
        #expect(facts?.size == 3)
        #expect(facts?.modified == "20261123153240")
        #expect(facts?.time == Timestamp(seconds: 1_795_447_960))
        #expect(facts?.unique == "FE00UF781E5")
        #expect(facts?.mode == 0o644)
    }

    @Test("whether a folder may be entered is said or not")
    func entering() {
        #expect(facts("perm=flcdmpe;type=dir; a")?.mayEnter == true)
        #expect(facts("Perm=FLCDMP;type=dir; a")?.mayEnter == false)
        #expect(facts("perm=;type=dir; a")?.mayEnter == false)
        #expect(facts("type=dir; a")?.mayEnter == nil)
    }

    @Test("facts come in any case and order, and a last semicolon may be missing")
    func tolerant() {
        let facts = facts("Size=7;TYPE=File;MODIFY=20200229000000.250 x;y=z ")
        #expect(facts?.name == Array("x;y=z ".utf8))
        #expect(facts?.kind == .file)
        #expect(facts?.size == 7)
        #expect(facts?.time == Timestamp(seconds: 1_582_934_400, nanoseconds: 250_000_000))
    }

    @Test(
        "every kind is known for what it is",
        arguments: [
            ("dir", FTPFacts.Kind.folder), ("cdir", .listed), ("pdir", .listed),
            ("OS.unix=slink:/elsewhere", .other), ("OS.unix=symlink", .other),
            ("OS.unix=chr-13/29", .other), ("", .other),
        ]
    )
    func kinds(type: String, kind: FTPFacts.Kind) {
        #expect(facts("type=\(type);modify=20261123153240; name")?.kind == kind)
    }

    @Test("the dots are the folder itself and the one above, whatever is said of them")
    func dots() {
        #expect(facts("type=dir; .")?.kind == .listed)
        #expect(facts("type=dir; ..")?.kind == .listed)
        #expect(facts("type=dir; ...")?.kind == .folder)
    }

    @Test(
        "what is no size is none",
        arguments: [
            ("0", 0 as Int64?), ("9007199254740992", 1 << 53), ("9007199254740993", nil),
            ("9223372036854775807", nil), ("9223372036854775808", nil),
            ("99999999999999999999999999", nil), ("-1", nil), ("+1", nil), ("1e3", nil), ("", nil),
            (" ", nil),
        ]
    )
    func sizes(text: String, size: Int64?) {
        #expect(facts("type=file;size=\(text); name")?.size == size)
    }

    @Test("spaces belong to the name")
    func spaces() {
        #expect(facts("type=file;size=1;   two in front")?.name == Array("  two in front".utf8))
        #expect(facts("type=file;size=1; behind ")?.name == Array("behind ".utf8))
        #expect(facts("type=file;size=1; ") == nil)
        #expect(facts("type=file;size=1;") == nil)
    }

    @Test("a listing that broke off is none")
    func brokenOff() {
        let whole = "type=file;size=1; a\r\ntype=file;size=2; b\r\n"
        #expect(FTPFacts.listing(Array(whole.utf8))?.count == 2)
        #expect(FTPFacts.listing(Array(whole.utf8.dropLast(2))) == nil)
        #expect(FTPFacts.listing([])?.isEmpty == true)
    }

    @Test("a name with a line break is left out, and nothing else is")
    func lineBreak() {
        let text = "type=file;size=1; a\ntype=file;size=1; torn\nhere\ntype=dir; c\n"
        let names = FTPFacts.listing(Array(text.utf8))?.map {
            String(decoding: $0.name, as: UTF8.self)
        }
        #expect(names == ["a", "c"])
    }

    @Test("names that are no UTF-8 come through")
    func bytes() {
        let line = Array("type=file;size=1; l".utf8) + [0xE4] + Array("t".utf8)
        #expect(FTPFacts(line)?.name == [0x6C, 0xE4, 0x74])
    }

    @Test(
        "times are read and written",
        arguments: [
            ("19700101000000", 0 as Int64), ("19691231235959", -1), ("20000229120000", 951_825_600),
            ("20261123153240", 1_795_447_960), ("99991231235959", 253_402_300_799),
            ("00010101000000", -62_135_596_800), ("19000301000000", -2_203_891_200),
        ]
    )
    func times(text: String, seconds: Int64) {
        #expect(FTPTime.parse(text) == Timestamp(seconds: seconds))
        #expect(FTPTime.text(Timestamp(seconds: seconds)) == text)
    }

    @Test(
        "what is no time is none",
        arguments: ["", "2026112315324", "20261323153240", "20261100153240", "20261123246000", "x"]
    )
    func noTimes(text: String) { #expect(FTPTime.parse(text) == nil) }

    @Test("times outside of what can be written are written as the nearest")
    func farTimes() {
        #expect(FTPTime.text(Timestamp(seconds: .max)) == "99991231235959")
        #expect(FTPTime.text(Timestamp(seconds: .min)) == "00010101000000")
    }

    // MARK: Replies

    private func replies(_ lines: String...) -> [FTPReply] {
        var replies = FTPReplies()
        for line in lines { replies.take(line: Array((line + "\r\n").utf8)) }
        return replies.all
    }

    @Test("a reply of several lines is one")
    func replies() {
        let all = replies(
            "220-Welcome",
            "220 not yet",
            "211-Features:",
            " MLST type*;",
            "250 looks like an end",
            "211 End",
            "550 No"
        )
        #expect(all.map(\.code) == [220, 211, 550])
        #expect(all[1].lines.count == 4)
    }

    @Test("MLST's answer is read, with and without the space in front")
    func answer() {
        for space in [" ", ""] {
            let all = replies(
                "250-Listing",
                "\(space)type=dir;modify=20261123153240; /a b",
                "250 End"
            )
            #expect(all.first.flatMap { FTPFacts($0) }?.kind == .folder)
        }
        #expect(FTPFacts(FTPReply(code: 550, lines: [Array("type=file; x".utf8)])) == nil)
    }

    @Test("only the system's own words say that nothing is there")
    func missing() throws {
        let path = try #require(FTPPath(absolute: Array("/a".utf8)))
        func says(_ words: String, _ code: Int = 550) -> Bool {
            FTPReply(code: code, lines: [Array(words.utf8)]).saysMissing(of: path)
        }
        #expect(says("/a: No such file or directory"))
        #expect(says("No such file or directory."))
        #expect(!says("No such file or directory", 450))
        #expect(!says("/a: Permission denied"))
        #expect(!says("'/a' cannot be listed"))
        let odd = try #require(FTPPath(absolute: Array("/No such file or directory".utf8)))
        let words = "Permission denied: /No such file or directory"
        #expect(!FTPReply(code: 550, lines: [Array(words.utf8)]).saysMissing(of: odd))
    }

    @Test("a quoted path is read, quotation marks in it too")
    func quoted() {
        let reply = FTPReply(code: 257, lines: [Array(#""/a ""b""/c" is the folder"#.utf8)])
        #expect(FTPClient.quoted(reply) == Array(#"/a "b"/c"#.utf8))
        #expect(FTPClient.quoted(FTPReply(code: 257, lines: [Array("\"/a".utf8)])) == nil)
    }

    @Test(
        "a login is refused by its user and password only where the server says so for good",
        arguments: [
            (530, "Login incorrect.", .loginRefused), (530, "Too many users.", .tooMany),
            (421, "Service not available.", .tooMany),
            (431, "The accounts' database is away.", .unreachable),
            (451, "Local error.", .unreachable),
        ] as [(Int, String, FTPFailure.Kind)]
    )
    func login(code: Int, words: String, kind: FTPFailure.Kind) {
        #expect(FTPReply(code: code, lines: [Array(words.utf8)]).loginRefusal == kind)
    }
}
