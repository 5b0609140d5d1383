import SwiftFUSE
import Testing

@Suite("News for the kernel")
struct NewsOrderTests {
    /// A folder's listing that was queued to be dropped once, for two names.
    @Test("a folder's cached listing is dropped after all that is told of its names")
    func order() {
        let folder = InodeNumber(7)
        let listing = News.content(folder, offset: 0, length: 0)
        let first = News.name("a", in: folder)
        let gone = News.removed("b", in: folder, inode: InodeNumber(9))
        let attributes = News.attributes(InodeNumber(9))
        #expect(
            News.inTellingOrder([first, listing, attributes, gone])
                == [first, gone, listing, attributes]
        )
    }
}
