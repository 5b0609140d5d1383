public import OortModel
import OortTransport
import Synchronization

extension FTPClient {
    public func createFolder(at path: RemotePath) async throws(ProviderError) -> PlaceEntry {
        try await makeFolder(at: path, mode: nil)
    }

    public func createFolder(
        at path: RemotePath,
        mode: UInt16
    ) async throws(ProviderError) -> PlaceEntry {
        try await makeFolder(at: path, mode: mode)
    }

    private func makeFolder(
        at path: RemotePath,
        mode: UInt16?
    ) async throws(ProviderError) -> PlaceEntry {
        let own = try await self.path(path)
        let reply = try await tell([command("MKD", own)], "\(path)")[0]
        guard reply.isGood else { throw try await explain(reply, making: path) }
        guard let found = try await findMade(path), let entry = found.entry, entry.kind == .folder
        else {
            throw ProviderError(.malformedAnswer, detail: "\(path) is no folder after it was made")
        }
        if let mode = mode.flatMap({ FTPMode.change(to: $0, from: found.facts.mode) }) {
            try await setMode(mode, of: own, path)
        }
        return entry
    }

    /// Sets a mode; a server that sets none says so, and goes on.
    private func setMode(
        _ mode: Int,
        of own: FTPPath,
        _ path: RemotePath,
        on line: FTPLine? = nil
    ) async throws(ProviderError) {
        _ = try await tell([modeCommand(mode, own)], "\(path)", on: line)
    }

    private func modeCommand(_ mode: Int, _ own: FTPPath) -> [UInt8] {
        command("SITE CHMOD \(String(mode, radix: 8))", own)
    }

    /// Why something could not be made at a place; what it was to replace is no reason.
    private func explain(
        _ reply: FTPReply,
        making path: RemotePath,
        over replaces: Bool = false,
        on line: FTPLine? = nil
    ) async throws(ProviderError) -> ProviderError {
        guard (500..<600).contains(reply.code), reply.code != 552 else {
            return refusal(reply, path)
        }
        if !replaces, try await find(path, on: line) != nil {
            return ProviderError(.nameTaken, detail: "\(path) is there already")
        }
        if let folder = path.parent, try await find(folder, on: line)?.facts.kind != .folder {
            try await checkRoot()
            return ProviderError(.parentNotFound, detail: "\(folder.words) is not there")
        }
        // The folder is there: a disk that knows nothing of such a name (exFAT, and a colon) says so.
        let own = try await self.path(path)
        return reply.saysMissing(of: own)
            ? ProviderError(.nameRefused, detail: "\(path) cannot be made: \(reply.words)")
            : refusal(reply, path)
    }

    // MARK: Uploads

    public func upload(
        _ upload: PlaceUpload,
        observer: any UploadObserver
    ) async throws(ProviderError) -> PlaceEntry {
        let old = try await find(upload.path)
        try check(old, for: upload)
        guard let folder = upload.path.parent else {
            throw ProviderError(.notAFile, detail: "the account's root is a folder")
        }
        let temporary = folder.appending(temporaryName())
        let taken = try await heard("\(upload.path)") { _ throws(FTPFailure) in
            try await lines.take(.sending)
        }
        let line = taken ?? lines.main
        let result: Result<PlaceEntry, ProviderError>
        do throws(ProviderError) {
            result = .success(
                try await send(upload, by: temporary, over: old, on: line, observer: observer)
            )
        } catch { result = .failure(error) }
        if let taken { await lines.giveBack(taken, .sending) }
        return try result.get()
    }

    /// Refuses an upload where something else lies at its place than it is to replace.
    private func check(_ old: Found?, for upload: PlaceUpload) throws(ProviderError) {
        switch (upload.before, old) {
        case (.nothing, nil): return
        case (.nothing, _):
            throw ProviderError(.nameTaken, detail: "\(upload.path) is there already")
        case (.file, nil):
            throw ProviderError(.preconditionFailed, detail: "\(upload.path) is gone")
        case (.file(let revision), let old?):
            guard let entry = old.entry, entry.kind == .file,
                revision == nil || entry.revision == revision
            else {
                throw ProviderError(
                    .preconditionFailed,
                    detail: "\(upload.path) has another revision"
                )
            }
        }
    }

    private func send(
        _ upload: PlaceUpload,
        by temporary: RemotePath,
        over old: Found?,
        on line: FTPLine,
        observer: any UploadObserver
    ) async throws(ProviderError) -> PlaceEntry {
        let own = try await path(temporary)
        var isRenaming = false
        do throws(ProviderError) {
            try await storeClosed(upload, to: own, over: old, on: line, observer: observer)
            try await finish(upload, own, temporary, old, on: line)
            // The name is given as late as can be: the check and the renaming are one round trip apart.
            try check(try await find(upload.path, on: line), for: upload)
            isRenaming = true
            try await rename(own, to: upload.path, over: old != nil, on: line)
        } catch {
            // Whether an unanswered renaming was done is for the caller to find out.
            if !isRenaming || !error.isOutcomeUnknown { remove(temporary) }
            throw error
        }
        guard let entry = try await findMade(upload.path, on: line)?.entry else {
            throw ProviderError(.preconditionFailed, detail: "\(upload.path) is gone again")
        }
        guard entry.size == upload.size else {
            throw ProviderError(
                .preconditionFailed,
                detail: "\(upload.path) was changed at once by somebody else"
            )
        }
        return entry
    }

    /// Sends the content to a file that no other client knows, and that others at the server cannot read
    /// if they may not read the finished one: what is empty gets its mode first then.
    private func storeClosed(
        _ upload: PlaceUpload,
        to own: FTPPath,
        over old: Found?,
        on line: FTPLine,
        observer: any UploadObserver
    ) async throws(ProviderError) {
        // What is replaced keeps its mode, as far as the server says what that is.
        let mode = old?.facts.mode ?? upload.mode.map { FTPMode.new($0) }
        guard upload.size > 0, let mode, FTPMode.isClosed(mode) else {
            return try await store(upload, to: own, on: line, observer: observer)
        }
        var nothing = upload
        nothing.size = 0
        try await store(nothing, to: own, on: line, observer: observer)
        try await setMode(mode, of: own, upload.path, on: line)
        do throws(ProviderError) {
            try await store(upload, to: own, on: line, observer: observer)
        } catch {
            guard error.kind == .noPermission else { throw error }
            // A server that replaces nothing.
            _ = try await tell([command("DELE", own)], "\(upload.path)", on: line)
            try await store(upload, to: own, on: line, observer: observer)
        }
    }

    /// Sends the content to a file that no other client knows.
    private func store(
        _ upload: PlaceUpload,
        to own: FTPPath,
        on line: FTPLine,
        observer: any UploadObserver
    ) async throws(ProviderError) {
        let pipe = FTPPipe()
        let meter = meter
        let content = bandwidth.upward(upload.content)
        // Owned by this call, which cancels it when the transfer is over.
        let feeder = Task {
            do throws(ProviderError) {
                var offset: Int64 = 0
                while offset < upload.size {
                    let count = Int(min(256 << 10, upload.size - offset))
                    let bytes = try await content.read(at: offset, count: count)
                    guard await pipe.put(bytes) else { return }
                    offset += Int64(count)
                    meter.sent.add(Int64(count))
                    meter.sentContent.add(Int64(count))
                    observer.sent(offset)
                }
                pipe.finish(.success(()))
            } catch { pipe.finish(.failure(error)) }
        }
        let failure: FTPFailure?
        do throws(FTPFailure) {
            let password = try await lines.password()
            try await line.run { handle, cancellation throws(FTPFailure) in
                try wake(handle, password, cancellation)
                try unsafe handle.store(own, size: upload.size, password: password, cancellation) {
                    buffer in
                    unsafe pipe.fill(buffer, unless: { handle.mustEnd })
                }
            }
            failure = nil
        } catch { failure = error }
        pipe.letGo()
        feeder.cancel()
        if let local = pipe.failure { throw local }
        guard let failure else { return }
        if case .refused(let reply) = failure.kind {
            throw try await explain(
                reply,
                making: upload.path,
                over: upload.before != .nothing,
                on: line
            )
        }
        // Nothing has the upload's name yet: whatever became of the temporary file, it was not done.
        if failure.kind == .lost { try await checkRoom(for: upload, on: line) }
        throw failure.kind == .lost || failure.kind == .endedEarly
            ? ProviderError(.offline, detail: "\(upload.path): \(failure.detail)")
            : failure.provider("\(upload.path)")
    }

    /// Finds out whether an upload broke off because the server's disk is full.
    ///
    /// Such a server ends the transfer, and libcurl the connection before it has read why; but what is sent
    /// in one piece is answered.
    ///
    /// - Throws: `.quotaExceeded` where the disk is full.
    private func checkRoom(
        for upload: PlaceUpload,
        on line: FTPLine
    ) async throws(ProviderError) {
        guard upload.size > Self.probe, let folder = upload.path.parent else { return }
        var probe = upload
        probe.size = Int64(Self.probe)
        probe.content = BytesSource([UInt8](repeating: 0, count: Self.probe))
        let temporary = folder.appending(temporaryName())
        do throws(ProviderError) {
            try await store(
                probe,
                to: try await path(temporary),
                on: line,
                observer: SilentUploadObserver()
            )
        } catch {
            remove(temporary)
            guard error.kind == .quotaExceeded else { return }
            throw error
        }
        remove(temporary)
    }

    /// Bytes that are sent to see whether there is room for them; they fit into the buffers on the way.
    private static let probe = 16 << 10

    /// Compares a finished temporary file's size, and gives it its time and mode.
    private func finish(
        _ upload: PlaceUpload,
        _ own: FTPPath,
        _ temporary: RemotePath,
        _ old: Found?,
        on line: FTPLine
    ) async throws(ProviderError) {
        guard let found = try await find(temporary, on: line), found.entry?.size == upload.size
        else {
            throw ProviderError(
                .offline,
                detail: "\(upload.path): not all bytes arrived, or they were taken for text"
            )
        }
        var commands: [[UInt8]] = []
        let mode =
            if let kept = old?.facts.mode { kept == found.facts.mode ? nil : kept } else {
                upload.mode.flatMap { FTPMode.change(to: $0, from: found.facts.mode) }
            }
        if let mode { commands.append(modeCommand(mode, own)) }
        if traits.provider.setsModifiedTime, let time = upload.modifiedTime {
            commands.append(command("MFMT \(FTPTime.text(time))", own))
        }
        guard !commands.isEmpty else { return }
        // Where the server does not take the one or the other, its own count.
        _ = try await tell(commands, "\(upload.path)", on: line)
    }

    /// Gives a finished temporary file its name.
    private func rename(
        _ temporary: FTPPath,
        to place: RemotePath,
        over replaces: Bool,
        on line: FTPLine
    ) async throws(ProviderError) {
        let target = try await path(place)
        let first = try await rename(temporary, target, place, on: line)
        guard !first.isGood else { return }
        guard replaces, try await find(place, on: line) != nil else {
            throw try await explain(first, making: place, on: line)
        }
        // A server that replaces nothing: the old file goes aside, and there is never a moment without
        // one of both.
        guard let aside = FTPPath(absolute: temporary.bytes + Array(".old".utf8)) else {
            throw refusal(first, place)
        }
        guard try await rename(target, aside, place, on: line).isGood else {
            throw refusal(first, place)
        }
        let second = try await rename(temporary, target, place, on: line)
        guard second.isGood else {
            _ = try await rename(aside, target, place, on: line)
            throw refusal(second, place)
        }
        _ = try await tell([command("DELE", aside)], "\(place)", on: line)
    }

    /// Renames, and returns the answer that counts.
    private func rename(
        _ old: FTPPath,
        _ new: FTPPath,
        _ place: RemotePath,
        on line: FTPLine? = nil
    ) async throws(ProviderError) -> FTPReply {
        let replies = try await tell(
            [command("RNFR", old), command("RNTO", new)],
            "\(place)",
            on: line
        )
        // Without the first the second has no sense, and says so only.
        return replies[0].isGood ? replies[1] : replies[0]
    }

    // MARK: Moves and deletions

    public func move(
        _ kind: PlaceEntry.Kind,
        from old: RemotePath,
        to new: RemotePath
    ) async throws(ProviderError) -> PlaceEntry {
        guard try await find(old) != nil else {
            try await checkRoot()
            throw ProviderError(.notFound, detail: "\(old) is not there")
        }
        // Most servers let a renaming replace the file of that name.
        guard try await find(new) == nil else {
            throw ProviderError(.nameTaken, detail: "\(new) is there already")
        }
        let reply = try await rename(try await path(old), try await path(new), new)
        guard reply.isGood else { throw try await explain(reply, making: new) }
        guard let entry = try await findMade(new)?.entry else {
            throw ProviderError(.outcomeUnknown(retryAfter: nil), detail: "\(new) is gone again")
        }
        return entry
    }

    public func delete(
        _ kind: PlaceEntry.Kind,
        at path: RemotePath,
        revision: Revision?
    ) async throws(ProviderError) {
        try await delete(kind, at: path, revision: revision, mark: nil)
    }

    public func delete(
        _ kind: PlaceEntry.Kind,
        at path: RemotePath,
        revision: Revision?,
        mark: String?
    ) async throws(ProviderError) {
        guard let found = try await find(path) else { return try await checkRoot() }
        if let revision, found.entry?.revision != revision {
            throw ProviderError(.preconditionFailed, detail: "\(path) has another revision")
        }
        guard found.entry?.kind == kind else {
            throw ProviderError(.preconditionFailed, detail: "\(path) is of another kind")
        }
        let own = try await self.path(path)
        guard traits.deletesToTrash else {
            // What lies in a folder is known, or stays.
            guard kind == .file else {
                throw ProviderError(.unsupported, detail: "\(path) goes piece by piece")
            }
            let reply = try await tell([command("DELE", own)], "\(path)")[0]
            guard !reply.isGood, try await find(path) != nil else { return }
            throw refusal(reply, path)
        }
        let number = UInt32.random(in: .min ... .max)
        let names = TrashFolder.names(seconds: second, number: number, mark: mark, of: path)
        let trash = try await self.path(RemotePath([Self.trash]))
        var folder = trash
        var makings: [[UInt8]] = []
        for name in names {
            folder = try folder.appending(name)
            makings.append(command("MKD", folder))
        }
        let target = try folder.appending(path.name ?? "")
        // Others at the server may not look into what came from a private folder. A server that sets no modes
        // says so, and goes on.
        let closing = hasClosedTrash.withLock(\.self) ? [] : [modeCommand(0o700, trash)]
        let replies = try await tell(
            // The first one may be there.
            [command("MKD", trash)] + closing
                + makings + [command("RNFR", own), command("RNTO", target)],
            "\(path)"
        )
        hasClosedTrash.withLock { $0 = true }
        // Somebody had removed it.
        if closing.isEmpty, replies[0].isGood {
            try await setMode(0o700, of: trash, path)
        }
        let renamed = replies[replies.count - 1]
        if renamed.isGood { return purgeTrash(after: names[0]) }
        if try await find(path) == nil { return try await checkRoot() }
        // Another disk, or a root where the login may make nothing. The account promises that what is deleted
        // can be had back.
        throw ProviderError(
            .noPermission,
            detail: "\(path) cannot be moved to \(Self.trash), and is deleted for good only with "
                + "trash = false: \(renamed.words)"
        )
    }

    public func removeEmptyFolder(at path: RemotePath) async throws(ProviderError) {
        let reply = try await tell([command("RMD", try await self.path(path))], "\(path)")[0]
        guard !reply.isGood else { return }
        guard try await find(path) != nil else { return try await checkRoot() }
        throw ProviderError(.locked, detail: "\(path) holds something still: \(reply.words)")
    }

    public func setModifiedTime(
        _ time: Timestamp,
        of path: RemotePath,
        revision: Revision?
    ) async throws(ProviderError) -> PlaceEntry {
        guard traits.provider.setsModifiedTime else {
            throw ProviderError(.unsupported, detail: "the server sets the modified time itself")
        }
        // The protocol has no conditions: this is the last moment at which a look is possible.
        if let revision, try await find(path)?.entry?.revision != revision {
            throw ProviderError(.preconditionFailed, detail: "\(path) has another revision")
        }
        let own = try await self.path(path)
        let reply = try await tell([command("MFMT \(FTPTime.text(time))", own)], "\(path)")[0]
        guard let entry = try await find(path)?.entry else {
            throw ProviderError(.notFound, detail: "\(path) is not there")
        }
        guard reply.isGood else { throw refusal(reply, path) }
        return entry
    }
}
