import Testing

@testable import oort

@Suite("Who watches with inotify and fanotify")
struct KernelWatchersTests {
    @Test("inodes of one device are read, from both kinds of lines, as man 5 proc has them")
    func lines() {
        let text = """
            pos:\t0
            flags:\t00
            inotify wd:2 ino:1a3 sdev:39 mask:800afce ignored_mask:0 fhandle-bytes:8
            inotify wd:1 ino:7f sdev:800013 mask:800afce ignored_mask:0
            fanotify ino:4f969 sdev:39 mflags:0 mask:3b ignored_mask:40000000
            fanotify mnt_id:12 mflags:0 mask:3b ignored_mask:40000000
            """
        #expect(KernelWatchers.inodes(in: text, on: 0x39) == [0x1A3, 0x4F969])
        #expect(KernelWatchers.inodes(in: text, on: 8 << 20 | 0x13) == [0x7F])
    }
}
