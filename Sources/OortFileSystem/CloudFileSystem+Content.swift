import OortCatalog
import OortContentStore
import OortModel
import Synchronization

extension CloudFileSystem {
    public func read(
        _ handle: FileHandle,
        at offset: Int64,
        count: Int
    ) -> Outcome<ReadAnswer> {
        guard let open = table[handle], open.mode.reads else { return .failure(.badHandle) }
        guard offset >= 0, count >= 0 else { return .failure(.invalid) }
        let end = offset.addingReportingOverflow(Int64(count))
        let wanted = offset..<(end.overflow ? .max : end.partialValue)
        let isAtService = if case .cached = open.content { true } else { false }
        let file = open.isDirect ? nil : open.file
        file?.beginRequest()
        do throws(FileSystemError) {
            if let answer = try readIfPresent(open, wanted) {
                if isAtService { note(open, wanted, isHit: true) }
                try check(wanted, by: open)
                file?.endRequest()
                return .now(.success(answer))
            }
        } catch {
            file?.endRequest()
            return .failure(error)
        }
        if isAtService { note(open, wanted, isHit: false) }
        return waiting.later { () async throws(FileSystemError) in
            defer { file?.endRequest() }
            let answer = try await self.answer(open, wanted)
            try self.check(wanted, by: open)
            return answer
        }
    }

    /// Fails where the kernel may know another size than that of what a handle shows: it would cut the answer
    /// by that, or fill it up with zeros.
    ///
    /// Not for a program that bypasses its cache, which asks for what it likes.
    private func check(_ wanted: Range<Int64>, by open: OpenHandle) throws(FileSystemError) {
        guard !open.isDirect, !open.mode.bypassesCache, case .cached(let content) = open.content,
            open.file.mayBeCut(wanted, size: content.size, rest: settings.readersRest)
        else { return }
        catalog.announce([.attributes(open.file.inode)])
        throw .revisionGone
    }

    /// Notes a read of a service's file, after which the next files of its folder may be fetched.
    private func note(_ open: OpenHandle, _ wanted: Range<Int64>, isHit: Bool) {
        let node = open.file.state.withLock { $0.node }
        reads.add(isHit: isHit, of: node.account)
        guard wanted.lowerBound == 0, !open.isReadOnlyDocument,
            open.size <= FolderReadAhead.largestFile
        else { return }
        folderReads.noteRead(of: node, isHit: isHit)
    }

    /// The bytes that a handle shows in a range, fetched where they are not here.
    ///
    /// A page that the kernel asked for before it heard of a shorter content, it fills up with zeros to the
    /// size that it knew: such a request fails. The kernel reads ahead, and asks once more for what failed;
    /// only where it does not, the program has an error.
    /// Source: fs/fuse/file.c, fuse_read_update_size.
    func answer(
        _ open: OpenHandle,
        _ wanted: Range<Int64>
    ) async throws(FileSystemError) -> ReadAnswer {
        let known = open.size
        let answer = try await presentAnswer(open, wanted)
        // What programs here cut the kernel has cut itself.
        if case .staged = open.content { return answer }
        guard open.isDirect || open.size >= known else { throw .revisionGone }
        return answer
    }

    private func presentAnswer(
        _ open: OpenHandle,
        _ wanted: Range<Int64>
    ) async throws(FileSystemError) -> ReadAnswer {
        while true {
            if let answer = try readIfPresent(open, wanted) { return answer }
            switch open.content {
            case .empty: return .end
            case .staged(let content):
                do throws(FileSystemError) {
                    return .bytes(try await bytes(wanted, of: content))
                } catch {
                    guard error == .revisionGone, content.isBaseUnread else { throw error }
                    // The service has another revision than is known here; the rest is of that.
                    await look(at: open.file.inode)
                    return .bytes(try await bytes(wanted, of: content))
                }
            case .cached(let content):
                // It may be another content by now, and shorter.
                guard wanted.lowerBound < content.size else { continue }
                let range = wanted.clamped(to: 0..<content.size)
                do throws(ContentError) {
                    let file = try await content.read(range, by: open.readAhead)
                    if delivers(content, to: open) { return .file(file, range) }
                } catch {
                    let failure = FileSystemError(error)
                    guard failure == .revisionGone else { throw failure }
                    await look(at: open.file.inode)
                    // A handle never mixes two revisions; one that has given nothing out continues with the
                    // new one, otherwise the next opening shows that.
                    guard try renew(open, showing: content) else { throw failure }
                }
            }
        }
    }

    private func bytes(
        _ range: Range<Int64>,
        of content: StagedContent
    ) async throws(FileSystemError) -> [UInt8] {
        do throws(ContentError) { return try await content.bytes(range) } catch {
            throw FileSystemError(error)
        }
    }

    /// The bytes that a handle can give without waiting; nil when they must be fetched.
    private func readIfPresent(
        _ open: OpenHandle,
        _ wanted: Range<Int64>
    ) throws(FileSystemError) -> ReadAnswer? {
        switch open.content {
        case .empty: return .end
        case .cached(let content):
            guard wanted.lowerBound < content.size else { return .end }
            let range = wanted.clamped(to: 0..<content.size)
            guard let file = content.readIfPresent(range, by: open.readAhead),
                delivers(content, to: open)
            else { return nil }
            return .file(file, range)
        case .staged(let content):
            guard wanted.lowerBound < content.size else { return .end }
            return try FileSystemError.translatingContent { () throws(ContentError) in
                try content.readIfPresent(wanted).map { .file($0, $1) }
            }
        }
    }

    /// Notes that bytes of a content are about to go to a program; false when the handle shows another
    /// content by now, so that they must not.
    private func delivers(_ content: CachedContent, to open: OpenHandle) -> Bool {
        if open.hasDelivered { return true }
        return open.file.state.withLock { state in
            guard case .cached(let shown) = open.content, shown === content else { return false }
            open.hasDelivered = true
            state.isRead = true
            guard !open.isDirect else { return true }
            state.isInKernel = true
            let (item, revision) = (content.key.item, content.key.revision)
            table.see(
                open.file.inode,
                SeenContent(.revision(item: item, revision), content.expectedHash)
            )
            return true
        }
    }

    /// Has a handle of which nothing was read show the file's present content, because the service no
    /// longer gives the old one.
    ///
    /// - Returns: whether the handle shows another content now.
    private func renew(
        _ open: OpenHandle,
        showing gone: CachedContent
    ) throws(FileSystemError) -> Bool {
        let isRenewed = try locked(open.file) { state throws(FileSystemError) in
            guard case .cached(let shown) = open.content, shown === gone else { return true }
            // Handles whose bytes the kernel caches count as one reader: what one has read, the others
            // have.
            let isOut = open.isDirect ? open.hasDelivered : state.isInKernel
            // An export is made at the opening: the file itself has no bytes to be shown.
            guard !isOut, !open.isReadOnlyDocument,
                let node = try self.known(open.file.inode),
                ShownContent(node) != open.shown
            else { return false }
            state.sizes =
                node.size < gone.size ? OpenFile.State.Sizes(given: nil, at: .now) : nil
            for handle in state.handles where handle.isDirect == open.isDirect {
                guard case .cached(let shown) = handle.content, shown === gone else { continue }
                self.close(handle.show(try self.content(of: node)))
            }
            state.node = node
            return true
        }
        // Before an answer that may be longer than the old size, to which the kernel would cut it.
        if isRenewed { catalog.announce([.attributes(open.file.inode)]) }
        return isRenewed
    }

    public func write(
        _ handle: FileHandle,
        _ bytes: RawSpan,
        at offset: Int64
    ) -> Outcome<Int> {
        guard let open = table[handle], open.mode.writes else { return .failure(.badHandle) }
        let count = bytes.byteCount
        guard offset >= 0 else { return .failure(.invalid) }
        guard offset <= Int64.max - Int64(count) else { return .failure(.tooLarge) }
        guard count > 0 else { return .now(.success(0)) }
        let place = open.mode.appends ? nil : offset
        let largest = largestFile(of: open.file.account)
        guard (place ?? 0) <= largest - Int64(count) else { return .failure(.tooLarge) }
        do throws(FileSystemError) {
            let staged = try writable(open)
            let outcome = try FileSystemError.translatingContent { () throws(ContentError) in
                try staged.write(bytes, at: place, upTo: largest)
            }
            if case .done = outcome {
                noteChange(by: open, in: staged)
                return .now(.success(count))
            }
        } catch {
            note(refusal: error, by: open, at: place, count: count)
            return .failure(error)
        }
        let copy = Self.copy(of: bytes)
        return waiting.later { () async throws(FileSystemError) in
            try await self.write(copy, at: place, by: open)
            return count
        }
    }

    /// Writes all bytes at an offset (nil: the end), waiting for a clone or for room if need be.
    func write(
        _ bytes: [UInt8],
        at place: Int64?,
        by open: OpenHandle
    ) async throws(FileSystemError) {
        let largest = largestFile(of: open.file.account)
        do throws(FileSystemError) {
            try await change(open) { staged throws(ContentError) in
                try staged.write(bytes, at: place, upTo: largest)
            }
        } catch {
            note(refusal: error, by: open, at: place, count: bytes.count)
            throw error
        }
    }

    /// Marks a file that lacks bytes which a program could not write: it is not sent.
    private func note(
        refusal error: FileSystemError,
        by open: OpenHandle,
        at place: Int64?,
        count: Int
    ) {
        guard case .staged(let staged) = open.content else { return }
        let cause =
            switch error {
            case .noSpace: "there was no room on the local disk"
            case .interrupted, .timedOut: "it was broken off while it waited for room"
            case .failed(let detail), .contentDamaged(let detail): detail
            default: "\(error)"
            }
        staged.refused(at: place, count: Int64(count), cause: cause)
    }

    /// Cuts or extends a file, through a handle or without one.
    func resize(
        _ node: Node,
        to size: Int64,
        handle: FileHandle?,
        then answer: @escaping @Sendable () throws(FileSystemError) -> Entry
    ) -> Outcome<Entry> {
        do throws(FileSystemError) {
            guard size <= largestFile(of: node.account) else { throw .tooLarge }
            if let handle, let open = table[handle], open.mode.writes {
                return try resize(open, to: size, then: answer)
            }
            guard node.permissions.contains(.write) else { throw .noPermission }
            let open = try join(
                node,
                mode: OpenMode(reads: false, writes: true, truncates: size == 0)
            )
            let outcome: Outcome<Entry>
            do throws(FileSystemError) {
                outcome = try resize(open, to: size) { () throws(FileSystemError) in
                    try self.record(open.file)
                    return try answer()
                }
            } catch {
                leave(open)
                throw error
            }
            switch outcome {
            case .now:
                leave(open)
                return outcome
            case .later(let body):
                return .later {
                    let result = await body()
                    self.leave(open)
                    return result
                }
            }
        } catch { return .failure(error) }
    }

    private func resize(
        _ open: OpenHandle,
        to size: Int64,
        then answer: @escaping @Sendable () throws(FileSystemError) -> Entry
    ) throws(FileSystemError) -> Outcome<Entry> {
        if size == 0 {
            try empty(open)
            return .now(answer)
        }
        guard size != open.size else { return .now(answer) }
        let staged = try writable(open)
        let outcome = try FileSystemError.translatingContent { () throws(ContentError) in
            try staged.truncate(to: size)
        }
        if case .done = outcome {
            noteChange(by: open, in: staged)
            return .now(answer)
        }
        return waiting.later { () async throws(FileSystemError) in
            try await self.change(open) { staged throws(ContentError) in
                try staged.truncate(to: size)
            }
            return try answer()
        }
    }

    /// Empties a file; its old bytes are not needed for that, wherever they are.
    func empty(_ open: OpenHandle) throws(FileSystemError) {
        beginWriting(open)
        let node = open.file.state.withLock { $0.node }
        if case .staged(let staged) = open.content {
            let outcome = try FileSystemError.translatingContent { () throws(ContentError) in
                try staged.truncate(to: 0)
            }
            if case .done = outcome {
                noteChange(by: open, in: staged)
                return
            }
        } else if open.size == 0, node.size == 0, !open.file.differs(from: node) {
            // Emptying an empty file modifies it, too.
            var setting = AttributeSetting()
            setting.modified = .now
            _ = try apply(setting, to: node)
            return
        }
        let staged = try locked(open.file) { state throws(FileSystemError) in
            switch open.content {
            case .empty: try self.stage(&state, over: nil)
            case .cached(let content): try self.stage(&state, over: nil, origin: content)
            case .staged(let content): try self.stage(&state, over: nil, original: content)
            }
        }
        noteChange(by: open, in: staged)
    }

    // MARK: Staged content

    /// The staged content to which a handle writes, made with its first write.
    func writable(_ open: OpenHandle) throws(FileSystemError) -> StagedContent {
        // Before the first byte: a half-written file is not sent.
        beginWriting(open)
        if case .staged(let content) = open.content { return content }
        return try locked(open.file) { state throws(FileSystemError) in
            let base: CachedContent?
            switch open.content {
            case .staged(let content): return content
            case .cached(let content): base = content
            case .empty: base = nil
            }
            let now = try self.known(open.file.inode).map { ShownContent($0) }
            let isOld = now.map { $0 != open.shown } ?? false
            let staged = try self.stage(&state, over: base)
            // The kernel caches an append at the end of the file as it knows that.
            if isOld, open.mode.appends { self.catalog.announce([.content(open.file.inode)]) }
            return staged
        }
    }

    func beginWriting(_ open: OpenHandle) {
        if open.beginWriting() { store.writers.beganWriting(open.file.inode) }
    }

    /// Makes staged content for a file and shows it to all of its handles.
    ///
    /// Under the file's lock.
    private func stage(
        _ state: inout OpenFile.State,
        over base: CachedContent?,
        origin: CachedContent? = nil,
        original: StagedContent? = nil
    ) throws(FileSystemError) -> StagedContent {
        let node = state.node
        let (content, changed) = try FileSystemError.translatingContent {
            () throws(ContentError) in
            try store.stage(
                over: base,
                origin: origin,
                original: original,
                isUnread: !state.isRead && !state.isInKernel,
                of: node.inode,
                account: node.account,
                modified: .now
            )
        }
        if let changed { state.node = changed }
        state.sizes = nil
        show(content, to: state.handles)
        store.close(content)
        return content
    }

    private func show(_ content: StagedContent, to handles: [OpenHandle]) {
        for handle in handles {
            store.use(content)
            close(handle.show(.staged(content)))
        }
    }

    /// Notes that a file's content just changed.
    func noteChange(by open: OpenHandle, in staged: StagedContent) {
        let file = open.file
        let isKept = file.state.withLock { state in
            state.written = staged
            // The file may have a clone by now, which includes what was written to the original.
            if case .staged(let shown) = open.content { state.written = shown }
            state.modified = .now
            state.writeCount += 1
            return state.handles.contains { !$0.isDirect }
        }
        // A write that bypasses the kernel's cache makes pages stale that it keeps for the other handles.
        if open.isDirect, isKept { catalog.announce([.content(file.inode)]) }
        clearPrivileges(of: file)
    }

    /// Changes a file's staged content, waiting for a clone or for room if need be.
    func change(
        _ open: OpenHandle,
        _ body: @Sendable (StagedContent) throws(ContentError) -> StagedContent.WriteOutcome
    ) async throws(FileSystemError) {
        while true {
            let staged = try writable(open)
            let outcome = try FileSystemError.translatingContent { () throws(ContentError) in
                try body(staged)
            }
            switch outcome {
            case .done:
                noteChange(by: open, in: staged)
                return
            case .noRoom(let bytes):
                do throws(ContentError) { try await store.makeRoom(for: bytes) } catch {
                    throw FileSystemError(error)
                }
            case .frozen:
                let room = store.roomForClone(of: staged)
                do throws(FileSystemError) { try await thaw(staged, for: open) } catch {
                    guard error == .noSpace else { throw error }
                    do throws(ContentError) {
                        try await store.makeRoom(forCloneOf: staged, since: room)
                    } catch { throw FileSystemError(error) }
                }
            }
            if Task.isCancelled { throw .interrupted }
        }
    }

    /// Gives the file's handles a clone of content that an upload has frozen; made once for all callers
    /// that wait.
    private func thaw(
        _ frozen: StagedContent,
        for open: OpenHandle
    ) async throws(FileSystemError) {
        let file = open.file
        let task = file.state.withLock { state -> Task<Result<Void, FileSystemError>, Never>? in
            if let task = state.thawing { return task }
            // A clone that was finished meanwhile may have been written to already.
            guard case .staged(let shown) = open.content, shown === frozen else { return nil }
            // Owned by the file; ends with the clone.
            let task = Task { () -> Result<Void, FileSystemError> in
                let result: Result<Void, FileSystemError>
                do throws(FileSystemError) {
                    try await self.giveClone(of: frozen, to: file)
                    result = .success(())
                } catch { result = .failure(error) }
                file.state.withLock { $0.thawing = nil }
                return result
            }
            state.thawing = task
            return task
        }
        try await task?.value(orWhenCancelled: .failure(.interrupted)).get()
    }

    private func isForgotten(_ inode: Inode) -> Bool {
        do throws(CatalogError) {
            _ = try catalog.node(inode)
            return false
        } catch { return error == .notFound }
    }

    private func giveClone(
        of frozen: StagedContent,
        to file: OpenFile
    ) async throws(FileSystemError) {
        // The file is unlinked and forgotten: what is written to it is only for those who have it open.
        if isForgotten(file.inode) {
            let isNobodys = file.state.withLock { state in
                store.leaveToNobody(frozen, users: state.count(showing: frozen))
            }
            if isNobodys { return }
        }
        let thawed: ThawedContent
        do throws(ContentError) { thawed = try await store.thaw(frozen) } catch {
            throw FileSystemError(error)
        }
        try locked(file) { state throws(FileSystemError) in
            // A program that emptied the file meanwhile gave it another content, which may be written
            // already.
            guard state.count(showing: frozen) > 0 else { return }
            let node = state.node
            let (content, changed) = try FileSystemError.translatingContent {
                () throws(ContentError) in
                try self.store.stage(
                    thawed,
                    of: node.inode,
                    account: node.account,
                    modified: .now
                )
            }
            if let changed { state.node = changed }
            if state.written === frozen { state.written = content }
            state.sizes = nil
            self.show(content, to: state.handles)
            self.store.close(content)
        }
    }

    private static func copy(of bytes: RawSpan) -> [UInt8] {
        unsafe bytes.withUnsafeBytes { unsafe [UInt8]($0) }
    }
}
