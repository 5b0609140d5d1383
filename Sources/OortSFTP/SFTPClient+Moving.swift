import Foundation
public import OortModel
import OortTransport
import SwiftSFTP

/// Moves and copies, within a disk of the server and from one to another.
extension SFTPClient {
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
        for place in [old, new] { openFiles.close(at: place) }
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
            else { try await explain(error, making: new, at: target, session) }
            return try await carry(found, from: old, to: new, target, session)
        }
        guard let moved = try await findMade(new, session), let entry = entry(new, moved) else {
            throw ProviderError(.outcomeUnknown(retryAfter: nil), detail: "\(new) is gone again")
        }
        return entry
    }

    /// Moves a file to another disk of the server, where no rename can: copies it and then removes it.
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
            // Otherwise the file would be there twice.
            if !error.isOutcomeUnknown, let now = try await find(new, session),
                self.entry(new, now)?.revision == entry.revision
            {
                _ = session.send(.remove(now.path))
            }
            throw error
        }
        return entry
    }

    /// Removes a file that was copied to another disk, if it is still the one that was copied.
    ///
    /// It is first renamed aside, under a name that is shown and never cleaned up: a file that another
    /// client saves at its place from then on is another one, and a file that was saved there before is
    /// renamed back.
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
            // OpenSSH renames this way by a link and a removal, which would remove a file saved between
            // them.
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
            let isTaken = session.server.offersCopies
            if !isTaken, !sendsBytes, await connection.hasNoShell { throw Self.cannotCopy(path) }
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
            // A handle may be closed only once: its number may be another file's later.
            var isOpen = true
            do throws(ProviderError) {
                let size = found.attributes.size ?? 0
                let whole = SFTPRequest.copy(from, from: 0, count: 0, to: to, at: 0)
                if !isTaken, !sendsBytes {
                    try await copyByShell(source, over: temporary.path, size, path)
                }
                try await heard(session, new) { () async throws(SFTPError) in
                    if isTaken {
                        try await session.send(whole).answer()
                    } else if sendsBytes {
                        try await Self.carry(size, from: from, to: to, session)
                    }
                    if let times = found.attributes.times {
                        try await noteTimes(send(times, to: to, session))
                    }
                    // A move removes the original next.
                    if sendsBytes, session.server.takes(.synchronize(to)) {
                        try await session.send(.synchronize(to)).answer()
                    }
                    isOpen = false
                    try await session.close(to)
                }
            } catch {
                if isOpen { _ = session.send(.close(to)) }
                _ = try? await session.send(.remove(temporary.path)).answer()
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

    private static func cannotCopy(_ place: RemotePath) -> ProviderError {
        ProviderError(.unsupported, detail: "\(place): the server copies no files")
    }

    /// Copies by the login's shell, into a file that is there.
    ///
    /// - Throws: `.unsupported` where there is no shell, `.limitExceeded` where the copy failed.
    private func copyByShell(
        _ source: SFTPPath,
        over target: SFTPPath,
        _ size: UInt64,
        _ place: RemotePath
    ) async throws(ProviderError) {
        // A slow disk copies some megabytes a second.
        let timeLimit = Duration.seconds(600 + Int64(clamping: size >> 20))
        switch try await connection.copyByShell(source, over: target, timeLimit: timeLimit) {
        case .done: return
        case .noShell: throw Self.cannotCopy(place)
        case .failed(let words):
            throw ProviderError(.limitExceeded, detail: "\(place) was not copied: \(words)")
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

    // MARK: Disks

    /// The disk on which a place lies; nil where the server does not say.
    func disk(of path: RemotePath, _ session: SFTPSession) async -> SFTPFileSystem? {
        guard let own = try? await self.path(path) else { return nil }
        return try? await session.fileSystem(of: own)
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

    /// Throws where a folder is the top of a disk, which the server does not move or delete.
    func refuseDisk(
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

    /// Throws where the disk of a place's folder is full: SFTP reports that by its general code.
    func explainDisk(
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
        if disk.total > 0, disk.available <= UInt64(max(0, bytes)) {
            throw ProviderError(.quotaExceeded, detail: "\(path): the server's disk is full")
        }
    }
}
