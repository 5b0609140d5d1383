import OortContentStore
import OortFileSystem
import OortModel
import SwiftFUSE

extension KernelFileSystem {
    func open(_ inode: InodeNumber, flags: OpenFlags, reply: consuming OpenReply) {
        var mode = OpenMode(flags)
        mode.thread = reply.caller.threadID
        let outcome = files.open(Inode(inode), mode: mode)
        answering.answer(reply, with: outcome) { [files] reply, opened in
            let isTaken = reply.send(OpenFile(opened))
            if !isTaken { files.release(opened.handle) }
        }
    }

    func read(
        _ inode: InodeNumber,
        offset: Int64,
        handle: HandleNumber,
        reply: consuming DataReply
    ) {
        let outcome = files.read(FileHandle(handle), at: offset, count: reply.limit)
        answering.answer(reply, with: outcome) { reply, answer in
            switch answer {
            case .end: reply.send([])
            case .bytes(let bytes): reply.send(bytes)
            case .file(let file, let range):
                reply.send(
                    contentOf: file.descriptor,
                    at: range.lowerBound,
                    count: Int(range.upperBound - range.lowerBound)
                )
                // The descriptor is closed with the value.
                withExtendedLifetime(file) {}
            }
        }
    }

    func write(
        _ inode: InodeNumber,
        _ bytes: RawSpan,
        offset: Int64,
        handle: HandleNumber,
        reply: consuming WriteReply
    ) {
        let outcome = files.write(FileHandle(handle), bytes, at: offset)
        answering.answer(reply, with: outcome) { $0.send($1) }
    }

    func flush(_ inode: InodeNumber, handle: HandleNumber, reply: consuming DoneReply) {
        answering.answer(reply, with: files.flush(FileHandle(handle))) { reply, _ in
            reply.succeed()
        }
    }

    func release(_ inode: InodeNumber, handle: HandleNumber, reply: consuming DoneReply) {
        files.release(FileHandle(handle))
        reply.succeed()
    }

    func fsync(
        _ inode: InodeNumber,
        dataOnly: Bool,
        handle: HandleNumber,
        reply: consuming DoneReply
    ) {
        answering.answer(reply, with: files.synchronise(FileHandle(handle))) { reply, _ in
            reply.succeed()
        }
    }

    func fallocate(
        _ inode: InodeNumber,
        mode: Int32,
        offset: Int64,
        length: Int64,
        handle: HandleNumber,
        reply: consuming DoneReply
    ) {
        // FALLOC_FL_KEEP_SIZE; all other modes make holes or move bytes.
        let keepSize: Int32 = 1
        guard mode & ~keepSize == 0 else { return answering.fail(reply, .notSupported) }
        let (end, isTooFar) = offset.addingReportingOverflow(length)
        guard !isTooFar else { return answering.fail(reply, .tooLarge) }
        guard offset >= 0, length > 0 else { return answering.fail(reply, .invalid) }
        let outcome = files.allocate(
            FileHandle(handle),
            range: offset..<end,
            extends: mode & keepSize == 0
        )
        answering.answer(reply, with: outcome) { reply, _ in reply.succeed() }
    }

    func copyFileRange(
        from source: InodeNumber,
        offset sourceOffset: Int64,
        handle sourceHandle: HandleNumber,
        to target: InodeNumber,
        offset targetOffset: Int64,
        handle targetHandle: HandleNumber,
        length: Int,
        reply: consuming WriteReply
    ) {
        // The answer has 32 bits; a whole number of pages below that lets the caller go on well.
        let count = min(Int64(length), 0xffff_f000)
        let outcome = files.copyRange(
            from: FileHandle(sourceHandle),
            at: sourceOffset,
            to: FileHandle(targetHandle),
            at: targetOffset,
            count: count
        )
        answering.answer(reply, with: outcome) { $0.send(Int($1)) }
    }

    func lseek(
        _ inode: InodeNumber,
        offset: Int64,
        to target: SwiftFUSE.SeekTarget,
        handle: HandleNumber,
        reply: consuming SeekReply
    ) {
        let target: OortFileSystem.SeekTarget =
            switch target {
            case .data: .data
            case .hole: .hole
            }
        let outcome = files.seek(FileHandle(handle), to: target, from: offset)
        answering.answer(reply, with: outcome) { $0.send($1) }
    }
}
