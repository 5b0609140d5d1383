import Foundation
public import OortModel
import OortTransport
import SwiftSFTP

/// New files and new contents: a temporary file beside the place, and a rename.
extension SFTPClient {
    public func upload(
        _ upload: PlaceUpload,
        observer: any UploadObserver
    ) async throws(ProviderError) -> PlaceEntry {
        let mayBeLink = LinkName.link(upload.path.name ?? "") != nil
        var old: Found?
        // The place is looked at again before the rename; for a small new file only then.
        if upload.before != .nothing || mayBeLink || isKept(upload) {
            let first = try await connection.session()
            old = try await find(upload.path, first)
            try check(old, for: upload)
            if mayBeLink, old == nil || old?.target != nil,
                let entry = try await makeLink(upload, over: old, first)
            {
                return entry
            }
        }
        return try await onContentSession(upload.path) { session throws(ProviderError) in
            try await send(upload, over: old, session, observer: observer)
        }
    }

    /// Whether an upload that breaks off can be resumed: it has a session.
    private func isKept(_ upload: PlaceUpload) -> Bool {
        upload.size > traits.provider.largestSimpleUpload
    }

    /// Refuses an upload if its place does not hold what it is to replace.
    private func check(_ old: Found?, for upload: PlaceUpload) throws(ProviderError) {
        switch (upload.before, old) {
        case (.nothing, nil): return
        case (.nothing, _):
            throw ProviderError(.nameTaken, detail: "\(upload.path) is there already")
        case (.file, nil):
            throw ProviderError(.preconditionFailed, detail: "\(upload.path) is gone")
        case (.file(let revision), let old?):
            guard let entry = entry(upload.path, old), entry.kind == .file,
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
        over old: Found?,
        _ session: SFTPSession,
        observer: any UploadObserver
    ) async throws(ProviderError) -> PlaceEntry {
        guard let folder = upload.path.parent else {
            throw ProviderError(.notAFile, detail: "the account's root is a folder")
        }
        let temporary = try await temporary(in: folder, going: upload.session, session)
        let keepsSession = isKept(upload)
        if keepsSession { try await checkRoom(upload, temporary, session, observer: observer) }
        let target = try await path(upload.path)
        var attributes = SFTPAttributes()
        attributes.mode = old?.attributes.mode.map { $0 & 0o7777 } ?? upload.mode.map { UInt32($0) }
        let handle: SFTPHandle
        do throws(SFTPError) {
            let flags: SFTPRequest.OpenFlags =
                temporary.confirmed == nil ? [.write, .create, .exclusive] : [.write]
            handle = try await session.open(temporary.path, flags, attributes)
        } catch {
            if temporary.confirmed != nil, case .status = error.kind {
                throw ProviderError(.sessionLost, detail: "the temporary file is gone")
            }
            // The file may have been created although the caller no longer waits.
            if error.kind == .cancelled, temporary.confirmed == nil {
                _ = session.send(.remove(temporary.path))
            }
            try await explain(
                error,
                making: upload.path,
                over: old != nil,
                needing: upload.size,
                session
            )
        }
        // A handle may be closed only once: its number may be another file's later.
        var isOpen = true
        do throws(ProviderError) {
            if keepsSession, temporary.confirmed == nil {
                await observer.sessionChanged(temporary.session(confirmed: 0))
            }
            try await write(upload, to: handle, temporary, session, keepsSession ? observer : nil) {
                observer.sent($0)
            }
            let time = upload.modifiedTime.map { Self.times($0) }
            // The server's umask took these rights away when the file was made; one that sets no modes says so.
            let isNarrowed = old != nil && attributes.mode.map { $0 & 0o022 != 0 } == true
            if isNarrowed { _ = session.send(.setAttributesOfHandle(handle, attributes)) }
            try await heard(session, upload.path) { () async throws(SFTPError) in
                let timed = time.map { send($0, to: handle, session) }
                let synchronized =
                    session.server.takes(.synchronize(handle))
                    ? session.send(.synchronize(handle)) : nil
                if let timed { try await noteTimes(timed) }
                if let synchronized { try await synchronized.answer() }
                isOpen = false
                try await session.close(handle)
            }
        } catch {
            if isOpen { _ = session.send(.close(handle)) }
            let reason = await reason(of: error, upload, session)
            // The next try resumes it, if there is a session that names it. A full disk has no room for it.
            if !keepsSession || reason.kind == .quotaExceeded {
                await drop(temporary, keepsSession ? observer : nil, session)
            }
            throw reason
        }
        // The file is renamed as late as possible: check and rename are one round trip apart, and wait for
        // no other upload's bytes.
        let first = try await connection.session()
        do throws(ProviderError) {
            try check(try await find(upload.path, first), for: upload)
        } catch {
            if !keepsSession { _ = try? await first.send(.remove(temporary.path)).answer() }
            throw error
        }
        let look = try await rename(
            temporary.path,
            over: old != nil,
            target,
            at: upload.path,
            first
        )
        if keepsSession { await observer.sessionChanged(nil) }
        if let attributes = try? await look.fileAttributes(),
            let entry = Self.entry(upload.path.name ?? "", attributes, target: nil),
            isMade(entry, of: upload)
        {
            return entry
        }
        // A server that answers out of order may have looked before it renamed.
        guard let found = try await findMade(upload.path, first),
            let entry = entry(upload.path, found)
        else { throw ProviderError(.preconditionFailed, detail: "\(upload.path) is gone again") }
        guard entry.size == upload.size else {
            throw ProviderError(
                .preconditionFailed,
                detail: "\(upload.path) was changed at once by somebody else"
            )
        }
        return entry
    }

    /// Whether the entry at an upload's place is what was sent there.
    private func isMade(_ entry: PlaceEntry, of upload: PlaceUpload) -> Bool {
        entry.kind == .file && entry.size == upload.size
            && upload.modifiedTime.map { Int64(Self.times($0).modified) }
                == entry.modifiedTime?.seconds
    }

    /// Refuses an upload for which the server's disk has no room, before it fills that for everybody; what was
    /// sent of it goes.
    private func checkRoom(
        _ upload: PlaceUpload,
        _ temporary: TemporaryFile,
        _ session: SFTPSession,
        observer: any UploadObserver
    ) async throws(ProviderError) {
        guard let disk = await disk(of: upload.path.parent ?? .root, session), disk.total > 0,
            disk.available < UInt64(max(0, upload.size - (temporary.confirmed ?? 0)))
        else { return }
        if temporary.confirmed != nil { await drop(temporary, observer, session) }
        throw ProviderError(
            .quotaExceeded,
            detail: "\(upload.path): the server's disk has room for \(disk.available) bytes"
        )
    }

    /// Why an upload failed, where the server gave no reason.
    private func reason(
        of error: ProviderError,
        _ upload: PlaceUpload,
        _ session: SFTPSession
    ) async -> ProviderError {
        guard error.kind == .limitExceeded else { return error }
        do throws(ProviderError) {
            // If the name is taken, that is the reason, and not the lack of room.
            try check(try await find(upload.path, session), for: upload)
            try await explainDisk(upload.path, needing: upload.size, session)
        } catch { return error }
        return error
    }

    /// Removes a temporary file that no later try goes on with.
    private func drop(
        _ temporary: TemporaryFile,
        _ observer: (any UploadObserver)?,
        _ session: SFTPSession
    ) async {
        _ = try? await session.send(.remove(temporary.path)).answer()
        await observer?.sessionChanged(nil)
    }

    func write(
        _ upload: PlaceUpload,
        to handle: SFTPHandle,
        _ temporary: TemporaryFile,
        _ session: SFTPSession,
        _ keeper: (any UploadObserver)?,
        sent: (Int64) -> Void
    ) async throws(ProviderError) {
        let start = min(temporary.confirmed ?? 0, upload.size)
        let content = bandwidth.upward(upload.content)
        var writer = SFTPByteWriter(session, handle, at: UInt64(start))
        var offset = start
        var kept = start
        while offset < upload.size {
            let count = Int(min(256 << 10, upload.size - offset))
            let bytes = try await content.read(at: offset, count: count)
            do throws(SFTPError) { try await writer.write(bytes) } catch {
                if error.endsSession { await connection.broke(session) }
                throw error.provider(upload.path)
            }
            offset += Int64(count)
            sent(offset)
            let confirmed = Int64(clamping: writer.confirmed)
            if let keeper, confirmed - kept >= traits.provider.uploadPartSize {
                kept = confirmed
                await keeper.sessionChanged(temporary.session(confirmed: confirmed))
            }
        }
        do throws(SFTPError) { try await writer.finish() } catch {
            if error.endsSession { await connection.broke(session) }
            throw error.provider(upload.path)
        }
    }

    /// A file beside the place of an upload.
    struct TemporaryFile {
        let path: SFTPPath
        let name: String
        /// How much of an earlier try of the same upload was confirmed; nil for a new file.
        let confirmed: Int64?

        func session(confirmed: Int64) -> UploadSession {
            UploadSession(state: name, confirmedBytes: confirmed, expires: nil)
        }
    }

    func temporary(
        in folder: RemotePath,
        going session: UploadSession?,
        _ line: SFTPSession
    ) async throws(ProviderError) -> TemporaryFile {
        var name = TemporaryName.make(at: now().seconds)
        var confirmed: Int64?
        if let session, Self.isHidden(session.state), !session.state.has("/") {
            name = session.state
            confirmed = max(0, session.confirmedBytes)
        }
        let place = folder.appending(name)
        let file = TemporaryFile(path: try await path(place), name: name, confirmed: confirmed)
        guard let confirmed else { return file }
        // A server that writes in parallel may have less than it confirmed, never more than it has.
        guard let found = try await find(place, line) else {
            throw ProviderError(.sessionLost, detail: "the temporary file is gone")
        }
        let size = Int64(clamping: found.attributes.size ?? 0)
        return TemporaryFile(path: file.path, name: name, confirmed: min(confirmed, size))
    }

    /// Gives a finished temporary file its name.
    ///
    /// - Returns: the answer to a look at the place, which was sent right after the rename.
    @discardableResult
    func rename(
        _ temporary: SFTPPath,
        over replaces: Bool,
        _ target: SFTPPath,
        at path: RemotePath,
        _ session: SFTPSession
    ) async throws(ProviderError) -> SFTPPendingAnswer {
        openFiles.close(at: path)
        do throws(SFTPError) {
            let replacing = SFTPRequest.replace(target, with: temporary)
            guard replaces, !session.server.takes(replacing) else {
                let request = replaces ? replacing : .rename(temporary, to: target)
                let renamed = session.send(request)
                let look = session.send(.attributesOfLink(target))
                try await renamed.answer()
                return look
            }
            // At every moment one of the two exists.
            let aside = try SFTPPath(temporary.bytes + Array(".old".utf8))
            try await session.send(.rename(target, to: aside)).answer()
            do throws(SFTPError) {
                try await session.send(.rename(temporary, to: target)).answer()
            } catch {
                try await session.send(.rename(aside, to: target)).answer()
                throw error
            }
            _ = session.send(.remove(aside))
            return session.send(.attributesOfLink(target))
        } catch {
            if case .status = error.kind, try await find(path, session) != nil || !replaces {
                _ = session.send(.remove(temporary))
            }
            if !replaces { try await explain(error, making: path, session) }
            if error.endsSession { await connection.broke(session) }
            throw error.provider(path)
        }
    }

    /// Makes the link that a `.rclonelink` file stands for; nil where this server makes none, or the
    /// content cannot be a target.
    private func makeLink(
        _ upload: PlaceUpload,
        over old: Found?,
        _ session: SFTPSession
    ) async throws(ProviderError) -> PlaceEntry? {
        guard (1...4095).contains(upload.size), let folder = upload.path.parent,
            let name = LinkName.link(upload.path.name ?? "")
        else { return nil }
        let bytes = try await upload.content.read(at: 0, count: Int(upload.size))
        guard let target = try? SFTPPath(bytes) else { return nil }
        let link = try await path(folder.appending(name))
        // Another item has the link's name: the link stays a file.
        if old == nil, try await find(folder.appending(name), session) != nil { return nil }
        do throws(SFTPError) {
            if old == nil {
                try await session.send(.makeLink(link, target: target)).answer()
            } else {
                let aside = try await temporaryLink(target, in: folder, session)
                do throws(SFTPError) {
                    try await session.send(.replace(link, with: aside)).answer()
                } catch {
                    _ = session.send(.remove(aside))
                    throw error
                }
            }
        } catch {
            if error.endsSession {
                await connection.broke(session)
                throw error.provider(upload.path)
            }
            guard old == nil else { throw error.provider(upload.path) }
            return nil
        }
        guard let found = try await findMade(upload.path, session), found.target == target else {
            // ProFTPD makes a target absolute: such a link would lead elsewhere from another machine.
            _ = session.send(.remove(link))
            return nil
        }
        return entry(upload.path, found)
    }

    private func temporaryLink(
        _ target: SFTPPath,
        in folder: RemotePath,
        _ session: SFTPSession
    ) async throws(SFTPError) -> SFTPPath {
        let name = TemporaryName.make(at: now().seconds)
        let aside: SFTPPath
        do throws(ProviderError) { aside = try await path(folder.appending(name)) } catch {
            throw SFTPError(.notSendable, detail: error.detail)
        }
        try await session.send(.makeLink(aside, target: target)).answer()
        return aside
    }
}
