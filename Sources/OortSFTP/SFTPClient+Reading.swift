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

    /// Reads on in a file of which another part is being read, or was a moment ago; nil where there is none,
    /// or it does not answer any more.
    private func goOn(
        with path: RemotePath,
        _ revision: Revision,
        _ range: Range<Int64>
    ) async -> ByteStream? {
        guard let file = openFiles.file(at: path, revision) else { return nil }
        let session = file.session
        // Its own small parts keep nobody waiting: the last bytes of one are on their way while a program
        // that has what it wanted of it asks for the next.
        let smallReads = file.smallReads.withLock(\.self)
        guard await connection.use(session, beside: smallReads) else { return nil }
        do {
            let current = session.send(.attributesOfHandle(file.handle))
            var reader = Self.reader(of: file.handle, range, session)
            reader.begin()
            let first = try await current.fileAttributes()
            try Self.check(first, path, revision)
            return stream(path, revision, OpenRead(self, file, reader, range, keepsOpen: true))
        } catch {
            openFiles.drop(file)
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
            // The first bytes travel with the attributes that say which revision they are of.
            let current = session.send(.attributesOfHandle(handle))
            var reader = Self.reader(of: handle, range, session)
            reader.begin()
            let first: SFTPAttributes
            do throws(SFTPError) {
                // A link's content is its target, and not the file that it leads to.
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
        let file = OpenFile(
            path: path,
            revision: revision,
            session: session,
            handle: handle,
            changes: changes
        )
        try Self.check(first, path, revision)
        let isWhole = range.lowerBound == 0 && UInt64(range.upperBound) >= first.size ?? 0
        return stream(path, revision, OpenRead(self, file, reader, range, keepsOpen: !isWhole))
    }

    private func stream(_ path: RemotePath, _ revision: Revision?, _ file: OpenRead) -> ByteStream {
        ByteStream { () async throws(ProviderError) in
            let bytes: [UInt8]?
            do throws(SFTPError) { bytes = try await file.next() } catch {
                throw error.provider(path)
            }
            guard bytes == nil, let last = file.last else { return bytes }
            // Bytes that were written in place meanwhile would be mixed with those that were read before.
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

/// A part of a file that is being read; when nobody reads on, the file is closed, or kept open for a moment,
/// and its session released.
///
/// Isolation: one reader, which asks for the next part when it has the last one;
/// unchecked, because a stream has no other reader.
private final class OpenRead: @unchecked Sendable {
    private let client: SFTPClient
    private let file: OpenFile
    private var reader: SFTPByteReader
    /// Whether it is a part beside which others are read at once.
    private let isSmall: Bool
    private var keepsOpen: Bool
    /// The file's attributes once all was read.
    private(set) var last: SFTPAttributes?

    /// The bytes of a small part, at most.
    private static let small = 1 << 20

    /// A read of a part, whose session is in use until it ends.
    init(
        _ client: SFTPClient,
        _ file: OpenFile,
        _ reader: SFTPByteReader,
        _ range: Range<Int64>,
        keepsOpen: Bool
    ) {
        self.client = client
        self.file = file
        self.reader = reader
        self.keepsOpen = keepsOpen
        isSmall = range.count <= Self.small
        if isSmall {
            file.smallReads.withLock { $0 += 1 }
            if keepsOpen { client.openFiles.keep(file) }
        }
    }

    deinit {
        if isSmall { file.smallReads.withLock { $0 -= 1 } }
        client.connection.release(file.session)
        if keepsOpen { client.openFiles.keep(file) }
    }

    func next() async throws(SFTPError) -> [UInt8]? {
        do throws(SFTPError) {
            if let bytes = try await reader.read() { return bytes }
            if last == nil { last = try await reader.lastAttributes() }
            return nil
        } catch {
            keepsOpen = false
            client.openFiles.drop(file)
            if error.endsSession { await client.connection.broke(file.session) }
            throw error
        }
    }
}
