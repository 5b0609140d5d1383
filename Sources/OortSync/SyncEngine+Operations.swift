import Logging
import OortCatalog
import OortContentStore
import OortModel
import OortPlanner

/// One call to the service, and what belongs to it.
struct OperationRequest: Sendable {
    /// The canonical operation.
    enum Call: Sendable {
        case createFolder(NewFolder)
        case upload(Upload)
        case move(Move)
        case delete(Deletion)
        /// A copy; the hash is that of the content to copy.
        case copy(Copy, ContentHash?)
        case setAttributes(ItemReference, AttributeChange)
    }

    var inode: Inode
    var index: Int
    var start: OperationStart
    var call: Call
    /// The staged content, which stays frozen meanwhile.
    var frozen: FrozenContent?
    /// The modified time that is sent with it.
    var sentModified: Timestamp?

    /// Whether bytes are sent, and not only copied at the service.
    var sendsBytes: Bool { if case .upload = call { true } else { false } }

    /// Whether a program wrote to the content after the intent was stored: if the answer were lost, what
    /// arrived would not be recognised as ours.
    var sendsOtherThanStored: Bool {
        guard case .upload(let upload) = call else { return false }
        if let size = start.intent.size, size != upload.size { return true }
        return start.intent.hash.map { $0 != upload.hash.description } ?? false
    }
}

/// How the preparation of an operation went.
enum Preparation {
    case ready(OperationRequest)
    /// The item is no longer as the plan saw it.
    case stale
    case failed(OperationStart, ProviderError)
}

/// Hears how an upload goes on: the session is stored, the progress shown.
private struct EngineUploadObserver: UploadObserver {
    let engine: SyncEngine
    let inode: Inode
    let hash: ContentHash
    let intent: Intent

    func sessionChanged(_ session: UploadSession?) async {
        do throws(CatalogError) {
            try await engine.catalog.setSession(session, sending: hash, for: intent, of: inode)
        } catch {
            // The upload goes on; only another process could not resume it.
            engine.logger.error(
                "an upload's session was not stored",
                metadata: ["inode": "\(inode)", "error": "\(error)"]
            )
        }
    }

    func sent(_ bytes: Int64) {
        Task { await engine.progressed(inode, to: bytes) }
    }
}

/// The content of a revision, read through the cache; in use for as long as this lives.
private final class CachedSource: ContentSource {
    let content: CachedContent
    let store: ContentStore
    var size: Int64 { content.size }

    init(_ content: CachedContent, in store: ContentStore) {
        (self.content, self.store) = (content, store)
    }

    deinit { store.close(content) }

    func read(at offset: Int64, count: Int) async throws(ProviderError) -> [UInt8] {
        do throws(ContentError) {
            return try await content.bytes(offset..<offset + Int64(count))
        } catch {
            if case .fetch(let cause) = error { throw cause }
            throw ProviderError(.localContent, detail: "\(error)")
        }
    }
}

/// Single operations: stored as an intent, sent, and their outcome stored.
extension SyncEngine {
    func progressed(_ inode: Inode, to bytes: Int64) {
        queue.sent(bytes, of: inode)
    }

    /// The request for an operation, if the catalog is still as the plan saw it and, where a number is
    /// given, there is no news since (`Catalog.begin`).
    func prepare(
        _ operation: RemoteOperation,
        index: Int,
        newsNumber: UInt64?
    ) async -> Preparation {
        let start: OperationStart?
        do {
            let reserved = try await reservedID(for: operation)
            start = try await catalog.begin(
                operation,
                account: account,
                reservedID: reserved,
                copiesFiles: provider.traits.copiesFiles
                    && failures.mayBeCopied(operation.inode),
                newsNumber: newsNumber
            )
        } catch {
            guard !Task.isCancelled else { return .stale }
            logger.warning("an operation could not be begun", metadata: ["error": "\(error)"])
            wake(at: now + 1000)
            return .stale
        }
        guard let start else { return .stale }
        do throws(ProviderError) {
            var request = try await request(operation, index, start)
            do throws(ProviderError) {
                if !request.sendsOtherThanStored {
                    request.start.intent = try await hashed(request)
                    return .ready(request)
                }
                try await clear(request.inode)
            } catch {
                if let frozen = request.frozen { store.release(frozen) }
                throw error
            }
            if let frozen = request.frozen { store.release(frozen) }
            return .stale
        } catch { return .failed(start, error) }
    }

    /// The intent of a request, with the hash of the bytes that it sends.
    private func hashed(_ request: OperationRequest) async throws(ProviderError) -> Intent {
        let intent = request.start.intent
        guard case .upload(let upload) = request.call, intent.hash == nil else { return intent }
        return try await storedAsync { () throws(CatalogError) in
            try await self.catalog.noteHash(upload.hash, sentBy: intent, of: request.inode)
        }
    }

    private func reservedID(
        for operation: RemoteOperation
    ) async throws(ProviderError) -> ItemID? {
        guard provider.traits.takesClientIDs else { return nil }
        switch operation.action {
        case .createFolder, .upload, .duplicate: break
        case .replace, .move, .delete, .setAttributes: return nil
        }
        return try await reservedIDs.next()
    }

    private func request(
        _ operation: RemoteOperation,
        _ index: Int,
        _ start: OperationStart
    ) async throws(ProviderError) -> OperationRequest {
        let node = start.node
        func request(
            _ call: OperationRequest.Call,
            frozen: FrozenContent? = nil,
            modified: Timestamp? = nil
        ) -> OperationRequest {
            OperationRequest(
                inode: node.inode,
                index: index,
                start: start,
                call: call,
                frozen: frozen,
                sentModified: modified
            )
        }
        func creation(
            at place: Place,
            of hash: ContentHash?,
            staged: ContentID? = nil
        ) async throws(ProviderError) -> OperationRequest {
            let parent = try known(start.parent)
            if let original = start.original {
                // The bytes are here: they need not be fetched again after the copy.
                let frozen = await frozenCopy(staged, of: hash)
                let copy = Copy(
                    item: original,
                    parent: parent,
                    name: place.name,
                    reservedID: start.reservedID,
                    modifiedTime: node.modified
                )
                return request(.copy(copy, hash), frozen: frozen, modified: node.modified)
            }
            let target = UploadTarget.create(
                parent: parent,
                name: place.name,
                reservedID: start.reservedID
            )
            let (upload, frozen) = try await self.upload(target, start)
            return request(.upload(upload), frozen: frozen, modified: node.modified)
        }
        switch operation.action {
        case .createFolder(let place):
            return request(
                .createFolder(
                    NewFolder(
                        parent: try known(start.parent),
                        name: place.name,
                        reservedID: start.reservedID,
                        modifiedTime: node.modified,
                        // Whoever sends it must be able to put something into it.
                        mode: node.mode.map { $0 & 0o777 | 0o700 }
                    )
                )
            )
        case .move(let place, _):
            return request(
                .move(
                    Move(
                        item: try known(start.item),
                        oldParent: try known(start.oldParent),
                        parent: try known(start.parent),
                        name: place.name,
                        modifiedTime: node.modified
                    )
                )
            )
        case .delete:
            return request(
                .delete(
                    Deletion(
                        item: try known(start.item),
                        revision: node.kind == .folder ? nil : start.revision,
                        expectsNothing: start.holdsNothing
                    )
                )
            )
        case .setAttributes(let modified, let description):
            return request(
                .setAttributes(
                    try known(start.item),
                    AttributeChange(
                        modifiedTime: modified,
                        description: description,
                        revision: node.kind == .folder ? nil : start.revision
                    )
                ),
                modified: modified
            )
        case .duplicate(let place, _):
            return try await creation(at: place, of: node.hash)
        case .upload(let place, let content):
            let staged = content.staged.flatMap { $0 > 0 ? ContentID($0) : nil }
            return try await creation(at: place, of: content.hash, staged: staged)
        case .replace(let revision, _):
            let item = try known(start.item)
            if !provider.traits.replaceIsAtomic, let revision {
                // The service would not refuse a stale one: compare just before.
                let current = try await provider.item(item)
                guard current.rev == revision else {
                    throw ProviderError(
                        .preconditionFailed,
                        detail: "another revision is current"
                    )
                }
            }
            let (upload, frozen) = try await self.upload(
                .replace(item, revision: revision),
                start
            )
            return request(.upload(upload), frozen: frozen, modified: node.modified)
        }
    }

    private func known(_ reference: ItemReference?) throws(ProviderError) -> ItemReference {
        guard let reference else {
            throw ProviderError(.parentNotFound, detail: "not at the service yet")
        }
        return reference
    }

    /// The frozen staged content of a file that is copied at the service; nil when it has changed
    /// meanwhile.
    private func frozenCopy(_ staged: ContentID?, of hash: ContentHash?) async -> FrozenContent? {
        guard let staged else { return nil }
        do throws(ProviderError) {
            let frozen = try await store.freeze(staged)
            if frozen.hash == hash { return frozen }
            store.release(frozen)
        } catch {
            // The copy does not need these bytes: they only save a later fetch.
            logger.info("bytes are not kept for a copy", metadata: ["error": "\(error)"])
        }
        return nil
    }

    /// The upload of a node's content.
    private func upload(
        _ target: UploadTarget,
        _ start: OperationStart
    ) async throws(ProviderError) -> (Upload, FrozenContent?) {
        let node = start.node
        let source: any ContentSource
        let hash: ContentHash
        var frozen: FrozenContent?
        // A link's target is all of its content, and known here.
        switch node.kind == .symlink ? .none : node.content {
        case .staged(let id, _):
            let content = try await store.freeze(id)
            (source, hash, frozen) = (content, content.hash, content)
        case .revision(let item, let revision):
            let key = ContentKey(account: account, item: item, revision: revision)
            do throws(ContentError) {
                let content = try store.open(key, size: node.size, hash: node.hash)
                source = CachedSource(content, in: store)
            } catch { throw ProviderError(.localContent, detail: "\(error)") }
            try await check(source)
            hash = try await self.hash(of: source, known: node.hash)
        case .none:
            // Never for a file that is shown with bytes: they would be overwritten with nothing.
            guard node.kind == .symlink || node.size == 0 else {
                throw ProviderError(.localContent, detail: "no bytes are known of this file")
            }
            source = BytesSource([UInt8]((node.target ?? "").utf8))
            hash = try await self.hash(of: source, known: nil)
        }
        let upload = Upload(
            target: target,
            size: source.size,
            hash: hash,
            modifiedTime: node.modified,
            createdTime: node.created,
            mimeType: node.mimeType,
            mode: node.kind == .file ? node.mode.map { $0 & 0o777 | 0o600 } : nil,
            content: source,
            session: start.session
        )
        return (upload, frozen)
    }

    /// Checks that content that the service has can be read at all: inside a request the reason of a
    /// failure would be lost.
    private func check(_ source: any ContentSource) async throws(ProviderError) {
        guard source.size > 0 else { return }
        do throws(ProviderError) {
            _ = try await source.read(at: 0, count: 1)
        } catch {
            // These errors are about the original, not about the item to be sent: looking at that would
            // find nothing.
            guard error.kind == .notFound || error.kind == .preconditionFailed else { throw error }
            throw ProviderError(
                .localContent,
                detail: "what it was copied from is not at the service any longer"
            )
        }
    }

    private func hash(
        of source: any ContentSource,
        known: ContentHash?
    ) async throws(ProviderError) -> ContentHash {
        if let known { return known }
        var hasher = provider.makeHasher()
        var position: Int64 = 0
        while position < source.size {
            let count = Int(min(1 << 20, source.size - position))
            let bytes = try await source.read(at: position, count: count)
            hasher.update(bytes[...])
            position += Int64(count)
        }
        return hasher.finalize()
    }

    // MARK: Sending

    func send(_ request: OperationRequest) async throws(ProviderError) -> Item? {
        switch request.call {
        case .createFolder(let folder): return try await provider.createFolder(folder)
        case .upload(let upload):
            let observer = EngineUploadObserver(
                engine: self,
                inode: request.inode,
                hash: upload.hash,
                intent: request.start.intent
            )
            let item = try await provider.upload(upload, observer: observer)
            if case .replace(let meant, _) = upload.target, item.id != meant.id {
                // The feed will report that other item; the upload to the item that was meant is still due.
                throw ProviderError(.sessionLost, detail: "the answer is of another item")
            }
            return item
        case .move(let move): return try await provider.move(move)
        case .delete(let deletion):
            try await provider.delete(deletion)
            return nil
        case .copy(let copy, let hash):
            let item = try await provider.copy(copy)
            guard hash == nil || item.contentHash == nil || item.contentHash == hash else {
                // The original changed before it was copied: the copy has the wrong bytes, and the right
                // ones go up as its next revision.
                throw ProviderError(
                    .contentDamaged,
                    detail: "the copied file had changed",
                    item: item
                )
            }
            return item
        case .setAttributes(let item, let change):
            return try await provider.setAttributes(of: item, to: change)
        }
    }

    /// Stores the outcome; true when the operation was done.
    func finish(
        _ request: OperationRequest,
        _ result: Result<Item?, ProviderError>
    ) async -> Bool {
        defer { if let frozen = request.frozen, !wasKept(request) { store.release(frozen) } }
        switch result {
        case .failure(let error):
            if let item = error.item, await !agree(request, on: item) { return false }
            await conclude(request.start, of: request.inode, error)
            return false
        case .success(let answer):
            let item = asSent(answer, request)
            if let id = item?.id ?? request.start.item?.id { order.touch(id) }
            failures.succeeded(request.inode)
            do throws(CatalogError) {
                let isOpen = try await catalog.succeeded(
                    request.start.intent,
                    of: request.inode,
                    item: item,
                    sentModified: request.sentModified,
                    answersUpload: request.sendsBytes,
                    timeChangesRevision: provider.traits.timeChangesRevision
                )
                isReachable()
                finished.add(1)
                if isOpen { await lookAtUnsureAfterwards() }
                if item != answer, let item { await lookSoon(at: item, request) }
                await keep(request, item)
                return true
            } catch {
                // The intent stays: the service is asked at the next try.
                unanswered.mayExist = true
                guard !Task.isCancelled else { return false }
                logger.error("an answer could not be stored", metadata: ["error": "\(error)"])
                wake(at: now + 1000)
                return false
            }
        }
    }

    /// Asks for the item of an answer; where that fails, the feed will report it.
    private func lookSoon(at item: Item, _ request: OperationRequest) async {
        let path = request.start.parent?.path ?? .root
        do throws(ProviderError) {
            try await look(at: ItemReference(id: item.id, path: path.appending(item.fileName)))
        } catch { note(error) }
    }

    /// After content arrived damaged, both sides agree on what the service has: the local content differs
    /// from it and is sent again, in place of exactly that revision.
    ///
    /// - Returns: whether that could be stored.
    private func agree(_ request: OperationRequest, on item: Item) async -> Bool {
        order.touch(item.id)
        do throws(CatalogError) {
            let isOpen = try await catalog.succeeded(
                request.start.intent,
                of: request.inode,
                item: item,
                sentModified: request.sentModified,
                timeChangesRevision: provider.traits.timeChangesRevision
            )
            if isOpen { await lookAtUnsureAfterwards() }
            return true
        } catch {
            // The intent stays: the service is asked at the next try.
            unanswered.mayExist = true
            wake(at: now + 1000)
            return false
        }
    }

    /// The answer as if the service had kept what was sent.
    ///
    /// Some services write properties into certain documents on arrival; the result counts as a later
    /// change at the service, with a revision of its own.
    private func asSent(_ answer: Item?, _ request: OperationRequest) -> Item? {
        guard case .upload(let upload) = request.call, var item = answer,
            let hash = item.contentHash, hash.algorithm == upload.hash.algorithm,
            hash != upload.hash
        else { return answer }
        item.contentHash = upload.hash
        item.size = upload.size
        item.rev = item.rev?.asSent
        return item
    }

    /// The uploaded content becomes the cached content of its revision.
    private func keep(_ request: OperationRequest, _ item: Item?) async {
        guard let frozen = request.frozen, let item, let revision = item.rev else { return }
        // Only its hash proves that a copy has these bytes.
        if case .copy = request.call, item.contentHash != frozen.hash { return }
        keptContents.insert(request.inode)
        await store.uploaded(
            frozen,
            as: ContentKey(account: account, item: item.id, revision: revision)
        )
        // The disk space of the uploaded content can be reused now.
        uploadsKept += 1
        await retryRoomless()
    }

    /// Reads the contents again for which there was no room.
    func retryRoomless() async {
        guard !roomless.isEmpty else { return }
        let waiting = Array(roomless)
        roomless = []
        await retryNow(waiting)
        planSoon()
    }

    private func wasKept(_ request: OperationRequest) -> Bool {
        keptContents.remove(request.inode) != nil
    }
}
