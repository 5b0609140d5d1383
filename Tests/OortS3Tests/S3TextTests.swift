import OortModel
import OortTransport
import Testing

@testable import OortS3

@Suite("names and texts of S3")
struct S3TextTests {
    @Test(
        "a part of a key is shown by a name that leads back to it",
        arguments: [
            ("", "\u{2205}"), (".", "\u{FF0E}"), ("..", "\u{FF0E}\u{FF0E}"),
            ("\u{2205}", "\u{201B}\u{2205}"), ("\u{201B}\u{2205}", "\u{201B}\u{201B}\u{2205}"),
            ("\u{FF0E}", "\u{201B}\u{FF0E}"), ("a\u{FF0F}", "a\u{201B}\u{FF0F}"),
            ("a\u{201B}\u{FF0F}", "a\u{201B}\u{201B}\u{201B}\u{FF0F}"),
            ("a\u{2205}", "a\u{2205}"), ("it\u{201B}s", "it\u{201B}s"), ("...", "..."),
            ("e\u{301}", "e\u{301}"), ("\u{FF0F}", "\u{201B}\u{FF0F}"), ("a b+%#?&", "a b+%#?&"),
        ]
    )
    func names(_ part: String, _ name: String) {
        #expect(S3Names.name(of: part).isSameText(as: name))
        let back = S3Names.part(of: name)
        #expect(back.part.isSameText(as: part))
        #expect(!back.isBesideFile)
        let beside = S3Names.part(of: S3Names.nameBesideFile(of: part))
        #expect(beside.part.isSameText(as: part))
        #expect(beside.isBesideFile)
    }

    @Test(
        "an object's size is within bounds, or the answer is not of the protocol",
        arguments: [
            ("0", 0), ("9007199254740992", 1 << 53), ("9007199254740993", nil),
            ("9223372036854775807", nil), ("9223372036854775808", nil), ("-1", nil), ("1e3", nil),
            ("", nil),
        ] as [(String, Int64?)]
    )
    func sizes(_ text: String, _ size: Int64?) throws {
        let listing = try S3Element(
            document: Array(
                """
                <ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>a</Key>\
                <Size>\(text)</Size><ETag>"t"</ETag></Contents></ListBucketResult>
                """.utf8
            )
        )
        let page = try? S3Page(listing, byTokens: true)
        #expect(page?.objects.first?.size == size)
        let head = HTTPResponseHead(
            status: 200,
            headers: [
                ("Content-Length", text), ("ETag", "\"t\""), ("Content-Range", "bytes 0-0/\(text)"),
            ],
            httpVersion: "1.1"
        )
        let object = try? S3Head(head)
        #expect(object?.size == size)
        #expect(head.wholeSize == size)
    }

    @Test("random texts of signs lead to a part and back to themselves")
    func randomNames() {
        var numbers = SystemRandomNumberGenerator()
        let letters: [Unicode.Scalar] = ["\u{201B}", "\u{2205}", "\u{FF0E}", "\u{FF0F}", "a", "."]
        for _ in 0..<20_000 {
            var view = String.UnicodeScalarView()
            for _ in 0..<Int.random(in: 1...5, using: &numbers) {
                if let letter = letters.randomElement(using: &numbers) { view.append(letter) }
            }
            let text = String(view)
            // As a name of the file system.
            if S3Names.refusal(of: text, prefix: "") == nil {
                let name = S3Names.name(of: S3Names.part(of: text).part)
                #expect(name.isSameText(as: text), "\(text)")
            }
            // As a part of a key.
            #expect(S3Names.part(of: S3Names.name(of: text)).part.isSameText(as: text), "\(text)")
        }
    }

    @Test("names that only show something in the bucket are not given to new files")
    func refusals() {
        for name in ["", ".", "..", "a/b", "\u{2205}", "\u{FF0E}", "a\u{FF0F}", ".oort-folder"] {
            #expect(S3Names.refusal(of: name, prefix: "") != nil, "\(name)")
        }
        for name in ["a", "it\u{201B}s", "\u{201B}\u{2205}", "…", " ", "a\\b", "a\nb"] {
            #expect(S3Names.refusal(of: name, prefix: "") == nil, "\(name)")
        }
        let long = String(repeating: "é", count: 511)
        #expect(S3Names.refusal(of: long, prefix: "") == nil)
        #expect(S3Names.refusal(of: long, prefix: "home/") == .tooLong)
    }

    @Test("keys are encoded by one rule, and read back from either form")
    func encoding() {
        let key = "a b+c/é%~(1)!'*"
        #expect(
            S3Text.percentEncoded(key, keepsSlash: true)
                == "a%20b%2Bc/%C3%A9%25~%281%29%21%27%2A"
        )
        #expect(S3Text.formDecoded("a+b%2Bc%2f%C3%A9") == "a b+c/é")
        #expect(S3Text.formDecoded("a%2") == nil)
        #expect(S3Text.formDecoded("%FF") == nil)
    }

    @Test("a key has its address at AWS, in China, in the host's name and in the path")
    func addresses() {
        var place = S3Place(bucket: "photos", prefix: "p", region: "eu-west-1", isPathStyle: false)
        #expect(place.prefix == "p/")
        #expect(
            place.url(of: "p/a b+é", region: "eu-west-1")
                == "https://photos.s3.eu-west-1.amazonaws.com/p/a%20b%2B%C3%A9"
        )
        #expect(
            place.url(of: nil, [("list-type", "2"), ("prefix", "a/b")], region: "cn-north-1")
                == "https://photos.s3.cn-north-1.amazonaws.com.cn/?list-type=2&prefix=a%2Fb"
        )
        place.isPathStyle = true
        #expect(
            place.url(of: "x", region: "eu-west-1")
                == "https://s3.eu-west-1.amazonaws.com/photos/x"
        )
        #expect(place.accountID == "https://s3.amazonaws.com/photos/p/")
        place.endpoint = "http://nas.lan:9000/base"
        #expect(
            place.url(of: nil, [("uploads", "")], region: "r")
                == "http://nas.lan:9000/base/photos?uploads="
        )
        #expect(place.url(of: "//x", region: "r") == "http://nas.lan:9000/base/photos///x")
        place.isPathStyle = false
        #expect(place.url(of: "x", region: "r") == "http://photos.nas.lan:9000/base/x")
        #expect(place.title == "photos/p at nas.lan:9000")
    }

    @Test(
        "XML that is cut, or more than one document, is none",
        arguments: [
            "", "<", "<a", "<a>", "<a><b></a></b>", "<a/><b/>", "<a></a>x", "<a>&x;</a>",
            "<!DOCTYPE a><a/>", "<a>&#0;</a>", "<a b=c/>", "<a b='/>", "<a><![CDATA[</a>", "text",
            "<a><!DOCTYPE b></a>",
        ]
    )
    func refusedXML(_ text: String) {
        #expect(throws: ProviderError.self) { try S3Element(document: Array(text.utf8)) }
    }

    @Test("XML of every form that stores write is read")
    func xml() throws {
        let text = """
              \n<?xml version="1.0" encoding="UTF-8"?>
            <!-- a > b --><ns:R xmlns:ns='u"v'><A>&quot;x&#34;&#x20AC;&amp;</A><A  /><B ><![CDATA[<]]>
            </B><C>é</C></ns:R>  
            """
        let root = try S3Element(document: Array(text.utf8))
        #expect(root.name == "R")
        #expect(root.all("A").map(\.text) == ["\"x\"€&", ""])
        #expect(root.text(of: "B") == "<\n")
        #expect(root.text(of: "C") == "é")
        let whole = Array(text.utf8.dropLast(2))
        for count in 0..<whole.count {
            #expect(throws: ProviderError.self) { try S3Element(document: Array(whole[..<count])) }
        }
        #expect(throws: ProviderError.self) { try S3Element(document: [0x3C, 0x61, 0xFF, 0x2F]) }
    }
}
