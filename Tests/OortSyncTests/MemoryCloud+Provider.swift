import OortModel
import OrderedCollections
import Synchronization

/// The calls of a provider, as a service answers them.
extension MemoryCloud: Provider {
    func identity() async throws(ProviderError) -> AccountIdentity {
        AccountIdentity(id: "me", displayName: "Me", email: nil, rootID: Self.rootID)
    }

    var contentSearch: (any ContentSearching)? { state.withLock { $0.search } }

    func quota() async throws(ProviderError) -> Quota {
        try await pass(.room)
        return state.withLock { state in
            state.quotaCalls += 1
            return state.quota
        }
    }
    func signOut() async throws(ProviderError) {}

    func changes(since cursor: Cursor?) async throws(ProviderError) -> ChangePage {
        try await pass(.feed)
        if let refusal = state.withLock({ $0.refusals["feed"]?.popLast() }) { throw refusal }
        if state.withLock({ $0.fault() }) != nil { throw error(.offline) }
        let isStill = state.withLock { state in
            state.pages += 1
            return state.standsStill
        }
        if isStill {
            return ChangePage(
                changes: [],
                cursor: cursor ?? Cursor("0:0"),
                hasMore: true,
                isEnumeration: true
            )
        }
        let result: Result<ChangePage, ProviderError> = state.withLock { now in
            // What a page takes of the service for tests' sake is taken of the present state.
            var state = now.replica(notBefore: cursor)
            defer { (now.pagesBeforeHold, now.held) = (state.pagesBeforeHold, state.held) }
            guard let cursor else { return .success(state.page(of: Enumeration(state))) }
            if let enumeration = Enumeration(cursor) {
                return .success(state.page(of: enumeration))
            }
            let parts = cursor.rawValue.split(separator: ":").compactMap { Int($0) }
            guard parts.count == 2, parts[0] == state.cursorEpoch else {
                return .failure(ProviderError(.cursorLost, detail: "memory"))
            }
            if state.tellsPaths { return .success(state.page(after: parts[1], traits.names)) }
            let next = parts[1] + min(state.log.count - parts[1], state.changesAtOnce)
            let end = Cursor("\(state.cursorEpoch):\(next)")
            var seen: Set<ItemID> = []
            var changes: [Change] = []
            for id in state.log[parts[1]..<next] where seen.insert(id).inserted {
                changes.append(state.entries[id].map { .changed($0.item) } ?? .removed(id))
            }
            return .success(
                ChangePage(
                    changes: changes,
                    cursor: end,
                    hasMore: next < state.log.count,
                    isEnumeration: false
                )
            )
        }
        try await travel()
        return try result.get()
    }

    /// A place in an enumeration: more than one item is more than one page, each as it is when its page is
    /// asked for; the changes behind it report what was made meanwhile.
    struct Enumeration {
        /// Where the changes go on behind it.
        let end: String
        /// How many items a page names.
        let size: Int
        /// The last item that a page named; nil before the first.
        var last: String?

        init(_ state: State) {
            end = "\(state.cursorEpoch):\(state.feedEnd)"
            size = max(1, (state.entries.count + 2) / 3)
        }

        init?(_ cursor: Cursor) {
            let parts = cursor.rawValue.split(separator: "|").map(String.init)
            guard parts.count == 3, let size = Int(parts[1]) else { return nil }
            (end, self.size, last) = (parts[0], size, parts[2])
        }
    }

    func waitForChanges(
        since cursor: Cursor,
        atMost limit: Duration
    ) async throws(ProviderError) -> FeedNews {
        state.withLock { $0.looksForNews += 1 }
        if state.withLock({ $0.refusesWaits }) { throw error(.noPermission) }
        do {
            // Time that costs nothing may be longer.
            let pause = SystemInputs.given == nil ? 5 : 100
            try await SystemInputs.sleep(for: .milliseconds(pause))
            // Waits that were begun before it fell silent end no sooner.
            if state.withLock({ $0.isSilent }) { try await SystemInputs.sleep(for: .seconds(3600)) }
        } catch { throw self.error(.cancelled) }
        let end = state.withLock { "\($0.cursorEpoch):\($0.feedEnd)" }
        return end == cursor.rawValue ? .quiet(backoff: nil) : .changed
    }

    func children(
        of folder: ItemReference,
        page: PageToken?
    ) async throws(ProviderError) -> ListingPage {
        try await pass(.listings)
        let items = state.withLock { now in
            now.calls["list", default: 0] += 1
            let state = now.replica()
            return state.entries.values.map(\.item).filter { $0.parentID == folder.id }
                .map(state.told)
        }
        try await travel()
        return ListingPage(items: items, next: nil)
    }

    func item(_ reference: ItemReference) async throws(ProviderError) -> Item {
        try await look()
        try await pass(.looks)
        if state.withLock({ $0.refusedLook == reference.id }) { throw error(.noPermission) }
        let item = state.withLock { state in
            state.entries[reference.id].map { state.told($0.item) }
        }
        try await travel()
        guard let item else { throw error(.notFound) }
        return item
    }

    func items(
        named name: String,
        in folder: ItemReference
    ) async throws(ProviderError) -> [Item] {
        try await look()
        let key = traits.names.key(name)
        let items = state.withLock { now in
            // Drive searches; elsewhere the item at a path is asked for.
            let state = traits.names.allowsDuplicates ? now.replica() : now
            return state.entries.values.map(\.item).filter {
                $0.parentID == folder.id
                    && traits.names.key($0.fileName).isSameText(as: key)
            }.map(state.told)
        }
        try await travel()
        return items
    }

    func read(
        _ item: ItemReference,
        revision: Revision?,
        range: Range<Int64>
    ) async throws(ProviderError) -> ByteStream {
        try await pass(.reads)
        if let refusal = state.withLock({ $0.refusals["read"]?.popLast() }) { throw refusal }
        let (entry, breaks) = state.withLock { state in
            state.reads.append(range)
            state.breaks -= 1
            return (state.entries[item.id], state.breaks >= 0)
        }
        guard let entry, revision == nil || entry.item.rev == revision else {
            throw error(.preconditionFailed)
        }
        let part = Array(
            entry.bytes[Int(range.lowerBound)..<min(Int(range.upperBound), entry.bytes.count)]
        )
        let kept = breaks ? Array(part.prefix((part.count + 1) / 2)) : part
        let left = Mutex<[UInt8]?>(kept.isEmpty ? nil : kept)
        return ByteStream { () throws(ProviderError) in
            let next = left.withLock { left in
                defer { left = nil }
                return left
            }
            if next == nil, breaks { throw self.error(.offline) }
            return next
        }
    }

    func export(
        _ item: ItemReference,
        to format: ExportFormat
    ) async throws(ProviderError) -> ByteStream { throw error(.unsupported) }

    func thumbnail(
        of item: ItemReference,
        edge: Int
    ) async throws(ProviderError) -> ByteStream { throw error(.unsupported) }

    func reserveIDs(_ count: Int) async throws(ProviderError) -> [ItemID] {
        try await pass(.ids)
        return state.withLock { state in
            (0..<min(count, state.idsAtOnce)).map { _ in
                state.counter += 1
                return ItemID("reserved\(state.counter)")
            }
        }
    }

    func createFolder(_ folder: NewFolder) async throws(ProviderError) -> Item {
        try await pass(.folders)
        return try await call("createFolder") { state throws(ProviderError) in
            try free(folder.reservedID, "createFolder", &state)
            try free(folder.name, in: folder.parent.id, state)
            let made = Self.make(
                folder.name,
                folder.parent.id,
                nil,
                modified: nil,
                id: folder.reservedID,
                &state
            )
            return state.told(made)
        }
    }

    /// An id that was ever used creates nothing any more.
    private func free(
        _ id: ItemID?,
        _ call: String,
        _ state: inout State
    ) throws(ProviderError) {
        guard let id else { return }
        if state.usedIDs.contains(id) { throw error(.preconditionFailed) }
        guard state.usingUp.remove(call) != nil else { return }
        state.usedIDs.insert(id)
        throw error(.parentNotFound)
    }

    func upload(
        _ upload: Upload,
        observer: any UploadObserver
    ) async throws(ProviderError) -> Item {
        state.withLock { $0.uploading.append(upload.size) }
        defer {
            state.withLock { state in
                if let index = state.uploading.firstIndex(of: upload.size) {
                    state.uploading.remove(at: index)
                }
            }
        }
        try await pass(.uploads)
        var bytes = try await send(upload, observer)
        return try await call("upload") { state throws(ProviderError) in
            let stored: Item
            let isDamaged = state.damagedUploads > 0
            if isDamaged {
                state.damagedUploads -= 1
                bytes.append(0)
            } else if state.rewrites {
                bytes += Array(" (rewritten)".utf8)
            }
            switch upload.target {
            case .create(let parent, let name, let id):
                try free(id, "upload", &state)
                try free(name, in: parent.id, state)
                stored = Self.make(
                    name,
                    parent.id,
                    bytes,
                    modified: upload.modifiedTime,
                    id: id,
                    &state
                )
            case .replace(let item, let revision):
                guard var entry = state.entries[item.id] else { throw error(.notFound) }
                if let revision, entry.item.rev != revision { throw error(.preconditionFailed) }
                entry.bytes = bytes
                entry.item.clientModifiedTime = upload.modifiedTime?.truncated(to: .milliseconds)
                stored = Self.store(entry, newContent: true, &state)
            }
            if isDamaged { throw ProviderError(.contentDamaged, detail: "memory", item: stored) }
            return state.told(stored)
        }
    }

    /// The bytes of an upload, sent at once or in the parts of a session, each of them a call.
    private func send(
        _ upload: Upload,
        _ observer: any UploadObserver
    ) async throws(ProviderError) -> [UInt8] {
        guard upload.size > traits.largestSimpleUpload else {
            let bytes = try await upload.content.read(at: 0, count: Int(upload.size))
            state.withLock { $0.bytesUp += upload.size }
            observer.sent(upload.size)
            return bytes
        }
        let name: String = state.withLock { state in
            if let known = upload.session?.state, state.sessions[known] != nil { return known }
            state.counter += 1
            state.sessions["s\(state.counter)"] = []
            return "s\(state.counter)"
        }
        while true {
            let sent = state.withLock { $0.sessions[name] ?? [] }
            guard sent.count < upload.size else { return sent }
            let count = min(traits.uploadPartSize, upload.size - Int64(sent.count))
            try await state.withLock { $0.beforeParts }?()
            let part = try await upload.content.read(at: Int64(sent.count), count: Int(count))
            try await call("part") { state throws(ProviderError) in
                state.sessions[name]?.append(contentsOf: part)
                state.bytesUp += count
            }
            let confirmed = Int64(sent.count) + count
            observer.sent(confirmed)
            await observer.sessionChanged(
                UploadSession(state: name, confirmedBytes: confirmed, expires: nil)
            )
        }
    }

    func isOutcome(_ item: Item, of upload: LostUpload) async throws(ProviderError) -> Bool {
        guard let origin = state.withLock({ $0.origins[item.id] }) else { return false }
        return origin.parentID == upload.folder.id && origin.fileName.isSameText(as: upload.name)
            && (origin.contentHash == nil || origin.contentHash == upload.hash)
    }

    func move(_ move: Move) async throws(ProviderError) -> Item {
        try await call("move") { state throws(ProviderError) in
            guard var entry = state.entries[move.item.id] else { throw error(.notFound) }
            try free(move.name, in: move.parent.id, but: move.item.id, state)
            entry.item.parentID = move.parent.id
            entry.item.fileName = move.name
            if state.movesMakeRevisions, entry.item.kind == .file {
                entry.item.rev = Revision("r\(state.counter) moved")
            }
            return state.told(Self.store(entry, newContent: false, &state))
        }
    }

    func delete(_ deletion: Deletion) async throws(ProviderError) {
        try await call("delete") { state throws(ProviderError) in
            guard let entry = state.entries[deletion.item.id] else { return }
            if let revision = deletion.revision, entry.item.rev != revision {
                throw error(.preconditionFailed)
            }
            if let name = state.lateArrival {
                state.lateArrival = nil
                _ = Self.make(name, deletion.item.id, Array(name.utf8), modified: nil, &state)
            }
            let isFilled = state.entries.values.contains { $0.item.parentID == deletion.item.id }
            if deletion.expectsNothing, isFilled || state.hidesContents {
                throw error(.preconditionFailed)
            }
            Self.drop(deletion.item.id, &state)
        }
    }

    func copy(_ copy: Copy) async throws(ProviderError) -> Item {
        try await call("copy") { state throws(ProviderError) in
            guard var entry = state.entries[copy.item.id] else { throw error(.notFound) }
            if let bytes = state.changeOfOriginal {
                state.changeOfOriginal = nil
                entry.bytes = bytes
                entry.item = Self.store(entry, newContent: true, &state)
            }
            try free(copy.reservedID, "copy", &state)
            try free(copy.name, in: copy.parent.id, state)
            let made = Self.make(
                copy.name,
                copy.parent.id,
                entry.bytes,
                modified: traits.setsModifiedTime
                    ? copy.modifiedTime : entry.item.clientModifiedTime,
                id: copy.reservedID,
                &state
            )
            return state.told(made)
        }
    }

    func setAttributes(
        of item: ItemReference,
        to change: AttributeChange
    ) async throws(ProviderError) -> Item {
        try await call("setAttributes") { state throws(ProviderError) in
            guard var entry = state.entries[item.id] else { throw error(.notFound) }
            if let time = change.modifiedTime {
                entry.item.clientModifiedTime = time.truncated(to: .milliseconds)
            }
            if let text = change.description { entry.item.description = text }
            return state.told(Self.store(entry, newContent: false, &state))
        }
    }

    func makeHasher() -> any ContentHasher {
        passBlocking(.hashes)
        return MemoryHasher(weakness: state.withLock { $0.weakness })
    }
}

extension MemoryCloud.State {
    fileprivate mutating func page(of enumeration: MemoryCloud.Enumeration) -> ChangePage {
        // A parent may come after its children, as at the services.
        let left = entries.values.map(\.item)
            .filter { item in enumeration.last.map { Self.isNewer($0, item.id.rawValue) } ?? true }
            .sorted { Self.isNewer($0.id.rawValue, $1.id.rawValue) }
        let page = left.prefix(enumeration.size)
        let hasMore = page.count < left.count
        if let count = pagesBeforeHold {
            pagesBeforeHold = count > 1 ? count - 1 : nil
            if count <= 1 { held.insert(.feed) }
        }
        let place = "\(enumeration.end)|\(enumeration.size)|\(page.last?.id.rawValue ?? "")"
        return ChangePage(
            changes: page.map { .changed(told($0)) },
            cursor: Cursor(hasMore ? place : enumeration.end),
            hasMore: hasMore,
            isEnumeration: true
        )
    }

    /// Ids have numbers that grow; those that were reserved come first.
    private static func isNewer(_ one: String, _ other: String) -> Bool {
        (one.utf8.count, one) > (other.utf8.count, other)
    }
}
