internal import CFUSE
import Glibc

extension Reply where Answer == Answers.Data {
    /// The bytes; fewer than `limit` only at the file's end (or with direct I/O).
    public consuming func send(_ bytes: [UInt8]) { unsafe send(bytes.span.bytes) }

    /// The bytes; fewer than `limit` only at the file's end (or with direct I/O).
    public consuming func send(_ bytes: RawSpan) {
        unsafe request.answer { raw in unsafe reply(raw, with: bytes) }
    }

    /// At most `count` bytes of another file, from `offset`; fewer where that file ends.
    ///
    /// On a FUSE thread the kernel moves them (splice), so they are never copied into this process:
    /// the fastest way below 1 MiB (what does not fit into a pipe is copied after all). On another
    /// thread they are copied: libfuse would give each thread that splices a pipe, and a task's thread
    /// keeps it after the mount is gone. Blocks for the disk.
    public consuming func send(contentOf descriptor: CInt, at offset: Int64, count: Int) {
        guard FUSEThread.isCurrent else {
            return copy(from: descriptor, at: offset, count: count)
        }
        unsafe request.answer { raw in
            var vector = fuse_bufvec()
            vector.count = 1
            unsafe vector.buf.size = count
            unsafe vector.buf.flags = fuse_buf_flags(
                rawValue: FUSE_BUF_IS_FD.rawValue | FUSE_BUF_FD_SEEK.rawValue
            )
            unsafe vector.buf.fd = descriptor
            unsafe vector.buf.pos = Int(offset)
            return unsafe fuse_reply_data(raw, &vector, fuse_buf_copy_flags(rawValue: 0))
        }
    }

    private consuming func copy(from descriptor: CInt, at offset: Int64, count: Int) {
        var failure: Errno?
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count {
                let read = unsafe pread(
                    descriptor,
                    buffer.baseAddress.map { unsafe $0 + filled },
                    count - filled,
                    Int(offset) + filled
                )
                if read < 0 && errno == EINTR { continue }
                if read < 0 { failure = .current }
                if read <= 0 { break }
                filled += read
            }
        }
        if let failure { fail(failure) } else { send(bytes) }
    }
}
