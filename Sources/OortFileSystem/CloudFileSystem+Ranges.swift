import OortCatalog
import OortContentStore
import OortModel
import Synchronization

/// Copies of ranges, holes, and room reserved in advance.
extension CloudFileSystem {
    /// How many bytes one local copy call copies: the caller continues, and may be interrupted in between.
    private static let copyPart: Int64 = 16 << 20

    public func copyRange(
        from source: FileHandle,
        at sourceOffset: Int64,
        to target: FileHandle,
        at targetOffset: Int64,
        count: Int64
    ) -> Outcome<Int64> {
        guard let from = table[source], let to = table[target], from.mode.reads,
            to.mode.writes
        else { return .failure(.badHandle) }
        guard sourceOffset >= 0, targetOffset >= 0, count >= 0, !to.mode.appends,
            targetOffset <= Int64.max - count
        else { return .failure(.invalid) }
        guard
            from.file.account == to.file.account
        else { return .failure(.otherAccount) }
        do throws(FileSystemError) {
            if sourceOffset == 0, targetOffset == 0,
                let copied = try copyAtService(from, to, count: count)
            {
                clearPrivileges(of: to.file)
                return .now(.success(copied))
            }
        } catch { return .failure(error) }
        let count = min(count, Self.copyPart)
        let largest = largestFile(of: to.file.account)
        guard targetOffset <= largest - count else { return .failure(.tooLarge) }
        let file = from.isDirect ? nil : from.file
        file?.beginRequest()
        return waiting.later { () async throws(FileSystemError) in
            defer { file?.endRequest() }
            var copied: Int64 = 0
            while copied < count {
                let start = sourceOffset + copied
                let end = min(start + (1 << 20), sourceOffset + count)
                let bytes = try await self.bytes(start..<end, of: from)
                guard !bytes.isEmpty else { break }
                let place = targetOffset + copied
                try await self.write(bytes, at: place, by: to)
                copied += Int64(bytes.count)
            }
            return copied
        }
    }

    /// Records that a new file has the whole content of a clean file, to be copied by the service; nil when
    /// that is not the case.
    private func copyAtService(
        _ from: OpenHandle,
        _ to: OpenHandle,
        count: Int64
    ) throws(FileSystemError) -> Int64? {
        guard case .cached(let content) = from.content, content.size > 0, to.size == 0,
            !from.isReadOnlyDocument, count >= content.size, from.file !== to.file,
            traits(of: content.key.account)?.copiesFiles == true
        else { return nil }
        return try locked(to.file) { state throws(FileSystemError) in
            // Only a file that the service never had can become a copy.
            guard to.size == 0, let node = try self.known(to.file.inode),
                node.remoteID == nil, node.parent != nil, !node.isHeld
            else { return nil }
            // Before the catalog drops it: writes by other threads go over the copy from now on.
            var left: StagedContent?
            if case .staged(let staged) = to.content {
                guard staged.leaveIfEmpty() else { return nil }
                left = staged
            }
            do throws(CatalogError) {
                state.node = try self.catalog.setCopiedContent(
                    item: content.key.item,
                    revision: content.key.revision,
                    hash: content.expectedHash,
                    size: content.size,
                    modified: .now,
                    of: node.inode,
                    // The service may not have this revision when the copy is made, if the original was
                    // removed, touched or is being changed.
                    from: from.file.inode
                )
            } catch {
                left?.stay()
                if error == .notFound { return nil }
                throw FileSystemError(error)
            }
            state.written = nil
            for handle in state.handles {
                let used = try FileSystemError.translatingContent { () throws(ContentError) in
                    try self.store.open(
                        content.key,
                        size: content.size,
                        hash: content.expectedHash
                    )
                }
                self.close(handle.show(.cached(used)))
            }
            return content.size
        }
    }

    private func bytes(
        _ range: Range<Int64>,
        of open: OpenHandle
    ) async throws(FileSystemError) -> [UInt8] {
        switch try await answer(open, range) {
        case .end: return []
        case .bytes(let bytes): return bytes
        case .file(let file, let range):
            return try FileSystemError.translatingContent { () throws(ContentError) in
                try file.read(
                    at: range.lowerBound,
                    count: Int(range.upperBound - range.lowerBound)
                )
            }
        }
    }

    public func seek(
        _ handle: FileHandle,
        to target: SeekTarget,
        from offset: Int64
    ) -> Outcome<Int64> {
        .now { () throws(FileSystemError) in
            guard let open = table[handle] else { throw .badHandle }
            guard offset >= 0 else { throw .invalid }
            // The holes of bytes that are not here are not known: all counts as data.
            guard case .staged(let content) = open.content else {
                guard offset < open.size else { throw .noMoreData }
                return target == .data ? offset : open.size
            }
            guard let found = content.nextBoundary(from: offset, isData: target == .data) else {
                throw .noMoreData
            }
            return found
        }
    }

    public func allocate(
        _ handle: FileHandle,
        range: Range<Int64>,
        extends: Bool
    ) -> Outcome<Void> {
        guard let open = table[handle], open.mode.writes else { return .failure(.badHandle) }
        guard extends else { return .failure(.notSupported) }
        guard range.lowerBound >= 0, !range.isEmpty else { return .failure(.invalid) }
        guard range.upperBound <= largestFile(of: open.file.account) else {
            return .failure(.tooLarge)
        }
        return waiting.later { () async throws(FileSystemError) in
            if range.upperBound > open.size {
                try await self.change(open) { staged throws(ContentError) in
                    try staged.truncate(to: range.upperBound, onlyExtends: true)
                }
            }
            try await self.change(open) { staged throws(ContentError) in
                try staged.allocate(range)
            }
        }
    }
}
