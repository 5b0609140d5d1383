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
        /// A copy, of content of which this is the hash.
        case copy(Copy, ContentHash?)
        case setAttributes(ItemReference, AttributeChange)
    }

    var inode: Inode
    var index: Int
    var start: OperationStart
    var call: Call
    /// The staged content that is held still meanwhile.
    var frozen: FrozenContent?
    /// The modified time that goes with it.
    var sentModified: Timestamp?
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
    let content: Int64?

    func sessionChanged(_ session: UploadSession?) async {
        try? await engine.catalog.setSession(session, content: content, of: inode)
    }

    func sent(_ bytes: Int64) {
        Task { await engine.progressed(inode, to: bytes) }
    }
}

/// The content of a revision, read through the cache.
private struct CachedSource: ContentSource {
    let content: CachedContent
    var size: Int64 { content.size }

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
        guard let transfer = running[inode], transfer.sent < bytes else { return }
        running[inode]?.sent = bytes
    }

    func prepare(_ operation: RemoteOperation, index: Int) async -> Preparation {
        let start: OperationStart?
        do {
            let reserved = try await reservedID(for: operation)
            start = try await catalog.begin(operation, account: account, reservedID: reserved)
        } catch {
            guard !Task.isCancelled else { return .stale }
            logger.warning("an operation could not be begun", metadata: ["error": "\(error)"])
            wake(at: now + 1000)
            return .stale
        }
        guard let start else { return .stale }
        do throws(ProviderError) {
            return .ready(try await request(operation, index, start))
        } catch { return .failed(start, error) }
    }

    private func reservedID(
        for operation: RemoteOperation
    ) async throws(ProviderError) -> ItemID? {
        guard provider.traits.takesClientIDs else { return nil }
        switch operation.action {
        case .createFolder, .upload, .duplicate: break
        case .replace, .move, .delete, .setAttributes: return nil
        }
        if reservedIDs.isEmpty { reservedIDs = try await provider.reserveIDs(100) }
        return reservedIDs.popLast()
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
        switch operation.action {
        case .createFolder(let place):
            return request(
                .createFolder(
                    NewFolder(
                        parent: try known(start.parent),
                        name: place.name,
                        reservedID: start.reservedID,
                        modifiedTime: node.modified
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
                        revision: node.kind == .folder ? nil : start.revision
                    )
                )
            )
        case .setAttributes(let modified, let description):
            return request(
                .setAttributes(
                    try known(start.item),
                    AttributeChange(modifiedTime: modified, description: description)
                ),
                modified: modified
            )
        case .duplicate(let place, _):
            if provider.traits.copiesFiles {
                return request(
                    .copy(
                        Copy(
                            item: try known(start.item),
                            parent: try known(start.parent),
                            name: place.name,
                            reservedID: start.reservedID,
                            modifiedTime: node.modified
                        ),
                        node.hash
                    ),
                    modified: node.modified
                )
            }
            let target = UploadTarget.create(
                parent: try known(start.parent),
                name: place.name,
                reservedID: start.reservedID
            )
            let (upload, frozen) = try await self.upload(target, start)
            return request(.upload(upload), frozen: frozen, modified: node.modified)
        case .upload(let place, let content):
            let parent = try known(start.parent)
            if let copy = try await twin(of: content, start, parent, place.name) {
                return request(copy, modified: node.modified)
            }
            let target = UploadTarget.create(
                parent: parent,
                name: place.name,
                reservedID: start.reservedID
            )
            let (upload, frozen) = try await self.upload(target, start)
            return request(.upload(upload), frozen: frozen, modified: node.modified)
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

    /// Content that the account has already is copied at the service: no bytes travel.
    private func twin(
        of content: ContentIdentity,
        _ start: OperationStart,
        _ parent: ItemReference,
        _ name: String
    ) async throws(ProviderError) -> OperationRequest.Call? {
        guard provider.traits.copiesFiles, content.size > 0, let hash = content.hash else {
            return nil
        }
        let found = try await storedAsync { () throws(CatalogError) in
            try await self.catalog.twin(of: hash, size: content.size, in: self.account)
        }
        guard let (item, _) = found else { return nil }
        return .copy(
            Copy(
                item: item,
                parent: parent,
                name: name,
                reservedID: start.reservedID,
                modifiedTime: start.node.modified
            ),
            hash
        )
    }

    /// The upload of what the node holds.
    private func upload(
        _ target: UploadTarget,
        _ start: OperationStart
    ) async throws(ProviderError) -> (Upload, FrozenContent?) {
        let node = start.node
        let source: any ContentSource
        let hash: ContentHash
        var frozen: FrozenContent?
        switch node.content {
        case .staged(let id, _):
            let content = try await store.freeze(id)
            (source, hash, frozen) = (content, content.hash, content)
        case .revision(let item, let revision):
            let key = ContentKey(account: account, item: item, revision: revision)
            do throws(ContentError) {
                let content = try store.open(key, size: node.size, hash: node.hash)
                source = CachedSource(content: content)
            } catch { throw ProviderError(.localContent, detail: "\(error)") }
            hash = try await self.hash(of: source, known: node.hash)
        case .none:
            source = BytesSource([UInt8]((node.target ?? "").utf8))
            hash = try await self.hash(of: source, known: nil)
        }
        let upload = Upload(
            target: target,
            size: source.size,
            hash: hash,
            modifiedTime: node.modified,
            mimeType: node.mimeType,
            content: source,
            session: start.session
        )
        return (upload, frozen)
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
                content: request.start.intent.content
            )
            return try await provider.upload(upload, observer: observer)
        case .move(let move): return try await provider.move(move)
        case .delete(let deletion):
            try await provider.delete(deletion)
            return nil
        case .copy(let copy, let hash):
            let item = try await provider.copy(copy)
            guard hash == nil || item.contentHash == nil || item.contentHash == hash else {
                // The original changed meanwhile: what was copied is not what was meant.
                try await provider.delete(
                    Deletion(
                        item: ItemReference(
                            id: item.id,
                            path: copy.parent.path.appending(copy.name)
                        ),
                        revision: item.rev
                    )
                )
                throw ProviderError(.contentDamaged, detail: "the copied file had changed")
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
        var outcome = result
        if case .success(let item?) = result, case .upload(let upload) = request.call,
            let hash = item.contentHash, hash.algorithm == upload.hash.algorithm,
            hash != upload.hash
        {
            outcome = .failure(
                ProviderError(.contentDamaged, detail: "the service has other bytes")
            )
        }
        switch outcome {
        case .failure(let error):
            await conclude(request.start, of: request.inode, error)
            return false
        case .success(let item):
            let when = nextOrdinal()
            if let id = item?.id ?? request.start.item?.id { touched[id] = when }
            failures[request.inode] = nil
            do throws(CatalogError) {
                let isOpen = try await catalog.succeeded(
                    request.start.intent,
                    of: request.inode,
                    item: item,
                    sentModified: request.sentModified
                )
                isReachable()
                if isOpen, let item {
                    let path = request.start.parent?.path ?? .root
                    try? await look(
                        at: ItemReference(id: item.id, path: path.appending(item.fileName))
                    )
                }
                await keep(request, item)
                return true
            } catch {
                // The intent stays: the service is asked at the next try.
                hasOpenIntents = true
                guard !Task.isCancelled else { return false }
                logger.error("an answer could not be stored", metadata: ["error": "\(error)"])
                wake(at: now + 1000)
                return false
            }
        }
    }

    /// The uploaded content becomes the cached content of its revision.
    private func keep(_ request: OperationRequest, _ item: Item?) async {
        guard let frozen = request.frozen, let item, let revision = item.rev else { return }
        keptContents.insert(request.inode)
        await store.uploaded(
            frozen,
            as: ContentKey(account: account, item: item.id, revision: revision)
        )
    }

    private func wasKept(_ request: OperationRequest) -> Bool {
        keptContents.remove(request.inode) != nil
    }

    // MARK: Failing

    /// Decides what a failure means, and stores it.
    func conclude(
        _ start: OperationStart,
        of inode: Inode,
        _ error: ProviderError
    ) async {
        let tries = (failures[inode] ?? 0) + 1
        failures[inode] = tries
        var wait = backoff(after: tries, error)
        var isUnknown = error.isOutcomeUnknown
        var looksAt = false
        switch error.kind {
        case .cancelled where Task.isCancelled:
            // The engine ends: the next one asks.
            return
        case .offline, .signedOut:
            note(error)
            wait = .zero
            failures[inode] = tries - 1
        case .rateLimited:
            pausedUntil = now + wait.inMilliseconds
            wake(at: pausedUntil)
            failures[inode] = tries - 1
        case .sessionLost:
            try? await catalog.setSession(nil, content: nil, of: inode)
            wait = .zero
        case .preconditionFailed, .notFound, .parentNotFound, .nameTaken, .notAFolder, .notAFile,
            .moveIntoItself:
            looksAt = true
            wait = tries > 2 ? wait : .zero
        case .nameRefused, .nameTooLong, .noPermission, .contentBlocked, .quotaExceeded,
            .limitExceeded, .tooLarge, .unsupported, .badRequest:
            wait = settings.refusalInterval
        case .cursorLost, .contentDamaged, .locked, .outcomeUnknown, .malformedAnswer,
            .localContent, .cancelled:
            break
        }
        if case .contentDamaged = error.kind {
            isUnknown = false
            looksAt = true
        }
        if isUnknown { hasOpenIntents = true }
        logger.info(
            "an operation failed",
            metadata: [
                "inode": "\(inode)", "operation": "\(start.intent.kind)", "error": "\(error)",
            ]
        )
        let trouble = PushTrouble(
            kind: "\(error.kind)",
            detail: error.detail,
            nextTry: now + wait.inMilliseconds
        )
        try? await catalog.failed(inode, trouble, isUnknown: isUnknown)
        if looksAt { await lookAfter(start) }
        if wait > .zero { wake(at: now + wait.inMilliseconds) }
    }

    /// After a refusal: what the service has where the operation went, and of its item.
    private func lookAfter(_ start: OperationStart) async {
        do throws(ProviderError) {
            if let item = start.item { try await look(at: item) }
            if let parent = start.parent { try await look(at: parent) }
            if let parent = start.parent, let name = start.intent.name {
                let began = nextOrdinal()
                let found = try await provider.items(named: name, in: parent)
                var observations = Observations(changes: found.map { .changed($0) })
                observations.suspects = suspects(since: began)
                observations.endsRun = false
                _ = try await storedAsync { [observations] () throws(CatalogError) in
                    try await self.catalog.apply(observations, to: self.account)
                }
            }
        } catch {
            logger.info("looking again did not work", metadata: ["error": "\(error)"])
        }
    }

    /// Asks the service about everything that was sent and never answered.
    func resolveIntents() async {
        guard hasOpenIntents, pausedUntil <= now else { return }
        hasOpenIntents = false
        guard let open = try? await catalog.intents(of: account) else {
            hasOpenIntents = true
            return
        }
        for (inode, intent, item) in open {
            guard running[inode] == nil, nextLooks[inode] ?? 0 <= now else {
                hasOpenIntents = true
                continue
            }
            do throws(ProviderError) {
                try await resolve(intent, of: inode, item)
                nextLooks[inode] = nil
                needsPlan = true
            } catch {
                note(error)
                hasOpenIntents = true
                let tries = (failures[inode] ?? 0) + 1
                failures[inode] = tries
                let wait = backoff(after: tries, error)
                nextLooks[inode] = now + wait.inMilliseconds
                wake(at: now + wait.inMilliseconds)
            }
        }
    }

    private func resolve(
        _ intent: Intent,
        of inode: Inode,
        _ item: ItemReference?
    ) async throws(ProviderError) {
        let answer: Item?
        if intent.expected != nil {
            answer = try await created(by: intent)
        } else {
            guard let item else { return try await clear(inode) }
            do throws(ProviderError) {
                let now = try await provider.item(item)
                answer = isDone(intent, now) ? now : nil
            } catch {
                guard error.kind == .notFound else { throw error }
                if intent.kind == .delete {
                    touched[item.id] = nextOrdinal()
                    _ = try await storedAsync { () throws(CatalogError) in
                        try await self.catalog.succeeded(
                            intent,
                            of: inode,
                            item: nil,
                            sentModified: nil
                        )
                    }
                    return
                }
                answer = nil
            }
        }
        guard let answer else {
            try await clear(inode)
            if let item { try await look(at: item) }
            return
        }
        touched[answer.id] = nextOrdinal()
        let isOpen = try await storedAsync { () throws(CatalogError) in
            try await self.catalog.succeeded(
                intent,
                of: inode,
                item: answer,
                sentModified: answer.clientModifiedTime
            )
        }
        if isOpen, let item { try await look(at: item) }
    }

    /// What an operation that created something left at the service, if it was done.
    private func created(by intent: Intent) async throws(ProviderError) -> Item? {
        guard let folder = intent.folder, let name = intent.name else { return nil }
        var found: [Item] = []
        if let id = intent.reservedID {
            do throws(ProviderError) {
                found = [
                    try await provider.item(
                        ItemReference(id: ItemID(id), path: folder.path.appending(name))
                    )
                ]
            } catch { guard error.kind == .notFound else { throw error } }
        } else {
            do throws(ProviderError) {
                found = try await provider.items(named: name, in: folder)
            } catch {
                guard error.kind == .parentNotFound || error.kind == .notFound else { throw error }
            }
        }
        return found.first { item in
            if let known = try? catalog.node(remoteID: item.id, account: account),
                known.parent != nil || known.isAccountRoot
            {
                return false
            }
            if intent.kind == .createFolder { return item.kind == .folder }
            if intent.reservedID != nil { return item.kind == .file }
            guard item.kind == .file else { return false }
            return intent.hash == nil || item.contentHash?.description == intent.hash
        }
    }

    private func isDone(_ intent: Intent, _ item: Item) -> Bool {
        switch intent.kind {
        case .replace: return intent.hash != nil && item.contentHash?.description == intent.hash
        case .move:
            guard let name = intent.name, item.fileName.isSameText(as: name) else { return false }
            if let parent = item.parentID { return parent.rawValue == intent.folderID }
            guard let folder = item.path?.parent?.parts, let meant = intent.folderPath else {
                return false
            }
            return folder.elementsEqual(meant) { $0.isSameText(as: $1) }
        case .createFolder, .upload, .duplicate, .delete, .setAttributes: return false
        }
    }

    private func clear(_ inode: Inode) async throws(ProviderError) {
        try await storedAsync { () throws(CatalogError) in
            try await self.catalog.failed(inode, nil, isUnknown: false)
        }
    }
}
