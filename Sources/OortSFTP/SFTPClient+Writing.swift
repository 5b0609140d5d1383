import Foundation
public import OortModel
import OortTransport
import SwiftSFTP

extension SFTPClient {
    public func createFolder(at path: RemotePath) async throws(ProviderError) -> PlaceEntry {
        try await createFolder(at: path, SFTPAttributes())
    }

    public func createFolder(
        at path: RemotePath,
        like old: RemotePath
    ) async throws(ProviderError) -> PlaceEntry {
        let session = try await connection.session()
        var attributes = SFTPAttributes()
        attributes.mode = try await find(old, session)?.attributes.mode.map { $0 & 0o777 }
        return try await createFolder(at: path, attributes)
    }

    private func createFolder(
        at path: RemotePath,
        _ attributes: SFTPAttributes
    ) async throws(ProviderError) -> PlaceEntry {
        let own = try await self.path(path)
        let session = try await connection.session()
        do throws(SFTPError) {
            let made = session.send(.makeFolder(own, attributes))
            let looked = session.send(.attributesOfLink(own))
            try await made.answer()
            let attributes = try await looked.fileAttributes()
            if let entry = Self.entry(path.name ?? "", attributes, target: nil) { return entry }
        } catch {
            try await explain(error, making: path, session)
        }
        throw ProviderError(.malformedAnswer, detail: "\(path) is no folder after it was made")
    }

    /// Throws why something could not be made at a place: SFTP answers most of it with one code.
    private func explain(
        _ error: SFTPError,
        making path: RemotePath,
        needing bytes: Int64 = 0,
        _ session: SFTPSession
    ) async throws(ProviderError) -> Never {
        if error.endsSession { await connection.broke(session) }
        guard
            error.isFailure || error.kind == .status(.noSuchFile)
                || error.kind == .status(.permissionDenied)
        else { throw error.provider(path) }
        if try await find(path, session) != nil {
            throw ProviderError(.nameTaken, detail: "\(path) is there already")
        }
        if let folder = path.parent, try await find(folder, session)?.attributes.kind != .folder {
            let place = folder.parts.isEmpty ? "the account's folder" : "\(folder)"
            throw ProviderError(.parentNotFound, detail: "\(place) is not there")
        }
        if error.isFailure { try await explainDisk(path, needing: bytes, session) }
        throw error.kind == .status(.noSuchFile)
            ? ProviderError(.noPermission, detail: "\(path) cannot be made: \(error.detail)")
            : error.provider(path)
    }

    // MARK: Uploads

    public func upload(
        _ upload: PlaceUpload,
        observer: any UploadObserver
    ) async throws(ProviderError) -> PlaceEntry {
        let first = try await connection.session()
        let old = try await find(upload.path, first)
        try check(old, for: upload)
        if LinkName.link(upload.path.name ?? "") != nil, old == nil || old?.target != nil,
            let entry = try await makeLink(upload, over: old, first)
        {
            return entry
        }
        return try await onContentSession(upload.path) { session throws(ProviderError) in
            try await send(upload, over: old, session, observer: observer)
        }
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
        let target = try await path(upload.path)
        var attributes = SFTPAttributes()
        attributes.mode = old?.attributes.mode.map { $0 & 0o7777 }
        let handle: SFTPHandle
        do throws(SFTPError) {
            let flags: SFTPRequest.OpenFlags =
                temporary.confirmed == nil ? [.write, .create, .exclusive] : [.write]
            handle = try await session.open(temporary.path, flags, attributes)
        } catch {
            if temporary.confirmed != nil, case .status = error.kind {
                throw ProviderError(.sessionLost, detail: "the temporary file is gone")
            }
            try await explain(error, making: upload.path, needing: upload.size, session)
        }
        let keepsSession = upload.size > traits.provider.largestSimpleUpload
        do throws(ProviderError) {
            if keepsSession, temporary.confirmed == nil {
                await observer.sessionChanged(temporary.session(confirmed: 0))
            }
            try await write(upload, to: handle, temporary, session, keepsSession ? observer : nil) {
                observer.sent($0)
            }
            let time = upload.modifiedTime.map { Self.times($0) }
            try await heard(session, upload.path) { () async throws(SFTPError) in
                if let time {
                    var times = SFTPAttributes()
                    times.times = time
                    try await session.send(.setAttributesOfHandle(handle, times)).answer()
                }
                if session.server.takes(.synchronize(handle)) {
                    try await session.send(.synchronize(handle)).answer()
                }
                try await session.close(handle)
            }
        } catch {
            _ = session.send(.close(handle))
            // What was sent is gone on with by the next try, if there is a session to know it by.
            if !keepsSession { _ = session.send(.remove(temporary.path)) }
            if error.kind == .limitExceeded {
                try await explainDisk(upload.path, needing: upload.size, session)
            }
            throw error
        }
        // The name is given as late as can be: the check and the renaming are one round trip apart.
        try check(try await find(upload.path, session), for: upload)
        try await rename(
            temporary.path,
            over: old != nil,
            target,
            at: upload.path,
            session
        )
        if keepsSession { await observer.sessionChanged(nil) }
        guard let found = try await findMade(upload.path, session),
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

    /// Throws where the disk of a place's folder can hold nothing more: SFTP says that with the code that
    /// it has for everything.
    private func explainDisk(
        _ path: RemotePath,
        needing bytes: Int64 = 0,
        _ session: SFTPSession
    ) async throws(ProviderError) {
        guard let disk = await self.disk(of: path.parent ?? .root, session) else { return }
        if disk.isReadOnly {
            throw ProviderError(.noPermission, detail: "\(path): the server's disk is read-only")
        }
        if !disk.takesFiles {
            throw ProviderError(
                .quotaExceeded,
                detail: "\(path): the server's disk takes no more files"
            )
        }
        if disk.available <= UInt64(max(0, bytes)) {
            throw ProviderError(.quotaExceeded, detail: "\(path): the server's disk is full")
        }
    }

    /// The disk on which a place lies; nil where the server does not say.
    private func disk(of path: RemotePath, _ session: SFTPSession) async -> SFTPFileSystem? {
        guard let own = try? await self.path(path) else { return nil }
        return try? await session.fileSystem(of: own)
    }

    private static func times(_ time: Timestamp) -> SFTPAttributes.Times {
        let seconds = UInt32(clamping: time.seconds)
        return SFTPAttributes.Times(accessed: seconds, modified: seconds)
    }

    private func write(
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
        /// Up to where an earlier try of the same upload was confirmed; nil of a new file.
        let confirmed: Int64?

        func session(confirmed: Int64) -> UploadSession {
            UploadSession(state: name, confirmedBytes: confirmed, expires: nil)
        }
    }

    private func temporary(
        in folder: RemotePath,
        going session: UploadSession?,
        _ line: SFTPSession
    ) async throws(ProviderError) -> TemporaryFile {
        let number = UInt64.random(in: .min ... .max)
        var name = ".oort-\(String(number, radix: 16)).part"
        var confirmed: Int64?
        if let session, Self.isHidden(session.state), !session.state.has("/") {
            name = session.state
            confirmed = max(0, session.confirmedBytes)
        }
        let place = folder.appending(name)
        let file = TemporaryFile(path: try await path(place), name: name, confirmed: confirmed)
        guard let confirmed else { return file }
        // A server that writes in parallel may have less than it said, never more than it has.
        guard let found = try await find(place, line) else {
            throw ProviderError(.sessionLost, detail: "the temporary file is gone")
        }
        let size = Int64(clamping: found.attributes.size ?? 0)
        return TemporaryFile(path: file.path, name: name, confirmed: min(confirmed, size))
    }

    /// Gives a finished temporary file its name.
    private func rename(
        _ temporary: SFTPPath,
        over replaces: Bool,
        _ target: SFTPPath,
        at path: RemotePath,
        _ session: SFTPSession
    ) async throws(ProviderError) {
        do throws(SFTPError) {
            if !replaces {
                try await session.send(.rename(temporary, to: target)).answer()
            } else if session.server.takes(.replace(target, with: temporary)) {
                try await session.send(.replace(target, with: temporary)).answer()
            } else {
                // There is never a moment without one of both.
                let aside = try SFTPPath(temporary.bytes + Array(".old".utf8))
                try await session.send(.rename(target, to: aside)).answer()
                do throws(SFTPError) {
                    try await session.send(.rename(temporary, to: target)).answer()
                } catch {
                    try await session.send(.rename(aside, to: target)).answer()
                    throw error
                }
                _ = session.send(.remove(aside))
            }
        } catch {
            if case .status = error.kind, try await find(path, session) != nil || !replaces {
                _ = session.send(.remove(temporary))
            }
            if !replaces { try await explain(error, making: path, session) }
            if error.endsSession { await connection.broke(session) }
            throw error.provider(path)
        }
    }

    /// Makes the link that a `.rclonelink` file is; nil where this server makes none, or the content
    /// cannot be a target.
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
        // Something that is no link has the name: the link stays a file.
        if old == nil, try await find(folder.appending(name), session) != nil { return nil }
        do throws(SFTPError) {
            if old == nil {
                try await session.send(.makeLink(link, target: target)).answer()
            } else {
                let number = UInt64.random(in: .min ... .max)
                let aside = try await temporaryLink(target, in: folder, number, session)
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
        _ number: UInt64,
        _ session: SFTPSession
    ) async throws(SFTPError) -> SFTPPath {
        let name = ".oort-\(String(number, radix: 16)).part"
        let aside: SFTPPath
        do throws(ProviderError) { aside = try await path(folder.appending(name)) } catch {
            throw SFTPError(.notSendable, detail: error.detail)
        }
        try await session.send(.makeLink(aside, target: target)).answer()
        return aside
    }

    // MARK: Moves and deletions

    public func move(
        _ kind: PlaceEntry.Kind,
        from old: RemotePath,
        to new: RemotePath
    ) async throws(ProviderError) -> PlaceEntry {
        let session = try await connection.session()
        guard let found = try await find(old, session) else {
            throw ProviderError(.notFound, detail: "\(old) is not there")
        }
        guard try await find(new, session) == nil else {
            throw ProviderError(.nameTaken, detail: "\(new) is there already")
        }
        var target = try await path(new)
        if found.target != nil {
            guard let name = LinkName.link(new.name ?? ""), let folder = new.parent else {
                throw ProviderError(
                    .unsupported,
                    detail: "\(new): a link's name ends in .rclonelink"
                )
            }
            target = try await path(folder.appending(name))
        }
        do throws(SFTPError) {
            try await session.send(.rename(found.path, to: target)).answer()
        } catch {
            let folder = new.parent ?? .root
            let isFolder = found.attributes.kind == .folder
            guard error.isFailure, try await find(new, session) == nil,
                await areOnTwoDisks(isFolder ? old : old.parent, folder, session)
            else { try await explain(error, making: new, session) }
            return try await carry(found, from: old, to: new, target, session)
        }
        guard let moved = try await findMade(new, session), let entry = entry(new, moved) else {
            throw ProviderError(.outcomeUnknown(retryAfter: nil), detail: "\(new) is gone again")
        }
        return entry
    }

    /// Moves to another disk of the server's, to which no rename leads: a file is copied and then removed.
    ///
    /// - Throws: `.unsupported` for a folder, which is carried piece by piece.
    private func carry(
        _ found: Found,
        from old: RemotePath,
        to new: RemotePath,
        _ target: SFTPPath,
        _ session: SFTPSession
    ) async throws(ProviderError) -> PlaceEntry {
        if await disk(of: old.parent ?? .root, session)?.isReadOnly == true {
            throw ProviderError(.noPermission, detail: "\(old): the server's disk is read-only")
        }
        guard let before = entry(old, found), before.kind == .file else {
            try await refuseDisk(old, session)
            throw ProviderError(.unsupported, detail: "\(new) lies on another disk than \(old)")
        }
        if let link = found.target {
            _ = try await heard(session, new) { () async throws(SFTPError) in
                try await session.send(.makeLink(target, target: link)).answer()
            }
        } else {
            _ = try await copy(from: old, to: new, sendsBytes: true)
        }
        guard let copied = try await findMade(new, session), let entry = entry(new, copied) else {
            throw ProviderError(.outcomeUnknown(retryAfter: nil), detail: "\(new) is gone again")
        }
        do throws(ProviderError) {
            guard copied.target == found.target else {
                throw ProviderError(.unsupported, detail: "\(new): the link would lead elsewhere")
            }
            try await removeMoved(found, before, at: old, session)
        } catch {
            // Else it would be there twice.
            if !error.isOutcomeUnknown, let now = try await find(new, session),
                self.entry(new, now)?.revision == entry.revision
            {
                _ = session.send(.remove(now.path))
            }
            throw error
        }
        return entry
    }

    /// Removes a file that was copied to another disk, if it is still what was copied.
    ///
    /// It is renamed aside before it is looked at, under a name that is shown and never cleared away: what
    /// somebody saves at its place from then on is another file, and what was saved before goes back there.
    private func removeMoved(
        _ found: Found,
        _ before: PlaceEntry,
        at place: RemotePath,
        _ session: SFTPSession
    ) async throws(ProviderError) {
        let number = String(UInt64.random(in: .min ... .max), radix: 16)
        let name = ".oort-\(number).part.old"
        let aside = try await path((place.parent ?? .root).appending(name))
        _ = try await heard(session, place) { () async throws(SFTPError) in
            // OpenSSH renames so by a link and a removal, which a save between them would fall to.
            let atOnce = SFTPRequest.replace(aside, with: found.path)
            let request = session.server.takes(atOnce) ? atOnce : .rename(found.path, to: aside)
            try await session.send(request).answer()
        }
        let now = try await heard(session, place) { () async throws(SFTPError) in
            let attributes = try await session.attributes(of: aside)
            let isLink = attributes.kind == .link
            let target = isLink ? try await session.target(ofLink: aside) : nil
            return Found(path: aside, attributes: attributes, target: target)
        }
        var refusal: ProviderError?
        if entry(place, now)?.revision == before.revision {
            do throws(SFTPError) {
                try await session.send(.remove(aside)).answer()
                return
            } catch {
                if error.endsSession { await connection.broke(session) }
                refusal = error.provider(place)
            }
        }
        if try await find(place, session) == nil {
            _ = try await heard(session, place) { () async throws(SFTPError) in
                try await session.send(.rename(aside, to: found.path)).answer()
            }
        }
        throw refusal
            ?? ProviderError(.preconditionFailed, detail: "\(place) changed while it was moved")
    }

    /// Whether the server says that two places lie on different disks.
    private func areOnTwoDisks(
        _ one: RemotePath?,
        _ other: RemotePath,
        _ session: SFTPSession
    ) async -> Bool {
        guard let one, let first = await disk(of: one, session),
            let second = await disk(of: other, session)
        else { return false }
        return first.id != second.id
    }

    /// Throws where a folder is the top of a disk, which the server keeps at its place.
    private func refuseDisk(
        _ folder: RemotePath,
        _ session: SFTPSession
    ) async throws(ProviderError) {
        if await areOnTwoDisks(folder.parent, folder, session) {
            throw ProviderError(
                .noPermission,
                detail: "\(folder) is a disk of the server's own, which stays at its place"
            )
        }
    }

    public func removeEmptyFolder(at path: RemotePath) async throws(ProviderError) {
        let session = try await connection.session()
        let own = try await self.path(path)
        do throws(SFTPError) {
            try await session.send(.removeFolder(own)).answer()
        } catch {
            if error.endsSession { await connection.broke(session) }
            guard try await find(path, session) != nil else { return try await checkRoot(session) }
            guard error.isFailure else { throw error.provider(path) }
            throw ProviderError(.locked, detail: "\(path) holds something still: \(error.detail)")
        }
    }

    public func delete(
        _ kind: PlaceEntry.Kind,
        at path: RemotePath,
        revision: Revision?
    ) async throws(ProviderError) {
        let session = try await connection.session()
        guard let found = try await find(path, session) else { return try await checkRoot(session) }
        let entry = entry(path, found)
        if let revision, entry?.revision != revision {
            throw ProviderError(.preconditionFailed, detail: "\(path) has another revision")
        }
        guard entry?.kind == kind else {
            throw ProviderError(.preconditionFailed, detail: "\(path) is of another kind")
        }
        if traits.deletesToTrash, found.target == nil {
            _ = try await rootPath()
            do throws(SFTPError) {
                let folder = try await makeTrashFolder(for: path, session)
                do throws(SFTPError) {
                    let name = try SFTPPath(ByteNames.bytes(path.name ?? ""))
                    try await session.send(.rename(found.path, to: folder.appending(name))).answer()
                    purgeTrash(after: folder)
                    return
                } catch {
                    _ = session.send(.removeFolder(folder))
                    throw error
                }
            } catch {
                if error.endsSession { await connection.broke(session) }
                guard case .status = error.kind else { throw error.provider(path) }
                guard try await find(path, session) != nil else {
                    return try await checkRoot(session)
                }
                if kind == .folder { try await refuseDisk(path, session) }
                // Another disk, or a root where the login may make nothing. Who deletes it was told
                // that it can be had back.
                throw ProviderError(
                    .noPermission,
                    detail: "\(path) cannot be moved to \(Self.trash), and is deleted for good "
                        + "only with trash = false: \(error.detail)"
                )
            }
        }
        if kind == .folder {
            // What lies on it would go before the server refuses.
            try await refuseDisk(path, session)
            // A look at the server would take along what nobody here has seen.
            throw ProviderError(.unsupported, detail: "\(path) goes piece by piece")
        }
        do throws(SFTPError) { try await remove(kind, found.path, path, session) } catch {
            if error.endsSession { await connection.broke(session) }
            throw error.provider(path)
        }
    }

    /// Removes a file or a tree for good; links are removed and never followed.
    func remove(
        _ kind: PlaceEntry.Kind,
        _ path: SFTPPath,
        _ place: RemotePath,
        _ session: SFTPSession
    ) async throws(SFTPError) {
        guard kind == .folder else {
            do throws(SFTPError) { try await session.send(.remove(path)).answer() } catch {
                guard error.kind == .status(.noSuchFile) else { throw error }
            }
            return
        }
        let entries = try await session.entries(of: path)
        let removals = entries.filter { $0.attributes.kind != .folder }
            .map { session.send(.remove(path.appending($0.name))) }
        for entry in entries where entry.attributes.kind == .folder {
            try await remove(.folder, path.appending(entry.name), place, session)
        }
        for removal in removals {
            do throws(SFTPError) { try await removal.answer() } catch {
                guard error.kind == .status(.noSuchFile) else { throw error }
            }
        }
        try await session.send(.removeFolder(path)).answer()
    }

    public func copy(
        from path: RemotePath,
        to new: RemotePath
    ) async throws(ProviderError) -> PlaceEntry {
        try await copy(from: path, to: new, sendsBytes: false)
    }

    /// Copies a file at the server; with `sendsBytes`, through this machine where the server cannot.
    private func copy(
        from path: RemotePath,
        to new: RemotePath,
        sendsBytes: Bool
    ) async throws(ProviderError) -> PlaceEntry {
        guard let folder = new.parent else {
            throw ProviderError(.nameTaken, detail: "the account's root is there already")
        }
        let (source, target) = (try await self.path(path), try await self.path(new))
        return try await onContentSession(path) { session throws(ProviderError) in
            let temporary = try await temporary(in: folder, going: nil, session)
            guard let found = try await find(path, session), found.target == nil else {
                throw ProviderError(.unsupported, detail: "\(path): links are not copied")
            }
            let from = try await heard(session, path) { () async throws(SFTPError) in
                try await session.open(source, .read)
            }
            defer { _ = session.send(.close(from)) }
            let to: SFTPHandle
            var attributes = SFTPAttributes()
            // Not the bits by which a program would run as this login.
            attributes.mode = found.attributes.mode.map { $0 & 0o777 }
            do throws(SFTPError) {
                let flags: SFTPRequest.OpenFlags = [.write, .create, .exclusive]
                to = try await session.open(temporary.path, flags, attributes)
            } catch { try await explain(error, making: new, session) }
            do throws(ProviderError) {
                try await heard(session, new) { () async throws(SFTPError) in
                    let whole = SFTPRequest.copy(from, from: 0, count: 0, to: to, at: 0)
                    if sendsBytes, !session.server.takes(whole) {
                        let size = found.attributes.size ?? 0
                        try await Self.carry(size, from: from, to: to, session)
                    } else {
                        try await session.send(whole).answer()
                    }
                    var times = SFTPAttributes()
                    times.times = found.attributes.times
                    try await session.send(.setAttributesOfHandle(to, times)).answer()
                    // The original of a move is removed next.
                    if sendsBytes, session.server.takes(.synchronize(to)) {
                        try await session.send(.synchronize(to)).answer()
                    }
                    try await session.close(to)
                }
            } catch {
                _ = session.send(.close(to))
                _ = session.send(.remove(temporary.path))
                if error.kind == .limitExceeded {
                    let size = Int64(clamping: found.attributes.size ?? 0)
                    try await explainDisk(new, needing: size, session)
                }
                throw error
            }
            guard try await find(new, session) == nil else {
                _ = try? await session.send(.remove(temporary.path)).answer()
                throw ProviderError(.nameTaken, detail: "\(new) is there already")
            }
            try await rename(temporary.path, over: false, target, at: new, session)
            guard let copied = try await findMade(new, session), let entry = entry(new, copied),
                entry.size == found.attributes.size.map({ Int64(clamping: $0) })
            else {
                throw ProviderError(
                    .outcomeUnknown(retryAfter: nil),
                    detail: "\(new) is not what was copied"
                )
            }
            return entry
        }
    }

    private static func carry(
        _ size: UInt64,
        from source: SFTPHandle,
        to target: SFTPHandle,
        _ session: SFTPSession
    ) async throws(SFTPError) {
        var reader = SFTPByteReader(session, source, range: 0..<size)
        reader.begin()
        var writer = SFTPByteWriter(session, target, at: 0)
        while let bytes = try await reader.read() { try await writer.write(bytes) }
        try await writer.finish()
    }

    public func setModifiedTime(
        _ time: Timestamp,
        of path: RemotePath
    ) async throws(ProviderError) -> PlaceEntry {
        let session = try await connection.session()
        guard let found = try await find(path, session) else {
            throw ProviderError(.notFound, detail: "\(path) is not there")
        }
        var attributes = SFTPAttributes()
        attributes.times = Self.times(time)
        let request: SFTPRequest =
            found.target == nil
            ? .setAttributes(found.path, attributes) : .setAttributesOfLink(found.path, attributes)
        _ = try await heard(session, path) { () async throws(SFTPError) in
            try await session.send(request).answer()
        }
        return try await entry(at: path)
    }
}
