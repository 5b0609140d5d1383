import Foundation
import OortModel
import Testing

@testable import oort

@Suite("Thumbnails")
struct ThumbnailTests {
    /// A picture of one pixel.
    private static let pixel = Data(
        base64Encoded: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAC"
            + "hwGA60e6kgAAAABJRU5ErkJggg=="
    )

    @Test("a thumbnail is named as the standard's example is")
    func names() {
        let address = ThumbnailFolder.address(of: "/home/jens/photos/me.png")
        #expect(address == "file:///home/jens/photos/me.png")
        #expect(ThumbnailFolder.name(of: address) == "c6ee772d9e49320e97ec29a7eb5b1697.png")
    }

    @Test("addresses are written as GLib writes them")
    func addresses() {
        #expect(
            ThumbnailFolder.address(of: "/a b/ä!$&'()*+,;=:@~[]#?%")
                == "file:///a%20b/%C3%A4!$&'()*+,%3B=:@~%5B%5D%23%3F%25"
        )
    }

    @Test("texts replace those that a picture has; what is no whole picture is refused")
    func pictureTexts() throws {
        let png = [UInt8](try #require(Self.pixel))
        let first = try #require(PNGText.replacing([("Thumb::MTime", "1")], in: png))
        let second = try #require(
            PNGText.replacing([("Thumb::MTime", "22"), ("Software", "Oort")], in: first)
        )
        #expect(PNGText.texts(in: second) == ["Thumb::MTime": "22", "Software": "Oort"])
        #expect(PNGText.texts(in: png) == [:])
        for count in 0..<png.count {
            #expect(PNGText.replacing([], in: Array(png.prefix(count))) == nil)
            _ = PNGText.texts(in: Array(png.prefix(count)))
        }
        var huge = png
        huge.replaceSubrange(8..<12, with: [0xFF, 0xFF, 0xFF, 0xFF])
        #expect(PNGText.replacing([], in: huge) == nil && PNGText.texts(in: huge) == nil)
    }

    @Test("a thumbnail is there once it is there in all sizes, for one time of the file")
    func kept() throws {
        let folder = try TemporaryFolder()
        let thumbnails = ThumbnailFolder(
            environment: ["XDG_CACHE_HOME": folder.path],
            home: "/nowhere"
        )
        let png = [UInt8](try #require(Self.pixel))
        let address = ThumbnailFolder.address(of: "/clouds/drive/a.jpg")
        let modified = Timestamp(seconds: 1_700_000_000)
        try thumbnails.put(png, .normal, of: address, modified: modified)
        #expect(!thumbnails.has(address, modified: modified))
        try thumbnails.put(png, .large, of: address, modified: modified)
        #expect(thumbnails.has(address, modified: modified))
        #expect(!thumbnails.has(address, modified: Timestamp(seconds: 1_700_000_001)))
        #expect(!thumbnails.has(address + "x", modified: modified))
        #expect(throws: (any Error).self) {
            try thumbnails.put([1, 2], .large, of: address, modified: modified)
        }
        #expect(thumbnails.has(address, modified: modified))
        let files = try FileManager.default.contentsOfDirectory(
            atPath: folder.path + "/thumbnails/large"
        )
        #expect(files == [ThumbnailFolder.name(of: address)])
    }

    @Test("of an account that ends none stays, and those of others do")
    func forgotten() throws {
        let folder = try TemporaryFolder()
        let thumbnails = ThumbnailFolder(
            environment: ["XDG_CACHE_HOME": folder.path],
            home: "/nowhere"
        )
        let png = [UInt8](try #require(Self.pixel))
        let modified = Timestamp(seconds: 1_700_000_000)
        let paths = ["/clouds/a b/x.jpg", "/clouds/a b/deep/ä.jpg", "/clouds/a b2/x.jpg"]
        let addresses = paths.map { ThumbnailFolder.address(of: $0) }
        for address in addresses {
            for size in ThumbnailFolder.Size.allCases {
                try thumbnails.put(png, size, of: address, modified: modified)
            }
        }
        // What another program made of a file that was here is its own.
        let other = ThumbnailFolder.address(of: "/clouds/a b/own.jpg")
        let texts = [("Thumb::URI", other), ("Software", "GNOME::ThumbnailFactory")]
        let made = try #require(PNGText.replacing(texts, in: png))
        let place = folder.path + "/thumbnails/large/" + ThumbnailFolder.name(of: other)
        try Data(made).write(to: URL(filePath: place))
        try Data("x".utf8).write(to: URL(filePath: folder.path + "/thumbnails/large/x.png"))
        thumbnails.forget(below: "/clouds/a b")
        #expect(addresses.map { thumbnails.has($0, modified: modified) } == [false, false, true])
        #expect(FileManager.default.fileExists(atPath: place))
        let names = try FileManager.default.contentsOfDirectory(
            atPath: folder.path + "/thumbnails/normal"
        )
        #expect(names == [ThumbnailFolder.name(of: addresses[2])])
    }
}
