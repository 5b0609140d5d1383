public import OortModel
import OortTransport
import SwiftSFTP
import Synchronization

extension SFTPClient {
    public func read(
        _ path: RemotePath,
        revision: Revision?,
        range: Range<Int64>
    ) async throws(ProviderError) -> ByteStream {
        guard range.lowerBound >= 0 else {
            throw ProviderError(.badRequest, detail: "a range that begins before the file")
        }
        if let revision, let stream = await goOn(with: path, revision, range) {
            return bandwidth.downward(stream)
        }
        let session = try await connection.contentSession()
        do throws(ProviderError) {
            return bandwidth.downward(try await stream(path, revision, range, session))
        } catch {
            connection.release(session)
            throw error
        }
    }

    /// Reads on in a file of which another part was read a moment ago; nil where there is none, or it does
    /// not answer any more.
    private func goOn(
        with path: RemotePath,
        _ revision: Revision,
        _ range: Range<Int64>
    ) async -> ByteStream? {
        guard let file = openFiles.take(path, revision) else { return nil }
        guard await connection.takeIdle(file.session) else {
            file.close()
            return nil
        }
        let session = file.session
        do {
            let current = session.send(.attributesOfHandle(file.handle))
            var reader = Self.reader(of: file.handle, range, session)
            reader.begin()
            let first = try await current.fileAttributes()
            try Self.check(first, path, revision)
            return stream(path, revision, OpenRead(self, file, reader, keepsOpen: true))
        } catch {
            file.close()
            connection.release(session)
            return nil
        }
    }

    private static func reader(
        of handle: SFTPHandle,
        _ range: Range<Int64>,
        _ session: SFTPSession
    ) -> SFTPByteReader {
        let range = UInt64(range.lowerBound)..<UInt64(range.upperBound)
        return SFTPByteReader(session, handle, range: range)
    }

    private func stream(
        _ path: RemotePath,
        _ revision: Revision?,
        _ range: Range<Int64>,
        _ session: SFTPSession
    ) async throws(ProviderError) -> ByteStream {
        let own = try await self.path(path)
        let changes = openFiles.changes
        let opened: (handle: SFTPHandle, reader: SFTPByteReader, first: SFTPAttributes)?
        do throws(SFTPError) {
            let attributes = session.send(.attributesOfLink(own))
            let handle = try await session.open(own, .read)
            // The first bytes travel with the answer that says whose they are.
            let current = session.send(.attributesOfHandle(handle))
            var reader = Self.reader(of: handle, range, session)
            reader.begin()
            let first: SFTPAttributes
            do throws(SFTPError) {
                // A link's content is its target, not what it leads to.
                guard try await attributes.fileAttributes().kind != .link else {
                    throw SFTPError(.status(.noSuchFile), detail: "a link")
                }
                first = try await current.fileAttributes()
            } catch {
                _ = session.send(.close(handle))
                throw error
            }
            opened = (handle, reader, first)
        } catch {
            if error.endsSession { await connection.broke(session) }
            guard error.kind == .status(.noSuchFile) else { throw error.provider(path) }
            opened = nil
        }
        guard let (handle, reader, first) = opened else {
            let stream = try await readLink(path, revision, range, session)
            connection.release(session)
            return stream
        }
        do throws(ProviderError) { try Self.check(first, path, revision) } catch {
            _ = session.send(.close(handle))
            throw error
        }
        let file = OpenFile(
            path: path,
            revision: revision,
            session: session,
            handle: handle,
            changes: changes
        )
        let isWhole = range.lowerBound == 0 && UInt64(range.upperBound) >= first.size ?? 0
        return stream(path, revision, OpenRead(self, file, reader, keepsOpen: !isWhole))
    }

    private func stream(_ path: RemotePath, _ revision: Revision?, _ file: OpenRead) -> ByteStream {
        ByteStream { () async throws(ProviderError) in
            let bytes: [UInt8]?
            do throws(SFTPError) { bytes = try await file.next() } catch {
                throw error.provider(path)
            }
            guard bytes == nil, let last = file.last else { return bytes }
            // What was written in place meanwhile would be mixed with what was read before.
            try Self.check(last, path, revision)
            return nil
        }
    }

    private static func check(
        _ attributes: SFTPAttributes,
        _ path: RemotePath,
        _ revision: Revision?
    ) throws(ProviderError) {
        let current = entry(path.name ?? "", attributes, target: nil)?.revision
        guard let revision, current != revision else { return }
        throw ProviderError(.preconditionFailed, detail: "\(path) was changed")
    }

    /// A link's target as the content of the file that it shows as.
    private func readLink(
        _ path: RemotePath,
        _ revision: Revision?,
        _ range: Range<Int64>,
        _ session: SFTPSession
    ) async throws(ProviderError) -> ByteStream {
        guard let found = try await find(path, session), let target = found.target else {
            throw ProviderError(.notFound, detail: "\(path) is not there")
        }
        if let revision, entry(path, found)?.revision != revision {
            throw ProviderError(.preconditionFailed, detail: "\(path) was changed")
        }
        let count = Int64(target.bytes.count)
        let part = target.bytes[
            Int(min(range.lowerBound, count))..<Int(min(range.upperBound, count))
        ]
        let rest = Remaining(part.isEmpty ? nil : Array(part))
        return ByteStream { () async throws(ProviderError) in rest.take() }
    }
}

/// Bytes that are given once.
private final class Remaining: Sendable {
    private let bytes: Mutex<[UInt8]?>

    init(_ bytes: [UInt8]?) { self.bytes = Mutex(bytes) }

    func take() -> [UInt8]? {
        bytes.withLock { bytes in
            defer { bytes = nil }
            return bytes
        }
    }
}

/// A file that is being read; when nobody reads on it is closed, or kept open for a moment, and its session
/// released.
///
/// Isolation: one reader, which asks for the next part when it has the last one;
/// unchecked, because a stream has no other reader.
private final class OpenRead: @unchecked Sendable {
    private let client: SFTPClient
    private let file: OpenFile
    private var reader: SFTPByteReader
    private var keepsOpen: Bool
    /// The file's attributes once all was read.
    private(set) var last: SFTPAttributes?

    init(_ client: SFTPClient, _ file: OpenFile, _ reader: SFTPByteReader, keepsOpen: Bool) {
        self.client = client
        self.file = file
        self.reader = reader
        self.keepsOpen = keepsOpen
    }

    deinit {
        client.connection.release(file.session)
        if keepsOpen { client.openFiles.keep(file) } else { file.close() }
    }

    func next() async throws(SFTPError) -> [UInt8]? {
        do throws(SFTPError) {
            if let bytes = try await reader.read() { return bytes }
            if last == nil { last = try await reader.lastAttributes() }
            return nil
        } catch {
            keepsOpen = false
            if error.endsSession { await client.connection.broke(file.session) }
            throw error
        }
    }
}
