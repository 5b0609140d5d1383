import Foundation
public import OortModel
import OortTransport
import SwiftSFTP
import Synchronization

/// Folders and times.
extension SFTPClient {
    public func createFolder(at path: RemotePath) async throws(ProviderError) -> PlaceEntry {
        try await createFolder(at: path, SFTPAttributes())
    }

    public func createFolder(
        at path: RemotePath,
        mode: UInt16
    ) async throws(ProviderError) -> PlaceEntry {
        var attributes = SFTPAttributes()
        attributes.mode = UInt32(mode)
        return try await createFolder(at: path, attributes)
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

    /// Throws the reason why something could not be created at a place: SFTP has one code for most of them.
    ///
    /// The item that it was to replace is no reason.
    func explain(
        _ error: SFTPError,
        making path: RemotePath,
        at target: SFTPPath? = nil,
        over replaces: Bool = false,
        needing bytes: Int64 = 0,
        _ session: SFTPSession
    ) async throws(ProviderError) -> Never {
        if error.endsSession { await connection.broke(session) }
        guard
            error.isFailure || error.kind == .status(.noSuchFile)
                || error.kind == .status(.permissionDenied)
        else { throw error.provider(path) }
        if !replaces { try await refuseTaken(path, target, session) }
        if let folder = path.parent, try await find(folder, session)?.attributes.kind != .folder {
            let place = folder.parts.isEmpty ? "the account's folder" : "\(folder)"
            throw ProviderError(.parentNotFound, detail: "\(place) is not there")
        }
        if error.isFailure { try await explainDisk(path, needing: bytes, session) }
        // The folder is there: a disk that knows nothing of such a name (exFAT, and a colon) says so.
        throw error.kind == .status(.noSuchFile)
            ? ProviderError(.nameRefused, detail: "\(path) cannot be made: \(error.detail)")
            : error.provider(path)
    }

    /// Throws where something lies at a place.
    private func refuseTaken(
        _ path: RemotePath,
        _ target: SFTPPath?,
        _ session: SFTPSession
    ) async throws(ProviderError) {
        if try await find(path, session) != nil {
            throw ProviderError(.nameTaken, detail: "\(path) is there already")
        }
        // A link shows under another name than its own, and nothing else may have its own.
        let own = if let target { target } else { try await self.path(path) }
        if try await attributes(of: own, path, session) != nil {
            throw ProviderError(.nameTaken, detail: "\(path): \(own) is there already")
        }
    }

    public func setModifiedTime(
        _ time: Timestamp,
        of path: RemotePath,
        revision: Revision?
    ) async throws(ProviderError) -> PlaceEntry {
        let session = try await connection.session()
        guard let found = try await find(path, session) else {
            throw ProviderError(.notFound, detail: "\(path) is not there")
        }
        // The protocol has no conditions: this is the last moment at which a look is possible.
        guard revision == nil || entry(path, found)?.revision == revision else {
            throw ProviderError(.preconditionFailed, detail: "another revision is current")
        }
        var attributes = SFTPAttributes()
        attributes.times = Self.times(time)
        let request: SFTPRequest =
            found.target == nil
            ? .setAttributes(found.path, attributes) : .setAttributesOfLink(found.path, attributes)
        _ = try await heard(session, path) { () async throws(SFTPError) in
            do throws(SFTPError) { try await session.send(request).answer() } catch {
                // A server that sets none at all is no reason to try again and again.
                guard error.kind == .status(.unsupported) || isStatus(error) && setsNoTimes else {
                    throw error
                }
            }
        }
        guard let set = try await findMade(path, session), let entry = entry(path, set) else {
            throw ProviderError(.outcomeUnknown(retryAfter: nil), detail: "\(path) is gone again")
        }
        return entry
    }

    /// Asks for the times of a file that this program is writing.
    func send(
        _ times: SFTPAttributes.Times,
        to handle: SFTPHandle,
        _ session: SFTPSession
    ) -> SFTPPendingAnswer {
        var attributes = SFTPAttributes()
        attributes.times = times
        return session.send(.setAttributesOfHandle(handle, attributes))
    }

    /// Waits for the answer to `send`.
    ///
    /// A server before an object store may refuse every such request, and then its own times count.
    func noteTimes(_ answer: SFTPPendingAnswer) async throws(SFTPError) {
        do throws(SFTPError) {
            try await answer.answer()
            refusesTimes.withLock { $0 = false }
        } catch {
            guard isStatus(error) else { throw error }
            refusesTimes.withLock { $0 = true }
        }
    }

    /// Whether the server refused the times of the last file that this program made.
    private var setsNoTimes: Bool { refusesTimes.withLock(\.self) }

    private func isStatus(_ error: SFTPError) -> Bool {
        if case .status = error.kind { true } else { false }
    }

    static func times(_ time: Timestamp) -> SFTPAttributes.Times {
        let seconds = UInt32(clamping: time.seconds)
        return SFTPAttributes.Times(accessed: seconds, modified: seconds)
    }
}
