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
        switch open.content {
        case .empty: return .now(.success(.end))
        case .cached(let content):
            guard offset < content.size else { return .now(.success(.end)) }
            let range = wanted.clamped(to: 0..<content.size)
            if let file = content.readIfPresent(range, by: open.readAhead) {
                return .now(.success(.file(file, range)))
            }
            return waiting.later { () async throws(FileSystemError) in
                do throws(ContentError) {
                    return .file(try await content.read(range, by: open.readAhead), range)
                } catch {
                    let failure = FileSystemError(error)
                    // This handle never mixes two revisions; who opens the file next has the new one.
                    if failure == .revisionGone { await self.look(at: open.file.inode) }
                    throw failure
                }
            }
        case .staged(let content):
            guard offset < content.size else { return .now(.success(.end)) }
            do throws(ContentError) {
                if let (file, range) = try content.readIfPresent(wanted) {
                    return .now(.success(.file(file, range)))
                }
            } catch { return .failure(FileSystemError(error)) }
            return waiting.later { () async throws(FileSystemError) in
                do throws(ContentError) {
                    return .bytes(try await content.bytes(wanted))
                } catch { throw FileSystemError(error) }
            }
        }
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
        do throws(FileSystemError) {
            let staged = try writable(open)
            let outcome = try FileSystemError.translatingContent { () throws(ContentError) in
                try staged.write(bytes, at: place)
            }
            if case .done = outcome {
                noteChange(of: open.file, in: staged)
                return .now(.success(count))
            }
        } catch { return .failure(error) }
        let copy = Self.copy(of: bytes)
        return waiting.later { () async throws(FileSystemError) in
            try await self.change(open) { staged throws(ContentError) in
                try staged.write(copy, at: place)
            }
            return count
        }
    }

    /// Cuts or extends a file, through a handle or without one.
    func resize(
        _ node: Node,
        to size: Int64,
        handle: FileHandle?,
        then answer: @escaping @Sendable () throws(FileSystemError) -> Entry
    ) -> Outcome<Entry> {
        do throws(FileSystemError) {
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
            noteChange(of: open.file, in: staged)
            return .now(answer)
        }
        return waiting.later { () async throws(FileSystemError) in
            try await self.change(open) { staged throws(ContentError) in
                try staged.truncate(to: size)
            }
            return try answer()
        }
    }

    /// Empties a file: what it held is not needed for that, wherever it lies.
    func empty(_ open: OpenHandle) throws(FileSystemError) {
        if case .staged(let staged) = open.content {
            let outcome = try FileSystemError.translatingContent { () throws(ContentError) in
                try staged.truncate(to: 0)
            }
            if case .done = outcome {
                noteChange(of: open.file, in: staged)
                return
            }
        } else if open.size == 0, open.file.state.withLock({ $0.node.size == 0 }) {
            return
        }
        let staged = try locked(open.file) { state throws(FileSystemError) in
            guard case .cached(let content) = open.content else {
                return try self.stage(&state, over: nil)
            }
            return try self.stage(&state, over: nil, origin: content)
        }
        noteChange(of: open.file, in: staged)
    }

    // MARK: Staged content

    /// The staged content to which a handle writes, made with its first write.
    func writable(_ open: OpenHandle) throws(FileSystemError) -> StagedContent {
        if case .staged(let content) = open.content { return content }
        return try locked(open.file) { state throws(FileSystemError) in
            switch open.content {
            case .staged(let content): return content
            case .cached(let base): return try self.stage(&state, over: base)
            case .empty: return try self.stage(&state, over: nil)
            }
        }
    }

    /// Makes staged content for a file and shows it to all of its handles.
    ///
    /// Under the file's lock.
    private func stage(
        _ state: inout OpenFile.State,
        over base: CachedContent?,
        origin: CachedContent? = nil
    ) throws(FileSystemError) -> StagedContent {
        let node = state.node
        let (content, changed) = try FileSystemError.translatingContent {
            () throws(ContentError) in
            try store.stage(
                over: base,
                origin: origin,
                of: node.inode,
                account: node.account,
                modified: .now
            )
        }
        if let changed { state.node = changed }
        show(content, to: state.handles)
        store.close(content)
        return content
    }

    private func show(_ content: StagedContent, to handles: [OpenHandle]) {
        for handle in handles {
            guard let used = try? store.open(staged: content.id) else { continue }
            close(handle.show(.staged(used)))
        }
    }

    /// Notes that a file's content changed just now.
    func noteChange(of file: OpenFile, in staged: StagedContent) {
        file.state.withLock { state in
            state.written = staged
            state.modified = .now
            state.writeCount += 1
        }
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
                noteChange(of: open.file, in: staged)
                return
            case .noRoom(let bytes):
                do throws(ContentError) { try await store.makeRoom(for: bytes) } catch {
                    throw FileSystemError(error)
                }
            case .frozen: try await thaw(staged, of: open.file)
            }
            if Task.isCancelled { throw .interrupted }
        }
    }

    /// Gives the file's handles a clone of content that an upload holds still; made once for all
    /// who wait.
    private func thaw(
        _ frozen: StagedContent,
        of file: OpenFile
    ) async throws(FileSystemError) {
        let task = file.state.withLock { state in
            if let task = state.thawing { return task }
            // Owned by the file; ends with the clone.
            let task = Task { () -> Result<Void, FileSystemError> in
                let result: Result<Void, FileSystemError>
                do throws(ContentError) {
                    let node = file.state.withLock { $0.node }
                    let (content, changed) = try await self.store.thaw(
                        frozen,
                        of: file.inode,
                        account: node.account,
                        modified: .now
                    )
                    file.state.withLock { state in
                        if let changed { state.node = changed }
                        self.show(content, to: state.handles)
                    }
                    self.store.close(content)
                    result = .success(())
                } catch { result = .failure(FileSystemError(error)) }
                file.state.withLock { $0.thawing = nil }
                return result
            }
            state.thawing = task
            return task
        }
        try await task.value(orWhenCancelled: .failure(.interrupted)).get()
    }

    private static func copy(of bytes: RawSpan) -> [UInt8] {
        unsafe bytes.withUnsafeBytes { unsafe [UInt8]($0) }
    }
}
